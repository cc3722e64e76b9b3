/**
 * Who runs next. Owns the waiting and the running sequences; a running one holds a lease on the cache. Each step takes
 * all decodes, then prompt chunks in order of service up to the token budget. Never sees a tensor.
 *
 * - Hop: before each chunk a prompt moves on to what the tree holds by now, whoever computed it.
 * - Follow: a prompt whose next token another one computes in this very step waits for it.
 * - Preempt: when slots run out, the running sequence of the lowest standing gives up its lease. Its computed tokens
 *   stay in the tree; it waits and resumes where it was. The sequence of the highest standing always gets through.
 */
import { t } from '@vscode/l10n';
import type { BatchSpan, Lane } from './batch.ts';
import type { KvCache } from './cache/kvCache.ts';
import { type Lease, numComputed } from './cache/lease.ts';
import { RequestError } from './errors.ts';
import { VirtualTokens } from './policies/fairness.ts';
import { follows } from './policies/leader.ts';
import type { Policies } from './policies/policies.ts';
import { byService, byStanding, level, rank } from './policies/priorities.ts';
import type { TokenBudget } from './policies/tokenBudget.ts';
import type { FinishReason } from './protocol.ts';
import { type Ended, isDecode, likelyAnswer, numDrafted, reusable, type Schedule, type Scheduled } from './schedule.ts';
import type { Sequence } from './sequence.ts';
import type { ShiftedReuse } from './shiftedReuse.ts';
import type { Speculation } from './speculation/speculation.ts';

/** Sequences that hold a lease at once. */
const MAX_RUNNING = 16;
/** Beside a completion, answers have a token, and one prompt goes on, at least so often. */
const OVERDUE_MS = 150;
/** Waiting sequences looked at per step. */
const MAX_CANDIDATES = 32;
const NO_DRAFT: readonly number[] = [];

export class Scheduler {
  readonly #cache: KvCache;
  readonly #policies: Policies;
  readonly #speculation: Speculation | null;
  readonly #shifted: ShiftedReuse | null;
  readonly #standing: ReturnType<typeof byStanding>;
  readonly #waiting = new Set<Sequence>();
  readonly #running = new Map<Sequence, Lease>();
  numPreemptions = 0;
  #numAdded = 0;
  /** Of the step being put together, in order; empty between calls of `schedule`. */
  readonly #batch = new Map<Sequence, Scheduled>();
  #ended: Ended[] = [];
  readonly #served = new VirtualTokens();
  /** When a prompt has gone on last though the step had no room for it beside a completion. */
  #besideAt = Number.NEGATIVE_INFINITY;

  constructor(cache: KvCache, policies: Policies, speculation: Speculation | null, shifted: ShiftedReuse | null = null) {
    this.#cache = cache;
    this.#policies = policies;
    this.#speculation = speculation;
    this.#shifted = shifted;
    this.#standing = byStanding(policies);
  }

  *sequences(): Generator<Sequence> {
    yield* this.#running.keys();
    yield* this.#waiting;
  }

