/** Runs one request at a time, without cache and batch. Every scheduled request must give the same tokens. */
import type { FinishReason, SamplingParams } from '../../../engine/protocol/tasks.ts';
import { resolveSampling, sample } from '../../../engine/sequence/sampler.ts';
import { chain, fakeLogits } from './fakeRunner.ts';

export interface OracleLimits {
  maxContext: number;
  /** Number of tokens that fit into the cache's memory budget. */
  capacity: number;
  eosIds?: readonly number[];
}

export interface Expected {
  tokenIds: number[];
  logprobs: number[];
  finishReason?: FinishReason;
  error?: string;
}

/** Ignores stop strings, which only cut the result. */
export function runAlone(promptIds: readonly number[], sampling: SamplingParams, limits: OracleLimits): Expected {
  const expected: Expected = { tokenIds: [], logprobs: [] };
  if (promptIds.length >= limits.maxContext) return { ...expected, error: 'contextTooLong' };
  if (promptIds.length > limits.capacity) return { ...expected, error: 'outOfMemory' };
  const params = resolveSampling(sampling);
  const tokenIds = [...promptIds];
  let hash = 0;
  for (const [position, tokenId] of tokenIds.entries()) hash = chain(hash, tokenId, position);
  while (
    expected.tokenIds.length < params.maxTokens &&
    tokenIds.length < limits.maxContext &&
    tokenIds.length <= limits.capacity
  ) {
    const { tokenId, logprob } = sample(fakeLogits(hash), params, tokenIds, tokenIds.length);
    hash = chain(hash, tokenId, tokenIds.length);
    tokenIds.push(tokenId);
    expected.tokenIds.push(tokenId);
    if (logprob !== null) expected.logprobs.push(logprob);
    if (limits.eosIds?.includes(tokenId) && !params.ignoreEos) return { ...expected, finishReason: 'stop' };
  }
  return { ...expected, finishReason: 'length' };
}
