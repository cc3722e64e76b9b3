/**
 * The KV store: runs of tokens outside the window, in blocks of host memory. Owns the bytes and their accounting; which run
 * belongs to which tokens is the prefix tree's business, when to store, compress or drop is KvMemory's.
 * A run comes in losslessly and may be compressed later, block by block. Blocks keep a split cheap: it copies at most one.
 */
import type { RunPlace } from './codecs/codecFormat.ts';
import type { KvCodec } from './codecs/kvCodec.ts';
import type { Compression } from './compression.ts';
import type { SpillFile } from './disk/spillFile.ts';
import { arraysOf, copyRows, type KvRows, type KvShape, newKvRows, rowsFromBytes, rowsToBytes } from './kvRows.ts';
import { sketchKeys } from './keySketch.ts';
import type { KvWindow } from './window.ts';

/** Tokens per block; the last block of a run, and blocks beside a split, may be shorter, compressed ones longer. */
export const BLOCK_TOKENS = 32;

/** Tokens that are stored together. */
export interface StoredBlock {
  readonly numTokens: number;
  /** Fewer than tokens where some were let go (see keptRows). */
  readonly numRows: number;
  /** Of the rows, in their context, where not all of them are there; otherwise null: they stand side by side. */
  readonly positions: Int32Array | null;
  readonly bytes: number;
  /** What its rows are coded with; null: they are as the window had them. */
  readonly codec: KvCodec | null;
  /** Encoded by `codec`; null where that is null. */
  readonly encoded: Uint8Array | null;
  /** Not coded any more, but its rows have been through a lossy codec, or some have: coded again they would lose once more, so they never are. */
  readonly isLossy?: boolean;
  /** Of its keys (see keySketch), where that is all of it that is in memory. */
  readonly sketch?: Uint8Array;
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
  /** Of its rows those that may be coded with loss. */
  readonly numUncoded: number;
  readonly blocks: readonly StoredBlock[];
}

/** Rows as they are; `isLossy`: as a codec has left them. */
export function exactBlock(rows: KvRows, isLossy = false): StoredBlock {
  return { numTokens: rows.numTokens, numRows: rows.numTokens, positions: null, bytes: bytesOf(rows), codec: null, encoded: null, isLossy, rows: () => rows };
}

/** Blocks of the usual length. */
export function exactBlocks(shape: KvShape, rows: KvRows): StoredBlock[] {
  return Array.from({ length: Math.ceil(rows.numTokens / BLOCK_TOKENS) }, (_, i) => exactBlock(sliceRows(shape, rows, i * BLOCK_TOKENS, Math.min(rows.numTokens, (i + 1) * BLOCK_TOKENS))));
}

/** @param rows what is left of so many tokens, at these positions of their context. The last block stands for the tokens that have none. */
export function keptBlocks(shape: KvShape, rows: KvRows, positions: Int32Array, numTokens: number): StoredBlock[] {
  const blocks: StoredBlock[] = [];
  for (let from = 0; from < positions.length; from += BLOCK_TOKENS) {
    const to = Math.min(positions.length, from + BLOCK_TOKENS);
    blocks.push(keptBlock(sliceRows(shape, rows, from, to), positions.slice(from, to), to === positions.length ? numTokens - from : to - from));
  }
  return blocks;
}

function keptBlock(rows: KvRows, positions: Int32Array, numTokens: number): StoredBlock {
  return { numTokens, numRows: rows.numTokens, positions, bytes: bytesOf(rows) + positions.byteLength, codec: null, encoded: null, rows: () => rows };
}

function bytesOf(rows: KvRows): number {
  return arraysOf(rows).reduce((bytes, { byteLength }) => bytes + byteLength, 0);
}

/** @param encoded a run that this codec has encoded, of so many tokens. @param positions of its rows, where those are fewer. */
export function codedBlock(codec: KvCodec, encoded: Uint8Array, numTokens: number, positions: Int32Array | null = null): StoredBlock {
  const rows = (): KvRows => codec.decode(encoded).rows;
  return { numTokens, numRows: positions?.length ?? numTokens, positions, bytes: encoded.length + (positions?.byteLength ?? 0), codec, encoded, rows };
}

export function runOf(blocks: readonly StoredBlock[]): StoredRun {
  let [numTokens, numRows, bytes, numUncoded] = [0, 0, 0, 0];
  for (const block of blocks) {
    numTokens += block.numTokens;
    numRows += block.numRows;
    bytes += block.bytes;
    if (isUncoded(block)) numUncoded += block.numRows;
  }
  return { numTokens, numRows, bytes, numUncoded, blocks };
}

