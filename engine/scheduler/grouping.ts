/**
 * Which sequences share a step, and which one goes first where not all can. Every token of the paged lane attends to as
 * many
 * columns as the longest sequence of its step, or to those of all (see attendedPages). A step of its own costs reading
 * the
 * weights once more; where sharing costs more than that, a sequence is deferred. Pure functions.
 */
import type { Priority } from '../protocol/tasks.ts';
import type { Coefficients } from './stepCost.ts';

/** Tokens of a step that attend to the same columns. */
export interface Part {
  readonly tokens: number;
  readonly columns: number;
}

/** Whether one step over `columns`, those of both parts, costs no more than two steps. */
export function sharesStep({ a, c, d }: Coefficients, one: Part, other: Part, columns: number): boolean {
  const inVain = one.tokens * (columns - one.columns) + other.tokens * (columns - other.columns);
  return c * inVain <= a + d * (one.columns + other.columns - columns);
}

/** One that runs. */
export interface Turn {
  readonly priority: Priority;
  readonly lastServedAt: number;
  /** Its next step gives a token of its answer. */
  readonly decodes: boolean;
  /** It had something to compute, and the last step deferred it. */
  readonly deferred: boolean;
}

/** How long an answer that somebody reads may wait for its next token, ms, and everything else. */
const READ_MS = 150;
const OTHER_MS = 4 * READ_MS;

/**
 * The deferred sequence with which the next step begins: the one whose wait is longest for its kind. Answers that
 * somebody
 * reads take turns. Of prompts, and of answers that nobody reads, only the first of each class takes part: one after
 * another
 * they end sooner on average, and the last one no later. `running`: in order of standing.
 */
export function nextTurn<S extends Turn>(running: readonly S[], now: number): S | null {
  const seen = new Set<Priority>();
  let next: S | null = null;
  let most = 0;
  for (const one of running) {
    const isRead = one.decodes && (one.priority === 'completion' || one.priority === 'chat');
    const takesPart = isRead || !seen.has(one.priority);
    if (!isRead) seen.add(one.priority);
    const wait = (now - one.lastServedAt) / (isRead ? READ_MS : OTHER_MS);
    if (!takesPart || !one.deferred || (next && wait <= most)) continue;
    next = one;
    most = wait;
  }
  return next;
}
