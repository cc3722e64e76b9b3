/** Should a waiting sequence join the running batch? Predicts the cost when all of them generate. Pure function. */
import type { KvCache } from '../kv/kvCache.ts';
import { type Lease, numComputed } from '../kv/lease.ts';
import type { Policies } from './policies.ts';
import type { TokenBudget } from './tokenBudget.ts';
import { likelyAnswer, reusable } from './schedule.ts';
import type { Sequence } from '../sequence/sequence.ts';

interface Beside {
  readonly cache: Pick<KvCache, 'memory' | 'lookUp'>;
  readonly policies: Policies;
  readonly running: ReadonlyMap<Sequence, Lease>;
}

/** Chats and completions are read while they are generated: they do not wait. */
export function joins(sequence: Sequence, budget: TokenBudget, { cache, policies, running }: Beside): boolean {
  if (!policies.grouping || sequence.priority === 'completion' || sequence.priority === 'chat') return true;
  const alike = [...running].filter(([{ priority }]) => priority === sequence.priority);
  if (alike.length === 0) return true;
  const { memory } = cache;
  const { pageSlots } = memory.pool;
  const { numFree } = cache.lookUp(sequence.cacheIds, reusable(sequence));
  const length = (one: Sequence): number => one.tokenIds.length + likelyAnswer(one) / 2;
  const own = length(sequence) / pageSlots;
  const toCome = alike.reduce((sum, [one, lease]) => sum + length(one) - numComputed(lease), 0);
  const all = (memory.numReferenced + toCome) / pageSlots;
  const most = Math.max(...alike.map(([one]) => length(one))) / pageSlots;
  const columns = (numTokens: number, most: number, all: number): number =>
    memory.pool.attended(numTokens, most, all).pages * pageSlots;
  const together = columns(alike.length + 1, Math.max(most, own), all + own - numFree / pageSlots);
  return budget.shares(
    { tokens: alike.length, columns: columns(alike.length, most, all) },
    { tokens: 1, columns: own * pageSlots },
    together,
  );
}
