/**
 * PURE: logits and parameters to a token. The random number depends on (seed, tokenIndex) alone, so that what else is
 * in the batch cannot change a choice. Order as in transformers: repetition penalty, temperature, top-k, top-p, min-p.
 * Log-probabilities are those of the model itself: before penalty, temperature and cuts (vLLM's `raw_logprobs`).
 * Ties go to the lower token id. No step sorts the whole vocabulary unless the distribution is flat.
 */
import type { SamplingParams, TokenLogprob } from './protocol.ts';

export type SamplerParams = Required<Pick<SamplingParams, 'temperature' | 'topP' | 'topK' | 'minP' | 'repetitionPenalty' | 'topLogprobs' | 'seed'>>;

export interface Sampled {
  tokenId: number;
  logprob: number;
  /** The most probable tokens, best first. */
  topLogprobs: TokenLogprob[];
}

/**
 * @param logits [vocabSize], not changed
 * @param previous the sequence's tokens so far, prompt included: what the repetition penalty applies to
 * @param tokenIndex position of the new token in the sequence
 */
export function sample(logits: Float32Array, params: SamplerParams, previous: readonly number[], tokenIndex: number): Sampled {
  const best = argmax(logits);
  if (!Number.isFinite(logits[best])) throw new Error('The model returned logits that are not finite.');
  const scores = params.repetitionPenalty === 1 ? logits : penalised(logits, previous, params.repetitionPenalty);
  const bestScored = scores === logits ? best : argmax(scores);
  const tokenId = params.temperature === 0 ? bestScored : draw(scores, scores[bestScored]!, params, uniform(params.seed, tokenIndex));
  const logZ = logits[best]! + Math.log(sumOfExp(logits, logits[best]!, 1));
  return {
    tokenId,
    logprob: logits[tokenId]! - logZ,
    topLogprobs: highest(logits, params.topLogprobs).map((id) => ({ tokenId: id, logprob: logits[id]! - logZ })),
  };
}

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

function argmax(values: Float32Array): number {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i]! > values[best]!) best = i;
  return best;
}

function penalised(logits: Float32Array, previous: readonly number[], penalty: number): Float32Array {
  const scores = logits.slice();
  for (const id of new Set(previous)) {
    const logit = scores[id]!;
    scores[id] = logit > 0 ? logit / penalty : logit * penalty;
  }
  return scores;
}

/** 2^-63 .. 2^0, by distance from 0. */
const POWERS = Float64Array.from({ length: 64 }, (_, i) => 2 ** -i);

/**
 * 2^-x for x in [0, 63), relative error below 1e-6. Math.exp over 150,000 values would cost a good part of a
 * millisecond for each row of a batch. 2^-x = 2^-n * 2^f with f in (-0.5, 0.5], Taylor to the sixth power.
 */
function powerOfHalf(x: number): number {
  const n = (x + 0.5) | 0;
  const y = (n - x) * Math.LN2;
  return POWERS[n]! * (1 + y * (1 + y * (1 / 2 + y * (1 / 6 + y * (1 / 24 + y * (1 / 120 + y * (1 / 720)))))));
}

/** Sum of exp((v - max) * scale) over all values. */
function sumOfExp(values: Float32Array, max: number, scale: number): number {
  const factor = scale * Math.LOG2E;
  let sum = 0;
  for (let i = 0; i < values.length; i++) {
    const x = (max - values[i]!) * factor;
    if (x < 63) sum += powerOfHalf(x);
  }
  return sum;
}

