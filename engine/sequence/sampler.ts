/**
 * PURE: logits and parameters to a token. The random number depends on (seed, tokenIndex) alone, so that what else is
 * in the batch, or how many tokens a step verifies, cannot change a choice. Order as in transformers: repetition penalty,
 * temperature, top-k, top-p, min-p. Log-probabilities are those of the model itself, before penalty, temperature and cuts
 * (vLLM's `raw_logprobs`), with what may be copied, and given what the text has to begin with. Ties go to the lower token id.
 *
 * A row has 150,000 logits, and a step has a row for each sequence and for each drafted token. One pass finds the highest
 * of each block of 512; what follows passes over blocks that cannot matter. The exponential of every logit is taken only
 * where the distribution is needed: to draw, or for a log-probability that was asked for. Scratch space is kept between
 * calls, so a row allocates next to nothing.
 */
import { t } from '@vscode/l10n';
import { blend, type OtherNext } from './blending.ts';
import { RequestError } from '../protocol/errors.ts';
import type { SamplingParams, TokenLogprob } from '../protocol/tasks.ts';

export type SamplerParams = Required<
  Pick<
    SamplingParams,
    'temperature' | 'topP' | 'topK' | 'minP' | 'repetitionPenalty' | 'logprobs' | 'topLogprobs' | 'seed'
  >
>;

/** Below it the best token has all the probability that float32 scores can tell apart, and their quotients overflow. */
const MIN_TEMPERATURE = 1e-6;

export interface Sampled {
  tokenId: number;
  /** null where neither it nor alternatives were asked for. */
  logprob: number | null;
  /** The most probable tokens, best first. */
  topLogprobs: TokenLogprob[];
}

/**
 * @param logits [vocabSize]; changed by the repetition penalty while this runs, and put back
 * @param previous the sequence's tokens so far, prompt included: what the repetition penalty applies to
 * @param tokenIndex position of the new token in the sequence
 * @param allowed tokens of which it has to be one; null or none: any
 * @param other what may come next besides what the model says; mixed in before everything else
 * @throws RequestError engineFailed where a logit, or what the parameters make of it, is not finite
 */
export function sample(
  logits: Float32Array,
  params: SamplerParams,
  previous: readonly number[],
  tokenIndex: number,
  allowed: readonly number[] | null = null,
  other: OtherNext | null = null,
): Sampled {
  reserve(logits.length);
  const max = survey(logits);
  const blended = other ? blend(logits, logSum(logits, max), max, other) : null;
  const scores = allowed?.length ? onlyThese(logits, allowed) : logits;
  try {
    return choice(scores, blended || scores !== logits ? survey(scores) : max, params, previous, tokenIndex);
  } finally {
    // Also where nothing can be chosen: the next row is another sequence's.
    if (scores !== logits) for (const id of allowed!) scores[id] = Number.NEGATIVE_INFINITY;
    blended?.undo();
  }
}

/** @param scores [vocabSize], the row that was surveyed last; @param max the highest of them */
function choice(
  scores: Float32Array,
  max: number,
  params: SamplerParams,
  previous: readonly number[],
  tokenIndex: number,
): Sampled {
  const { temperature, repetitionPenalty, topLogprobs: numTop } = params;
  const logZ = params.logprobs || numTop > 0 ? logSum(scores, max) : null;
  // What must not come is no alternative.
  const top = numTop > 0 ? highest(scores, numTop).filter((id) => scores[id]! > Number.NEGATIVE_INFINITY) : [];
  const choose = (best: number): number =>
    temperature < MIN_TEMPERATURE
      ? indexOfMax(scores, best)
      : draw(scores, best, params, uniform(params.seed, tokenIndex));
  let tokenId: number;
  if (repetitionPenalty === 1) tokenId = choose(max);
  else {
    const numChanged = penalise(scores, previous, repetitionPenalty);
    tokenId = choose(survey(scores));
    for (let i = 0; i < numChanged; i++) scores[changedIds[i]!] = changedLogits[i]!;
  }
  return {
    tokenId,
    logprob: logZ === null ? null : scores[tokenId]! - logZ,
    topLogprobs: top.map((id) => ({ tokenId: id, logprob: scores[id]! - logZ! })),
  };
}

