/**
 * Pages of the pool: copies rows of slots into a layer, out of it and within it, and computes what attending to pages
 * costs. Does not know who holds a slot.
 */
import { copyRows, type KvRows, type KvShape } from './kvRows.ts';

/** Consecutive slots within one page. */
export interface SlotRun {
  /** Index in the list of slots. */
  readonly index: number;
  readonly place: number;
  /** First slot within its page. */
  readonly at: number;
  readonly length: number;
}

/** Runs of two lists of equal length. */
export type RunPair = readonly [from: SlotRun, to: SlotRun];

/**
 * Splits a list of slots into runs, which are copied at once and are the same in every layer. `places`: of pages of
 * `pageSlots` slots. No run crosses a multiple of `pieceLength` in the list.
 */
export function slotRuns(
  slots: Int32Array,
  pageSlots: number,
  places: Int32Array,
  pieceLength = Number.POSITIVE_INFINITY,
): SlotRun[] {
  const runs: SlotRun[] = [];
  for (let i = 0; i < slots.length; ) {
    const slot = slots[i]!;
    const page = Math.floor(slot / pageSlots);
    const most = Math.min(slots.length - i, (page + 1) * pageSlots - slot, pieceLength - (i % pieceLength));
    let length = 1;
    while (length < most && slots[i + length] === slot + length) length++;
    runs.push({ index: i, place: places[page]!, at: slot - page * pageSlots, length });
    i += length;
  }
  return runs;
}

/** Runs that are contiguous in both lists. */
export function runPairs(from: Int32Array, to: Int32Array, pageSlots: number, places: Int32Array): RunPair[] {
  return slotRuns(from, pageSlots, places).flatMap(({ index, place, at, length }) =>
    slotRuns(to.subarray(index, index + length), pageSlots, places).map(
      (run): RunPair => [{ index, place, at: at + run.index, length: run.length }, run],
    ),
  );
}

/** Copies runs of a layer to heads `head` and on of `rows`. */
export function copyOut(
  layer: KvRows,
  runs: readonly SlotRun[],
  rows: KvRows,
  head: number,
  { kvHeads, headSize }: KvShape,
): void {
  for (const { index, place, at, length } of runs) {
    for (let h = 0; h < kvHeads; h++) copyRows(layer, place * kvHeads + h, at, rows, head + h, index, length, headSize);
  }
}

/** Copies rows[from ..) of heads `head` and on to runs of a layer. */
export function copyIn(
  layer: KvRows,
  runs: readonly SlotRun[],
  rows: KvRows,
  head: number,
  from: number,
  { kvHeads, headSize }: KvShape,
): void {
  for (const { index, place, at, length } of runs) {
    for (let h = 0; h < kvHeads; h++)
      copyRows(rows, head + h, from + index, layer, place * kvHeads + h, at, length, headSize);
  }
}

export function copyWithin(layer: KvRows, pairs: readonly RunPair[], { kvHeads, headSize }: KvShape): void {
  for (const [from, to] of pairs) {
    for (let h = 0; h < kvHeads; h++)
      copyRows(layer, from.place * kvHeads + h, from.at, layer, to.place * kvHeads + h, to.at, to.length, headSize);
  }
}

/**
 * A buffer of `bytes` bytes that can grow to `mostBytes` in place: growing copies nothing and needs no second buffer.
 * Only addresses are reserved for `mostBytes`. Where that is impossible, the buffer has a fixed size.
 */
export function growable(bytes: number, mostBytes: number): ArrayBuffer {
  if (mostBytes > bytes) {
    try {
      return new ArrayBuffer(bytes, { maxByteLength: mostBytes });
    } catch (error) {
      // The limit differs between runtimes.
      if (!(error instanceof RangeError)) throw error;
    }
  }
  return new ArrayBuffer(bytes);
}

/** Whether a buffer can take this size in place. */
export function holds(buffer: ArrayBuffer, bytes: number): boolean {
  return buffer.byteLength === bytes || (buffer.resizable && bytes <= buffer.maxByteLength);
}

/**
 * Price of a gathered page, in pages of shared attention. Measured with the shape of Qwen2.5-0.5B, all sequences on the
 * same pages: 0.95 to 1.1 for one token per sequence, up to 1.25 for 4 to 16 tokens each; the same with large key
 * biases.
 */
const GATHERED_PRICE = 1.2;
/** Most bytes that are gathered for all tokens of a step in one layer, unless all pages together have more. */
const MAX_GATHERED = 64e6;

export interface Attended {
  readonly gathered: boolean;
  /** What each token pays for, in pages of shared attention; at least one. */
  readonly pages: number;
}

/**
 * Pure: whether the tokens of a step attend to all pages together, or each to the pages of its own sequence. Together
 * nothing is copied, but every token pays for every page. Gathered, each token's pages are copied, as many for each as
 * the longest sequence has.
 *
 * `most`: pages of the longest sequence. `all`: of all sequences together. `pageBytes`: of a page in one layer.
 */
export function attendedPages(numTokens: number, most: number, all: number, pageBytes: number): Attended {
  const pages = GATHERED_PRICE * most;
  const gathered = pages < all && numTokens * most * pageBytes <= Math.max(MAX_GATHERED, all * pageBytes);
  return { gathered, pages: Math.max(1, gathered ? pages : all) };
}

/** How a step attends to the pool. */
export interface Attention {
  /**
   * Gathered attention: each token attends to its own sequence's pages. False: shared attention, all tokens to all
   * pages.
   */
  readonly gathered: boolean;
  /** The pages of each list of slots, in order of appearance. */
  readonly own: readonly ReadonlySet<number>[];
  /** The range of places that holds all pages; at least one. */
  readonly first: number;
  readonly count: number;
  /** Columns that a token attends to, P, and their cost in columns of shared attention. */
  readonly columns: number;
  readonly paidColumns: number;
}

/** First of `at.length` adjacent places that contain most of the places `at` (ascending), of `numPlaces`. */
export function densestStart(at: readonly number[], numPlaces: number): number {
  let best = 0;
  let most = 0;
  for (let i = 0, j = 0; i < at.length; i++) {
    while (j < at.length && at[j]! < at[i]! + at.length) j++;
    if (j - i <= most) continue;
    most = j - i;
    best = at[i]!;
  }
  return Math.min(best, numPlaces - at.length);
}