/** Draws a token of exp((score - max) / temperature) after the cuts; u in [0, 1). */
function draw(scores: Float32Array, max: number, params: SamplerParams, u: number): number {
  const { temperature, topK, topP, minP } = params;
  const cutsK = topK > 0 && topK < scores.length;
  if (!cutsK && topP === 1) return drawUnsorted(scores, max, temperature, minP, u);
  let ids = cutsK ? highest(scores, topK) : heaviest(scores, max, temperature, topP);
  let weights = ids.map((id) => Math.exp((scores[id]! - max) / temperature));
  if (topP < 1) {
    const total = cutsK ? weights.reduce((sum, weight) => sum + weight, 0) : sumOfExp(scores, max, 1 / temperature);
    let length = 0;
    for (let mass = 0; length < ids.length && mass < topP * total; length++) mass += weights[length]!;
    ids = ids.slice(0, length);
    weights = weights.slice(0, length);
  }
  weights = weights.filter((weight) => weight >= minP);
  let left = u * weights.reduce((sum, weight) => sum + weight, 0);
  let chosen = 0;
  for (; chosen < weights.length - 1; chosen++) {
    left -= weights[chosen]!;
    if (left < 0) break;
  }
  return ids[chosen]!;
}

/** Without top-k and top-p no order is needed: two passes in the order of ids. */
function drawUnsorted(scores: Float32Array, max: number, temperature: number, minP: number, u: number): number {
  const factor = Math.LOG2E / temperature;
  const furthest = Math.min(62, minP > 0 ? -Math.log2(minP) + 1e-9 : 62);
  let left = 0;
  for (let id = 0; id < scores.length; id++) {
    const x = (max - scores[id]!) * factor;
    if (x <= furthest) left += powerOfHalf(x);
  }
  left *= u;
  let chosen = 0;
  for (let id = 0; id < scores.length; id++) {
    const x = (max - scores[id]!) * factor;
    if (x > furthest) continue;
    chosen = id;
    left -= powerOfHalf(x);
    if (left < 0) break;
  }
  return chosen;
}

/** Tokens that hold at least `topP` of the mass, heaviest first, and few more: a histogram over the distance from the best says where to stop. */
function heaviest(scores: Float32Array, max: number, temperature: number, topP: number): number[] {
  const factor = Math.LOG2E / temperature;
  const binsPerHalving = 4;
  const masses = new Float64Array(63 * binsPerHalving);
  for (let id = 0; id < scores.length; id++) {
    const x = (max - scores[id]!) * factor;
    if (x < 63) masses[(x * binsPerHalving) | 0]! += powerOfHalf(x);
  }
  // A little more than asked, for what rounding may do at the edge.
  let left = masses.reduce((sum, mass) => sum + mass, 0) * Math.min(1, topP + 1e-5);
  let numBins = 0;
  while (left > 0 && numBins < masses.length) left -= masses[numBins++]!;
  const ids: number[] = [];
  for (let id = 0; id < scores.length; id++) if ((max - scores[id]!) * factor < numBins / binsPerHalving) ids.push(id);
  return ids.sort((a, b) => scores[b]! - scores[a]! || a - b);
}

/** The k highest, best first: a heap of k with the weakest on top. */
function highest(scores: Float32Array, k: number): number[] {
  const heap: number[] = [];
  const weaker = (a: number, b: number): boolean => scores[a]! < scores[b]! || (scores[a] === scores[b] && a > b);
  const sink = (start: number): void => {
    for (let i = start; ; ) {
      let weakest = i;
      for (const child of [2 * i + 1, 2 * i + 2]) if (child < heap.length && weaker(heap[child]!, heap[weakest]!)) weakest = child;
      if (weakest === i) return;
      [heap[i], heap[weakest]] = [heap[weakest]!, heap[i]!];
      i = weakest;
    }
  };
  const size = Math.min(k, scores.length);
  if (size === 0) return [];
  for (let id = 0; id < size; id++) heap.push(id);
  for (let i = size >> 1; i >= 0; i--) sink(i);
  for (let id = size; id < scores.length; id++) {
    if (scores[id]! <= scores[heap[0]!]!) continue;
    heap[0] = id;
    sink(0);
  }
  return heap.sort((a, b) => (weaker(b, a) ? -1 : 1));
}
