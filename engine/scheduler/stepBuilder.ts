/**
 * Puts a step together: decides in which order sequences get tokens, and how many. Admission decides who runs.
 *
 * A step begins with the sequence that was deferred longest, then, if completions wait or run, with those; then come
 * all
 * decodes, then prompt chunks in order of service up to the token budget.
 *
 * - Re-match: before each chunk a prompt moves on to what the tree holds by now, whoever computed it.
 * - In-flight prefix sharing: a prompt whose next token another sequence computes in this step waits for it.
 * - Deferral: a sequence that would make the step dearer than one of its own (see grouping) is left for a later step.
 */
import type { Admission } from './admission.ts';
import type { KvCache } from '../kv/kvCache.ts';
import { type Lease, numComputed } from '../kv/lease.ts';
import { joins } from './joining.ts';
import { PartWriter } from './partWriter.ts';
import { tooLarge } from './capacityErrors.ts';
import type { VirtualTokens } from './fairness.ts';
import { nextTurn } from './grouping.ts';
import type { Policies } from './policies.ts';
import { byService, level, rank } from './fairness.ts';
import type { PromptStanding, TokenBudget } from './tokenBudget.ts';
import { numDrafted } from './schedule.ts';
import type { Sequence } from '../sequence/sequence.ts';
import type { RowReuse } from '../kv/approx/approximation.ts';
import type { Speculation } from './speculation/speculation.ts';
import { columnsOf, type StepBatch } from './stepBatch.ts';

/**
 * Beside a completion, answers have a token, and one prompt goes on, at least so often: whoever types does not read.
 * With half of it
 * completions took a fifth longer, and a chat got no more tokens in all (benchmark `mixed`, live).
 */
const OVERDUE_MS = 300;
/**
 * Tokens of a prompt in the prefill lane that are worth a step. Shorter parts are combined into one that comes seldom.
 */
const LONG_PART = 64;
/** Waiting sequences looked at per step. */
const MAX_CANDIDATES = 32;

/** What a step is built from. */
export interface Frame {
  /** Sequences that may get a part, in order of standing. */
  readonly active: readonly Sequence[];
  readonly budget: TokenBudget;
  /** The step serves completions; others get what is left. */
  readonly urgent: boolean;
  readonly now: number;
  /** Waiting sequences may start. */
  readonly admits: boolean;
}

export interface StepParties {
  readonly cache: KvCache;
  readonly policies: Policies;
  readonly speculation: Speculation | null;
  readonly reuse: RowReuse;
  readonly admission: Admission;
  readonly served: VirtualTokens;
}

export class StepBuilder {
  readonly #cache: KvCache;
  readonly #policies: Policies;
  readonly #speculation: Speculation | null;
  readonly #reuse: RowReuse;
  readonly #admission: Admission;
  readonly #served: VirtualTokens;
  readonly #batch: StepBatch;
  readonly #writer: PartWriter;
  /** Sequences that the last step deferred, and those that this one defers. */
  #wasDeferred: ReadonlySet<Sequence> = new Set();
  #deferred = new Set<Sequence>();
  /** The last step with completions began with another sequence. */
  #gaveWay = false;
  /** When a prompt last got tokens although the step had no room for it beside a completion. */
  #besideAt = Number.NEGATIVE_INFINITY;
  /** When a prompt last got a part that others had to wait for. */
  #partAt = Number.NEGATIVE_INFINITY;
  // Of the step under way:
  /** Place of the highest class with a sequence that cannot run yet: no other of it, or of a lower class, starts. */
  #refused = 0;
  /** A prompt is in the prefill lane, whose scratch holds one. */
  #prefilling = false;

  constructor({ cache, policies, speculation, reuse, admission, served }: StepParties) {
    this.#cache = cache;
    this.#policies = policies;
    this.#speculation = speculation;
    this.#reuse = reuse;
    this.#admission = admission;
    this.#served = served;
    this.#batch = admission.batch;
    this.#writer = new PartWriter(cache, admission, reuse);
  }

  /** Begins a step: sequences that the last step deferred take their turn. */
  next(): void {
    this.#wasDeferred = this.#deferred;
  }

