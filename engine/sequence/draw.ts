/**
 * Draws a token from a surveyed row of logits: temperature, top-k and top-p in this order, as in transformers. Works in
 * blocks of 512 logits, so that later passes skip blocks that cannot matter. Does not create its random number.
 */
import { t } from '@vscode/l10n';
import type { SamplingParams } from '../protocol/tasks.ts';
import { RequestError } from '../protocol/errors.ts';

const BLOCK = 512;
const STEPS_PER_HALVING = 64;
/** A token that is this many halvings below the best is ignored: 150,000 such tokens weigh 2e-14. */
const HALVINGS = 63;
/** 2^-(i / STEPS_PER_HALVING). */
const POWERS = Float64Array.from({ length: HALVINGS * STEPS_PER_HALVING }, (_, i) => 2 ** (-i / STEPS_PER_HALVING));
const LN_STEP = Math.LN2 / STEPS_PER_HALVING;

/** See SamplingParams. */
type CutParams = Required<Pick<SamplingParams, 'temperature' | 'topK' | 'topP'>>;

/**
 * Draws a token with a probability proportional to exp((score - max) / temperature), after the cuts.
 * @param scores [vocabSize], the row that was surveyed last; @param max the highest of them; @param u uniform in [0, 1)
 */
export function draw(scores: Float32Array, max: number, params: CutParams, u: number): number {
  const { temperature, topK, topP } = params;
  const cutsK = topK > 0 && topK < scores.length;
  const total = cutsK ? 0 : sumOfExp(scores, max, 1 / temperature);
  if (!cutsK && topP === 1) return drawAny(scores, max, temperature, u * total);
  let ids = cutsK ? highest(scores, topK) : heaviest(scores, max, temperature, topP, total);
  const weights = ids.map((id) => Math.exp((scores[id]! - max) / temperature));
  if (topP < 1) {
    const mass = cutsK ? weights.reduce((sum, weight) => sum + weight, 0) : total;
    let length = 0;
    for (let held = 0; length < ids.length && held < topP * mass; length++) held += weights[length]!;
    ids = ids.slice(0, length);
  }
  // In order of ids, not of ranks: rounding may swap the ranks of two tokens, and must not change the choice.
  const kept = Array.from(ids.keys()).sort((a, b) => ids[a]! - ids[b]!);
  let left = u * kept.reduce((sum, i) => sum + weights[i]!, 0);
  for (const i of kept) {
    left -= weights[i]!;
    if (left < 0) return ids[i]!;
  }
  return ids[kept.at(-1)!]!;
}

/** Draws without cuts, which needs no order: finds the block in which `left` of the mass ends, then the token. */
function drawAny(scores: Float32Array, max: number, temperature: number, left: number): number {
  const factor = (Math.LOG2E * STEPS_PER_HALVING) / temperature;
  const end = HALVINGS * STEPS_PER_HALVING;
  let rest = left;
  let block = -1;
  for (let b = 0; b * BLOCK < scores.length; b++) {
    if (blockMass[b] === 0) continue;
    block = b;
    if (rest < blockMass[b]!) break;
    rest -= blockMass[b]!;
  }
  let chosen = -1;
  for (let id = block * BLOCK; id < Math.min((block + 1) * BLOCK, scores.length); id++) {
    const x = (max - scores[id]!) * factor;
    if (x >= end) continue;
    chosen = id;
    rest -= power(x);
    if (rest < 0) break;
  }
  return chosen;
}

const BINS_PER_HALVING = 4;
const bins = new Float64Array(HALVINGS * BINS_PER_HALVING);

/**
 * Tokens that hold at least `topP` of the mass, and a few more, heaviest first. A histogram of the distances from the
 * best token shows where to stop.
 */
function heaviest(scores: Float32Array, max: number, temperature: number, topP: number, total: number): number[] {
  const factor = (Math.LOG2E * STEPS_PER_HALVING) / temperature;
  const end = HALVINGS * STEPS_PER_HALVING;
  const perBin = STEPS_PER_HALVING / BINS_PER_HALVING;
  bins.fill(0);
  // Skips blocks that together hold less than the mass to be cut off.
  const spare = (total * (1 - topP)) / blockMax.length / 2;
  for (let b = 0, start = 0; start < scores.length; b++, start += BLOCK) {
    if (blockMass[b]! <= spare) continue;
    for (let id = start; id < Math.min(start + BLOCK, scores.length); id++) {
      const x = (max - scores[id]!) * factor;
      if (x < end) bins[(x / perBin) | 0]! += power(x);
    }
  }
  // A little more than topP, because of rounding at the edge.
  let left = total * Math.min(1, topP + 1e-5);
  let numBins = 0;
  while (left > 0 && numBins < bins.length) left -= bins[numBins++]!;
  return sorted(scores, max - (numBins / BINS_PER_HALVING) * Math.LN2 * temperature);
}

/** The highest logit of each block of the row surveyed last, [ceil(vocabSize / BLOCK)]. */
let blockMax = new Float32Array(0);
/** The sum of each block in the last sumOfExp, [ceil(vocabSize / BLOCK)]. */
let blockMass = new Float64Array(0);
/** [vocabSize] */
let sortKeys = new Float64Array(0);

/** Enlarges the scratch memory for a row of this length. */
function reserve(vocabSize: number): void {
  if (sortKeys.length >= vocabSize) return;
  blockMax = new Float32Array(Math.ceil(vocabSize / BLOCK));
  blockMass = new Float64Array(blockMax.length);
  sortKeys = new Float64Array(vocabSize);
}

/** Fills in `blockMax` and returns the highest logit. @throws RequestError if a logit is not finite */
export function survey(logits: Float32Array): number {
  reserve(logits.length);
  let highestOfAll = Number.NEGATIVE_INFINITY;
  let sound = true;
  for (let block = 0, start = 0; start < logits.length; block++, start += BLOCK) {
    const end = Math.min(start + BLOCK, logits.length);
    let max = Number.NEGATIVE_INFINITY;
    let i = start;
    // Four at a time, because most are not above the highest so far. NaN fails the comparison and is found.
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

/**
 * 2^(-x / STEPS_PER_HALVING) for x in [0, HALVINGS * STEPS_PER_HALVING), with a relative error below 3e-7. Uses a table
 * and, between its entries, a Taylor polynomial of degree 2. Math.exp takes several times as long.
 */
function power(x: number): number {
  const step = x | 0;
  const y = (x - step) * LN_STEP;
  return POWERS[step]! * (1 - y * (1 - 0.5 * y));
}

/** Sum of exp((v - max) * scale) over a surveyed row. Writes the sum of each block to `blockMass`. */
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
function sorted(scores: Float32Array, least: number): number[] {
  let count = 0;
  for (let b = 0, start = 0; start < scores.length; b++, start += BLOCK) {
    if (blockMax[b]! < least) continue;
    for (let id = start; id < Math.min(start + BLOCK, scores.length); id++) {
      if (scores[id]! < least) continue;
      // A number that sorts like the score, descending, then like the id. Sorting numbers is many times faster than
      // sorting with a comparison function.
      scoreFloat[0] = scores[id]! + 0;
      const bits = scoreBits[0]!;
      sortKeys[count++] = (bits >= 0x80000000 ? bits : 0x7fffffff - bits) * ID_RANGE + id;
    }
  }
  const keys = sortKeys.subarray(0, count).sort();
  return Array.from(keys, (key) => key % ID_RANGE);
}

/** The k highest tokens, best first. Uses a heap of k with the weakest on top. */
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
