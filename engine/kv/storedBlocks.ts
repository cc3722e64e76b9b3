/**
 * Blocks of stored rows: how to read them and how many bytes they take. Pure. Blocks keep a split cheap: it copies one
 * block at most.
 * A compressed or spilled block is not copied; its parts share it. Which rows are lossy is not said here but of the
 * node (lossyRows.ts).
 */
import type { KvCodec } from './approx/codecs/kvCodec.ts';
import { arraysOf, type KvRows, type KvShape, newKvRows, sliceRows } from './kvRows.ts';

/** Tokens per block; the last block of a run, and blocks beside a split, may be shorter, compressed ones longer. */
export const BLOCK_TOKENS = 32;

/** Tokens that are stored together. */
export interface StoredBlock {
  readonly numTokens: number;
  /** Fewer than tokens where some were let go (see keptRows). */
  readonly numRows: number;
  /** Of the rows, in their context, where not all of them are there; otherwise null: they stand side by side. */
  readonly positions: Int32Array | null;
  /** In memory; of a part its share of them. */
  readonly bytes: number;
  /** What its rows are coded with; null: they are as the pool had them. */
  readonly codec: KvCodec | null;
  /** Encoded by `codec`; null where that is null, in a part, and out of memory. */
  readonly encoded: Uint8Array | null;
  /** Of its keys (see keySketch), where that is all of it that is in memory. */
  readonly sketch?: Uint8Array;
  /** Of a block that was cut, and stays whole: which, and from which of its tokens on. */
  readonly part?: { readonly of: StoredBlock; readonly from: number };
  /** Gives back what it has elsewhere. */
  free?(): void;
  /** Its rows, decoded where need be; not to be changed. */
  rows(): KvRows;
}

/** A handle to stored rows; what is in its blocks concerns only the store. */
export interface StoredRun {
  readonly numTokens: number;
  readonly numRows: number;
  readonly bytes: number;
  readonly blocks: readonly StoredBlock[];
}

/** Rows as they are, whatever they have been through. */
export function plainBlock(rows: KvRows): StoredBlock {
  return {
    numTokens: rows.numTokens,
    numRows: rows.numTokens,
    positions: null,
    bytes: bytesOf(rows),
    codec: null,
    encoded: null,
    rows: () => rows,
  };
}

/** Blocks of the usual length. */
export function plainBlocks(shape: KvShape, rows: KvRows): StoredBlock[] {
  return Array.from({ length: Math.ceil(rows.numTokens / BLOCK_TOKENS) }, (_, i) =>
    plainBlock(sliceRows(shape, rows, i * BLOCK_TOKENS, Math.min(rows.numTokens, (i + 1) * BLOCK_TOKENS))),
  );
}

/**
 * @param rows what is left of so many tokens, at these positions of their context. The last block stands for the tokens
 * that have none.
 */
export function keptBlocks(shape: KvShape, rows: KvRows, positions: Int32Array, numTokens: number): StoredBlock[] {
  const blocks: StoredBlock[] = [];
  for (let from = 0; from < positions.length; from += BLOCK_TOKENS) {
    const to = Math.min(positions.length, from + BLOCK_TOKENS);
    blocks.push(
      keptBlock(
        sliceRows(shape, rows, from, to),
        positions.slice(from, to),
        to === positions.length ? numTokens - from : to - from,
      ),
    );
  }
  return blocks;
}

function keptBlock(rows: KvRows, positions: Int32Array, numTokens: number): StoredBlock {
  return {
    numTokens,
    numRows: rows.numTokens,
    positions,
    bytes: bytesOf(rows) + positions.byteLength,
    codec: null,
    encoded: null,
    rows: () => rows,
  };
}

function bytesOf(rows: KvRows): number {
  return arraysOf(rows).reduce((bytes, { byteLength }) => bytes + byteLength, 0);
}

/**
 * @param encoded a run that this codec has encoded, of so many tokens. @param positions of its rows, where those are
 * fewer.
 */
export function codedBlock(
  codec: KvCodec,
  encoded: Uint8Array,
  numTokens: number,
  positions: Int32Array | null = null,
): StoredBlock {
  const rows = (): KvRows => codec.decode(encoded, positions).rows;
  return {
    numTokens,
    numRows: positions?.length ?? numTokens,
    positions,
    bytes: encoded.length + (positions?.byteLength ?? 0),
    codec,
    encoded,
    rows,
  };
}

/**
 * Tokens [from, to) of a block of which all rows are there. Rows as they are are copied; what is coded, or out of
 * memory, stays as it is
 * until the last of its parts is gone (see KvStore): decoded, or with a sketch each, they would take more than it does.
 */
export function partOf(shape: KvShape, block: StoredBlock, from: number, to: number): StoredBlock {
  const numTokens = to - from;
  if (!block.codec && !block.sketch) return plainBlock(sliceRows(shape, block.rows(), from, to));
  const { codec, sketch } = block;
  const of = wholeOf(block);
  const start = (block.part?.from ?? 0) + from;
  const bytesBefore = (token: number): number => Math.round((of.bytes * token) / of.numTokens);
  return {
    numTokens,
    numRows: numTokens,
    positions: null,
    // What all parts of a block have together is what it has.
    bytes: bytesBefore(start + numTokens) - bytesBefore(start),
    codec,
    encoded: null,
    ...(sketch && { sketch }),
    part: { of, from: start },
    rows: () => sliceRows(shape, of.rows(), start, start + numTokens),
  };
}

/** What a block is a part of; itself, unless it was cut. */
export function wholeOf(block: StoredBlock): StoredBlock {
  return block.part?.of ?? block;
}

export function runOf(blocks: readonly StoredBlock[]): StoredRun {
  let [numTokens, numRows, bytes] = [0, 0, 0];
  for (const block of blocks) {
    numTokens += block.numTokens;
    numRows += block.numRows;
    bytes += block.bytes;
  }
  return { numTokens, numRows, bytes, blocks };
}

/** In the store, as computed. */
export function exactBytesPerToken(shape: KvShape): number {
  return plainBlock(newKvRows(shape, 1)).bytes;
}
