/**
 * What cache, scheduler and engine know of the optional, approximate techniques: one interface for long contexts, one
 * for reused rows. Does not choose which techniques run: see approximations.ts.
 */
import type { Priority } from '../../protocol/tasks.ts';
import type { Lease, PartialRows } from '../lease.ts';
import type { Match, RadixNode, RadixTree } from '../radixTree.ts';

/** What a technique reads of a request. It may replace ids in `cacheIds`. */
export interface CachedRequest {
  readonly priority: Priority;
  readonly cacheIds: number[];
  readonly numPromptTokens: number;
}

/**
 * Contexts that are longer than the pool. A partial lease has rows of parts of its context in the pool. Methods that
 * take a lease do nothing, or set no limit, where the lease is not partial.
 */
export interface LongContexts {
  /** Most tokens of a context, with nothing else in the cache. */
  readonly capacity: number;
  /** Bytes of disk that limit `capacity`. Null: memory limits it, or there are no long contexts. */
  readonly diskBound: number | null;
  /** Tokens that the prefill lane has space for; 0: there is no such lane. Set by the engine. */
  prefillTokens: number;

  /** Slots of the pool that a context of so many tokens needs. */
  slotsFor(numTokens: number): number;
  /** Bytes that such a context needs outside the pool. */
  storeBytes(numTokens: number): number;
  /** Slots that a partial lease may take. */
  maxSlots(rows: PartialRows): number;
  /** Whether a partial lease may keep `count` more computed tokens in the pool. */
  fitsTail(lease: Lease, count: number): boolean;

  /** The tree's match, and behind it tokens that were computed from a part of their context. */
  match(tree: RadixTree, tokenIds: readonly number[], limit: number, from: RadixNode): Match;
  /** Rows of a new partial lease, for a context of so many tokens. */
  begin(numTokens: number): PartialRows;
  /** As the methods of KvCache with these names, for a partial lease. */
  advance(lease: Lease, tokenIds: readonly number[], limit: number): number;
  commit(lease: Lease, tokenIds: readonly number[]): void;
  release(lease: Lease): void;

  /** Before a step: chooses the rows that a lease attends to, where that is due. */
  choose(lease: Lease): void;
  /** Most tokens of a prompt that may come from the cache. */
  reusable(lease: Lease, numPromptTokens: number): number;
  /** End of the tokens from `at` on that attend to the same rows. */
  partEnd(lease: Lease, at: number, numPromptTokens: number): number;
  /** Whether the tokens from `at` on are computed for their queries only, and once more afterwards. */
  asks(lease: Lease, at: number, numPromptTokens: number): boolean;
  /** How many of the last of `count` tokens from `at` on have to return their queries. */
  numAsking(lease: Lease, at: number, count: number, numPromptTokens: number): number;
  /** The queries of n tokens, [numLayers, numHeads, n, headSize]. */
  saw(lease: Lease, queries: Float32Array, n: number): void;
  /** Tokens that were computed for their queries only have been computed. */
  asked(lease: Lease): void;
  /** Tokens have been computed up to the lease's end. */
  reached(lease: Lease, numPromptTokens: number): void;
}

/** There are no contexts that are longer than the pool. */
export const noLongContexts = (): LongContexts => ({
  capacity: 0,
  diskBound: null,
  prefillTokens: 0,
  slotsFor: () => Number.POSITIVE_INFINITY,
  storeBytes: () => 0,
  maxSlots: () => 0,
  fitsTail: () => true,
  match: (tree, tokenIds, limit, from) => tree.match(tokenIds, limit, from),
  begin: () => {
    throw new Error('There are no partial leases.');
  },
  advance: () => 0,
  commit: () => {},
  release: () => {},
  choose: () => {},
  reusable: () => Number.POSITIVE_INFINITY,
  partEnd: () => Number.POSITIVE_INFINITY,
  asks: () => false,
  numAsking: () => 0,
  saw: () => {},
  asked: () => {},
  reached: () => {},
});

/** Rows of tokens that are cached behind another text than the request's. */
export interface RowReuse {
  /** Tokens taken over since the start. */
  readonly numTokens: number;
  /** Chooses what a request will take over. Called once, when it starts. */
  plan(request: CachedRequest): void;
  /** How many tokens from `at` on have to be computed before some are taken over. */
  tokensBefore(request: CachedRequest, at: number): number;
  /** Takes over the rows behind a lease; false where there are none. */
  takeOver(request: CachedRequest, lease: Lease): boolean;
  /** Tokens behind the exact ones of this text that have rows taken over. */
  numStandingIn(cacheIds: readonly number[]): number;
  /** Drops rows taken over where exact ones are cached by now. */
  drop(cacheIds: readonly number[]): void;
}

/** Takes over nothing. */
export const NO_REUSE: RowReuse = {
  numTokens: 0,
  plan: () => {},
  tokensBefore: () => Number.POSITIVE_INFINITY,
  takeOver: () => false,
  numStandingIn: () => 0,
  drop: () => {},
};
