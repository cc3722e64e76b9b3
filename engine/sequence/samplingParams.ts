/** Sampling parameters of a request: defaults and checks. Pure functions. */
import { RequestError } from '../protocol/errors.ts';
import type { SamplingParams } from '../protocol/tasks.ts';

const NUMBERS = ['temperature', 'topP', 'topK', 'repetitionPenalty', 'seed', 'maxTokens', 'topLogprobs'] as const;

/** Fills in the defaults: greedy, 128 tokens. @throws RequestError badRequest on values out of range */
export function resolveSampling(sampling: SamplingParams = {}): Required<SamplingParams> {
  const params: Required<SamplingParams> = {
    temperature: sampling.temperature ?? 0,
    topP: sampling.topP ?? 1,
    topK: sampling.topK ?? 0,
    repetitionPenalty: sampling.repetitionPenalty ?? 1,
    seed: sampling.seed ?? Math.floor(Math.random() * 2 ** 32),
    maxTokens: sampling.maxTokens ?? 128,
    stop: sampling.stop ?? [],
    ignoreEos: sampling.ignoreEos ?? false,
    logprobs: sampling.logprobs ?? false,
    topLogprobs: sampling.topLogprobs ?? 0,
  };
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