/** Log of the sum of exp of a row that was surveyed last. */
const logSum = (scores: Float32Array, max: number): number => max + Math.log(sumOfExp(scores, max, 1));

/** In [0, 1), 53 bits, from a hash of the two (murmur3's finaliser): a counter generator, no state. */
export function uniform(seed: number, index: number): number {
  const low = mix(mix(mix(seed | 0) ^ Math.floor(seed / 2 ** 32)) + Math.imul(index, 0x9e3779b1));
  const high = mix(low ^ 0x85ebca6b ^ index);
  return ((high >>> 6) * 2 ** 27 + (low >>> 5)) / 2 ** 53;
}

function mix(x: number): number {
  let h = x ^ (x >>> 16);
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return h ^ (h >>> 16);
}

const BLOCK = 512;

/** Of the row that was surveyed last, [ceil(vocabSize / BLOCK)]: the highest of each block, and what it weighs. */
let blockMax = new Float32Array(0);
let blockMass = new Float64Array(0);
/** Tokens that the penalty has changed, and what they were; and by token, the last row whose penalty has seen it. */
let changedIds = new Int32Array(0);
let changedLogits = new Float32Array(0);
let seenIn = new Float64Array(0);
let numRows = 0;
/** [vocabSize] */
let sortKeys = new Float64Array(0);

/** [vocabSize] of -Infinity between calls. */
let noScores = new Float32Array(0);

/** A row of the same length in which only these tokens can be chosen; to be cleared of them. */
function onlyThese(logits: Float32Array, allowed: readonly number[]): Float32Array {
  if (noScores.length !== logits.length) noScores = new Float32Array(logits.length).fill(Number.NEGATIVE_INFINITY);
  for (const id of allowed) noScores[id] = logits[id]!;
  return noScores;
}

function reserve(vocabSize: number): void {
  if (seenIn.length >= vocabSize) return;
  blockMax = new Float32Array(Math.ceil(vocabSize / BLOCK));
  blockMass = new Float64Array(blockMax.length);
  changedIds = new Int32Array(vocabSize);
  changedLogits = new Float32Array(vocabSize);
  seenIn = new Float64Array(vocabSize);
  sortKeys = new Float64Array(vocabSize);
}

