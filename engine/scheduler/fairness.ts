/**
 * PURE: who goes first. Two orders: `standing` decides who may take memory from whom and does not change from step to
 * step, so that
 * the one at the top always gets through; `level` decides who is served next and rises with waiting, so that no class
 * starves.
 */
import type { Priority } from '../protocol/tasks.ts';
import { ALL_POLICIES, type Policies } from './policies.ts';

const CLASSES: readonly Priority[] = ['completion', 'chat', 'summary', 'idle'];
/** Waiting this long without being served lifts a sequence by one class. */
export const AGEING_MS = 2000;
/**
 * A summary to which chats have left no room for so long is to have some. Much longer than for its turn: they wait for
 * all of it then.
 */
const ROOM_AGEING_MS = 15 * AGEING_MS;

interface Ranked {
  readonly priority: Priority;
  readonly arrivalIndex: number;
  readonly lastServedAt: number;
}

type Order = Pick<Policies, 'classes' | 'ageing' | 'firstTokenFirst' | 'fairness'>;

/** Place of a class, 0 the highest. Without classes there are still two: requests and idle work. */
export function rank(sequence: Pick<Ranked, 'priority'>, { classes }: Pick<Policies, 'classes'>): number {
  return classes || sequence.priority === 'idle' ? CLASSES.indexOf(sequence.priority) : 0;
}

/** Negative when `a` stands above `b`: class, then arrival. `place`: of a sequence's class. */
export function byStanding<S extends Ranked>(
  place: (sequence: S) => number = (sequence) => rank(sequence, ALL_POLICIES),
): (a: S, b: S) => number {
  return (a, b) => place(a) - place(b) || a.arrivalIndex - b.arrivalIndex;
}

/** Whether chats are to leave a summary room that has found none for `waitedMs`. */
export function isDueRoom(
  { priority }: Pick<Ranked, 'priority'>,
  waitedMs: number,
  { ageing }: Pick<Policies, 'ageing'>,
): boolean {
  return ageing && priority === 'summary' && waitedMs >= ROOM_AGEING_MS;
}

/** 0 is a completion just arrived, lower is more urgent. */
export function level(
  sequence: Ranked,
  now: number,
  policies: Pick<Policies, 'classes' | 'ageing'> = ALL_POLICIES,
): number {
  const waited = policies.ageing ? Math.floor((now - sequence.lastServedAt) / AGEING_MS) : 0;
  return rank(sequence, policies) - waited;
}

/** Of a sequence, as things are. */
export interface Merits<S> {
  /** Whether this step can give its first token. */
  givesToken(sequence: S): boolean;
  /** How much it has been served already. */
  served(sequence: S): number;
}

/**
 * Order of service. At equal level the one whose first token this step can give goes first, then the one served least,
 * then the one that came first.
 */
export function byService<S extends Ranked>(
  now: number,
  merits: Merits<S>,
  policies: Order = ALL_POLICIES,
): (a: S, b: S) => number {
  const first = (sequence: S): number => Number(policies.firstTokenFirst && merits.givesToken(sequence));
  const served = (a: S, b: S): number => (policies.fairness ? merits.served(a) - merits.served(b) : 0);
  return (a, b) =>
    level(a, now, policies) - level(b, now, policies) ||
    first(b) - first(a) ||
    served(a, b) ||
    a.arrivalIndex - b.arrivalIndex;
}

/**
 * Fairness among equals, by virtual token counters ("Fairness in Serving Large Language Models", Sheng et al., 2024):
 * of
 * two clients at the same level, the one that has been served fewer tokens goes first. A client is a request, or
 * the requests of one folder, so that its twelve files do not push out the one summary that came after them. The
 * counter of a new client is
 * lifted to the least of those of its class that are present: who was away has saved nothing up, who comes late has
 * nothing to catch
 * up with, and what a lower class has been kept waiting for is no measure of it.
 */

/** A generated token takes about as much of a step as two of a prompt. */
const GENERATED_WEIGHT = 2;
/**
 * A prompt that has been started goes on until it has had so many tokens more than others: changing over is not free.
 */
const HEAD_START = 1024;

interface Client {
  served: number;
  /** Place of its class (see rank). */
  rank: number;
  numSequences: number;
}

export class VirtualTokens {
  readonly #clients = new Map<string, Client>();

  /** A sequence of this client, of a class of this rank, has come. */
  arrive(clientId: string, rank: number): void {
    const client = this.#clients.get(clientId);
    if (client) client.numSequences++;
    else this.#clients.set(clientId, { served: this.#least(rank), rank, numSequences: 1 });
  }

  /** It is of another class from now on, where it comes late. */
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

  serve(clientId: string, numPromptTokens: number, numGenerated: number): void {
    const client = this.#clients.get(clientId);
    if (client) client.served += numPromptTokens + GENERATED_WEIGHT * numGenerated;
  }

  /** The lower goes first. */
  counter(clientId: string, isStarted: boolean): number {
    return (this.#clients.get(clientId)?.served ?? 0) - (isStarted ? HEAD_START : 0);
  }

  #least(ofRank: number): number {
    let least = Number.POSITIVE_INFINITY;
    for (const { served, rank } of this.#clients.values()) if (rank === ofRank) least = Math.min(least, served);
    return least === Number.POSITIVE_INFINITY ? 0 : least;
  }
}
