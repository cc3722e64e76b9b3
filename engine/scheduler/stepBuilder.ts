/**
 * Puts a step together. Owns the order in which sequences get tokens; who runs is the admission's.
 *
 * A step begins with whose turn it is, then, if completions wait or run, with those; then come all decodes, then prompt
 * chunks in order of service up to the token budget.
 *
 * - Hop: before each chunk a prompt moves on to what the tree holds by now, whoever computed it.
 * - Follow: a prompt whose next token another one computes in this very step waits for it.
 * - Aside: who would make a step dearer than one of his own (see grouping) is left for another one.
 */
import type { Admission } from './admission.ts';
import type { KvCache } from '../kv/kvCache.ts';
import { type Lease, numComputed } from '../kv/lease.ts';
import { joins } from './joining.ts';
import { lacking, lostRows, tooLarge } from './roomErrors.ts';
import type { VirtualTokens } from './fairness.ts';
import { nextTurn } from './grouping.ts';
import type { Policies } from './policies.ts';
import { byService, level, rank } from './fairness.ts';
import type { PromptStanding, TokenBudget } from './tokenBudget.ts';
import { isDecode, numDrafted, type OnEnd, reusable, type Scheduled } from './schedule.ts';
import type { Sequence } from '../sequence/sequence.ts';
import type { RowReuse } from '../kv/approx/approximation.ts';
import type { Speculation } from './speculation/speculation.ts';
import { columnsOf, type StepBatch } from './stepBatch.ts';

/**
 * Beside a completion, answers have a token, and one prompt goes on, at least so often: whoever types does not read. With half of it
 * completions took a fifth longer, and a chat got no more tokens in all (benchmark `mixed`, live).
 */
const OVERDUE_MS = 300;
/** A part of a prompt in the prefill lane that is worth its step, in tokens; shorter ones are put together to one that comes seldom. */
const LONG_PART = 64;
/** Waiting sequences looked at per step. */
const MAX_CANDIDATES = 32;
/** Tokens that are put where others have left room. */
const FEW = 16;
const NO_DRAFT: readonly number[] = [];

/** What a step is put together by. */
export interface Frame {
  /** Those that may have a part, in order of standing. */
  readonly active: readonly Sequence[];
  readonly budget: TokenBudget;
  /** It serves completions, others only ride along. */
  readonly urgent: boolean;
  readonly now: number;
  /** Who waits may start. */
  readonly admits: boolean;
}

export interface StepParties {
  readonly cache: KvCache;
  readonly policies: Policies;
  readonly speculation: Speculation | null;
  readonly reuse: RowReuse;
  readonly admission: Admission;
  readonly served: VirtualTokens;
  readonly batch: StepBatch;
  /** A sequence has ended without a step. */
  readonly onEnd: OnEnd;
}

export class StepBuilder {
  readonly #cache: KvCache;
  readonly #policies: Policies;
  readonly #speculation: Speculation | null;
  readonly #reuse: RowReuse;
  readonly #admission: Admission;
  readonly #served: VirtualTokens;
  readonly #batch: StepBatch;
  readonly #end: OnEnd;
  /** Those that the last step left aside, and those that this one does. */
  #wasReserved: ReadonlySet<Sequence> = new Set();
  #aside = new Set<Sequence>();
  /** The last step that served completions began with another's turn. */
  #gaveWay = false;
  /** When a prompt has gone on last though the step had no room for it beside a completion. */
  #besideAt = Number.NEGATIVE_INFINITY;
  /** When a prompt has gone on last by a part that others had to wait for. */
  #partAt = Number.NEGATIVE_INFINITY;
  // Of the step under way:
  /** Place of the highest class of which one that waits cannot run yet: none of it, or of lower ones, begins to. */
  #refused = 0;
  /** A prompt is in the prefill lane, whose scratch holds one. */
  #prefilling = false;

  constructor({ cache, policies, speculation, reuse, admission, served, batch, onEnd }: StepParties) {
    this.#cache = cache;
    this.#policies = policies;
    this.#speculation = speculation;
    this.#reuse = reuse;
    this.#admission = admission;
    this.#served = served;
    this.#batch = batch;
    this.#end = onEnd;
  }

