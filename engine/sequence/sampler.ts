/**
 * Checks the sampling parameters of a request, and samples a token from logits. Order as in transformers: repetition
 * penalty, temperature, top-k, top-p. Ties go to the lower token id.
 */
import { RequestError } from '../protocol/errors.ts';
import type { SamplingParams, TokenLogprob } from '../protocol/tasks.ts';
import { draw, highest, indexOfMax, sumOfExp, survey } from './draw.ts';

/** Greedy, 128 tokens. */
export const DEFAULT_SAMPLING: Readonly<Required<SamplingParams>> = {
  temperature: 0,
  topP: 1,
  topK: 0,
  repetitionPenalty: 1,
  seed: 0,
  maxTokens: 128,
  stop: [],
  ignoreEos: false,
  logprobs: false,
  topLogprobs: 0,
};

const NUMBERS = ['temperature', 'topP', 'topK', 'repetitionPenalty', 'seed', 'maxTokens', 'topLogprobs'] as const;

/** Fills in the defaults, and a random seed. @throws RequestError badRequest on values out of range */
export function resolveSampling(sampling: SamplingParams = {}): Required<SamplingParams> {
  const given = Object.fromEntries(Object.entries(sampling).filter(([, value]) => value != null));
  const seed = Math.floor(Math.random() * 2 ** 32);
  const params: Required<SamplingParams> = { ...DEFAULT_SAMPLING, seed, ...given };
  const demand = (name: keyof SamplingParams, holds: boolean, what: string): void => {
    if (!holds) throw new RequestError('badRequest', `${name} is ${String(params[name])}; it must be ${what}.`);
  };
  const isNumber = (value: unknown): value is number => typeof value === 'number';
  for (const name of NUMBERS) demand(name, isNumber(params[name]), 'a number');
  demand(
    'stop',
    Array.isArray(params.stop) && params.stop.every((text) => typeof text === 'string'),
    'a list of strings',
  );
  demand('ignoreEos', typeof params.ignoreEos === 'boolean', 'true or false');
  demand('logprobs', typeof params.logprobs === 'boolean', 'true or false');
  demand('temperature', params.temperature >= 0 && params.temperature < Infinity, 'a number from 0');
  demand('topP', params.topP > 0 && params.topP <= 1, 'above 0 and at most 1');
  demand('topK', Number.isInteger(params.topK) && params.topK >= 0, 'a whole number from 0');
  demand('repetitionPenalty', params.repetitionPenalty > 0 && params.repetitionPenalty < Infinity, 'above 0');
  demand('seed', Number.isSafeInteger(params.seed), 'a whole number');
  demand('maxTokens', Number.isInteger(params.maxTokens) && params.maxTokens >= 0, 'a whole number from 0');
  demand(
    'topLogprobs',
    Number.isInteger(params.topLogprobs) && params.topLogprobs >= 0 && params.topLogprobs <= 100,
    'a whole number from 0 to 100',
  );
  return params;
}

export type SamplerParams = Required<
  Pick<SamplingParams, 'temperature' | 'topP' | 'topK' | 'repetitionPenalty' | 'logprobs' | 'topLogprobs' | 'seed'>
>;

/** Below it the best token has all probability that float32 can represent, and scores / temperature overflows. */
const MIN_TEMPERATURE = 1e-6;

export interface Sampled {
  tokenId: number;
  /** Null if neither log-probabilities nor alternatives were requested. */
  logprob: number | null;
  /** The most probable tokens, best first. */
  topLogprobs: TokenLogprob[];
}

/**
 * The random number depends on (seed, tokenIndex) alone. So neither the other sequences of a batch nor the number of
 * tokens that a step verifies can change a choice. Log-probabilities are those before penalty, temperature and cuts
 * (vLLM's `raw_logprobs`), with the blended distribution, and among the allowed tokens.
 *
 * A row has 150,000 logits, and a step has a row for each sequence and each drafted token. So one pass finds the
 * highest logit of each block of 512, and later passes skip blocks that cannot matter. Exponentials of all logits are
 * computed only to draw, or for a log-probability. Scratch memory is kept between calls.
 * @param logits [vocabSize]; changed while this runs, and restored
 * @param previous the sequence's tokens so far, prompt included; the repetition penalty applies to them
 * @param tokenIndex position of the new token in the sequence
 * @param allowed the token must be one of these; null or empty: any
 * @param other distribution that is blended in first
 * @throws RequestError engineFailed if a logit, or a score computed from it, is not finite
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
    // Also after an error, because the next row belongs to another sequence.
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
  // Tokens that are not allowed are not alternatives.
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

/** A number in [0, 1) with 53 bits, from a hash of seed and index (finaliser of murmur3). It has no state. */
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

/** A distribution over a few tokens that is blended into the model's distribution. */
export interface OtherNext {
  /** Each token once. */
  readonly tokenIds: readonly number[];
  /** Probabilities of these tokens; their sum is 1. */
  readonly shares: readonly number[];
  /** Weight of this distribution, below 1. `likeliest`: probability of the model's likeliest token. */
  weight(likeliest: number): number;
}

/**
 * Changes logits so that their softmax is p = (1 - weight) model + weight other. The factor 1 - weight would be common
 * to all tokens of the model. It is left out, so only tokens of the other distribution change.
 * @param logits [vocabSize]
 * @param logZ log of the sum of exp(logits); @param max the highest logit
 */
export function blend(
  logits: Float32Array,
  logZ: number,
  max: number,
  { tokenIds, shares, weight }: OtherNext,
): { /** Puts the logits back. */ undo(): void } {
  const ofOther = weight(Math.exp(max - logZ));
  const odds = ofOther / (1 - ofOther);
  const before = tokenIds.map((id) => logits[id]!);
  for (const [i, id] of tokenIds.entries())
    logits[id] = logZ + Math.log(Math.exp(before[i]! - logZ) + odds * shares[i]!);
  return {
    undo: () => {
      for (const [i, id] of tokenIds.entries()) logits[id] = before[i]!;
    },
  };
}

/** [vocabSize] of -Infinity between calls. */
let noScores = new Float32Array(0);

/** A row of the same length in which only these tokens can be chosen. Call `undo` before the next row. */
function onlyThese(logits: Float32Array, allowed: readonly number[]): { scores: Float32Array; undo(): void } {
  if (noScores.length !== logits.length) noScores = new Float32Array(logits.length).fill(Number.NEGATIVE_INFINITY);
  const scores = noScores;
  for (const id of allowed) scores[id] = logits[id]!;
  return {
    scores,
    undo: () => {
      for (const id of allowed) scores[id] = Number.NEGATIVE_INFINITY;
    },
  };
}

/** Tokens that the penalty has changed, and their earlier logits. `seenIn`: by token, the last row that had it. */
let changedIds = new Int32Array(0);
let changedLogits = new Float32Array(0);
let seenIn = new Float64Array(0);
let numRows = 0;

/** Applies the repetition penalty to the tokens of `previous`, as in transformers. */
function penalise(logits: Float32Array, previous: readonly number[], penalty: number): { undo(): void } {
  if (seenIn.length < logits.length) {
    changedIds = new Int32Array(logits.length);
    changedLogits = new Float32Array(logits.length);
    seenIn = new Float64Array(logits.length);
  }
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
  return {
    undo: () => {
      for (let i = 0; i < numChanged; i++) logits[changedIds[i]!] = changedLogits[i]!;
    },
  };
}
