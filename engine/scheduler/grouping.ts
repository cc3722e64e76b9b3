/**
 * PURE: who shares a step, and whose turn it is where not all can. Every token of the paged lane pays for as many columns as
 * the longest sequence of its step has, or for those of all (see attendedPages). Where that makes others dearer than a step of
 * its own, which costs no more than reading the weights once more, a sequence had better wait: many tokens over few columns
 * beside one over many.
 */
import type { Priority } from '../protocol/tasks.ts';
import type { Coefficients } from './stepCost.ts';

/** Tokens of a step that attend to the same columns. */
export interface Part {
  readonly tokens: number;
  readonly columns: number;
}

/** Whether two parts had better be one step over `columns`, those of both, than two steps. */
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
  /** It had something to compute, and the last step was not for it. */
  readonly aside: boolean;
}

/** How long an answer that somebody reads may do without a token beside others, and how much longer all else may wait. */
const READ_MS = 150;
const OTHER_MS = 4 * READ_MS;

/**
 * With whom the next step begins: of those that were left aside the one whose wait is longest for its kind. Answers that
 * somebody reads along take turns. Of prompts, and of what nobody reads, only the first of its class takes part: one after
 * another they end sooner on average, and the last one no later. `running`: in order of standing.
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
    if (!takesPart || !one.aside || (next && wait <= most)) continue;
    next = one;
    most = wait;
  }
  return next;
}