  /** Adds decodes, drafts and prompt chunks to the batch. The batch is empty when this frame has no work. */
  build(frame: Frame): void {
    const { active, budget, urgent, now, admits } = frame;
    const admission = this.#admission;
    const batch = this.#batch;
    admission.now = now;
    // Without grouping, each step is assumed to attend to all running sequences.
    batch.begin(this.#policies.grouping ? [] : admission.running.values());
    this.#deferred = new Set();
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
    // Beside completions, those that have waited longest go first; otherwise in order of standing.
    const decodes = active.filter((s) => admission.isRunningDecode(s));
    if (urgent)
      decodes.sort((a, b) => rank(a, this.#policies) - rank(b, this.#policies) || a.lastServedAt - b.lastServedAt);
    const own = batch.spent;
    for (const sequence of decodes) {
      const isLate = urgent && batch.spent >= budget.beside(batch.paidColumns, own) && !this.#isOverdue(sequence, now);
      if (!isLate) this.#serve(sequence, frame);
    }
    // Half of the budget is left for prompts that wait.
    const drafted = [...batch.sequences()].filter((s) => admission.isRunningDecode(s) && this.#mayDraft(s, urgent));
    const room = budget.tokens(batch.paidColumns, batch.numDecodes) - batch.spent;
    const most = active.length > batch.size ? Math.floor(room / 2) : Number.POSITIVE_INFINITY;
    const drafts: ReadonlyMap<Sequence, readonly number[]> =
      this.#speculation?.propose(drafted, most, budget.columnMs(batch.paidColumns)) ?? new Map();
    batch.drafted = numDrafted(drafts);
    for (const sequence of this.#prompts(active, budget, now)) this.#serve(sequence, frame, own);
    this.#writer.addDrafts(drafts);
  }

  /**
   * The deferred sequence to begin with. Beside completions only overdue answers, and prompts whose waiting has made
   * them as
   * urgent; never twice in a row.
   */
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
          deferred: this.#wasDeferred.has(sequence),
        };
      });
    const isDue = ({ sequence, priority, decodes }: (typeof candidates)[number]): boolean =>
      !urgent ||
      priority === 'completion' ||
      (decodes ? this.#isOverdue(sequence, now) : level(sequence, now, this.#policies) <= 0);
    return nextTurn(candidates.filter(isDue), now)?.sequence ?? null;
  }

  /**
   * Gives a sequence its part in the step, if it may have one. `own`: what the step spends on completions; what it has
   * by now when left out.
   */
  #serve(sequence: Sequence, frame: Frame, own = this.#batch.spent): void {
    if (this.#batch.has(sequence) || !this.#admission.has(sequence)) return;
    if (this.#admission.isRunningDecode(sequence)) this.#decode(sequence, frame);
    else this.#continuePrompt(sequence, frame, own);
  }

  #decode(sequence: Sequence, { active, budget, urgent }: Frame): void {
    const lease = this.#admission.running.get(sequence)!;
    // With drafts, it costs more to attend to the columns of others.
    const mayWant = this.#policies.grouping && active.length > 1 && this.#mayDraft(sequence, urgent);
    const wanted =
      1 + (mayWant ? this.#speculation!.numWanted(sequence, budget.columnMs(columnsOf(this.#cache, lease))) : 0);
    if (!this.#defers(sequence, lease, wanted, budget)) this.#writer.take(sequence, lease, 1, { wanted });
  }

  #continuePrompt(sequence: Sequence, frame: Frame, own: number): void {
    const batch = this.#batch;
    const { budget, urgent, now } = frame;
    const standing = this.#standing(sequence, frame);
    const room = (columns: number): number =>
      (standing === 'beside' ? budget.beside(columns, own) : budget.tokens(columns, batch.numDecodes)) - batch.spent;
    // Beside a completion, a prompt that has waited too long gets some tokens: a few in the paged lane, seldom many in
    // the other.
    const isLate = room(batch.paidColumns) <= 0;
    const inPrefill = sequence.laneAt(this.#admission.lookUp(sequence)) === 'prefill';
    const mayBeLate = inPrefill
      ? standing === 'late'
      : urgent && this.#isOverdue(sequence, now) && now - this.#besideAt >= OVERDUE_MS;
    if (isLate && !mayBeLate) return;
    const lease = this.#admission.running.get(sequence) ?? this.#admit(sequence, frame);
    if (!lease) return;
    this.#writer.rematch(sequence, lease);
    const at = numComputed(lease);
    // Less of its prompt may be cached than was found before.
    this.#writer.limitPrefill(sequence, lease.partial !== null, at);
    const asks = this.#writer.asks(sequence, lease, at);
    if (at === sequence.tokenIds.length) this.#admission.end(sequence, 'length');
    else if (batch.computesFor(sequence, at)) return;
    else if (sequence.laneAt(at) === 'paged') {
      const missing = this.#writer.partEnd(sequence, lease, at) - at;
      // The price of a token depends on how many there are: find the largest number that fits.
      const within = (tokens: number): number =>
        Math.min(isLate ? budget.leastTokens : room(batch.with(lease, tokens).paidColumns), missing);
      // Tokens computed for their queries only are few and stay together.
      let most = asks ? missing : within(1);
      for (let fits = within(most); !asks && most > 1 && fits < most; fits = within(most))
        most = Math.max(fits, most >> 1);
      // Its tokens in a step of its own.
      const alone = isLate ? most : Math.min(budget.tokens(columnsOf(this.#cache, lease), 0), missing);
      if (!this.#defers(sequence, lease, most > 0 ? alone : 0, budget, most)) this.#writer.take(sequence, lease, most);
    } else if (!this.#prefilling) {
      const left = this.#writer.partEnd(sequence, lease, at) - at;
      const { tokens, most } = this.#part(sequence, at - lease.numPruned, left, frame, standing);
      // Tokens of the prefill lane have another price: its share of the step's time is converted to tokens.
      const worth = isLate ? budget.leastTokens : room(batch.paidColumns);
      if (tokens > 0)
        this.#prefilling = this.#writer.take(
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
   * How many tokens of the prefill lane a prompt, of which `left` are still for it behind `rows` rows, has of the step,
   * and how
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
      // A small rest would need another step that is hardly shorter.
      return { tokens: left <= 1.25 * most ? left : most, most };
    };
    const usual = part(standing);
    const isBeside = this.#batch
      .decodes()
      .some((other) => rank(other, this.#policies) <= rank(sequence, this.#policies));
    if (urgent || !isBeside || usual.tokens >= Math.min(left, LONG_PART)) return usual;
    return now - this.#partAt < budget.betweenPartsMs ? { tokens: 0, most: 0 } : part('late');
  }

  /**
   * Whether a sequence, which would have `tokens` in a step of its own, is left for one: this step has no room for it,
   * or `most` of them would make it too dear.
   */
  #defers(sequence: Sequence, lease: Lease, tokens: number, budget: TokenBudget, most = tokens): boolean {
    if (tokens > 0 && (!this.#policies.grouping || this.#batch.shares(lease, tokens, budget, most))) return false;
    this.#deferred.add(sequence);
    return true;
  }

  /**
   * Beside completions others have no drafts. Nor has who attends to parts of its context: it is due to choose them at
   * certain tokens.
   */
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

  /** Prompts that may get a chunk, in order of service. Looks each up in the tree once. */
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
      this.#admission.end(
        sequence,
        sequence.numGenerated > 0 ? 'length' : tooLarge(sequence.tokenIds.length, this.#cache),
      );
      return null;
    }
    // Others may overtake it, because they do not take the room that it waits for.
    if (isLong && !this.#admission.mayBeLong(sequence)) return null;
    const mayJoin = joins(sequence, budget, {
      cache: this.#cache,
      policies: this.#policies,
      running: this.#admission.running,
    });
    // The budget may have changed since its arrival.
    if (mayJoin) this.#writer.limitPrefill(sequence, isLong, this.#admission.lookUp(sequence));
    const lease = mayJoin ? this.#admission.admit(sequence, isLong) : null;
    if (lease) {
      if (!isLong) this.#reuse.plan(sequence);
    }
    // A sequence that cannot run now must not be overtaken for ever by others of its class that fit.
    else if (!this.#batch.computesFor(sequence, this.#admission.lookUp(sequence)))
      this.#refused = mayJoin ? this.#admission.refuse(sequence, isLong) : rank(sequence, this.#policies);
    return lease;
  }
}
