/**
 * The KV store: runs of tokens outside the window, in blocks of host memory, lossless. Owns the bytes and their
 * accounting; which run belongs to which tokens is the prefix tree's business, when to store or drop is KvMemory's.
 * Blocks keep a split cheap (it copies at most one) and are the unit that a codec or a disk tier would work on.
 */
import { arraysOf, copyRows, type KvRows, type KvShape, newKvRows } from './kvRows.ts';
import type { KvWindow } from './window.ts';

/** Tokens per block; the last block of a run, and blocks beside a split, may be shorter. */
export const BLOCK_TOKENS = 32;

/** A handle to stored rows; only the store looks inside. */
export interface StoredRun {
  readonly numTokens: number;
  readonly bytes: number;
  readonly blocks: readonly KvRows[];
}

function bytesOf(rows: KvRows): number {
  return arraysOf(rows).reduce((bytes, { byteLength }) => bytes + byteLength, 0);
}

function runOf(blocks: readonly KvRows[]): StoredRun {
  let numTokens = 0;
  let bytes = 0;
  for (const block of blocks) {
    numTokens += block.numTokens;
    bytes += bytesOf(block);
  }
  return { numTokens, bytes, blocks };
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

export class KvStore {
  readonly #shape: KvShape;
  /** Bytes of all stored runs. */
  bytes = 0;
  readonly bytesPerToken: number;

  constructor(shape: KvShape) {
    this.#shape = shape;
    this.bytesPerToken = bytesOf(newKvRows(shape, 1));
  }

  /** Copies the rows of `slots` out of the window. */
  put(window: KvWindow, slots: Int32Array): StoredRun {
    const blocks: KvRows[] = [];
    for (let at = 0; at < slots.length; at += BLOCK_TOKENS) blocks.push(window.read(slots.subarray(at, at + BLOCK_TOKENS)));
    const run = runOf(blocks);
    this.bytes += run.bytes;
    return run;
  }

  /** Copies a run into `slots`; its first token stands at position `startIndex`. The run stays. */
  copyTo(window: KvWindow, run: StoredRun, slots: Int32Array, startIndex: number): void {
    let at = 0;
    for (const block of run.blocks) {
      window.write(slots.subarray(at, at + block.numTokens), block, 0, startIndex + at);
      at += block.numTokens;
    }
  }

  /** Rows [from, to) of a run, a copy. */
  read(run: StoredRun, from: number, to: number): KvRows {
    const rows = newKvRows(this.#shape, to - from);
    let start = 0;
    for (const block of run.blocks) {
      copyTokens(this.#shape, block, Math.max(0, from - start), Math.min(block.numTokens, to - start), rows, Math.max(0, start - from));
      start += block.numTokens;
    }
    return rows;
  }

  /** The first `at` tokens and the rest; `run` is void afterwards. */
  split(run: StoredRun, at: number): [StoredRun, StoredRun] {
    const upper: KvRows[] = [];
    const lower: KvRows[] = [];
    let start = 0;
    for (const block of run.blocks) {
      const cut = Math.max(0, Math.min(block.numTokens, at - start));
      if (cut === block.numTokens) upper.push(block);
      else if (cut === 0) lower.push(block);
      else {
        upper.push(sliceRows(this.#shape, block, 0, cut));
        lower.push(sliceRows(this.#shape, block, cut, block.numTokens));
      }
      start += block.numTokens;
    }
    return [runOf(upper), runOf(lower)];
  }

  drop(run: StoredRun): void {
    this.bytes -= run.bytes;
  }
}
