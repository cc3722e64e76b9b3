/**
 * What a step has. Owns the order in which sequences get tokens; who runs is the admission's. Never sees a tensor.
 *
 * A step begins with whose turn it is, then, if completions wait or run, with those; then come all decodes, then prompt
 * chunks in order of service up to the token budget.
 *
 * - Hop: before each chunk a prompt moves on to what the tree holds by now, whoever computed it.
 * - Follow: a prompt whose next token another one computes in this very step waits for it.
 * - Aside: who would make a step dearer than one of his own (see grouping) is left for the next one, which is his.
 */
import { t } from '@vscode/l10n';
import { Admission } from './admission.ts';
import type { BatchSpan, Lane } from './batch.ts';
import type { KvCache } from './cache/kvCache.ts';
import { type Lease, numComputed } from './cache/lease.ts';
import { RequestError } from './errors.ts';
import { VirtualTokens } from './policies/fairness.ts';
import { nextTurn } from './policies/grouping.ts';
import type { Policies } from './policies/policies.ts';
import { byService, level, rank } from './policies/priorities.ts';
import type { TokenBudget } from './policies/tokenBudget.ts';
import type { FinishReason } from './protocol.ts';
import { type Ended, isDecode, likelyAnswer, numDrafted, reusable, type Schedule, type Scheduled } from './schedule.ts';
import type { Sequence } from './sequence.ts';
import type { ShiftedReuse } from './shiftedReuse.ts';
import type { Speculation } from './speculation/speculation.ts';
import { columnsOf, StepBatch } from './stepBatch.ts';

/** Beside a completion, answers have a token, and one prompt goes on, at least so often. */
const OVERDUE_MS = 150;
/** Waiting sequences looked at per step. */
const MAX_CANDIDATES = 32;
const NO_DRAFT: readonly number[] = [];

/** What a step is put together by. */
interface Frame {
  readonly active: readonly Sequence[];
  readonly budget: TokenBudget;
  /** It serves completions, others only ride along. */
  readonly urgent: boolean;
  readonly now: number;
  /** Who waits may start. */
  admits: boolean;
  /** A prompt is in the prefill lane, whose scratch holds one. */
  prefilling: boolean;
}

export class Scheduler {
  readonly #cache: KvCache;
  readonly #policies: Policies;
  readonly #speculation: Speculation | null;
  readonly #shifted: ShiftedReuse | null;
  readonly #admission: Admission;
  /** Being put together; empty between calls of `schedule`. */
  readonly #batch: StepBatch;
  /** Those that the last step had no use for though they had something to compute. */
  #aside = new Set<Sequence>();
  #numAdded = 0;
  #ended: Ended[] = [];
  readonly #served = new VirtualTokens();
  /** When a prompt has gone on last though the step had no room for it beside a completion. */
  #besideAt = Number.NEGATIVE_INFINITY;

  constructor(cache: KvCache, policies: Policies, speculation: Speculation | null, shifted: ShiftedReuse | null = null) {
    this.#cache = cache;
    this.#policies = policies;
    this.#speculation = speculation;
    this.#shifted = shifted;
    this.#batch = new StepBatch(cache);
    this.#admission = new Admission(cache, policies, this.#batch);
  }

  get numPreemptions(): number {
    return this.#admission.numPreemptions;
  }

  sequences(): Iterable<Sequence> {
    return this.#admission.sequences();
  }

