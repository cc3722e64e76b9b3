/**
 * One row of logits in blocks of 512: the highest of each block, sums of exponentials, and the highest tokens. Later
 * passes
 * skip blocks that cannot matter. Holds scratch space of the row that was surveyed last; no row depends on an earlier
 * one.
 */
import { t } from '@vscode/l10n';
import { RequestError } from '../protocol/errors.ts';

export const BLOCK = 512;

/** Of the row that was surveyed last, [ceil(vocabSize / BLOCK)]: the highest logit of each block. */
export let blockMax = new Float32Array(0);
/** Of the last sumOfExp, [ceil(vocabSize / BLOCK)]: the sum of each block. */
export let blockMass = new Float64Array(0);
/** [vocabSize] */
let sortKeys = new Float64Array(0);

/** Makes room for a row of this length. */
function reserve(vocabSize: number): void {
  if (sortKeys.length >= vocabSize) return;
  blockMax = new Float32Array(Math.ceil(vocabSize / BLOCK));
  blockMass = new Float64Array(blockMax.length);
  sortKeys = new Float64Array(vocabSize);
}

/** Fills in `blockMax`; returns the highest logit. @throws RequestError where a logit is not finite */
export function survey(logits: Float32Array): number {
  reserve(logits.length);
  let highestOfAll = Number.NEGATIVE_INFINITY;
  let sound = true;
  for (let block = 0, start = 0; start < logits.length; block++, start += BLOCK) {
    const end = Math.min(start + BLOCK, logits.length);
    let max = Number.NEGATIVE_INFINITY;
    let i = start;
    // Four at a time, because most are not above the highest so far. NaN fails the comparison, so it is not skipped.
    for (; i + 3 < end; i += 4) {
      const a = logits[i]!;
      const b = logits[i + 1]!;
      const c = logits[i + 2]!;
      const d = logits[i + 3]!;
      if (a <= max && b <= max && c <= max && d <= max) continue;
      const higher = Math.max(a, b, c, d);
      if (Number.isNaN(higher)) sound = false;
      else max = Math.max(max, higher);
    }
    for (; i < end; i++) {
      if (Number.isNaN(logits[i]!)) sound = false;
      else max = Math.max(max, logits[i]!);
    }
    blockMax[block] = max;
    if (max > highestOfAll) highestOfAll = max;
  }
  if (!sound || !Number.isFinite(highestOfAll))
    throw new RequestError(
      'engineFailed',
      t('The model returned logits that are not finite. Ask again; if it happens again, choose another model.'),
    );
  return highestOfAll;
}

/** The first token with the highest logit. */
export function indexOfMax(logits: Float32Array, max: number): number {
  return logits.indexOf(max, blockMax.indexOf(max) * BLOCK);
}

export const STEPS_PER_HALVING = 64;
/** A token that is so many halvings below the best counts for nothing: 150,000 such tokens weigh 2e-14. */
export const HALVINGS = 63;
/** 2^-(i / STEPS_PER_HALVING). */
const POWERS = Float64Array.from({ length: HALVINGS * STEPS_PER_HALVING }, (_, i) => 2 ** (-i / STEPS_PER_HALVING));
const LN_STEP = Math.LN2 / STEPS_PER_HALVING;

/**
 * 2^(-x / STEPS_PER_HALVING) for x in [0, HALVINGS * STEPS_PER_HALVING), with a relative error below 3e-7: a table, and
 * a
 * Taylor polynomial of degree 2 between its entries. Math.exp takes several times as long.
 */
export function power(x: number): number {
  const step = x | 0;
  const y = (x - step) * LN_STEP;
  return POWERS[step]! * (1 - y * (1 - 0.5 * y));
}

/** Sum of exp((v - max) * scale) over a surveyed row; `blockMass` gets the sum of each block. */
export function sumOfExp(values: Float32Array, max: number, scale: number): number {
  const factor = scale * Math.LOG2E * STEPS_PER_HALVING;
  const end = HALVINGS * STEPS_PER_HALVING;
  let total = 0;
  for (let b = 0, start = 0; start < values.length; b++, start += BLOCK) {
    let even = 0;
    let odd = 0;
    if ((max - blockMax[b]!) * factor < end) {
      const blockEnd = Math.min(start + BLOCK, values.length);
      // Two sums, because each addition waits for the one before it.
      for (let i = start; i < blockEnd; i += 2) {
        const x = (max - values[i]!) * factor;
        const y = i + 1 < blockEnd ? (max - values[i + 1]!) * factor : end;
        if (x < end) even += power(x);
        if (y < end) odd += power(y);
      }
    }
    blockMass[b] = even + odd;
    total += even + odd;
  }
  return total;
}

const ID_RANGE = 2 ** 20;
const scoreBits = new Uint32Array(1);
const scoreFloat = new Float32Array(scoreBits.buffer);

/** Tokens with a score of at least `least`, highest first. */
export function sorted(scores: Float32Array, least: number): number[] {
  let count = 0;
  for (let b = 0, start = 0; start < scores.length; b++, start += BLOCK) {
    if (blockMax[b]! < least) continue;
    for (let id = start; id < Math.min(start + BLOCK, scores.length); id++) {
      if (scores[id]! < least) continue;
      // The bits of a float in the order of its value, turned round, before the id: numbers sort many times faster than
      // by a comparison.
      scoreFloat[0] = scores[id]! + 0;
      const bits = scoreBits[0]!;
      sortKeys[count++] = (bits >= 0x80000000 ? bits : 0x7fffffff - bits) * ID_RANGE + id;
    }
  }
  const keys = sortKeys.subarray(0, count).sort();
  return Array.from(keys, (key) => key % ID_RANGE);
}

/** The k highest tokens, best first. A heap of k, with the weakest on top. */
export function highest(scores: Float32Array, k: number): number[] {
  const heap: number[] = [];
  const weaker = (a: number, b: number): boolean => scores[a]! < scores[b]! || (scores[a] === scores[b] && a > b);
  const sink = (start: number): void => {
    for (let i = start; ; ) {
      let weakest = i;
      for (const child of [2 * i + 1, 2 * i + 2])
        if (child < heap.length && weaker(heap[child]!, heap[weakest]!)) weakest = child;
      if (weakest === i) return;
      [heap[i], heap[weakest]] = [heap[weakest]!, heap[i]!];
      i = weakest;
    }
  };
  const size = Math.min(k, scores.length);
  for (let id = 0; id < size; id++) heap.push(id);
  for (let i = size >> 1; i >= 0; i--) sink(i);
  let least = size > 0 ? scores[heap[0]!]! : Number.POSITIVE_INFINITY;
  for (let b = Math.floor(size / BLOCK); b * BLOCK < scores.length; b++) {
    if (blockMax[b]! <= least) continue;
    for (let id = Math.max(size, b * BLOCK); id < Math.min((b + 1) * BLOCK, scores.length); id++) {
      if (scores[id]! <= least) continue;
      heap[0] = id;
      sink(0);
      least = scores[heap[0]!]!;
    }
  }
  return heap.sort((a, b) => (weaker(b, a) ? -1 : 1));
}
