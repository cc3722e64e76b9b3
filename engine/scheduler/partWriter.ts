/**
 * Says how many tokens a part may have, takes slots for them and adds the part to the batch. Does not decide whether a
 * sequence gets a part: see StepBuilder.
 */
import type { RowReuse } from '../kv/approx/interfaces.ts';
import type { KvCache } from '../kv/kvCache.ts';
import { lastSlot, type Lease, numComputed, numLeased } from '../kv/lease.ts';
import type { Sequence } from '../sequence/sequence.ts';
import type { Admission } from './admission.ts';
import { lacking, lostRows, type MemoryLimit, tooLarge } from './capacityErrors.ts';
import type { SchedulingPolicy } from './policy.ts';
import { isDecode, reusable, type Scheduled } from './stepBatch.ts';
import type { PrefillShare, TokenBudget } from './tokenBudget.ts';

/** Up to this many tokens are put into pages that the step attends to already. */
const FEW = 16;
/**
 * Tokens of a prompt in the prefill lane that are worth a step. Shorter parts are combined into a longer one that comes
 * seldom.
 */
const LONG_PART = 64;
const NO_DRAFT: readonly number[] = [];

/** What a step is built from. */
export interface Frame {
  /** Sequences that may get a part, in slot order. */
  readonly active: readonly Sequence[];
  readonly budget: TokenBudget;
  /** The step serves completions; other sequences get what is left. */
  readonly urgent: boolean;
  readonly now: number;
  /** Waiting sequences may start. */
  readonly admits: boolean;
}

interface PartParties {
  readonly cache: KvCache;
  readonly admission: Admission;
  readonly policy: SchedulingPolicy;
  readonly reuse: RowReuse;
  readonly limit: MemoryLimit;
}

export class PartWriter {
  readonly #cache: KvCache;
  readonly #admission: Admission;
  readonly #policy: SchedulingPolicy;
  readonly #reuse: RowReuse;
  readonly #limit: MemoryLimit;
  /** When a prompt last got a part that others had to wait for. */
  #partAt = Number.NEGATIVE_INFINITY;

  constructor({ cache, admission, policy, reuse, limit }: PartParties) {
    this.#cache = cache;
    this.#admission = admission;
    this.#policy = policy;
    this.#reuse = reuse;
    this.#limit = limit;
  }

  /**
   * The prefill lane takes only as many tokens as the scratch holds. Tokens behind both that limit and the `computed`
   * ones take the paged lane. For a long context the scratch holds only parts, whatever its length.
   */
  limitPrefill(sequence: Sequence, isLong: boolean, computed: number): void {
    const { longContexts } = this.#cache;
    if (!isLong || longContexts.slotsFor(sequence.tokenIds.length) > longContexts.prefillTokens)
      sequence.limitPrefill(longContexts.prefillTokens, computed);
  }

