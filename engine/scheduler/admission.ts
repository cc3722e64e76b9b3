/**
 * Who runs: the waiting sequences, the running ones with their leases, and the batch under construction. Admits,
 * preempts and
 * ends sequences. Does not decide which running sequence gets tokens: that is StepBuilder's.
 *
 * - Preemption: when slots run out, the running sequence of the lowest standing gives up its lease. Its computed tokens
 *   stay in
 *   the tree; it waits and resumes there. The sequence of the highest standing always gets through.
 * - Starvation guard: one summary at a time, for which chats have left no room for long, counts as a chat. New chats
 *   wait for
 *   it and do not take its room back. Completions wait for nobody. Then chats have the room for at least as long.
 */
import type { KvCache } from '../kv/kvCache.ts';
import type { Match } from '../kv/radixTree.ts';
import { type Lease, numComputed, numHeld, numLeased } from '../kv/lease.ts';
import type { Policies } from './policies.ts';
import { byStanding, isDueRoom, rank, type VirtualTokens } from './fairness.ts';
import { type Ended, isDecode, reusable } from './schedule.ts';
import type { Sequence } from '../sequence/sequence.ts';
import { StepBatch } from './stepBatch.ts';

/** Sequences that hold a lease at once. */
const MAX_RUNNING = 16;

/** Slots that one that waits wants beside what is held of its path, and those that there are. */
interface Needs {
  readonly path: Match;
  /** Tokens that it need not compute. */
  readonly numFound: number;
  readonly wanted: number;
  readonly room: number;
}

export class Admission {
  readonly waiting = new Set<Sequence>();
  readonly running = new Map<Sequence, Lease>();
  /** When the step under way was put together. */
  now = 0;
  numPreemptions = 0;
  readonly standing = byStanding<Sequence>((sequence) => this.place(sequence));
  readonly #cache: KvCache;
  readonly #policies: Policies;
  readonly #served: VirtualTokens;
  /** Under construction; empty between steps. Slots of a sequence that gives up its lease leave it. */
  readonly batch: StepBatch;
  #ended: Ended[] = [];
  /** The summary that counts as a chat, until it ends or gives way. */
  #favoured: Sequence | null = null;
  /** When the last favour ended. */
  #favouredUntil = Number.NEGATIVE_INFINITY;
  /**
   * When sequences were refused first. Not since their last chunk: what that computed may be lost again before the
   * next.
   */
  readonly #refusedSince = new WeakMap<Sequence, number>();

  constructor(cache: KvCache, policies: Policies, served: VirtualTokens) {
    this.#cache = cache;
    this.#policies = policies;
    this.#served = served;
    this.batch = new StepBatch(cache, policies);
  }

  *sequences(): Generator<Sequence> {
    yield* this.running.keys();
    yield* this.waiting;
  }

  has(sequence: Sequence): boolean {
    return this.waiting.has(sequence) || this.running.has(sequence);
  }

  /** A sequence ends while a step is put together, without a part in it. */
  end(sequence: Sequence, outcome: Ended['outcome']): void {
    this.remove(sequence);
    this.#ended.push({ sequence, outcome });
  }

  /** Sequences that have ended since the last call. */
  takeEnded(): Ended[] {
    return this.#ended.splice(0);
  }

  /** Forgets a sequence. Its computed tokens stay cached. */
  remove(sequence: Sequence): void {
    if (this.has(sequence)) this.#served.leave(sequence.clientId);
    this.#giveUp(sequence);
    this.waiting.delete(sequence);
  }

  /** Place of its class where room is shared out, 0 the highest. */
  place(sequence: Sequence): number {
    return rank(
      sequence === this.#favoured && sequence.priority === 'summary' ? { priority: 'chat' } : sequence,
      this.#policies,
    );
  }

  isRunningDecode(sequence: Sequence): boolean {
    const lease = this.running.get(sequence);
    return lease !== undefined && isDecode(sequence, lease);
  }

  /** Tokens of a sequence that it need not compute, as things are. */
  lookUp(sequence: Sequence): number {
    const lease = this.running.get(sequence);
    return lease ? numComputed(lease) : this.#cache.lookUp(sequence.cacheIds, reusable(sequence)).numTokens;
  }

  /** Whether a sequence is longer than the pool, with all that it has rows for. */
  isLong(sequence: Sequence): boolean {
    const { capacity } = this.#cache;
    const numTokens = sequence.tokenIds.length;
    // Looked up only where it matters: a context that was let go in part may be longer than the pool.
    return (
      numTokens > capacity && numTokens - this.#cache.lookUp(sequence.cacheIds, reusable(sequence)).numPruned > capacity
    );
  }

  /** The running one that attends to parts of its context; null when none does. One at a time. */
  get long(): Sequence | null {
    for (const [sequence, { partial }] of this.running) if (partial) return sequence;
    return null;
  }

  /**
   * Whether a sequence may be the one that attends to parts of its context: there is no other, or one that gives way to
   * it.
   */
  mayBeLong(sequence: Sequence): boolean {
    const { long } = this;
    return !long || this.#givesWay(long, sequence);
  }

