/**
 * Builds a step: decides in which order sequences get tokens, and how many. Admission decides which sequences run.
 *
 * A step begins with the sequence that was deferred longest. If completions wait or run, they come next. Then come all
 * decodes, then prompt chunks in order of service, up to the token budget.
 *
 * - Before each chunk, a prompt takes over what the tree holds by now, whichever sequence computed it.
 * - In-flight prefix sharing: a prompt waits if another sequence computes its next token in this step.
 * - Deferral: a sequence that costs more in this step than in one of its own waits for a later one (see sharesStep).
 */
import type { RowReuse } from '../kv/approx/interfaces.ts';
import type { KvCache } from '../kv/kvCache.ts';
import { type Lease, numComputed } from '../kv/lease.ts';
import type { Sequence } from '../sequence/sequence.ts';
import type { Admission } from './admission.ts';
import { type MemoryLimit, tooLarge } from './capacityErrors.ts';
import { type Frame, PartWriter } from './partWriter.ts';
import type { SchedulingPolicy, VirtualTokens } from './policy.ts';
import { numDrafted, columnsOf, type StepBatch } from './stepBatch.ts';
import type { Speculation } from './speculation.ts';
import type { PrefillShare, TokenBudget } from './tokenBudget.ts';

/**
 * Beside a completion, an answer gets a token, and one prompt goes on, at least this often: a user who types does not
 * read. With half of it completions took a fifth longer, and chats got no more tokens in all (benchmark `mixed`, live).
 */
const MAX_BESIDE_WAIT_MS = 300;
/** Most waiting sequences that a step looks at. */
const MAX_CANDIDATES = 32;

export interface StepParties {
  readonly cache: KvCache;
  readonly policy: SchedulingPolicy;
  readonly speculation: Speculation;
  readonly reuse: RowReuse;
  readonly admission: Admission;
  readonly served: VirtualTokens;
  readonly limit: MemoryLimit;
}

export class StepBuilder {
  readonly #cache: KvCache;
  readonly #policy: SchedulingPolicy;
  readonly #speculation: Speculation;
  readonly #reuse: RowReuse;
  readonly #admission: Admission;
  readonly #served: VirtualTokens;
  readonly #limit: MemoryLimit;
  readonly #batch: StepBatch;
  readonly #writer: PartWriter;
  /** Sequences that the last step deferred, and those that this one defers. */
  #wasDeferred: ReadonlySet<Sequence> = new Set();
  #deferred = new Set<Sequence>();
  /** The last step with completions began with another sequence. */
  #beganWithOther = false;
  /** When a prompt last got tokens beside a completion although the step had no budget left for it. */
  #besideAt = Number.NEGATIVE_INFINITY;
  // Of the step under construction:
  /** Rank of the highest class with a sequence that cannot start: no other of it, or of a lower class, starts. */
  #refused = 0;
  /** A prompt is in the prefill lane, whose scratch holds one. */
  #prefilling = false;

  constructor({ cache, policy, speculation, reuse, admission, served, limit }: StepParties) {
    this.#cache = cache;
    this.#policy = policy;
    this.#speculation = speculation;
    this.#reuse = reuse;
    this.#admission = admission;
    this.#served = served;
    this.#limit = limit;
    this.#batch = admission.batch;
    this.#writer = new PartWriter({ cache, admission, policy, reuse, limit });
  }

  /** Begins a step. Sequences that the last step deferred get their turn. */
  next(): void {
    this.#wasDeferred = this.#deferred;
  }

