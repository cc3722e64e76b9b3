/**
 * The waiting sequences, the running ones with their leases, and the batch under construction. Admits, preempts and
 * ends sequences. Does not decide which running sequence gets tokens: see StepBuilder.
 *
 * - Preemption: when slots run out, the last running sequence in slot order gives up its lease. Its computed tokens
 *   stay in the tree; it waits and resumes from there. The first sequence in this order always gets its slots.
 * - Starvation guard: one summary at a time, which chats have kept out of memory for long, counts as a chat. New chats
 *   wait for it and do not take its slots; completions do not wait for it. After its end the
 *   next summary has to wait as long.
 */
import type { CachedPrefix, KvCache } from '../kv/kvCache.ts';
import { type Lease, numComputed, numHeld, numLeased } from '../kv/lease.ts';
import { type Match, NO_MATCH } from '../kv/radixTree.ts';
import type { Sequence } from '../sequence/sequence.ts';
import { bySlotOrder, type SchedulingPolicy, type VirtualTokens } from './policy.ts';
import { type Ended, isDecode, reusable, StepBatch } from './stepBatch.ts';

/** Most sequences that hold a lease at the same time. */
const MAX_RUNNING = 16;

/** What a waiting sequence needs to start. */
interface Needs {
  /** Its cached path, which it would hold. */
  readonly path: Match;
  /** Tokens that need not be computed. */
  readonly numFound: number;
  /** Slots that it takes besides those of its path that are already in use. */
  readonly wanted: number;
  /** Slots that are available. */
  readonly available: number;
}

/** A match of a sequence's ids in the tree, and the state in which it was looked up. */
interface KnownMatch {
  readonly match: Match;
  readonly treeVersion: number;
  readonly limit: number;
  readonly prefillEnd: number;
}

export class Admission {
  readonly waiting = new Set<Sequence>();
  readonly running = new Map<Sequence, Lease>();
  /** Time at which the step under construction began. */
  now = 0;
  numPreemptions = 0;
  /** Slot order: those that keep their slots longest come first. */
  readonly slotOrder = bySlotOrder<Sequence>((sequence) => this.place(sequence));
  /** The batch under construction; empty between steps. A sequence that gives up its lease leaves it. */
  readonly batch: StepBatch;
  readonly #cache: KvCache;
  readonly #policy: SchedulingPolicy;
  readonly #served: VirtualTokens;
  readonly #matches = new WeakMap<Sequence, KnownMatch>();
  #ended: Ended[] = [];
  /** The summary that counts as a chat, until it ends or is preempted. */
  #promoted: Sequence | null = null;
  /** When the last promotion ended. */
  #promotedUntil = Number.NEGATIVE_INFINITY;
  /**
   * When each sequence was first refused. Not reset by a chunk: its computed tokens may be lost again before the next.
   */
  readonly #refusedSince = new WeakMap<Sequence, number>();

  constructor(cache: KvCache, policy: SchedulingPolicy, served: VirtualTokens) {
    this.#cache = cache;
    this.#policy = policy;
    this.#served = served;
    this.batch = new StepBatch(cache, policy);
  }

  *sequences(): Generator<Sequence> {
    yield* this.running.keys();
    yield* this.waiting;
  }

  has(sequence: Sequence): boolean {
    return this.waiting.has(sequence) || this.running.has(sequence);
  }

  /** Ends a sequence while a step is under construction, without a part in it. */
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

  /** Place of a sequence's class where slots are shared out, 0 the highest. */
  place(sequence: Sequence): number {
    const countsAsChat = sequence === this.#promoted && sequence.priority === 'summary';
    return this.#policy.rank(countsAsChat ? { priority: 'chat' } : sequence);
  }

  isRunningDecode(sequence: Sequence): boolean {
    const lease = this.running.get(sequence);
    return lease !== undefined && isDecode(sequence, lease);
  }

  /** Tokens of a sequence that need not be computed, as things are. */
  numFound(sequence: Sequence): number {
    const lease = this.running.get(sequence);
    return lease ? numComputed(lease) : this.prefix(sequence).numTokens;
  }

  /**
   * The cached prefix of a waiting sequence. The match is kept from step to step. It is looked up again only if a node
   * was added, extended, split, pruned or evicted since, for example by a sequence that was admitted in the same step.
   */
  prefix(sequence: Sequence): CachedPrefix {
    const { tree } = this.#cache.memory;
    const { prefillEnd } = sequence;
    const limit = reusable(sequence);
    let known = this.#matches.get(sequence);
    // With another end of the prefill lane the sequence has other cache ids.
    if (known?.treeVersion !== tree.version || known.limit !== limit || known.prefillEnd !== prefillEnd) {
      known = { match: tree.match(sequence.cacheIds, limit), treeVersion: tree.version, limit, prefillEnd };
      this.#matches.set(sequence, known);
    }
    return this.#cache.prefixOf(known.match);
  }

  /** Whether a sequence is longer than the pool, even without the tokens of its prefix that have no rows. */
  isLong(sequence: Sequence): boolean {
    const { capacity } = this.#cache;
    const numTokens = sequence.tokenIds.length;
    return numTokens > capacity && numTokens - this.prefix(sequence).numWithoutRows > capacity;
  }

