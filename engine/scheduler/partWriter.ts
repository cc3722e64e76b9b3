/**
 * Takes slots for a sequence's next tokens and adds its part to the batch. Does not decide whether a sequence gets a
 * part: that
 * is StepBuilder's.
 */
import type { RowReuse } from '../kv/approx/approximation.ts';
import type { KvCache } from '../kv/kvCache.ts';
import { lastSlot, type Lease, numComputed } from '../kv/lease.ts';
import type { Sequence } from '../sequence/sequence.ts';
import type { Admission } from './admission.ts';
import { lacking, lostRows, tooLarge } from './capacityErrors.ts';
import { isDecode, reusable, type Scheduled } from './schedule.ts';

/** Up to so many tokens are put into pages that the step attends to already. */
const FEW = 16;
const NO_DRAFT: readonly number[] = [];

export class PartWriter {
  readonly #cache: KvCache;
  readonly #admission: Admission;
  readonly #reuse: RowReuse;

  constructor(cache: KvCache, admission: Admission, reuse: RowReuse) {
    this.#cache = cache;
    this.#admission = admission;
    this.#reuse = reuse;
  }

  /** Whether the tokens from `at` on are computed for their queries first. */
  asks(sequence: Sequence, lease: Lease, at: number): boolean {
    return !sequence.promptOnly && this.#cache.longContexts.asks(lease, at, sequence.numPromptTokens);
  }

  /** End of the tokens that may be computed together: of one lane, attending to the same rows. */
  partEnd(sequence: Sequence, lease: Lease, at: number): number {
    return Math.min(sequence.laneEnd(at), this.#cache.longContexts.partEnd(lease, at, sequence.numPromptTokens));
  }

  /**
   * Tokens behind the `computed` ones that the scratch has no room for take the paged lane. A long context takes no
   * more
   * scratch for more tokens, because it holds only parts.
   */
  limitPrefill(sequence: Sequence, isLong: boolean, computed: number): void {
    const room = this.#cache.longContexts;
    if (!isLong || room.slotsFor(sequence.tokenIds.length) > room.prefillTokens)
      sequence.limitPrefill(room.prefillTokens, computed);
  }

  /** Moves a lease on to what the tree holds by now of its sequence, whoever computed it. */
  rematch(sequence: Sequence, lease: Lease): void {
    // The last part of a long context has to be computed for its queries, whatever is cached.
    const limit = Math.min(reusable(sequence), this.#cache.longContexts.reusable(lease, sequence.numPromptTokens));
    do this.#cache.advance(lease, sequence.cacheIds, limit);
    while (!lease.partial && this.#reuse.takeOver(sequence, lease));
    const reached = Math.min(numComputed(lease), sequence.numPromptTokens);
    sequence.cachedTokens += Math.max(0, reached - sequence.numReached);
    sequence.numReached = Math.max(sequence.numReached, reached);
  }

  /**
   * Adds the next tokens of a running sequence to the batch: `most`, or as many as there are slots for. False: none.
   * `wanted`: see StepBatch; `perToken`: what each takes of the budget of tokens.
   */
  take(sequence: Sequence, lease: Lease, most: number, { wanted = most, perToken = 1 } = {}): boolean {
    const lane = sequence.laneAt(numComputed(lease));
    const { running } = this.#admission;
    if (lease.failure) {
      this.#admission.end(sequence, lostRows(lease.failure));
      return false;
    }
    // Its computed rows could not leave the pool: with more of them, its scratch would grow.
    if (lease.partial && !this.#cache.longContexts.fitsTail(lease, most)) {
      const { lack } = lease.partial;
      const isMemory = lack === null || lack === 'memory';
      this.#admission.end(
        sequence,
        isMemory && sequence.numGenerated > 0 ? 'length' : lacking(lack ?? 'memory', this.#cache),
      );
      return false;
    }
    for (; running.has(sequence); ) {
      const count = Math.min(most, this.#cache.memory.available);
      // With shared attention, a token in a page of its own would cost every sequence a page. Many tokens begin a page.
      const isFew = count <= FEW && !this.#admission.batch.with(lease, count).gathered;
      const newSlots =
        count > 0
          ? this.#cache.memory.allocate(count, lastSlot(lease), isFew ? this.#admission.batch.pages : [])
          : null;
      if (newSlots) {
        const startIndex = numComputed(lease);
        const isLast = startIndex + count === sequence.tokenIds.length;
        const prefill = !isDecode(sequence, lease);
        const asks = this.asks(sequence, lease, startIndex);
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
      const victim = this.#admission.lowest()!;
      if (victim !== sequence) this.#admission.preempt(victim);
      else if (running.size > 1) return false;
      else
        this.#admission.end(
          sequence,
          sequence.numGenerated > 0 ? 'length' : tooLarge(sequence.tokenIds.length, this.#cache),
        );
    }
    return false;
  }

  /** Adds drafts to the batch, as far as slots are free without evicting anything. */
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
