/**
 * PURE: whether a sequence joins those that run, or waits until one of them has ended. Every token of a step attends to
 * the columns of all sequences in it, under a mask. Sequences over one prefix share those columns and are best run
 * together; with windows of their own, each makes the others slower: eight of them at 2,000 tokens are no faster than one
 * after another, and their prompts are computed past all the others' columns. Who comes later loses nothing by waiting:
 * all of them end sooner. For sequences that nobody reads along; others join at once.
 */
import type { Coefficients } from './stepCost.ts';

export interface Joining {
  /** Sequences that run. */
  readonly numRunning: number;
  /** Columns that they hold and that this one does not use. */
  readonly foreignColumns: number;
  /** Tokens of the prompt that have to be computed. */
  readonly missing: number;
  /** Columns that this one would add: what it does not share with those that run. */
  readonly ownColumns: number;
  /** Tokens that its answer is likely to have. */
  readonly answer: number;
}

/**
 * A token of n sequences over P columns takes a/n + b + cP. One more saves each a / n(n+1) and costs each c per column
 * that it adds; and its own prompt attends to the columns of the others.
 */
export function shouldJoin({ a, c }: Coefficients, { numRunning: n, foreignColumns, missing, ownColumns, answer }: Joining): boolean {
  if (n === 0) return true;
  const savedMs = answer * (n + 1) * (a / (n * (n + 1)) - c * ownColumns);
  return savedMs > missing * c * foreignColumns;
}
