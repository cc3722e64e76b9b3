/**
 * Copies the rows of slots out of one layer of the pool, into it and within it. Consecutive slots of a page are copied
 * at once, head
 * by head. The stretches are the same in every layer, so they are found once.
 */
import { copyRows, type KvRows, type KvShape } from './kvRows.ts';

/** Consecutive slots within one page. */
export interface SlotRun {
  /** In the list of slots. */
  readonly index: number;
  readonly place: number;
  /** First slot within its page. */
  readonly at: number;
  readonly length: number;
}

/** Runs of two lists, as long as each other. */
export type RunPair = readonly [from: SlotRun, to: SlotRun];

/** `places` of pages of `pageSlots`. No run goes beyond a piece of `pieceLength` of the list. */
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

/** What lies together in both of two lists. */
export function runPairs(from: Int32Array, to: Int32Array, pageSlots: number, places: Int32Array): RunPair[] {
  return slotRuns(from, pageSlots, places).flatMap(({ index, place, at, length }) =>
    slotRuns(to.subarray(index, index + length), pageSlots, places).map(
      (run): RunPair => [{ index, place, at: at + run.index, length: run.length }, run],
    ),
  );
}

/** Over rows of heads `head` and on. */
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

/** rows[from ..) of heads `head` and on. */
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
 * Arrays that grow and shrink where they are: growing copies nothing, and the old size is not held beside the new one.
 * Only
 * addresses are set aside for the most that may come; memory is taken for what is used.
 */

/**
 * A buffer of `bytes` bytes that may grow up to `mostBytes`; where no addresses are to be had for that, one of fixed
 * size.
 */
export function growable(bytes: number, mostBytes: number): ArrayBuffer {
  if (mostBytes > bytes) {
    try {
      return new ArrayBuffer(bytes, { maxByteLength: mostBytes });
    } catch (error) {
      // Every runtime has another bound.
      if (!(error instanceof RangeError)) throw error;
    }
  }
  return new ArrayBuffer(bytes);
}

/** Whether a buffer can take this size in place. */
export function holds(buffer: ArrayBuffer, bytes: number): boolean {
  return buffer.byteLength === bytes || (buffer.resizable && bytes <= buffer.maxByteLength);
}
