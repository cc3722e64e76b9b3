/**
 * The scheduling policy: who goes first, who takes slots from whom, and who shares a step. No decision changes a token.
 * A benchmark replaces single decisions in a subclass.
 */
import { type Lease, numComputed } from '../kv/lease.ts';
import type { KvPool } from '../kv/pool.ts';
import type { Priority } from '../protocol/tasks.ts';
import type { Sequence } from '../sequence/sequence.ts';
import type { Computing, StepBatch } from './stepBatch.ts';
import type { TokenBudget } from './tokenBudget.ts';

const CLASSES: readonly Priority[] = ['completion', 'chat', 'summary', 'idle'];
/** A sequence that has not been served for this long rises by one class. */
export const AGEING_MS = 2000;
/**
 * A summary that chats have kept out of memory for this long gets slots. It is much longer than AGEING_MS, because
 * chats then wait until the whole summary has ended.
 */
const SLOTS_AGEING_MS = 15 * AGEING_MS;
/** ms that an answer which the user reads may wait for its next token, and that any other work may wait. */
const READ_MS = 150;
const OTHER_MS = 4 * READ_MS;
/** An answer is assumed to generate at most this many more tokens. */
const LIKELY_ANSWER = 48;

interface Ranked {
  readonly priority: Priority;
  readonly arrivalIndex: number;
  readonly lastServedAt: number;
}

/** What the order of service depends on, besides class and waiting time. */
export interface Merits<S> {
  /** Whether this step can give its first token. */
  givesToken(sequence: S): boolean;
  /** How many tokens its client has been served, weighted (see VirtualTokens). */
  served(sequence: S): number;
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

/** The running sequences and the slots that they hold. */
export interface RunningBatch {
  readonly pool: Pick<KvPool, 'pageSlots' | 'attended'>;
  /** Slots of all rows that running sequences reference. */
  readonly numReferenced: number;
  readonly running: ReadonlyMap<Sequence, Lease>;
}

export class SchedulingPolicy {
  /** Place of a sequence's class, 0 the highest. */
  rank({ priority }: Pick<Ranked, 'priority'>): number {
    return CLASSES.indexOf(priority);
  }

  /** Whether a step that has such a sequence serves its class before others, and is kept short. */
  isUrgent({ priority }: Pick<Ranked, 'priority'>): boolean {
    return priority === 'completion';
  }

  /** Urgency of service: 0 is a completion that has just arrived, lower is more urgent. Waiting lowers it. */
  level(sequence: Ranked, now: number): number {
    return this.rank(sequence) - Math.floor((now - sequence.lastServedAt) / AGEING_MS);
  }

  /**
   * Order of service: level; then sequences whose first token this step can give; then the client served least; then
   * arrival.
   */
  byService<S extends Ranked>(now: number, { givesToken, served }: Merits<S>): (a: S, b: S) => number {
    return (a, b) =>
      this.level(a, now) - this.level(b, now) ||
      Number(givesToken(b)) - Number(givesToken(a)) ||
      served(a) - served(b) ||
      a.arrivalIndex - b.arrivalIndex;
  }

  /** Whether chats must leave slots to a summary that has found none for `waitedMs`. */
  isDueSlots({ priority }: Pick<Ranked, 'priority'>, waitedMs: number): boolean {
    return priority === 'summary' && waitedMs >= SLOTS_AGEING_MS;
  }

  /** Whether a running sequence, whose class has `victimPlace`, is preempted for a waiting one. */
  isPreempted(_victim: Sequence, victimPlace: number, waiting: Sequence): boolean {
    return victimPlace > this.rank(waiting);
  }

  /** In-flight prefix sharing: whether `other` computes, in this step, the token at `at` that a sequence needs next. */
  waitsFor(other: Computing, tokenIds: readonly number[], at: number): boolean {
    if (at < other.startIndex || at >= other.startIndex + other.count) return false;
    // Backwards, because sequences with a common beginning differ late.
    for (let i = at; i >= 0; i--) if (tokenIds[i] !== other.tokenIds[i]) return false;
    return true;
  }

  /**
   * Whether tokens are drafted for a sequence. `urgent`: the step serves completions, and other sequences get no
   * drafts. A partial lease gets none: it must choose its rows at certain tokens.
   */
  mayDraft({ isForced, priority }: Sequence, lease: Lease | undefined, urgent: boolean): boolean {
    return !isForced && (!urgent || priority === 'completion') && !lease?.partial;
  }