  /** Adds decodes, drafts and prompt chunks to the batch. The batch stays empty if this frame has no work. */
  build(frame: Frame): void {
    const { active, budget, urgent, now, admits } = frame;
    const admission = this.#admission;
    const batch = this.#batch;
    admission.now = now;
    batch.clear();
    this.#deferred = new Set();
    this.#refused = admits ? Number.POSITIVE_INFINITY : 0;
    this.#prefilling = false;
    const turn = this.#turn(frame);
    if (turn) this.#serve(turn, frame);
    if (urgent) {
      this.#beganWithOther = turn !== null && turn.priority !== 'completion' && batch.has(turn);
      const completions = active.filter((s) => s.priority === 'completion');
      for (const sequence of completions) if (admission.isRunningDecode(sequence)) this.#serve(sequence, frame);
      for (const sequence of this.#prompts(completions, budget, now)) this.#serve(sequence, frame);
    }
    // Beside completions, those that have waited longest go first; otherwise in slot order.
    const decodes = active.filter((s) => admission.isRunningDecode(s));
    if (urgent) decodes.sort((a, b) => this.#policy.rank(a) - this.#policy.rank(b) || a.lastServedAt - b.lastServedAt);
    const own = batch.spent;
    for (const sequence of decodes) {
      const isLate = urgent && batch.spent >= budget.beside(batch.paidColumns, own) && !this.#isOverdue(sequence, now);
      if (!isLate) this.#serve(sequence, frame);
    }
    // Half of the budget is left for prompts that wait.
    const drafted = [...batch.sequences()].filter((s) => admission.isRunningDecode(s) && this.#mayDraft(s, urgent));
    const left = budget.tokens(batch.paidColumns, batch.numDecodes) - batch.spent;
    const most = active.length > batch.size ? Math.floor(left / 2) : Number.POSITIVE_INFINITY;
    const drafts = this.#speculation.propose(drafted, most, budget.columnMs(batch.paidColumns));
    batch.drafted = numDrafted(drafts);
    for (const sequence of this.#prompts(active, budget, now)) this.#serve(sequence, frame, own);
    this.#writer.addDrafts(drafts);
  }

  /**
   * The deferred sequence to begin with. Beside completions only overdue answers, and prompts that have become as
   * urgent by waiting; never in two steps in a row.
   */
  #turn({ active, urgent, now }: Frame): Sequence | null {
    if (urgent && this.#beganWithOther) return null;
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
          deferred: this.#wasDeferred.has(sequence),
        };
      });
    const isDue = ({ sequence, priority, decodes }: (typeof candidates)[number]): boolean =>
      !urgent ||
      priority === 'completion' ||
      (decodes ? this.#isOverdue(sequence, now) : this.#policy.level(sequence, now) <= 0);
    return this.#policy.nextTurn(candidates.filter(isDue), now)?.sequence ?? null;
  }

  /** Gives a sequence its part in the step, if it may have one. `own`: what the step spends on completions. */
  #serve(sequence: Sequence, frame: Frame, own = this.#batch.spent): void {
    if (this.#batch.has(sequence) || !this.#admission.has(sequence)) return;
    if (this.#admission.isRunningDecode(sequence)) this.#decode(sequence, frame);
    else this.#continuePrompt(sequence, frame, own);
  }

  #decode(sequence: Sequence, { active, budget, urgent }: Frame): void {
    const lease = this.#admission.running.get(sequence)!;
    // With drafts, it costs more to attend to the columns of other sequences.
    let wanted = 1;
    if (active.length > 1 && this.#mayDraft(sequence, urgent))
      wanted += this.#speculation.numWanted(sequence, budget.columnMs(columnsOf(this.#cache, lease)));
    if (!this.#defers(sequence, lease, wanted, budget)) this.#writer.take(sequence, lease, 1, { wanted });
  }

  #continuePrompt(sequence: Sequence, frame: Frame, own: number): void {
    const batch = this.#batch;
    const writer = this.#writer;
    const { budget, urgent, now } = frame;
    const share = this.#prefillShare(sequence, frame);
    const left = (columns: number): number =>
      (share === 'beside' ? budget.beside(columns, own) : budget.tokens(columns, batch.numDecodes)) - batch.spent;
    // Beside a completion, a prompt that has waited too long gets some tokens: a few in the paged lane, or seldom many
    // in the prefill lane.
    const isLate = left(batch.paidColumns) <= 0;
    const inPrefill = sequence.laneAt(this.#admission.numFound(sequence)) === 'prefill';
    const mayBeLate = inPrefill
      ? share === 'late'
      : urgent && this.#isOverdue(sequence, now) && now - this.#besideAt >= MAX_BESIDE_WAIT_MS;
    if (isLate && !mayBeLate) return;
    const lease = this.#admission.running.get(sequence) ?? this.#admit(sequence, frame);
    if (!lease) return;
    writer.rematch(sequence, lease);
    const at = numComputed(lease);
    // Less of its prompt may be cached than was found before.
    writer.limitPrefill(sequence, lease.partial !== null, at);
    if (at === sequence.tokenIds.length) this.#admission.end(sequence, 'length');
    else if (batch.computesFor(sequence, at)) return;
    else if (sequence.laneAt(at) === 'paged') {
      const within = (columns: number): number => (isLate ? budget.leastTokens : left(columns));
      const { most, missing } = writer.pagedTokens(sequence, lease, at, within);
      // How many tokens it would have in a step of its own.
      const alone = isLate ? most : Math.min(budget.tokens(columnsOf(this.#cache, lease), 0), missing);
      if (!this.#defers(sequence, lease, most > 0 ? alone : 0, budget, most)) writer.take(sequence, lease, most);
    } else if (!this.#prefilling) {
      const worth = isLate ? budget.leastTokens : left(batch.paidColumns);
      this.#prefilling = writer.takePrefill(sequence, lease, at, frame, share, worth);
    }
    if (isLate && batch.has(sequence)) this.#besideAt = now;
  }

  #prefillShare(sequence: Sequence, { urgent, now }: Frame): PrefillShare {
    if (!urgent || sequence.priority === 'completion') return 'own';
    return this.#policy.level(sequence, now) <= 0 ? 'late' : 'beside';
  }

  /**
   * Whether a sequence is left for a later step, in which it would have `tokens`: this step has no budget for it, or
   * `most` of its tokens would cost more here.
   */
  #defers(sequence: Sequence, lease: Lease, tokens: number, budget: TokenBudget, most = tokens): boolean {
    if (tokens > 0 && this.#policy.sharesStep(this.#batch, lease, tokens, budget, most)) return false;
    this.#deferred.add(sequence);
    return true;
  }

  #mayDraft(sequence: Sequence, urgent: boolean): boolean {
    return this.#policy.mayDraft(sequence, this.#admission.running.get(sequence), urgent);
  }

  #isOverdue({ lastServedAt }: Sequence, now: number): boolean {
    return now - lastServedAt >= MAX_BESIDE_WAIT_MS;
  }

  /** Prompts that may get a chunk, in order of service. */
  #prompts(active: readonly Sequence[], budget: TokenBudget, now: number): Sequence[] {
    const { running, waiting } = this.#admission;
    const started = active.filter((s) => running.has(s) && !this.#batch.has(s) && !this.#admission.isRunningDecode(s));
    const others = active.filter((s) => waiting.has(s)).sort(this.#byService(now, () => false));
    const candidates = [...started, ...others.slice(0, MAX_CANDIDATES)];
    const left = budget.tokens(this.#batch.paidColumns, this.#batch.numDecodes) - this.#batch.spent;
    const missing = new Map(candidates.map((s) => [s, s.tokenIds.length - this.#admission.numFound(s)]));
    return candidates.sort(this.#byService(now, (s) => !s.promptOnly && missing.get(s)! <= left));
  }

  #byService(now: number, givesToken: (sequence: Sequence) => boolean): (a: Sequence, b: Sequence) => number {
    const served = (s: Sequence): number => this.#served.counter(s.clientId, this.#admission.running.has(s));
    return this.#policy.byService(now, { givesToken, served });
  }

  #admit(sequence: Sequence, { budget }: Frame): Lease | null {
    const admission = this.#admission;
    const { memory, longContexts } = this.#cache;
    if (admission.place(sequence) >= this.#refused) return null;
    const isLong = admission.isLong(sequence);
    const { length } = sequence.tokenIds;
    if (isLong && (sequence.priority === 'idle' || length > longContexts.capacity)) {
      admission.end(sequence, sequence.numGenerated > 0 ? 'length' : tooLarge(length, this.#cache, this.#limit));
      return null;
    }
    // Other sequences may overtake it, because they do not take the slots that it waits for.
    if (isLong && !admission.mayBeLong(sequence)) return null;
    const { pool, numReferenced } = memory;
    const mayJoin = this.#policy.joins(sequence, admission.prefix(sequence).numFree, budget, {
      pool,
      numReferenced,
      running: admission.running,
    });
    // The memory budget may have changed since its arrival.
    if (mayJoin) this.#writer.limitPrefill(sequence, isLong, admission.numFound(sequence));
    const lease = mayJoin ? admission.admit(sequence, isLong) : null;
    if (lease) {
      if (!isLong) this.#reuse.plan(sequence);
    }
    // A sequence that cannot start now must not be overtaken forever by others of its class that fit.
    else if (!this.#batch.computesFor(sequence, admission.numFound(sequence)))
      this.#refused = mayJoin ? admission.refuse(sequence, isLong) : this.#policy.rank(sequence);
    return lease;
  }
}