  /** The running sequence that attends to parts of its context, or null. There is at most one. */
  get long(): Sequence | null {
    for (const [sequence, { partial }] of this.running) if (partial) return sequence;
    return null;
  }

  /** Whether a sequence can become the one that attends to parts of its context. It may have to preempt another. */
  mayBeLong(sequence: Sequence): boolean {
    const { long } = this;
    return !long || this.#isPreempted(long, sequence);
  }

  /**
   * Gives a waiting sequence a lease if all that it has to compute fits beside what the running ones still have to
   * compute. A long one needs slots only for parts of its context.
   */
  admit(sequence: Sequence, isLong = false): Lease | null {
    const numTokens = sequence.tokenIds.length;
    for (;;) {
      const needs = this.#needs(sequence, isLong);
      if (this.batch.computesFor(sequence, needs.numFound)) return null;
      const other = isLong ? this.long : null;
      const fits = needs.available - this.#reserved(this.running) >= needs.wanted;
      if (fits && !other && this.running.size < MAX_RUNNING) break;
      const victim = other ?? this.lastInOrder();
      if (!victim || !this.#isPreempted(victim, sequence)) return null;
      // Preempts nobody if the sequence does not fit afterwards.
      if (!this.#fitsBeside(needs, (one) => !this.#isPreempted(one, sequence))) return null;
      this.preempt(victim);
    }
    if (isLong) this.#cache.reserved(numTokens, this.batch.newSlots());
    const lease = this.#cache.open(sequence.priority, isLong ? { longTokens: sequence.numPromptTokens } : {});
    this.waiting.delete(sequence);
    this.running.set(sequence, lease);
    // While it runs, its cache ids may change (see RowReuse).
    this.#matches.delete(sequence);
    sequence.status = 'running';
    if (isLong) sequence.inParts = true;
    return lease;
  }

  /** A waiting sequence does not fit. Returns a place: sequences from there on must leave free slots to it. */
  refuse(sequence: Sequence, isLong: boolean): number {
    const refusedSince = this.#refusedSince.get(sequence) ?? this.now;
    this.#refusedSince.set(sequence, refusedSince);
    if (!this.#promoted || this.#promoted === sequence) {
      // It must fit beside the completions, or chats would wait in vain, and beside other summaries, or chats would
      // wait for those as well.
      const isDue =
        this.#policy.isDueSlots(sequence, this.now - Math.max(refusedSince, this.#promotedUntil)) &&
        this.#fitsBeside(
          this.#needs(sequence, isLong),
          ({ priority }) => priority === 'completion' || priority === 'summary',
        );
      this.#promoted = isDue ? sequence : null;
    }
    return this.place(sequence);
  }

  /** The last running sequence in slot order, which is preempted first. Null if none runs. */
  lastInOrder(): Sequence | null {
    let last: Sequence | null = null;
    for (const sequence of this.running.keys()) if (!last || this.slotOrder(sequence, last) > 0) last = sequence;
    return last;
  }

  preempt(sequence: Sequence): void {
    this.#giveUp(sequence);
    this.waiting.add(sequence);
    sequence.status = 'waiting';
    this.numPreemptions++;
  }

  /** Whether a running sequence gives its slots to a waiting one. A promoted summary takes only free slots. */
  #isPreempted(victim: Sequence, waiting: Sequence): boolean {
    return this.#policy.isPreempted(victim, this.place(victim), waiting);
  }

  #needs(sequence: Sequence, isLong: boolean): Needs {
    const { memory, longContexts } = this.#cache;
    const numTokens = sequence.tokenIds.length;
    const { path, numTokens: numFound, numFree } = this.prefix(sequence);
    // A partial lease holds no path: it needs slots for all of its rows.
    if (isLong)
      return {
        path: NO_MATCH,
        numFound,
        wanted: longContexts.slotsFor(numTokens),
        available: memory.availableBeside(longContexts.storeBytes(numTokens)),
      };
    return { path, numFound, wanted: numTokens - numFree, available: memory.available };
  }

  /** Whether a waiting sequence would get what it needs if only the running ones that `stays` names stayed. */
  #fitsBeside({ wanted, available, path }: Needs, stays: (sequence: Sequence) => boolean): boolean {
    const staying = [...this.running].filter(([other]) => stays(other));
    const inFlight = staying.reduce((sum, [other]) => sum + (this.batch.get(other)?.newSlots.length ?? 0), 0);
    const leases = staying.map(([, lease]) => lease);
    const freed = this.#cache.memory.numReferenced - numHeld(leases, path) - inFlight;
    return staying.length < MAX_RUNNING && available + freed - this.#reserved(staying) >= wanted;
  }

  /** Slots that these sequences need until they generate their next token. Idle ones count for nothing. */
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

  /** Takes a sequence out of the running ones and out of the batch under construction. */
  #giveUp(sequence: Sequence): void {
    if (sequence === this.#promoted) {
      this.#promoted = null;
      this.#promotedUntil = this.now;
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