  /** Moves a lease on to what the tree holds by now of its sequence, whichever sequence computed it. */
  rematch(sequence: Sequence, lease: Lease): void {
    // The last part of a long context has to be computed for its queries, even if it is cached.
    const limit = Math.min(reusable(sequence), this.#cache.longContexts.reusable(lease, sequence.numPromptTokens));
    do this.#cache.advance(lease, sequence.cacheIds, limit);
    while (!lease.partial && this.#reuse.takeOver(sequence, lease));
    const reached = Math.min(numComputed(lease), sequence.numPromptTokens);
    sequence.cachedTokens += Math.max(0, reached - sequence.numReached);
    sequence.numReached = Math.max(sequence.numReached, reached);
  }

  /**
   * Tokens of the paged lane from `at` on: as many as are `missing` in one part, and the most that fit. `within`: the
   * budget for a token that attends to so many columns.
   */
  pagedTokens(
    sequence: Sequence,
    lease: Lease,
    at: number,
    within: (columns: number) => number,
  ): { most: number; missing: number } {
    const left = this.#partEnd(sequence, lease, at) - at;
    // Tokens that are computed only for their queries are few and stay together.
    if (this.#asks(sequence, lease, at)) return { most: left, missing: left };
    const missing = Math.min(left, this.#reuse.tokensBefore(sequence, at));
    // The price of a token depends on their number: find the largest number that fits.
    const fitting = (tokens: number): number =>
      Math.min(within(this.#admission.batch.with(lease, tokens).paidColumns), missing);
    let most = fitting(1);
    for (let fits = fitting(most); most > 1 && fits < most; fits = fitting(most)) most = Math.max(fits, most >> 1);
    return { most, missing };
  }

  /**
   * Takes the tokens of the prefill lane from `at` on. False: there are none. `worth`: tokens of the paged lane that
   * the time for them is worth.
   */
  takePrefill(sequence: Sequence, lease: Lease, at: number, frame: Frame, share: PrefillShare, worth: number): boolean {
    const left = this.#partEnd(sequence, lease, at) - at;
    const { tokens, most } = this.#prefillTokens(sequence, numLeased(lease), left, frame, share);
    if (tokens <= 0) return false;
    const count = this.#asks(sequence, lease, at) ? left : Math.min(tokens, this.#reuse.tokensBefore(sequence, at));
    if (!this.take(sequence, lease, count, { perToken: worth / Math.max(tokens, most) })) return false;
    this.#partAt = frame.now;
    return true;
  }

  /**
   * How many tokens of the prefill lane a prompt gets in the step, and how many it could get. `left` tokens follow
   * behind `rows` rows. Beside answers of the same or a higher class it gets many tokens at a time, but seldom, so that
   * these answers go on.
   */
  #prefillTokens(
    sequence: Sequence,
    rows: number,
    left: number,
    { budget, urgent, now }: Frame,
    share: PrefillShare,
  ): { tokens: number; most: number } {
    const { batch } = this.#admission;
    const { paidColumns: columns, spent } = batch;
    const part = (as: PrefillShare): { tokens: number; most: number } => {
      const most = budget.prefill(rows, columns, spent, as);
      // A small rest would need another step that is hardly shorter.
      return { tokens: left <= 1.25 * most ? left : most, most };
    };
    const usual = part(share);
    const isBeside = batch.decodes().some((other) => this.#policy.rank(other) <= this.#policy.rank(sequence));
    if (urgent || !isBeside || usual.tokens >= Math.min(left, LONG_PART)) return usual;
    return now - this.#partAt < budget.betweenPartsMs ? { tokens: 0, most: 0 } : part('late');
  }

  /** Whether the tokens from `at` on are first computed only for their queries. */
  #asks(sequence: Sequence, lease: Lease, at: number): boolean {
    return !sequence.promptOnly && this.#cache.longContexts.asks(lease, at, sequence.numPromptTokens);
  }

  /** End of the tokens that may be computed together: of one lane, attending to the same rows. */
  #partEnd(sequence: Sequence, lease: Lease, at: number): number {
    return Math.min(sequence.laneEnd(at), this.#cache.longContexts.partEnd(lease, at, sequence.numPromptTokens));
  }

  /**
   * Adds the next tokens of a running sequence to the batch: `most`, or as many as there are slots for. False: none.
   * `wanted`: see StepBatch. `perToken`: tokens of the budget that each takes.
   */
  take(sequence: Sequence, lease: Lease, most: number, { wanted = most, perToken = 1 } = {}): boolean {
    const lane = sequence.laneAt(numComputed(lease));
    const { running } = this.#admission;
    if (lease.failure) {
      this.#admission.end(sequence, lostRows(lease.failure));
      return false;
    }
    // Its computed rows could not leave the pool. With more of them, its scratch would grow.
    if (lease.partial && !this.#cache.longContexts.fitsTail(lease, most)) {
      const { lack } = lease.partial;
      const isMemory = lack === null || lack === 'memory';
      this.#admission.end(
        sequence,
        isMemory && sequence.numGenerated > 0 ? 'length' : lacking(lack ?? 'memory', this.#limit),
      );
      return false;
    }
    for (; running.has(sequence); ) {
      const count = Math.min(most, this.#cache.memory.available);
      // With shared attention, a token in a new page would cost every sequence a page. Many tokens begin a new page.
      const isFew = count <= FEW && !this.#admission.batch.with(lease, count).gathered;
      const newSlots =
        count > 0
          ? this.#cache.memory.allocate(count, lastSlot(lease), isFew ? this.#admission.batch.pages : [])
          : null;
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
        this.#admission.batch.add(part, {
          spent: Math.ceil(count * perToken),
          wanted: Math.max(wanted, count) - count,
        });
        return true;
      }
      const victim = this.#admission.lastInOrder()!;
      if (victim !== sequence) this.#admission.preempt(victim);
      else if (running.size > 1) return false;
      else
        this.#admission.end(
          sequence,
          sequence.numGenerated > 0 ? 'length' : tooLarge(sequence.tokenIds.length, this.#cache, this.#limit),
        );
    }
    return false;
  }

  /** Adds drafts to the batch, as far as slots are free without an eviction. */
  addDrafts(drafts: ReadonlyMap<Sequence, readonly number[]>): void {
    for (const [sequence, draft] of drafts) {
      const scheduled = this.#admission.batch.get(sequence);
      const slots = scheduled && this.#cache.memory.takeFree(draft.length, scheduled.newSlots.at(-1)!);
      if (slots)
        this.#admission.batch.replace({
          ...scheduled,
          draft,
          newSlots: Int32Array.of(...scheduled.newSlots, ...slots),
          numLogits: 1 + draft.length,
        });
    }
  }
}