  /** Waiting and running requests; idle work is not a request. */
  counts(): { waiting: number; running: number } {
    const requests = (sequences: Iterable<Sequence>): number => [...sequences].filter((s) => s.priority !== 'idle').length;
    return { waiting: requests(this.#admission.waiting), running: requests(this.#admission.running.keys()) };
  }

  add(sequence: Sequence, now: number): void {
    sequence.arrivalIndex = this.#numAdded++;
    sequence.arrivedAt = now;
    sequence.lastServedAt = now;
    this.#admission.waiting.add(sequence);
    this.#served.arrive(sequence.clientId);
  }

  /** Tokens that completions have yet to compute before they generate. */
  backlog(): number {
    let numTokens = 0;
    for (const sequence of this.sequences()) if (sequence.priority === 'completion') numTokens += sequence.tokenIds.length - this.#admission.lookUp(sequence);
    return numTokens;
  }

  /** Lets a sequence go; its computed tokens stay cached. */
  remove(sequence: Sequence): void {
    if (this.#admission.has(sequence)) this.#served.leave(sequence.clientId);
    this.#admission.remove(sequence);
    this.#aside.delete(sequence);
  }

  /** Sets the cache's ceiling, preempting what no longer fits under it. */
  setMaxBytes(maxBytes: number): void {
    while (this.#cache.excess(maxBytes) > 0) this.#admission.preempt(this.#admission.lowest()!);
    this.#cache.setMaxBytes(maxBytes);
  }

  /** Puts the next step together and takes slots for it. */
  schedule(budget: TokenBudget, now: number): Schedule {
    this.#ended = [];
    const all = [...this.sequences()];
    const idleToo = all.every((s) => s.priority === 'idle');
    const active = this.#eligible(all.filter((s) => idleToo || s.priority !== 'idle').sort(this.#admission.standing), now);
    const urgent = active.some((s) => s.priority === 'completion');
    const aside = this.#aside;
    this.#fill(aside, { active, budget, urgent, now, admits: true, prefilling: false });
    // A completion that cannot run yet holds nobody up.
    if (urgent && this.#batch.size === 0) this.#fill(aside, { active, budget, urgent: false, now, admits: true, prefilling: false });
    // The one in the prefill lane, which only one can have, may have given way to one that did not fit after all.
    if (this.#batch.size === 0) this.#fill(aside, { active, budget, urgent: false, now, admits: false, prefilling: false });
    const batch = this.#batch.take();
    for (const { sequence } of batch) {
      if (Number.isNaN(sequence.startedAt)) sequence.startedAt = now;
      sequence.lastServedAt = now;
    }
    return { batch, ended: this.#ended };
  }

  /** Puts decodes, drafts and prompt chunks into the step. `aside`: who was left aside by the step before. */
  #fill(aside: ReadonlySet<Sequence>, frame: Frame): void {
    const { active, budget, urgent, now } = frame;
    const batch = this.#batch;
    batch.clear();
    this.#aside = new Set();
    const isDue = (s: Sequence): boolean => !urgent || s.priority === 'completion' || this.#isOverdue(s, now);
    const turn = nextTurn(active.filter(isDue), aside);
    if (turn) this.#serve(turn, frame);
    if (urgent && this.#policies.classes) {
      const completions = active.filter((s) => s.priority === 'completion');
      for (const sequence of completions) if (this.#admission.isRunningDecode(sequence)) this.#serve(sequence, frame);
      for (const sequence of this.#prompts(completions, budget, now)) this.#serve(sequence, frame);
    }
    // Beside completions those first who have waited longest; in a step for all the order is that of standing.
    const decodes = active.filter((s) => this.#admission.isRunningDecode(s));
    if (urgent) decodes.sort((a, b) => rank(a, this.#policies) - rank(b, this.#policies) || a.lastServedAt - b.lastServedAt);
    const own = batch.spent;
    for (const sequence of decodes) {
      const isLate = urgent && batch.spent >= budget.beside(batch.columns, own) && !this.#isOverdue(sequence, now);
      if (!isLate) this.#serve(sequence, frame);
    }
    // Prompts that wait are left half of it.
    const drafted = [...batch.sequences()].filter((s) => this.#admission.isRunningDecode(s) && this.#mayDraft(s, urgent));
    const room = budget.tokens(batch.columns, batch.numDecodes) - batch.spent;
    const most = active.length > batch.size ? Math.floor(room / 2) : Number.POSITIVE_INFINITY;
    const drafts: ReadonlyMap<Sequence, readonly number[]> = this.#speculation?.propose(drafted, most, budget.columnMs(batch.columns)) ?? new Map();
    batch.spent += numDrafted(drafts);
    for (const sequence of this.#prompts(active, budget, now)) this.#serve(sequence, frame, own);
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

  /** Gives a sequence its part in the step, if it may have one. `own`: what the step spends on completions; what it has by now when left out. */
  #serve(sequence: Sequence, frame: Frame, own = this.#batch.spent): void {
    const batch = this.#batch;
    const admission = this.#admission;
    const { budget, urgent, now } = frame;
    if (batch.has(sequence) || !admission.has(sequence)) return;
    if (admission.isRunningDecode(sequence)) {
      const lease = admission.running.get(sequence)!;
      // Drafts make it dear to attend to others' columns.
      const numDrafts = frame.active.length > 1 && this.#mayDraft(sequence, urgent) ? this.#speculation!.numWanted(sequence, budget.columnMs(columnsOf(this.#cache, lease))) : 0;
      if (this.#isAside(sequence, lease, 1 + numDrafts, budget) || this.#take(sequence, lease, 1) === 0) return;
      batch.spent++;
      batch.numDecodes++;
      batch.numWanted += numDrafts;
      return;
    }
    let isUrgent = !urgent || level(sequence, now, this.#policies) <= 0;
    let least = 0;
    const left = (columns: number): number => Math.max(least, (isUrgent ? budget.tokens(columns, batch.numDecodes) : budget.beside(columns, own)) - batch.spent);
    if (left(batch.columns) <= 0) {
      if (!urgent || now - this.#besideAt < OVERDUE_MS || !this.#isOverdue(sequence, now)) return;
      least = budget.leastTokens;
      isUrgent = true;
    }
    const lease = admission.running.get(sequence) ?? this.#admit(sequence, frame);
    if (!lease) return;
    this.#hop(sequence, lease);
    const at = numComputed(lease);
    if (at === sequence.tokenIds.length) this.#end(sequence, 'length');
    else if (batch.computesFor(sequence, at)) return;
    else if (at >= sequence.prefillEnd) {
      const missing = sequence.tokenIds.length - at;
      const most = Math.min(left(batch.columnsWith(lease)), missing);
      // What a step of its own would have of it.
      const alone = Math.min(budget.tokens(columnsOf(this.#cache, lease), 0), missing);
      if (this.#isAside(sequence, lease, most > 0 ? alone : 0, budget)) return;
      batch.spent += this.#take(sequence, lease, most);
    } else if (!frame.prefilling) {
      const most = budget.prefill(at, batch.columns, batch.spent, isUrgent);
      const taken = most > 0 ? this.#take(sequence, lease, Math.min(most, sequence.prefillEnd - at, this.#shifted?.room(sequence, at) ?? most)) : 0;
      frame.prefilling = taken > 0;
      // In that lane tokens have another price: what it takes of the step's time is counted as so much of its tokens.
      if (taken > 0) batch.spent += Math.ceil((taken / most) * left(batch.columns));
    }
    if (least > 0 && batch.has(sequence)) this.#besideAt = now;
  }

  /** Whether a sequence is left for another step: this one has no room for its tokens, or they would make it too dear. */
  #isAside(sequence: Sequence, lease: Lease, tokens: number, budget: TokenBudget): boolean {
    if (tokens > 0 && (!this.#policies.grouping || this.#batch.shares(lease, tokens, budget))) return false;
    this.#aside.add(sequence);
    return true;
  }

  /** Beside completions others have no drafts. */
  #mayDraft({ priority }: Sequence, urgent: boolean): boolean {
    return this.#speculation !== null && (!urgent || priority === 'completion');
  }

  #isOverdue({ lastServedAt }: Sequence, now: number): boolean {
    return now - lastServedAt >= OVERDUE_MS;
  }

  /** Those that the kind of batching lets into a step. */
  #eligible(active: Sequence[], now: number): Sequence[] {
    if (this.#policies.batching === 'continuous' || active.length === 0) return active;
    return [active.find((s) => this.#admission.running.has(s)) ?? active.sort(this.#service(now, () => false))[0]!];
  }

  #service(now: number, givesToken: (sequence: Sequence) => boolean): (a: Sequence, b: Sequence) => number {
    const served = (s: Sequence): number => this.#served.counter(s.clientId, this.#admission.running.has(s));
    return byService(now, { givesToken, served }, this.#policies);
  }

  /** Prompts that may get a chunk, in order of service. */
  #prompts(active: readonly Sequence[], budget: TokenBudget, now: number): Sequence[] {
    const { running, waiting } = this.#admission;
    const started = active.filter((s) => running.has(s) && !this.#batch.has(s) && !this.#admission.isRunningDecode(s));
    const others = active.filter((s) => waiting.has(s)).sort(this.#service(now, () => false));
    const candidates = [...started, ...others.slice(0, MAX_CANDIDATES)];
    const room = budget.tokens(this.#batch.columns, this.#batch.numDecodes) - this.#batch.spent;
    const missing = new Map(candidates.map((s) => [s, s.tokenIds.length - this.#admission.lookUp(s)]));
    return candidates.sort(this.#service(now, (s) => !s.promptOnly && missing.get(s)! <= room));
  }

  #admit(sequence: Sequence, frame: Frame): Lease | null {
    if (!this.#joins(sequence, frame.budget) || !frame.admits) return null;
    const numTokens = sequence.tokenIds.length;
    if (numTokens > this.#cache.capacity) {
      this.#end(sequence, sequence.numGenerated > 0 ? 'length' : this.#tooLarge(numTokens));
      return null;
    }
    const lease = this.#admission.admit(sequence);
    if (lease) this.#shifted?.plan(sequence);
    // What does not fit now must not be overtaken for ever by smaller ones.
    else if (!this.#batch.computesFor(sequence, this.#admission.lookUp(sequence))) frame.admits = false;
    return lease;
  }

  /** Whether a waiting sequence does well to run beside others of its class. Chats and completions are read along: they do not wait. */
  #joins(sequence: Sequence, budget: TokenBudget): boolean {
    if (!this.#policies.grouping || sequence.priority === 'completion' || sequence.priority === 'chat') return true;
    const numRunning = [...this.#admission.running.keys()].filter(({ priority }) => priority === sequence.priority).length;
    if (numRunning === 0) return true;
    // As things will be when all of them generate.
    const { numReferenced } = this.#cache.lookUp(sequence.cacheIds, reusable(sequence));
    const columns = sequence.tokenIds.length + likelyAnswer(sequence) / 2;
    const running = { tokens: numRunning, columns: this.#cache.numReferenced };
    return budget.shares(running, { tokens: 1, columns }, running.columns + columns - numReferenced);
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
    const { running } = this.#admission;
    for (; running.has(sequence); ) {
      const count = Math.min(most, this.#cache.available);
      const newSlots = count > 0 ? this.#cache.allocate(count, lease) : null;
      if (newSlots) {
        const startIndex = numComputed(lease);
        const isLast = startIndex + count === sequence.tokenIds.length;
        const prefill = !isDecode(sequence, lease);
        const numLogits = isLast && !sequence.promptOnly ? 1 : 0;
        this.#batch.set({ sequence, lease, tokenIds: sequence.cacheIds, startIndex, count, lane, newSlots, draft: NO_DRAFT, prefill, numLogits });
        return count;
      }
      const victim = this.#admission.lowest()!;
      if (victim !== sequence) this.#admission.preempt(victim);
      else if (running.size > 1) return 0;
      else this.#end(sequence, sequence.numGenerated > 0 ? 'length' : this.#tooLarge(sequence.tokenIds.length));
    }
    return 0;
  }

  /** Puts drafts into the step, as far as slots are free by themselves. */
  #addDrafts(drafts: ReadonlyMap<Sequence, readonly number[]>): void {
    for (const [sequence, draft] of drafts) {
      const scheduled = this.#batch.get(sequence);
      const slots = scheduled && this.#cache.takeFree(draft.length, scheduled.newSlots.at(-1)!);
      if (slots) this.#batch.set({ ...scheduled, draft, newSlots: Int32Array.of(...scheduled.newSlots, ...slots), numLogits: 1 + draft.length });
    }
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