function isUncoded({ codec, sketch, isLossy }: StoredBlock): boolean {
  return codec === null && !sketch && !isLossy;
}

/** Copies tokens [from, to) of `rows` over those of `target` from `at` on; nothing where to <= from. */
function copyTokens({ numLayers, kvHeads, headSize }: KvShape, rows: KvRows, from: number, to: number, target: KvRows, at: number): void {
  if (to <= from) return;
  for (let h = 0; h < numLayers * kvHeads; h++) copyRows(rows, h, from, target, h, at, to - from, headSize);
}

/** Copies tokens [from, to) out of `rows`. */
export function sliceRows(shape: KvShape, rows: KvRows, from: number, to: number): KvRows {
  const slice = newKvRows(shape, to - from);
  copyTokens(shape, rows, from, to, slice, 0);
  return slice;
}

/** Rows of tokens one behind the other. */
export function joinRows(shape: KvShape, parts: readonly KvRows[]): KvRows {
  const all = newKvRows(shape, parts.reduce((sum, { numTokens }) => sum + numTokens, 0));
  let at = 0;
  for (const part of parts) {
    copyTokens(shape, part, 0, part.numTokens, all, at);
    at += part.numTokens;
  }
  return all;
}

/** In the store, as computed. */
export function exactBytesPerToken(shape: KvShape): number {
  return exactBlock(newKvRows(shape, 1)).bytes;
}

/** Bytes that are kept free where blocks of all rows are compressed: what splitting one, of the codec with the largest, may take beyond what it took. */
export function splitReserve(compression: Compression | null, shape: KvShape): number {
  if (!compression || compression.only !== null) return 0;
  return Math.max(...compression.rungs.map(({ codec }) => codec.format.blockTokens)) * exactBytesPerToken(shape);
}

export class KvStore {
  readonly #shape: KvShape;
  readonly #spillFile: SpillFile | null;
  /** Bytes in memory of all stored runs. */
  bytes = 0;
  /** Of what has not been compressed; of a row whose position is stored with it. */
  readonly bytesPerToken: number;
  readonly bytesPerKeptRow: number;

  /** @param spillFile where blocks go that are not even to be in memory; null: nowhere */
  constructor(shape: KvShape, spillFile: SpillFile | null = null) {
    this.#shape = shape;
    this.#spillFile = spillFile;
    this.bytesPerToken = exactBytesPerToken(shape);
    this.bytesPerKeptRow = this.bytesPerToken + Int32Array.BYTES_PER_ELEMENT;
  }

  /** Copies the rows of `slots` out of the window; `isLossy`: some have been through a codec before they came there. */
  put(window: KvWindow, slots: Int32Array, isLossy = false): StoredRun {
    const blocks: StoredBlock[] = [];
    for (let at = 0; at < slots.length; at += BLOCK_TOKENS) blocks.push(exactBlock(window.read(slots.subarray(at, at + BLOCK_TOKENS)), isLossy));
    return this.add(blocks);
  }

  /** Takes blocks over that come from elsewhere. */
  add(blocks: readonly StoredBlock[]): StoredRun {
    const run = runOf(blocks);
    this.bytes += run.bytes;
    return run;
  }

