/**
 * Position-shifted reuse, an option that is off unless asked for: behind an edit a request takes over the rows that an
 * older version of its text has of the same tokens, turned to their new positions, instead of computing them. An
 * approximation, as those rows have seen the text before the edit: a bridge until idle time has computed the exact ones.
 * Decides for which sequence and when; where rows come from is the cache's.
 */
import type { KvCache } from '../kv/kvCache.ts';
import { type Lease, numComputed } from '../kv/lease.ts';
import type { Shift, ShiftKeys } from '../kv/approx/shifted/shiftedRuns.ts';
import { exactId, shiftedId } from '../kv/laneIds.ts';
import type { Sequence } from '../sequence/sequence.ts';

export class ShiftedReuse {
  /** Tokens taken over since the start. */
  numTokens = 0;
  readonly #cache: KvCache;
  readonly #shiftKeys: ShiftKeys;
  /** By sequence, what is planned for it. */
  readonly #plans = new WeakMap<Sequence, readonly Shift[]>();

  constructor(cache: KvCache, shiftKeys: ShiftKeys) {
    this.#cache = cache;
    this.#shiftKeys = shiftKeys;
  }

  /** Once, when a sequence starts: chooses what it will take over. Idle work computes what is exact. */
  plan(sequence: Sequence): void {
    if (sequence.priority === 'idle' || this.#plans.has(sequence)) return;
    // The last token of a prompt is computed: its logits are wanted.
    const shifts = this.#cache.shifted.plan(
      sequence.cacheIds,
      Math.min(sequence.laneAt(0) === 'prefill' ? sequence.laneEnd(0) : 0, sequence.numPromptTokens - 1),
    );
    this.#plans.set(sequence, shifts);
    for (const { start, end } of shifts)
      for (let i = start; i < end; i++) sequence.cacheIds[i] = shiftedId(sequence.cacheIds[i]!);
  }

  /** How many tokens a sequence may compute from a position on before it takes some over. */
  room(sequence: Sequence, at: number): number {
    const next = this.#plans.get(sequence)?.find(({ start }) => start > at);
    return next ? next.start - at : Number.POSITIVE_INFINITY;
  }

  /** Takes over what is next for a sequence, if it has come to that; true when its lease has grown. */
  takeOver(sequence: Sequence, lease: Lease): boolean {
    const at = numComputed(lease);
    const shift = this.#plans.get(sequence)?.find(({ start, end }) => start <= at && at < end);
    if (!shift || sequence.cacheIds[at] !== shiftedId(sequence.cacheIds[at]!)) return false;
    const slots = this.#cache.shifted.copy(shift, at, this.#shiftKeys);
    if (!slots) {
      // No room, or the older text is gone: computed like any other.
      for (let i = at; i < shift.end; i++) sequence.cacheIds[i] = exactId(sequence.cacheIds[i]!);
      return false;
    }
    this.#cache.append(lease, slots);
    this.#cache.commit(lease, sequence.cacheIds);
    this.numTokens += slots.length;
    return true;
  }
}
