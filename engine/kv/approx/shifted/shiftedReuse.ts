/**
 * Position-shifted reuse: behind an edit a request takes over rows of the same tokens from an older version of its
 * text, with their keys rotated to the new positions. Approximate, because those rows were computed before the edit;
 * idle prefill computes the exact rows later. Decides for which requests; ShiftedRuns finds and copies rows.
 */
import type { KvCache } from '../../kvCache.ts';
import { exactId, shiftedId } from '../../laneIds.ts';
import { type Lease, numComputed } from '../../lease.ts';
import type { CachedRequest, RowReuse } from '../approximation.ts';
import { type Shift, type ShiftKeys, ShiftedRuns } from './shiftedRuns.ts';

export class ShiftedReuse implements RowReuse {
  numTokens = 0;
  readonly #cache: KvCache;
  readonly #runs: ShiftedRuns;
  readonly #shiftKeys: ShiftKeys;
  readonly #plans = new WeakMap<CachedRequest, readonly Shift[]>();

  constructor(cache: KvCache, shiftKeys: ShiftKeys) {
    this.#cache = cache;
    this.#runs = new ShiftedRuns(cache.memory);
    this.#shiftKeys = shiftKeys;
  }

  plan(request: CachedRequest): void {
    // Idle requests compute exact rows.
    if (request.priority === 'idle' || this.#plans.has(request)) return;
    const prefillEnd = request.laneAt(0) === 'prefill' ? request.laneEnd(0) : 0;
    // The last token of a prompt is always computed, because its logits are needed.
    const shifts = this.#runs.plan(request.cacheIds, Math.min(prefillEnd, request.numPromptTokens - 1));
    this.#plans.set(request, shifts);
    for (const { start, end } of shifts)
      for (let i = start; i < end; i++) request.cacheIds[i] = shiftedId(request.cacheIds[i]!);
  }

  tokensBefore(request: CachedRequest, at: number): number {
    const next = this.#plans.get(request)?.find(({ start }) => start > at);
    return next ? next.start - at : Number.POSITIVE_INFINITY;
  }

  takeOver(request: CachedRequest, lease: Lease): boolean {
    const at = numComputed(lease);
    const shift = this.#plans.get(request)?.find(({ start, end }) => start <= at && at < end);
    if (!shift || request.cacheIds[at] !== shiftedId(request.cacheIds[at]!)) return false;
    const slots = this.#runs.copy(shift, at, this.#shiftKeys);
    if (!slots) {
      // There are no free slots, or the older text is no longer cached: these tokens are computed.
      for (let i = at; i < shift.end; i++) request.cacheIds[i] = exactId(request.cacheIds[i]!);
      return false;
    }
    this.#cache.append(lease, slots);
    this.#cache.commit(lease, request.cacheIds);
    this.numTokens += slots.length;
    return true;
  }

  numStandingIn(cacheIds: readonly number[]): number {
    return this.#runs.standingIn(cacheIds);
  }

  drop(cacheIds: readonly number[]): void {
    this.#runs.drop(cacheIds);
  }
}