  /**
   * Gives a waiting sequence a lease when all it has to compute fits beside what the running ones have still to
   * compute; one with `isLong` needs no room for all of it.
   */
  admit(sequence: Sequence, isLong = false): Lease | null {
    const numTokens = sequence.tokenIds.length;
    for (;;) {
      const needs = this.#needs(sequence, isLong);
      if (this.batch.computesFor(sequence, needs.numFound)) return null;
      const other = isLong ? this.long : null;
      const fits = needs.room - this.#reserved(this.running) >= needs.wanted;
      if (fits && !other && this.running.size < MAX_RUNNING) break;
      const victim = other ?? this.lowest();
      if (!victim || !this.#givesWay(victim, sequence)) return null;
      // None gives way for nothing.
      if (!this.#fitsBeside(needs, (one) => !this.#givesWay(one, sequence))) return null;
      this.preempt(victim);
    }
    if (isLong) this.#cache.reserved(numTokens, this.batch.newSlots());
    const lease = this.#cache.open(sequence.priority, isLong ? { longTokens: sequence.numPromptTokens } : {});
    this.waiting.delete(sequence);
    this.running.set(sequence, lease);
    sequence.status = 'running';
    if (isLong) sequence.inParts = true;
    return lease;
  }

  /** One that waits has found no room. Returns the place from which on others are to leave it what comes free. */
  refuse(sequence: Sequence, isLong: boolean): number {
    const refusedSince = this.#refusedSince.get(sequence) ?? this.now;
    this.#refusedSince.set(sequence, refusedSince);
    if (!this.#favoured || this.#favoured === sequence) {
      // Beside completions it has to fit, or chats would wait for nothing; beside other summaries, or they would wait
      // for those, too.
      const isDue =
        isDueRoom(sequence, this.now - Math.max(refusedSince, this.#favouredUntil), this.#policies) &&
        this.#fitsBeside(
          this.#needs(sequence, isLong),
          ({ priority }) => priority === 'completion' || priority === 'summary',
        );
      this.#favoured = isDue ? sequence : null;
    }
    return this.place(sequence);
  }

  /** The running one of the lowest standing. */
  lowest(): Sequence | null {
    let lowest: Sequence | null = null;
    for (const sequence of this.running.keys()) if (!lowest || this.standing(sequence, lowest) > 0) lowest = sequence;
    return lowest;
  }

  preempt(sequence: Sequence): void {
    this.#giveUp(sequence);
    this.waiting.add(sequence);
    sequence.status = 'waiting';
    this.numPreemptions++;
  }

  /**
   * Whether a running sequence makes room for one that waits: a lower class for a higher one. Who is favoured gets what
   * comes free, and no more.
   */
  #givesWay(victim: Sequence, sequence: Sequence): boolean {
    if (!this.#policies.preemption && victim.priority !== 'idle') return false;
    return this.place(victim) > rank(sequence, this.#policies);
  }

  #needs(sequence: Sequence, isLong: boolean): Needs {
    const numTokens = sequence.tokenIds.length;
    const { numFree, path } = this.#cache.lookUp(sequence.cacheIds, reusable(sequence));
    const numFound = path.numTokens;
    // A partial lease holds no path: what is wanted is for all of it.
    if (isLong)
      return {
        path: this.#cache.lookUp([], 0).path,
        numFound,
        wanted: this.#cache.longContexts.slotsFor(numTokens),
        room: this.#cache.memory.availableBeside(this.#cache.longContexts.storeBytes(numTokens)),
      };
    return { path, numFound, wanted: numTokens - numFree, room: this.#cache.memory.available };
  }

  /** Whether one that waits would have what it needs if of the running ones only these stayed. */
  #fitsBeside({ wanted, room, path }: Needs, stays: (sequence: Sequence) => boolean): boolean {
    const staying = [...this.running].filter(([other]) => stays(other));
    const inFlight = staying.reduce((sum, [other]) => sum + (this.batch.get(other)?.newSlots.length ?? 0), 0);
    const freed =
      this.#cache.memory.numReferenced -
      numHeld(
        staying.map(([, lease]) => lease),
        path,
      ) -
      inFlight;
    return staying.length < MAX_RUNNING && room + freed - this.#reserved(staying) >= wanted;
  }

  /** Slots that these need to get to their next token; idle ones give way. */
  #reserved(sequences: Iterable<readonly [Sequence, Lease]>): number {
    let reserved = 0;
    for (const [sequence, lease] of sequences) {
      if (sequence.priority === 'idle') continue;
      if (lease.partial) {
        reserved += Math.max(0, this.#cache.longContexts.maxSlots(lease.partial) - numLeased(lease));
        continue;
      }
      reserved += sequence.tokenIds.length - numComputed(lease) - (this.batch.get(sequence)?.count ?? 0);
    }
    return reserved;
  }

  /** Takes a sequence out of the running ones and out of the step being put together. */
  #giveUp(sequence: Sequence): void {
    if (sequence === this.#favoured) {
      this.#favoured = null;
      this.#favouredUntil = this.now;
    }
    const lease = this.running.get(sequence);
    if (!lease) return;
    const scheduled = this.batch.delete(sequence);
    if (scheduled) this.#cache.memory.free(scheduled.newSlots);
    this.#cache.commit(lease, sequence.cacheIds);
    this.#cache.release(lease);
    this.running.delete(sequence);
    if (lease.partial) this.#cache.reserved(0);
  }
}
