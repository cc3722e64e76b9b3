/**
 * PURE: who shares a step, and whose turn it is where not all can. Every token of the window lane attends to the columns
 * of all sequences in its step, under a mask. Sequences over one prefix have those columns in common and are best run
 * together; one with a window of its own makes the others slower and is made slower by them, and a step of its own costs
 * no more than reading the weights once more.
 */
import type { Priority } from '../protocol.ts';
import type { Coefficients } from './stepCost.ts';

/** Tokens of a step that attend to the same columns. */
export interface Part {
  readonly tokens: number;
  readonly columns: number;
}

/** Whether two parts had better be one step over `columns`, those of both, than two steps. */
export function sharesStep({ a, c }: Coefficients, one: Part, other: Part, columns: number): boolean {
  return c * (one.tokens * (columns - one.columns) + other.tokens * (columns - other.columns)) <= a;
}

interface Waiting {
  readonly priority: Priority;
  readonly lastServedAt: number;
}

/**
 * Of those that the last step left aside, the one that the next begins with: who has waited longest. Answers that somebody
 * reads along take turns. Of others only the first of its class in `active`, which is in order of standing: one after
 * another they end sooner on average, and the last one no later.
 */
export function nextTurn<S extends Waiting>(active: readonly S[], aside: ReadonlySet<S>): S | null {
  const seen = new Set<Priority>();
  let next: S | null = null;
  for (const sequence of active) {
    const { priority, lastServedAt } = sequence;
    const mayTakeTurns = priority === 'completion' || priority === 'chat' || !seen.has(priority);
    seen.add(priority);
    if (mayTakeTurns && aside.has(sequence) && (!next || lastServedAt < next.lastServedAt)) next = sequence;
  }
  return next;
}
