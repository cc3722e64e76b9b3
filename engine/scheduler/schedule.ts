/** PURE: what the scheduler decides, and what it asks of a sequence to decide it. */
import { type Lease, numComputed } from '../kv/lease.ts';
import type { Lane } from '../model/batch.ts';
import type { RequestError } from '../protocol/errors.ts';
import type { FinishReason } from '../protocol/tasks.ts';
import type { Sequence } from '../sequence/sequence.ts';

/** Tokens that an answer still has, at most, where nothing is known of its end. */
const LIKELY_ANSWER = 48;

/** A sequence's part in a step. */
export interface Scheduled extends Computing {
  readonly sequence: Sequence;
  readonly lease: Lease;
  readonly newSlots: Int32Array;
  readonly lane: Lane;
  /** Part of a prompt, or tokens lost by preemption: they join the tree at once. */
  readonly prefill: boolean;
  /** Guesses at the tokens after the sequence's last one: further rows, whose slots stay only where the guess is right. */
  readonly draft: readonly number[];
  readonly numLogits: number;
  /** Of its last tokens those whose queries choose what a partial lease attends to next. */
  readonly numQueries: number;
  /** They are computed for that only, and again afterwards. */
  readonly asks: boolean;
}

/** A sequence that ended without a step: it needs no more tokens, or there is no room for it. */
export interface Ended {
  readonly sequence: Sequence;
  readonly outcome: FinishReason | RequestError;
}

export type OnEnd = (sequence: Sequence, outcome: Ended['outcome']) => void;

export interface Schedule {
  readonly batch: Scheduled[];
  readonly ended: Ended[];
}

/** Tokens of a sequence that may come from the cache: all but the last when its logits are needed. */
export function reusable(sequence: Sequence): number {
  return sequence.tokenIds.length - (sequence.promptOnly ? 0 : 1);
}

/** Tokens that a sequence is likely to generate yet. */
export function likelyAnswer(sequence: Sequence): number {
  return Math.min(sequence.sampling.maxTokens - sequence.numGenerated, LIKELY_ANSWER);
}

/** Whether only the token sampled last is to be computed. */
export function isDecode(sequence: Sequence, lease: Lease): boolean {
  return sequence.numGenerated > 0 && numComputed(lease) === sequence.tokenIds.length - 1;
}

export function numDrafted(drafts: ReadonlyMap<Sequence, readonly number[]>): number {
  let sum = 0;
  for (const draft of drafts.values()) sum += draft.length;
  return sum;
}

/** Of a step, drafts included. */
export function numTokensOf(batch: readonly Scheduled[]): number {
  return batch.reduce((sum, { count, draft }) => sum + count + draft.length, 0);
}

/** PURE: when a sequence waits for another that is computing the very tokens it needs next. */

/** Tokens of `tokenIds` from `startIndex` on, `count` of them, that a step computes and that join the prefix tree after it. */
export interface Computing {
  readonly tokenIds: readonly number[];
  readonly startIndex: number;
  readonly count: number;
}

/** Whether the token at `at`, the next one that a sequence needs, is what the leader computes in this step. */
export function follows(tokenIds: readonly number[], at: number, leader: Computing): boolean {
  if (at < leader.startIndex || at >= leader.startIndex + leader.count) return false;
  // Backwards: sequences that share the beginning differ late.
  for (let i = at; i >= 0; i--) if (tokenIds[i] !== leader.tokenIds[i]) return false;
  return true;
}
