/**
 * Stored rows: how to read blocks of them, how many bytes these take, and which rows of a node are lossy. Pure. Does
 * not decide what is stored; that is up to KvStore.
 */
import type { KvCodec } from './approx/codecs/kvCodec.ts';
import { arraysOf, type KvRows, type KvShape, newKvRows, sliceRows } from './kvRows.ts';

/** Tokens per block. The last block of a run and blocks next to a split may be shorter, compressed blocks longer. */
export const BLOCK_TOKENS = 32;

/** Tokens that are stored together. Because of blocks a split copies one block at most. */
export interface StoredBlock {
  readonly numTokens: number;
  /** Fewer than tokens in a pruned node (see keptRows). */
  readonly numRows: number;
  /** Positions of the rows in their context. Null: the rows are consecutive. */
  readonly positions: Int32Array | null;
  /** Bytes in memory. A part has its share of the whole block. */
  readonly bytes: number;
  /** Codec of the rows. Null: exact rows. */
  readonly codec: KvCodec | null;
  /** Rows encoded by `codec`. Null without a codec, in a part, and in a spilled block. */
  readonly encoded: Uint8Array | null;
  /** Sketch of the keys (see keySketch). Only spilled blocks have one. */
  readonly sketch?: Uint8Array;
  /** Set in a part of a block that was cut: the whole block, and the first of its tokens. */
  readonly part?: { readonly of: StoredBlock; readonly from: number };
  /** Frees a spilled block in the spill file. */
  free?(): void;
  /** The rows, decoded or read from disk if necessary. Must not be changed. */
  rows(): KvRows;
}

/** A handle to stored rows. Only the store may use its blocks. */
export interface StoredRun {
  readonly numTokens: number;
  readonly numRows: number;
  readonly bytes: number;
  readonly blocks: readonly StoredBlock[];
}

/** A block of rows that are not compressed. They may have been through a lossy codec earlier. */
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

/** Blocks of BLOCK_TOKENS tokens. */
export function plainBlocks(shape: KvShape, rows: KvRows): StoredBlock[] {
  return Array.from({ length: Math.ceil(rows.numTokens / BLOCK_TOKENS) }, (_, i) =>
    plainBlock(sliceRows(shape, rows, i * BLOCK_TOKENS, Math.min(rows.numTokens, (i + 1) * BLOCK_TOKENS))),
  );
}

/**
 * Blocks of a pruned run. `rows`: what is left of `numTokens` tokens, at these positions of their context. The tokens
 * without rows count to the last block.
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

/** `encoded`: rows of so many tokens, encoded by `codec`. `positions`: of the rows, where some tokens have none. */
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
 * Tokens [from, to) of a block that is not pruned. Exact rows are copied. A compressed or spilled block stays whole
 * until its last part is dropped (see KvStore), because decoded parts, or parts with a sketch each, would take more
 * bytes.
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
    // Rounded so that the bytes of all parts add up to those of the block.
    bytes: bytesBefore(start + numTokens) - bytesBefore(start),
    codec,
    encoded: null,
    ...(sketch && { sketch }),
    part: { of, from: start },
    rows: () => sliceRows(shape, of.rows(), start, start + numTokens),
  };
}

/** The block that a part belongs to; the block itself, unless it was cut. */
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

/** Bytes of an exact row in the store. */
export function exactBytesPerToken(shape: KvShape): number {
  return plainBlock(newKvRows(shape, 1)).bytes;
}

/** Rows [from, to) of a node. */
interface LossyRows {
  readonly from: number;
  readonly to: number;
  /** The lossy codec, or another approximation (see SKETCH). */
  readonly codec: string;
}

/**
 * Ranges of rows that have been through a lossy step, ascending and disjoint. All other rows of the node are exact. The
 * ranges stay the same wherever the rows are. Pruning is marked on the node as a whole (RadixNode.pruned), because a
 * pruned node is never split.
 */
export type Lossy = readonly LossyRows[];

/** The ranges within rows [from, to), relative to `from`. */
export function lossyWithin(lossy: Lossy, from: number, to = Number.POSITIVE_INFINITY): Lossy {
  return lossy
    .map((rows) => ({ from: Math.max(rows.from, from) - from, to: Math.min(rows.to, to) - from, codec: rows.codec }))
    .filter((rows) => rows.from < rows.to);
}

/** Whether rows [from, to) are exact. */
export function isExact(lossy: Lossy, from: number, to: number): boolean {
  return lossyWithin(lossy, from, to).length === 0;
}

/**
 * The union of two sets of ranges of one node. @throws Error where they overlap: rows must not be encoded twice,
 * because only the loss of one pass is measured.
 */
export function joinLossy(one: Lossy, other: Lossy): Lossy {
  const joined: LossyRows[] = [];
  for (const rows of [...one, ...other].filter(({ from, to }) => from < to).sort((a, b) => a.from - b.from)) {
    const last = joined.at(-1);
    if (last && rows.from < last.to)
      throw new Error(
        `Rows ${rows.from} to ${Math.min(rows.to, last.to)} have been through ${last.codec}, and now through ${rows.codec}.`,
      );
    if (last?.to === rows.from && last.codec === rows.codec) joined[joined.length - 1] = { ...last, to: rows.to };
    else joined.push(rows);
  }
  return joined;
}

/** The codecs without duplicates. */
export function codecsOf(lossy: Lossy): string[] {
  return [...new Set(lossy.map(({ codec }) => codec))];
}
