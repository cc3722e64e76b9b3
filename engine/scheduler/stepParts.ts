/** The parts of a step, and what the scheduler needs to know of a sequence. Pure functions. */
import { type Lease, numComputed } from '../kv/lease.ts';
import type { Lane } from '../model/batch.ts';
import type { RequestError } from '../protocol/errors.ts';
import type { FinishReason } from '../protocol/tasks.ts';
import type { Sequence } from '../sequence/sequence.ts';

/** An answer is assumed to generate at most this many more tokens. */
const LIKELY_ANSWER = 48;

/** A sequence's part in a step. */
export interface Scheduled extends Computing {
  readonly sequence: Sequence;
  readonly lease: Lease;
  readonly newSlots: Int32Array;
  readonly lane: Lane;
  /** Part of a prompt, or tokens lost by preemption. They join the tree right after the step. */
  readonly prefill: boolean;
  /** Drafted tokens after the sequence's last one. Only right ones keep their slots. */
  readonly draft: readonly number[];
  readonly numLogits: number;
  /** How many of its last tokens return their queries, which choose the rows that a partial lease attends to next. */
  readonly numQueries: number;
  /** The tokens are computed only for their queries, and again afterwards. */
  readonly asks: boolean;
}

/** A sequence that ended without a part: it needs no more tokens, or it does not fit. */
export interface Ended {
  readonly sequence: Sequence;
  readonly outcome: FinishReason | RequestError;
}

export interface Schedule {
  readonly batch: Scheduled[];
  readonly ended: Ended[];
}

/** Tokens of a sequence that may come from the cache: all, without the last one if its logits are needed. */
export function reusable(sequence: Sequence): number {
  return sequence.tokenIds.length - (sequence.promptOnly ? 0 : 1);
}

/** Tokens that a sequence probably still generates. */
export function likelyAnswer(sequence: Sequence): number {
  return Math.min(sequence.sampling.maxTokens - sequence.numGenerated, LIKELY_ANSWER);
}

/** Whether only the last sampled token has to be computed. */
export function isDecode(sequence: Sequence, lease: Lease): boolean {
  return sequence.numGenerated > 0 && numComputed(lease) === sequence.tokenIds.length - 1;
}

export function numDrafted(drafts: ReadonlyMap<Sequence, readonly number[]>): number {
  let sum = 0;
  for (const draft of drafts.values()) sum += draft.length;
  return sum;
}

/** Tokens of a step, drafts included. */
export function numTokensOf(batch: readonly Scheduled[]): number {
  return batch.reduce((sum, { count, draft }) => sum + count + draft.length, 0);
}

/** Tokens that a step computes and that join the radix tree after it: `count` of `tokenIds`, from `startIndex` on. */
export interface Computing {
  readonly tokenIds: readonly number[];
  readonly startIndex: number;
  readonly count: number;
}

/** In-flight prefix sharing: whether `other` computes, in this step, the token at `at` that a sequence needs next. */
export function isComputedBy(tokenIds: readonly number[], at: number, other: Computing): boolean {
  if (at < other.startIndex || at >= other.startIndex + other.count) return false;
  // Backwards, because sequences with a common beginning differ late.
  for (let i = at; i >= 0; i--) if (tokenIds[i] !== other.tokenIds[i]) return false;
  return true;
}