  /** A new step: who was left aside by the last one has his turn now. */
  next(): void {
    this.#wasReserved = this.#aside;
  }

  /** Puts decodes, drafts and prompt chunks into the batch, which is empty when there is nothing for this frame. */
  build(frame: Frame): void {
    const { active, budget, urgent, now, admits } = frame;
    const admission = this.#admission;
    const batch = this.#batch;
    admission.now = now;
    // Without grouping each step is reckoned to attend to all that runs.
    batch.begin(this.#policies.grouping ? [] : admission.running.values());
    this.#aside = new Set();
    this.#refused = admits ? Number.POSITIVE_INFINITY : 0;
    this.#prefilling = false;
    const turn = this.#turn(frame);
    if (turn) this.#serve(turn, frame);
    if (urgent) {
      this.#gaveWay = turn !== null && turn.priority !== 'completion' && batch.has(turn);
      const completions = active.filter((s) => s.priority === 'completion');
      for (const sequence of completions) if (admission.isRunningDecode(sequence)) this.#serve(sequence, frame);
      for (const sequence of this.#prompts(completions, budget, now)) this.#serve(sequence, frame);
    }
    // Beside completions those first who have waited longest; in a step for all the order is that of standing.
    const decodes = active.filter((s) => admission.isRunningDecode(s));
    if (urgent)
      decodes.sort((a, b) => rank(a, this.#policies) - rank(b, this.#policies) || a.lastServedAt - b.lastServedAt);
    const own = batch.spent;
    for (const sequence of decodes) {
      const isLate = urgent && batch.spent >= budget.beside(batch.paidColumns, own) && !this.#isOverdue(sequence, now);
      if (!isLate) this.#serve(sequence, frame);
    }
    // Prompts that wait are left half of it.
    const drafted = [...batch.sequences()].filter((s) => admission.isRunningDecode(s) && this.#mayDraft(s, urgent));
    const room = budget.tokens(batch.paidColumns, batch.numDecodes) - batch.spent;
    const most = active.length > batch.size ? Math.floor(room / 2) : Number.POSITIVE_INFINITY;
    const drafts: ReadonlyMap<Sequence, readonly number[]> =
      this.#speculation?.propose(drafted, most, budget.columnMs(batch.paidColumns)) ?? new Map();
    batch.drafted = numDrafted(drafts);
    for (const sequence of this.#prompts(active, budget, now)) this.#serve(sequence, frame, own);
    this.#addDrafts(drafts);
  }

  /** Whose turn it is. Beside completions: of answers that are overdue and of prompts that have waited as long as makes them as urgent; never twice in a row. */
  #turn({ active, urgent, now }: Frame): Sequence | null {
    if (!this.#policies.grouping || (urgent && this.#gaveWay)) return null;
    const { running } = this.#admission;
    const candidates = active
      .filter((s) => running.has(s))
      .map((sequence) => {
        const { priority, lastServedAt } = sequence;
        return {
          sequence,
          priority,
          lastServedAt,
          decodes: this.#admission.isRunningDecode(sequence),
          aside: this.#wasReserved.has(sequence),
        };
      });
    const isDue = ({ sequence, priority, decodes }: (typeof candidates)[number]): boolean =>
      !urgent ||
      priority === 'completion' ||
      (decodes ? this.#isOverdue(sequence, now) : level(sequence, now, this.#policies) <= 0);
    return nextTurn(candidates.filter(isDue), now)?.sequence ?? null;
  }

  /** Gives a sequence its part in the step, if it may have one. `own`: what the step spends on completions; what it has by now when left out. */
  #serve(sequence: Sequence, frame: Frame, own = this.#batch.spent): void {
    if (this.#batch.has(sequence) || !this.#admission.has(sequence)) return;
    if (this.#admission.isRunningDecode(sequence)) this.#decode(sequence, frame);
    else this.#continuePrompt(sequence, frame, own);
  }

  #decode(sequence: Sequence, { active, budget, urgent }: Frame): void {
    const lease = this.#admission.running.get(sequence)!;
    // Drafts make it dear to attend to others' columns.
    const mayWant = this.#policies.grouping && active.length > 1 && this.#mayDraft(sequence, urgent);
    const wanted =
      1 + (mayWant ? this.#speculation!.numWanted(sequence, budget.columnMs(columnsOf(this.#cache, lease))) : 0);
    if (!this.#isReserved(sequence, lease, wanted, budget)) this.#take(sequence, lease, 1, { wanted });
  }

  #continuePrompt(sequence: Sequence, frame: Frame, own: number): void {
    const batch = this.#batch;
    const { budget, urgent, now } = frame;
    const standing = this.#standing(sequence, frame);
    const room = (columns: number): number =>
      (standing === 'beside' ? budget.beside(columns, own) : budget.tokens(columns, batch.numDecodes)) - batch.spent;
    // Beside a completion one that waits too long has some tokens all the same: a few in the paged lane, many but seldom in the other.
    const isLate = room(batch.paidColumns) <= 0;
    const inPrefill = sequence.laneAt(this.#admission.lookUp(sequence)) === 'prefill';
    const mayBeLate = inPrefill
      ? standing === 'late'
      : urgent && this.#isOverdue(sequence, now) && now - this.#besideAt >= OVERDUE_MS;
    if (isLate && !mayBeLate) return;
    const lease = this.#admission.running.get(sequence) ?? this.#admit(sequence, frame);
    if (!lease) return;
    this.#hop(sequence, lease);
    const at = numComputed(lease);
    // It may have less of its prompt than it was to find.
    this.#limitPrefill(sequence, lease.partial !== null, at);
    const asks = this.#asks(sequence, lease, at);
    if (at === sequence.tokenIds.length) this.#end(sequence, 'length');
    else if (batch.computesFor(sequence, at)) return;
    else if (sequence.laneAt(at) === 'paged') {
      const missing = this.#partEnd(sequence, lease, at) - at;
      // What they pay for depends on how many they are: so many that their price leaves room for them.
      const within = (tokens: number): number =>
        Math.min(isLate ? budget.leastTokens : room(batch.with(lease, tokens).paidColumns), missing);
      // What only asks does so as a whole; it is short.
      let most = asks ? missing : within(1);
      for (let fits = within(most); !asks && most > 1 && fits < most; fits = within(most))
        most = Math.max(fits, most >> 1);
      // What a step of its own would have of it.
      const alone = isLate ? most : Math.min(budget.tokens(columnsOf(this.#cache, lease), 0), missing);
      if (!this.#isReserved(sequence, lease, most > 0 ? alone : 0, budget, most)) this.#take(sequence, lease, most);
    } else if (!this.#prefilling) {
      const left = this.#partEnd(sequence, lease, at) - at;
      const { tokens, most } = this.#part(sequence, at - lease.numPruned, left, frame, standing);
      // In that lane tokens have another price: what it takes of the step's time is counted as so much of its tokens.
      const worth = isLate ? budget.leastTokens : room(batch.paidColumns);
      if (tokens > 0)
        this.#prefilling = this.#take(
          sequence,
          lease,
          asks ? left : Math.min(tokens, this.#reuse.tokensBefore(sequence, at)),
          { perToken: worth / Math.max(tokens, most) },
        );
      if (this.#prefilling) this.#partAt = now;
    }
    if (isLate && batch.has(sequence)) this.#besideAt = now;
  }

  #standing(sequence: Sequence, { urgent, now }: Frame): PromptStanding {
    if (!urgent || sequence.priority === 'completion') return 'own';
    return level(sequence, now, this.#policies) <= 0 ? 'late' : 'beside';
  }

  /**
   * How many tokens of the prefill lane a prompt, of which `left` are still for it behind `rows` rows, has of the step, and how
   * many it could have. Beside answers that somebody may read and that stand no lower: seldom, but many.
   */
  #part(
    sequence: Sequence,
    rows: number,
    left: number,
    { budget, urgent, now }: Frame,
    standing: PromptStanding,
  ): { tokens: number; most: number } {
    const { paidColumns: columns, spent } = this.#batch;
    const part = (as: PromptStanding): { tokens: number; most: number } => {
      const most = budget.prefill(rows, columns, spent, as);
      // A small rest would cost a step that is hardly shorter.
      return { tokens: left <= 1.25 * most ? left : most, most };
    };
    const usual = part(standing);
    const isBeside = this.#batch
      .decodes()
      .some((other) => rank(other, this.#policies) <= rank(sequence, this.#policies));
    if (urgent || !isBeside || usual.tokens >= Math.min(left, LONG_PART)) return usual;
    return now - this.#partAt < budget.betweenPartsMs ? { tokens: 0, most: 0 } : part('late');
  }

  /** Whether the tokens from `at` on are to say first what they attend to. */
  #asks(sequence: Sequence, lease: Lease, at: number): boolean {
    return !sequence.promptOnly && this.#cache.longContexts.asks(lease, at, sequence.numPromptTokens);
  }

  /** Where what may be computed together ends: the lane's tokens, or those that attend to the same parts of the context. */
  #partEnd(sequence: Sequence, lease: Lease, at: number): number {
    return Math.min(sequence.laneEnd(at), this.#cache.longContexts.partEnd(lease, at, sequence.numPromptTokens));
  }

  /** Whether a sequence, which would have `tokens` in a step of its own, is left for one: this step has no room for it, or `most` of them would make it too dear. */
  #isReserved(sequence: Sequence, lease: Lease, tokens: number, budget: TokenBudget, most = tokens): boolean {
    if (tokens > 0 && (!this.#policies.grouping || this.#batch.shares(lease, tokens, budget, most))) return false;
    this.#aside.add(sequence);
    return true;
  }

  /** Beside completions others have no drafts. Nor has who attends to parts of its context: it is due to choose them at certain tokens. */
  #mayDraft(sequence: Sequence, urgent: boolean): boolean {
    return (
      this.#speculation !== null &&
      !sequence.isForced &&
      (!urgent || sequence.priority === 'completion') &&
      !this.#admission.running.get(sequence)?.partial
    );
  }

  #isOverdue({ lastServedAt }: Sequence, now: number): boolean {
    return now - lastServedAt >= OVERDUE_MS;
  }

  /** Prompts that may get a chunk, in order of service. */
  #prompts(active: readonly Sequence[], budget: TokenBudget, now: number): Sequence[] {
    const { running, waiting } = this.#admission;
    const started = active.filter((s) => running.has(s) && !this.#batch.has(s) && !this.#admission.isRunningDecode(s));
    const others = active.filter((s) => waiting.has(s)).sort(this.service(now, () => false));
    const candidates = [...started, ...others.slice(0, MAX_CANDIDATES)];
    const room = budget.tokens(this.#batch.paidColumns, this.#batch.numDecodes) - this.#batch.spent;
    const missing = new Map(candidates.map((s) => [s, s.tokenIds.length - this.#admission.lookUp(s)]));
    return candidates.sort(this.service(now, (s) => !s.promptOnly && missing.get(s)! <= room));
  }

  /** Order of service. */
  service(now: number, givesToken: (sequence: Sequence) => boolean): (a: Sequence, b: Sequence) => number {
    const served = (s: Sequence): number => this.#served.counter(s.clientId, this.#admission.running.has(s));
    return byService(now, { givesToken, served }, this.#policies);
  }

  #admit(sequence: Sequence, { budget }: Frame): Lease | null {
    if (this.#admission.place(sequence) >= this.#refused) return null;
    const isLong = this.#admission.isLong(sequence);
    if (isLong && (sequence.priority === 'idle' || sequence.tokenIds.length > this.#cache.longContexts.capacity)) {
      this.#end(sequence, sequence.numGenerated > 0 ? 'length' : tooLarge(sequence.tokenIds.length, this.#cache));
      return null;
    }
    // Others may overtake it: the room that is free is none that it waits for.
    if (isLong && !this.#admission.mayBeLong(sequence)) return null;
    const mayJoin = joins(sequence, budget, {
      cache: this.#cache,
      policies: this.#policies,
      running: this.#admission.running,
    });
    // The budget may have changed since it came.
    if (mayJoin) this.#limitPrefill(sequence, isLong, this.#admission.lookUp(sequence));
    const lease = mayJoin ? this.#admission.admit(sequence, isLong) : null;
    if (lease) {
      if (!isLong) this.#reuse.plan(sequence);
    }
    // Who cannot run now must not be overtaken for ever by others of its class, which fit or share a step where it does not.
    else if (!this.#batch.computesFor(sequence, this.#admission.lookUp(sequence)))
      this.#refused = mayJoin ? this.#admission.refuse(sequence, isLong) : rank(sequence, this.#policies);
    return lease;
  }

  /** Tokens behind the `computed` ones that the scratch has no room for take the other lane. One that attends to parts of its context takes no more room for more tokens. */
  #limitPrefill(sequence: Sequence, isLong: boolean, computed: number): void {
    const room = this.#cache.longContexts;
    if (!isLong || room.slotsFor(sequence.tokenIds.length) > room.prefillTokens)
      sequence.limitPrefill(room.prefillTokens, computed);
  }

  #hop(sequence: Sequence, lease: Lease): void {
    // Of a long context the last part has to ask, whatever is cached.
    const limit = Math.min(reusable(sequence), this.#cache.longContexts.reusable(lease, sequence.numPromptTokens));
    do this.#cache.advance(lease, sequence.cacheIds, limit);
    while (!lease.partial && this.#reuse.takeOver(sequence, lease));
    const reached = Math.min(numComputed(lease), sequence.numPromptTokens);
    sequence.cachedTokens += Math.max(0, reached - sequence.numReached);
    sequence.numReached = Math.max(sequence.numReached, reached);
  }

  /**
   * Puts the next tokens of a running sequence into the step, `most` of them or what there are slots for; false when none.
   * `wanted`: see StepBatch; `perToken`: what each takes of the budget of tokens.
   */
  #take(sequence: Sequence, lease: Lease, most: number, { wanted = most, perToken = 1 } = {}): boolean {
    const lane = sequence.laneAt(numComputed(lease));
    const { running } = this.#admission;
    if (lease.failure) {
      this.#end(sequence, lostRows(lease.failure));
      return false;
    }
    // What it computes has no room outside the pool: its scratch would grow with what stays there.
    if (lease.partial && !this.#cache.longContexts.fitsTail(lease, most)) {
      const { lack } = lease.partial;
      const isMemory = lack === null || lack === 'memory';
      this.#end(sequence, isMemory && sequence.numGenerated > 0 ? 'length' : lacking(lack ?? 'memory', this.#cache));
      return false;
    }
    for (; running.has(sequence); ) {
      const count = Math.min(most, this.#cache.available);
      // Where all attend together a single token in a page of its own would be a page more for everybody; many begin one of theirs.
      const isFew = count <= FEW && !this.#batch.with(lease, count).gathered;
      const newSlots = count > 0 ? this.#cache.allocate(count, lease, isFew ? this.#batch.pages : []) : null;
      if (newSlots) {
        const startIndex = numComputed(lease);
        const isLast = startIndex + count === sequence.tokenIds.length;
        const prefill = !isDecode(sequence, lease);
        const asks = this.#asks(sequence, lease, startIndex);
        const numLogits = isLast && !sequence.promptOnly && !asks ? 1 : 0;
        const numQueries = this.#cache.longContexts.numAsking(lease, startIndex, count, sequence.numPromptTokens);
        const part: Scheduled = {
          sequence,
          lease,
          tokenIds: sequence.cacheIds,
          startIndex,
          count,
          lane,
          newSlots,
          draft: NO_DRAFT,
          prefill,
          numLogits,
          numQueries,
          asks,
        };
        this.#batch.add(part, { spent: Math.ceil(count * perToken), wanted: Math.max(wanted, count) - count });
        return true;
      }
      const victim = this.#admission.lowest()!;
      if (victim !== sequence) this.#admission.preempt(victim);
      else if (running.size > 1) return false;
      else this.#end(sequence, sequence.numGenerated > 0 ? 'length' : tooLarge(sequence.tokenIds.length, this.#cache));
    }
    return false;
  }

  /** Puts drafts into the step, as far as slots are free by themselves. */
  #addDrafts(drafts: ReadonlyMap<Sequence, readonly number[]>): void {
    for (const [sequence, draft] of drafts) {
      const scheduled = this.#batch.get(sequence);
      const slots = scheduled && this.#cache.takeFree(draft.length, scheduled.newSlots.at(-1)!);
      if (slots)
        this.#batch.replace({
          ...scheduled,
          draft,
          newSlots: Int32Array.of(...scheduled.newSlots, ...slots),
          numLogits: 1 + draft.length,
        });
    }
  }
}