  /** The same of a run of so many tokens that has fewer rows. */
  putKept(window: KvWindow, slots: Int32Array, numTokens: number): StoredRun {
    return this.add(keptBlocks(this.#shape, window.read(slots), window.positionsOf(slots), numTokens));
  }

  /** Copies a run's rows into `slots`; its first token stands at position `startIndex`. The run stays. */
  copyTo(window: KvWindow, run: StoredRun, slots: Int32Array, startIndex: number): void {
    let at = 0;
    for (const block of run.blocks) {
      window.write(slots.subarray(at, at + block.numRows), block.rows(), 0, block.positions ?? startIndex + at);
      at += block.numRows;
    }
  }

  /** Rows [from, to) of a run, a copy. */
  read(run: StoredRun, from: number, to: number): KvRows {
    const rows = newKvRows(this.#shape, to - from);
    let start = 0;
    for (const block of run.blocks) {
      const [first, last] = [Math.max(0, from - start), Math.min(block.numTokens, to - start)];
      if (first < last) copyTokens(this.#shape, block.rows(), first, last, rows, Math.max(0, start - from));
      start += block.numTokens;
    }
    return rows;
  }

  /**
   * The first `at` tokens and the rest; `run` is void afterwards. The two halves of a compressed block keep the rows that it has
   * now, uncompressed: coding them once more would lose more.
   */
  split(run: StoredRun, at: number): [StoredRun, StoredRun] {
    const upper: StoredBlock[] = [];
    const lower: StoredBlock[] = [];
    let start = 0;
    for (const block of run.blocks) {
      const cut = Math.max(0, Math.min(block.numTokens, at - start));
      if (cut === block.numTokens) upper.push(block);
      else if (cut === 0) lower.push(block);
      else {
        const rows = block.rows();
        const isLossy = block.isLossy === true || (block.codec !== null && !block.codec.lossless);
        const half = (from: number, to: number): StoredBlock => exactBlock(sliceRows(this.#shape, rows, from, to), isLossy);
        const halves = [half(0, cut), half(cut, block.numTokens)] as const;
        const [first, second] = block.sketch ? halves.map((half) => this.#spilled(half) ?? half) : halves;
        upper.push(first!);
        lower.push(second!);
        block.free?.();
      }
      start += block.numTokens;
    }
    const runs = [runOf(upper), runOf(lower)] as [StoredRun, StoredRun];
    this.bytes += runs[0].bytes + runs[1].bytes - run.bytes;
    return runs;
  }

  /** The run with its next blocks that no codec has been at as one of `codec`, or null: it has none. `run` is void afterwards. */
  compress(run: StoredRun, codec: KvCodec, { startIndex, contextEnd }: RunPlace): StoredRun | null {
    const first = run.blocks.findIndex(isUncoded);
    if (first < 0) return null;
    let end = first;
    let numTokens = 0;
    // Where rows are missing, each block has positions of its own.
    const { positions } = run.blocks[first]!;
    while (end < run.blocks.length && isUncoded(run.blocks[end]!) && numTokens < (positions ? 1 : codec.format.blockTokens)) numTokens += run.blocks[end++]!.numTokens;
    const from = runOf(run.blocks.slice(0, first)).numTokens;
    const rows = joinRows(this.#shape, run.blocks.slice(first, end).map((block) => block.rows()));
    const encoded = codec.encode(rows, { startIndex: startIndex + from, contextEnd });
    const compressed = runOf([...run.blocks.slice(0, first), codedBlock(codec, encoded, numTokens, positions), ...run.blocks.slice(end)]);
    this.bytes += compressed.bytes - run.bytes;
    return compressed;
  }

  /** Blocks that are out of memory in the place of these, taken one by one, but for a sketch of the keys; null where the disk has no room. */
  spill(blocks: Iterable<StoredBlock>): StoredRun | null {
    const spilled: StoredBlock[] = [];
    const mine: StoredBlock[] = [];
    for (const block of blocks) {
      const next = block.sketch ? block : this.#spilled(block);
      if (!next) {
        for (const each of mine) each.free!();
        return null;
      }
      if (next !== block) mine.push(next);
      spilled.push(next);
    }
    return runOf(spilled);
  }

  /** One run in the place of another. */
  replace(run: StoredRun | null, by: StoredRun): void {
    this.bytes += by.bytes - (run?.bytes ?? 0);
  }

  #spilled({ numTokens, numRows, positions, codec, isLossy, ...block }: StoredBlock): StoredBlock | null {
    const [shape, file] = [this.#shape, this.#spillFile!];
    const rows = block.rows();
    const piece = file.put(block.encoded ?? rowsToBytes(rows));
    if (!piece) return null;
    const sketch = sketchKeys(shape, rows);
    const read = (): KvRows => (codec ? codec.decode(file.read(piece)).rows : rowsFromBytes(shape, numRows, file.read(piece)));
    return { numTokens, numRows, positions, codec, isLossy, encoded: null, sketch, bytes: sketch.length + (positions?.byteLength ?? 0), rows: read, free: () => file.free(piece) };
  }

  /** Tokens of the longest beginning of a run that is whole blocks and at most `at` tokens. */
  wholeBlocks(run: StoredRun, at: number): number {
    let numTokens = 0;
    for (const block of run.blocks) {
      if (numTokens + block.numTokens > at) break;
      numTokens += block.numTokens;
    }
    return numTokens;
  }

  drop(run: StoredRun): void {
    for (const block of run.blocks) block.free?.();
    this.bytes -= run.bytes;
  }
}