  /**
   * The deferred sequence with which a step begins: the one whose wait is longest for its kind. Answers that the user
   * reads take turns. Of prompts and of answers that nobody reads, only the first of each class takes part: run one
   * after another they end sooner on average, and the last one ends no later. `running`: in slot order.
   */
  nextTurn<C extends Candidate>(running: readonly C[], now: number): C | null {
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

  /** Whether `most` tokens of a lease in this step cost less than `tokens` in a step of its own. */
  sharesStep(batch: StepBatch, lease: Lease, tokens: number, budget: TokenBudget, most: number): boolean {
    return batch.shares(lease, tokens, budget, most);
  }

  /**
   * Whether a waiting sequence starts now, or waits until the running ones of its class have ended: predicts the cost
   * when all of them generate. Chats and completions are read while they are generated, so they start at once.
   * `numFree`: its tokens that need no more slots.
   */
  joins(
    sequence: Sequence,
    numFree: number,
    budget: Pick<TokenBudget, 'shares'>,
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
}

/** Tokens that a sequence probably still generates. */
function likelyAnswer(sequence: Sequence): number {
  return Math.min(sequence.sampling.maxTokens + sequence.numReasoned - sequence.numGenerated, LIKELY_ANSWER);
}

/**
 * Slot order: who keeps its slots. By class, then by arrival; the last sequence is preempted first. Negative when `a`
 * comes before `b`. The order does not change from step to step, so the first sequence always finishes. `place`: of a
 * sequence's class.
 */
export function bySlotOrder<S extends Ranked>(place: (sequence: S) => number): (a: S, b: S) => number {
  return (a, b) => place(a) - place(b) || a.arrivalIndex - b.arrivalIndex;
}

/** A generated token takes about as much time of a step as two prompt tokens. */
const GENERATED_WEIGHT = 2;
/** A started prompt goes on until it has had this many tokens more than others, because switching has a cost. */
const HEAD_START = 1024;

interface Client {
  served: number;
  /** Place of its class (see rank). */
  rank: number;
  numSequences: number;
}

/**
 * Fairness among sequences of equal level, by virtual token counters ("Fairness in Serving Large Language Models",
 * Sheng et al., 2024): the client that has been served fewer tokens goes first. A client is one request, or all
 * requests for one folder, so that a folder's files do not push out a single summary.
 *
 * The counter of a new client starts at the lowest counter of the present clients of its class. So a client gains
 * nothing by being away, and a late one has nothing to catch up with.
 */
export class VirtualTokens {
  readonly #clients = new Map<string, Client>();

  /** A sequence of this client has arrived. `rank`: of its class. */
  arrive(clientId: string, rank: number): void {
    const client = this.#clients.get(clientId);
    if (client) client.numSequences++;
    else this.#clients.set(clientId, { served: this.#least(rank), rank, numSequences: 1 });
  }

  /** The client is of another class from now on, where it counts as new. */
  move(clientId: string, rank: number): void {
    const client = this.#clients.get(clientId);
    if (!client || client.rank === rank) return;
    client.served = Math.max(client.served, this.#least(rank));
    client.rank = rank;
  }

  /** A sequence of this client has ended. */
  leave(clientId: string): void {
    const client = this.#clients.get(clientId);
    if (client && --client.numSequences === 0) this.#clients.delete(clientId);
  }

  /** A step has computed these tokens for a client. */
  serve(clientId: string, numPromptTokens: number, numGenerated: number): void {
    const client = this.#clients.get(clientId);
    if (client) client.served += numPromptTokens + GENERATED_WEIGHT * numGenerated;
  }

  /** The client with the lower counter goes first. */
  counter(clientId: string, isStarted: boolean): number {
    return (this.#clients.get(clientId)?.served ?? 0) - (isStarted ? HEAD_START : 0);
  }

  #least(ofRank: number): number {
    let least = Number.POSITIVE_INFINITY;
    for (const { served, rank } of this.#clients.values()) if (rank === ofRank) least = Math.min(least, served);
    return least === Number.POSITIVE_INFINITY ? 0 : least;
  }
}
