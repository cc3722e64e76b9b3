/**
 * Logits and parameters to a token. The random number depends on (seed, tokenIndex) alone, so the rest of the batch,
 * and the
 * number of tokens that a step verifies, cannot change a choice. Order as in transformers: repetition penalty,
 * temperature,
 * top-k, top-p. Log-probabilities are those before penalty, temperature and cuts (vLLM's `raw_logprobs`), with the
 * blended distribution, and among the allowed tokens. Ties go to the lower token id.
 *
 * A row has 150,000 logits, and a step has a row for each sequence and each drafted token. So one pass finds the
 * highest of
 * each block of 512, and later passes skip blocks that cannot matter. The exponential of every logit is taken only to
 * draw,
 * or for a log-probability that was asked for. Scratch space is kept between calls, so a row allocates next to nothing.
 */
import type { SamplingParams, TokenLogprob } from '../protocol/tasks.ts';
import { draw } from './draw.ts';
import { highest, indexOfMax, sumOfExp, survey } from './logitBlocks.ts';
import { blend, onlyThese, type OtherNext, penalise } from './logitFilters.ts';

export type SamplerParams = Required<
  Pick<SamplingParams, 'temperature' | 'topP' | 'topK' | 'repetitionPenalty' | 'logprobs' | 'topLogprobs' | 'seed'>
>;

/** Below it the best token has all the probability that float32 can represent, and quotients of scores overflow. */
const MIN_TEMPERATURE = 1e-6;

export interface Sampled {
  tokenId: number;
  /** Null where neither it nor alternatives were asked for. */
  logprob: number | null;
  /** The most probable tokens, best first. */
  topLogprobs: TokenLogprob[];
}

/**
 * @param logits [vocabSize]; changed while this runs, and restored
 * @param previous the sequence's tokens so far, prompt included; the repetition penalty applies to them
 * @param tokenIndex position of the new token in the sequence
 * @param allowed the token has to be one of these; null or empty: any
 * @param other blended in before everything else
 * @throws RequestError engineFailed where a logit, or a score computed from it, is not finite
 */
export function sample(
  logits: Float32Array,
  params: SamplerParams,
  previous: readonly number[],
  tokenIndex: number,
  allowed: readonly number[] | null = null,
  other: OtherNext | null = null,
): Sampled {
  const max = survey(logits);
  const blended = other ? blend(logits, logSum(logits, max), max, other) : null;
  const only = allowed?.length ? onlyThese(logits, allowed) : null;
  const scores = only?.scores ?? logits;
  try {
    return choice(scores, blended || only ? survey(scores) : max, params, previous, tokenIndex);
  } finally {
    // Also after an error: the next row is another sequence's.
    only?.undo();
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
  // Tokens that are not allowed are no alternatives.
  const top = numTop > 0 ? highest(scores, numTop).filter((id) => scores[id]! > Number.NEGATIVE_INFINITY) : [];
  const choose = (best: number): number =>
    temperature < MIN_TEMPERATURE
      ? indexOfMax(scores, best)
      : draw(scores, best, params, uniform(params.seed, tokenIndex));
  let tokenId: number;
  if (repetitionPenalty === 1) tokenId = choose(max);
  else {
    const penalised = penalise(scores, previous, repetitionPenalty);
    tokenId = choose(survey(scores));
    penalised.undo();
  }
  return {
    tokenId,
    logprob: logZ === null ? null : scores[tokenId]! - logZ,
    topLogprobs: top.map((id) => ({ tokenId: id, logprob: scores[id]! - logZ! })),
  };
}

/** Log of the sum of exp of the row that was surveyed last. */
const logSum = (scores: Float32Array, max: number): number => max + Math.log(sumOfExp(scores, max, 1));

/**
 * A number in [0, 1) with 53 bits, from a hash of both (murmur3's finaliser): a counter-based generator without state.
 */
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