  /** Waiting and running requests; idle work is not a request. */
  counts(): { waiting: number; running: number } {
    const requests = (sequences: Iterable<Sequence>): number => [...sequences].filter((s) => s.priority !== 'idle').length;
    return { waiting: requests(this.#waiting), running: requests(this.#running.keys()) };
  }

  has(sequence: Sequence): boolean {
    return this.#waiting.has(sequence) || this.#running.has(sequence);
  }

  add(sequence: Sequence, now: number): void {
    sequence.arrivalIndex = this.#numAdded++;
    sequence.arrivedAt = now;
    sequence.lastServedAt = now;
    this.#waiting.add(sequence);
    this.#served.arrive(sequence.clientId);
  }

  /** Lets a sequence go; its computed tokens stay cached. */
  remove(sequence: Sequence): void {
    if (this.has(sequence)) this.#served.leave(sequence.clientId);
    this.#giveUp(sequence);
    this.#waiting.delete(sequence);
  }

  /** Sets the cache's ceiling, preempting what no longer fits under it. */
  setMaxBytes(maxBytes: number): void {
    while (this.#cache.excess(maxBytes) > 0) this.#preempt(this.#lowest()!);
    this.#cache.setMaxBytes(maxBytes);
  }

  /** Puts the next step together and takes slots for it. `budgetFor` says how many tokens it may have beside its decodes. */
  schedule(budgetFor: (numDecodes: number) => TokenBudget, now: number): Schedule {
    this.#ended = [];
    const idleToo = [...this.sequences()].every((s) => s.priority === 'idle');
    const active = this.#eligible([...this.sequences()].filter((s) => idleToo || s.priority !== 'idle').sort(this.#standing), now);

    const decodes = active.filter((s) => this.#isRunningDecode(s));
    const budget = budgetFor(decodes.length);
    const urgent = active.some((s) => s.priority === 'completion');
    this.#fill(active, decodes, budget, urgent, now, true);
    // A completion that cannot run yet holds nobody up.
    if (urgent && this.#batch.size === 0) this.#fill(active, decodes, budget, false, now, true);
    // The one in the prefill lane, which only one can have, may have given way to one that did not fit after all.
    if (this.#batch.size === 0) this.#fill(active, decodes, budget, false, now, false);
    for (const { sequence } of this.#batch.values()) {
      if (Number.isNaN(sequence.startedAt)) sequence.startedAt = now;
      sequence.lastServedAt = now;
    }
    const batch = [...this.#batch.values()];
    this.#batch.clear();
    return { batch, ended: this.#ended };
  }

  /** Puts decodes, drafts and prompt chunks into the step. `urgent`: it serves completions, others only ride along. `admits`: who waits may start. */
  #fill(active: readonly Sequence[], decodes: readonly Sequence[], budget: TokenBudget, urgent: boolean, now: number, admits: boolean): void {
    // What others may ride along with in a step that serves a completion; more only for those that it would keep waiting too long.
    const own = urgent ? this.#completionTokens(active, budget.tokens) : 0;
    const beside = urgent ? budget.beside(own) : budget.tokens;
    let numOthers = 0;
    const isOverdue = (s: Sequence): boolean => now - s.lastServedAt >= OVERDUE_MS;
    // Completions first, then who has waited longest; in a step for all the order is that of standing.
    const inOrder = urgent ? [...decodes].sort((a, b) => rank(a, this.#policies) - rank(b, this.#policies) || a.lastServedAt - b.lastServedAt) : decodes;
    for (const sequence of inOrder) {
      const lease = this.#running.get(sequence);
      const isOwn = sequence.priority === 'completion';
      if (!lease || (urgent && !isOwn && own + numOthers >= beside && !isOverdue(sequence))) continue;
      numOthers += Number(!isOwn);
      this.#take(sequence, lease, 1);
    }
    let numTokens = this.#batch.size;
    // Prompts that wait are left half of it.
    const drafted = [...this.#batch.keys()].filter((s) => !urgent || s.priority === 'completion');
    const drafts = this.#drafts(drafted, active.length > numTokens ? Math.floor((budget.tokens - numTokens) / 2) : Number.POSITIVE_INFINITY);
    numTokens += numDrafted(drafts);
    // The scratch of the prefill lane holds one prompt.
    let prefilling = false;
    for (const sequence of this.#prompts(active, budget.tokens - numTokens, now)) {
      if (!this.has(sequence)) continue;
      let isUrgent = !urgent || level(sequence, now, this.#policies) <= 0;
      let left = (isUrgent ? budget.tokens : beside) - numTokens;
      if (left <= 0) {
        if (!urgent || now - this.#besideAt < OVERDUE_MS) break;
        if (!isOverdue(sequence)) continue;
        this.#besideAt = now;
        left = budget.leastTokens;
        isUrgent = true;
      }
      if (!this.#running.has(sequence) && !this.#joins(sequence, budget)) continue;
      const lease = this.#running.get(sequence) ?? (admits ? this.#admit(sequence) : null);
      if (!lease) {
        // What does not fit now must not be overtaken for ever by smaller ones.
        if (this.#waiting.has(sequence) && !this.#isFollower(sequence, this.#lookUp(sequence))) admits = false;
        continue;
      }
      this.#hop(sequence, lease);
      const at = numComputed(lease);
      if (at === sequence.tokenIds.length) this.#end(sequence, 'length');
      else if (this.#isFollower(sequence, at)) continue;
      else if (at >= sequence.prefillEnd) numTokens += this.#take(sequence, lease, Math.min(left, sequence.tokenIds.length - at));
      else if (!prefilling) {
        const most = budget.prefill(at, numTokens, isUrgent);
        const taken = most > 0 ? this.#take(sequence, lease, Math.min(most, sequence.prefillEnd - at, this.#shifted?.room(sequence, at) ?? most)) : 0;
        prefilling = taken > 0;
        // In that lane tokens have another price: what it takes of the step's time is counted as so much of its tokens.
        if (prefilling) numTokens += Math.ceil((taken / most) * left);
      }
    }
    this.#addDrafts(drafts);
  }

  /** What the runner gets. Valid until the next `schedule`. */
  span({ sequence, lease, startIndex, count, draft, newSlots, lane, numLogits }: Scheduled): BatchSpan {
    return { tokenIds: [...sequence.tokenIds.slice(startIndex, startIndex + count), ...draft], startIndex, contextSlots: this.#cache.slotsOf(lease), newSlots, lane, prefillEnd: sequence.prefillEnd, numLogits };
  }

  /** The step has computed its tokens; `numAccepted` of its draft are the sequence's, the rest is let go. */
  commit({ sequence, lease, newSlots, prefill, startIndex, count, draft }: Scheduled, numAccepted: number): void {
    this.#cache.append(lease, newSlots.subarray(0, count + numAccepted));
    if (numAccepted < draft.length) this.#cache.free(newSlots.subarray(count + numAccepted));
    this.#served.serve(sequence.clientId, prefill ? count : 0, prefill ? 0 : count + numAccepted);
    if (prefill) this.#cache.commit(lease, sequence.cacheIds);
    sequence.numReached = Math.max(sequence.numReached, Math.min(startIndex + count, sequence.numPromptTokens));
  }

  /** The step has failed: nothing was computed. */
  rollBack(batch: readonly Scheduled[]): void {
    for (const { newSlots } of batch) this.#cache.free(newSlots);
  }

  /** Those that the kind of batching lets into a step. */
  #eligible(active: Sequence[], now: number): Sequence[] {
    if (this.#policies.batching === 'continuous' || active.length === 0) return active;
    return [active.find((s) => this.#running.has(s)) ?? active.sort(this.#service(now, () => false))[0]!];
  }

  #service(now: number, givesToken: (sequence: Sequence) => boolean): (a: Sequence, b: Sequence) => number {
    const served = (s: Sequence): number => this.#served.counter(s.clientId, this.#running.has(s));
    return byService(now, { givesToken, served }, this.#policies);
  }

  /** Prompts that may get a chunk, in order of service. */
  #prompts(active: readonly Sequence[], budget: number, now: number): Sequence[] {
    const running = active.filter((s) => this.#running.has(s) && !this.#batch.has(s) && !this.#isRunningDecode(s));
    const waiting = active.filter((s) => this.#waiting.has(s)).sort(this.#service(now, () => false));
    const candidates = [...running, ...waiting.slice(0, MAX_CANDIDATES)];
    const missing = new Map(candidates.map((s) => [s, s.tokenIds.length - this.#lookUp(s)]));
    return candidates.sort(this.#service(now, (s) => !s.promptOnly && missing.get(s)! <= budget));
  }

  /** Tokens that a step has of completions alone, at most `most`. */
  #completionTokens(active: readonly Sequence[], most: number): number {
    let numTokens = 0;
    for (const sequence of active) if (sequence.priority === 'completion') numTokens += sequence.tokenIds.length - this.#lookUp(sequence);
    return Math.min(numTokens, most);
  }

  #isRunningDecode(sequence: Sequence): boolean {
    const lease = this.#running.get(sequence);
    return lease !== undefined && isDecode(sequence, lease);
  }

  /** Tokens of a sequence that it need not compute, as things are. */
  #lookUp(sequence: Sequence): number {
    const lease = this.#running.get(sequence);
    return lease ? numComputed(lease) : this.#cache.lookUp(sequence.cacheIds, reusable(sequence)).numTokens;
  }

  #isFollower(sequence: Sequence, at: number): boolean {
    for (const leader of this.#batch.values()) if (leader.prefill && follows(sequence.cacheIds, at, leader)) return true;
    return false;
  }

  /** Whether a waiting sequence does well to run beside others of its class. Chats and completions are read along: they do not wait. */
  #joins(sequence: Sequence, budget: TokenBudget): boolean {
    if (!this.#policies.grouping || sequence.priority === 'completion' || sequence.priority === 'chat') return true;
    const running = [...this.#running].filter(([{ priority }]) => priority === sequence.priority);
    if (running.length === 0) return true;
    const { numTokens, numReferenced } = this.#cache.lookUp(sequence.cacheIds, reusable(sequence));
    const answer = likelyAnswer(sequence);
    return budget.joins({
      numRunning: running.length,
      foreignColumns: this.#cache.numReferenced - numReferenced,
      // The prefill lane does not look at the window.
      missing: Math.max(0, sequence.tokenIds.length - Math.max(numTokens, sequence.prefillEnd)),
      ownColumns: sequence.tokenIds.length - numReferenced + answer / 2,
      answer,
    });
  }

  /** Gives a waiting sequence a lease when all it has to compute fits beside what the running ones have still to compute. */
  #admit(sequence: Sequence): Lease | null {
    const numTokens = sequence.tokenIds.length;
    if (numTokens > this.#cache.capacity) {
      this.#end(sequence, sequence.numGenerated > 0 ? 'length' : this.#tooLarge(numTokens));
      return null;
    }
    for (;;) {
      const { numTokens: numCached, numReferenced } = this.#cache.lookUp(sequence.cacheIds, reusable(sequence));
      if (this.#isFollower(sequence, numCached)) return null;
      const fits = this.#cache.available - this.#reserved() >= numTokens - numReferenced;
      if (fits && this.#running.size < MAX_RUNNING) break;
      const victim = this.#lowest();
      if (!victim || !this.#givesWay(victim, sequence)) return null;
      this.#preempt(victim);
    }
    const lease = this.#cache.open(sequence.priority);
    this.#waiting.delete(sequence);
    this.#running.set(sequence, lease);
    sequence.status = 'running';
    this.#shifted?.plan(sequence);
    return lease;
  }

  /** Whether a running sequence makes room for one that waits: a lower class for a higher one. */
  #givesWay(victim: Sequence, sequence: Sequence): boolean {
    if (!this.#policies.preemption && victim.priority !== 'idle') return false;
    return rank(victim, this.#policies) > rank(sequence, this.#policies);
  }

  /** Slots that the running sequences need to get to their next token; idle ones give way. */
  #reserved(): number {
    let reserved = 0;
    for (const [sequence, lease] of this.#running) {
      if (sequence.priority === 'idle') continue;
      reserved += sequence.tokenIds.length - numComputed(lease) - (this.#batch.get(sequence)?.count ?? 0);
    }
    return reserved;
  }

  #hop(sequence: Sequence, lease: Lease): void {
    do this.#cache.advance(lease, sequence.cacheIds, reusable(sequence));
    while (this.#shifted?.takeOver(sequence, lease));
    const reached = Math.min(numComputed(lease), sequence.numPromptTokens);
    sequence.cachedTokens += Math.max(0, reached - sequence.numReached);
    sequence.numReached = Math.max(sequence.numReached, reached);
  }

  /** Puts the next tokens of a running sequence into the step, `most` of them or what there are slots for. Returns how many. */
  #take(sequence: Sequence, lease: Lease, most: number): number {
    const lane: Lane = numComputed(lease) < sequence.prefillEnd ? 'prefill' : 'window';
    for (; this.#running.has(sequence); ) {
      const count = Math.min(most, this.#cache.available);
      const newSlots = count > 0 ? this.#cache.allocate(count, lease) : null;
      if (newSlots) {
        const startIndex = numComputed(lease);
        const isLast = startIndex + count === sequence.tokenIds.length;
        const prefill = !isDecode(sequence, lease);
        const numLogits = isLast && !sequence.promptOnly ? 1 : 0;
        this.#batch.set(sequence, { sequence, lease, tokenIds: sequence.cacheIds, startIndex, count, lane, newSlots, draft: NO_DRAFT, prefill, numLogits });
        return count;
      }
      const victim = this.#lowest()!;
      if (victim !== sequence) this.#preempt(victim);
      else if (this.#running.size > 1) return 0;
      else this.#end(sequence, sequence.numGenerated > 0 ? 'length' : this.#tooLarge(sequence.tokenIds.length));
    }
    return 0;
  }

  /** Guesses for some of the decodes of the step, together at most `most` tokens. */
  #drafts(sequences: readonly Sequence[], most: number): ReadonlyMap<Sequence, readonly number[]> {
    return this.#speculation?.propose(sequences, most) ?? new Map();
  }

  /** Puts drafts into the step, as far as slots are free by themselves. */
  #addDrafts(drafts: ReadonlyMap<Sequence, readonly number[]>): void {
    for (const [sequence, draft] of drafts) {
      const scheduled = this.#batch.get(sequence);
      const slots = scheduled && this.#cache.takeFree(draft.length, scheduled.newSlots.at(-1)!);
      if (slots) this.#batch.set(sequence, { ...scheduled, draft, newSlots: Int32Array.of(...scheduled.newSlots, ...slots), numLogits: 1 + draft.length });
    }
  }

  #lowest(): Sequence | null {
    let lowest: Sequence | null = null;
    for (const sequence of this.#running.keys()) if (!lowest || this.#standing(sequence, lowest) > 0) lowest = sequence;
    return lowest;
  }

  #preempt(sequence: Sequence): void {
    this.#giveUp(sequence);
    this.#waiting.add(sequence);
    sequence.status = 'waiting';
    this.numPreemptions++;
  }

  /** Takes a sequence out of the running ones and out of the step being put together. */
  #giveUp(sequence: Sequence): void {
    const lease = this.#running.get(sequence);
    if (!lease) return;
    const scheduled = this.#batch.get(sequence);
    if (scheduled) this.#cache.free(scheduled.newSlots);
    this.#batch.delete(sequence);
    this.#cache.commit(lease, sequence.cacheIds);
    this.#cache.release(lease);
    this.#running.delete(sequence);
  }

  #end(sequence: Sequence, outcome: FinishReason | RequestError): void {
    this.remove(sequence);
    this.#ended.push({ sequence, outcome });
  }

  #tooLarge(numTokens: number): RequestError {
    const { capacity, maxBytes } = this.#cache;
    return new RequestError(
      'outOfMemory',
      t('The request has {0} tokens; {1} fit into the KV cache of {2} bytes. Raise the memory limit of the cache or send less text.', numTokens, capacity, maxBytes),
    );
  }
}
