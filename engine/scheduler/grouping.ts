/**
 * Which sequences share a step, and which goes first if not all can. In the paged lane every token attends to as many
 * columns as the longest sequence of its step, or to those of all (see attendedPages). A separate step reads the
 * weights once more. A sequence is deferred where sharing costs more than that. Pure functions.
 */
import { type Lease, numComputed } from '../kv/lease.ts';
import type { KvPool } from '../kv/pool.ts';
import type { Priority } from '../protocol/tasks.ts';
import type { Sequence } from '../sequence/sequence.ts';
import { likelyAnswer } from './stepParts.ts';
import type { Coefficients } from './stepCost.ts';

/** Tokens of a step that attend to the same columns. */
export interface Part {
  readonly tokens: number;
  readonly columns: number;
}

/** Whether one step over `columns`, the columns of both parts, costs no more than two steps. */
export function sharesStep({ a, c, d }: Coefficients, one: Part, other: Part, columns: number): boolean {
  const wasted = one.tokens * (columns - one.columns) + other.tokens * (columns - other.columns);
  return c * wasted <= a + d * (one.columns + other.columns - columns);
}

/** A running sequence with which the next step may begin. */
export interface Candidate {
  readonly priority: Priority;
  readonly lastServedAt: number;
  /** Its next step gives a token of its answer. */
  readonly decodes: boolean;
  /** It had something to compute, and the last step deferred it. */
  readonly deferred: boolean;
}

/** ms that an answer which the user reads may wait for its next token, and that any other work may wait. */
const READ_MS = 150;
const OTHER_MS = 4 * READ_MS;

/**
 * The deferred sequence with which the next step begins: the one whose wait is longest for its kind. Answers that the
 * user reads take turns. Of prompts and of answers that nobody reads, only the first of each class takes part: run one
 * after another they end sooner on average, and the last one ends no later. `running`: in order of standing.
 */
export function nextTurn<C extends Candidate>(running: readonly C[], now: number): C | null {
  const seen = new Set<Priority>();
  let next: C | null = null;
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

/** The running sequences and the slots that they hold. */
export interface RunningBatch {
  readonly pool: Pick<KvPool, 'pageSlots' | 'attended'>;
  /** Slots of all rows that running sequences reference. */
  readonly numReferenced: number;
  readonly running: ReadonlyMap<Sequence, Lease>;
}

/**
 * Whether a waiting sequence starts while others of its class run: predicts the cost when all of them generate. Chats
 * and completions are read while they are generated, so they start at once. `numFree`: its tokens that need no more
 * slots.
 */
export function joins(
  sequence: Sequence,
  numFree: number,
  budget: { shares(one: Part, other: Part, columns: number): boolean },
  { pool, numReferenced, running }: RunningBatch,
): boolean {
  if (sequence.priority === 'completion' || sequence.priority === 'chat') return true;
  const alike = [...running].filter(([{ priority }]) => priority === sequence.priority);
  if (alike.length === 0) return true;
  const { pageSlots } = pool;
  const length = (one: Sequence): number => one.tokenIds.length + likelyAnswer(one) / 2;
  const own = length(sequence) / pageSlots;
  const toCome = alike.reduce((sum, [one, lease]) => sum + length(one) - numComputed(lease), 0);
  const all = (numReferenced + toCome) / pageSlots;
  const most = Math.max(...alike.map(([one]) => length(one))) / pageSlots;
  const columns = (numTokens: number, most: number, all: number): number =>
    pool.attended(numTokens, most, all).pages * pageSlots;
  const together = columns(alike.length + 1, Math.max(most, own), all + own - numFree / pageSlots);
  return budget.shares(
    { tokens: alike.length, columns: columns(alike.length, most, all) },
    { tokens: 1, columns: own * pageSlots },
    together,
  );
}