/** Fills in `blockMax`; returns the highest of all. @throws RequestError on what no model in order returns */
function survey(logits: Float32Array): number {
  let highestOfAll = Number.NEGATIVE_INFINITY;
  let sound = true;
  for (let block = 0, start = 0; start < logits.length; block++, start += BLOCK) {
    const end = Math.min(start + BLOCK, logits.length);
    let max = Number.NEGATIVE_INFINITY;
    let i = start;
    // Four at a time, as most of them are not above the highest so far; written so that NaN is not passed over.
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

function indexOfMax(logits: Float32Array, max: number): number {
  return logits.indexOf(max, blockMax.indexOf(max) * BLOCK);
}

/** Returns how many logits it has changed: `changedIds`, `changedLogits`. */
function penalise(logits: Float32Array, previous: readonly number[], penalty: number): number {
  const row = ++numRows;
  let numChanged = 0;
  for (let i = 0; i < previous.length; i++) {
    const id = previous[i]!;
    if (seenIn[id] === row) continue;
    seenIn[id] = row;
    const logit = logits[id]!;
    changedIds[numChanged] = id;
    changedLogits[numChanged++] = logit;
    logits[id] = logit > 0 ? logit / penalty : logit * penalty;
  }
  return numChanged;
}

const STEPS_PER_HALVING = 64;
/** Halvings below the best beyond which a token weighs nothing: 150,000 such tokens weigh 2e-14. */
const HALVINGS = 63;
/** 2^-(i / STEPS_PER_HALVING). */
const POWERS = Float64Array.from({ length: HALVINGS * STEPS_PER_HALVING }, (_, i) => 2 ** (-i / STEPS_PER_HALVING));
const LN_STEP = Math.LN2 / STEPS_PER_HALVING;

/** 2^(-x / STEPS_PER_HALVING) for x in [0, HALVINGS * STEPS_PER_HALVING), relative error below 3e-7: a table, and Taylor to the square between its entries. Math.exp takes several times as long. */
function power(x: number): number {
  const step = x | 0;
  const y = (x - step) * LN_STEP;
  return POWERS[step]! * (1 - y * (1 - 0.5 * y));
}

/** Sum of exp((v - max) * scale) over all values; `blockMass` gets the sum of each block. */
function sumOfExp(values: Float32Array, max: number, scale: number): number {
  const factor = scale * Math.LOG2E * STEPS_PER_HALVING;
  const end = HALVINGS * STEPS_PER_HALVING;
  let total = 0;
  for (let b = 0, start = 0; start < values.length; b++, start += BLOCK) {
    let even = 0;
    let odd = 0;
    if ((max - blockMax[b]!) * factor < end) {
      const blockEnd = Math.min(start + BLOCK, values.length);
      // Two sums, as each addition waits for the one before it.
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

/** Draws a token of exp((score - max) / temperature) after the cuts; u in [0, 1). `blockMax` is that of `scores`. */
function draw(scores: Float32Array, max: number, params: SamplerParams, u: number): number {
  const { temperature, topK, topP, minP } = params;
  const cutsK = topK > 0 && topK < scores.length;
  const total = cutsK ? 0 : sumOfExp(scores, max, 1 / temperature);
  if (!cutsK && topP === 1 && minP === 0) return drawAny(scores, max, temperature, u * total);
  let ids = cutsK
    ? highest(scores, topK)
    : topP < 1
      ? heaviest(scores, max, temperature, topP, total)
      : sorted(scores, max + temperature * Math.log(minP) - 1e-6);
  const weights = ids.map((id) => Math.exp((scores[id]! - max) / temperature));
  if (topP < 1) {
    const mass = cutsK ? weights.reduce((sum, weight) => sum + weight, 0) : total;
    let length = 0;
    for (let held = 0; length < ids.length && held < topP * mass; length++) held += weights[length]!;
    ids = ids.slice(0, length);
  }
  // From the cuts on by id, not by rank: two tokens whose scores rounding may turn round do not turn round the choice.
  const kept = Array.from(ids.keys())
    .filter((i) => weights[i]! >= minP)
    .sort((a, b) => ids[a]! - ids[b]!);
  let left = u * kept.reduce((sum, i) => sum + weights[i]!, 0);
  for (const i of kept) {
    left -= weights[i]!;
    if (left < 0) return ids[i]!;
  }
  return ids[kept.at(-1)!]!;
}

/** Without cuts no order is needed: the block in which `left` of the mass ends, then the token in it. */
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

/** Tokens that hold at least `topP` of the mass, heaviest first, and few more: a histogram over the distance from the best says where to stop. */
function heaviest(scores: Float32Array, max: number, temperature: number, topP: number, total: number): number[] {
  const factor = (Math.LOG2E * STEPS_PER_HALVING) / temperature;
  const end = HALVINGS * STEPS_PER_HALVING;
  const perBin = STEPS_PER_HALVING / BINS_PER_HALVING;
  bins.fill(0);
  // What the blocks weigh is known: those that together hold less than the mass to be left out need no second look.
  const spare = (total * (1 - topP)) / blockMax.length / 2;
  for (let b = 0, start = 0; start < scores.length; b++, start += BLOCK) {
    if (blockMass[b]! <= spare) continue;
    for (let id = start; id < Math.min(start + BLOCK, scores.length); id++) {
      const x = (max - scores[id]!) * factor;
      if (x < end) bins[(x / perBin) | 0]! += power(x);
    }
  }
  // A little more than asked, for what rounding may do at the edge.
  let left = total * Math.min(1, topP + 1e-5);
  let numBins = 0;
  while (left > 0 && numBins < bins.length) left -= bins[numBins++]!;
  return sorted(scores, max - (numBins / BINS_PER_HALVING) * Math.LN2 * temperature);
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
      // The bits of a float in the order of its value, turned round, before the id: numbers sort many times faster than by a comparison.
      scoreFloat[0] = scores[id]! + 0;
      const bits = scoreBits[0]!;
      sortKeys[count++] = (bits >= 0x80000000 ? bits : 0x7fffffff - bits) * ID_RANGE + id;
    }
  }
  const keys = sortKeys.subarray(0, count).sort();
  return Array.from(keys, (key) => key % ID_RANGE);
}

/** The k highest, best first: a heap of k with the weakest on top. */
function highest(scores: Float32Array, k: number): number[] {
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
