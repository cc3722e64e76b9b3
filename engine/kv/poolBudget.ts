/**
 * How many slots the pool may have under the memory budget in bytes: whole pages, unless the budget has space for fewer
 * than four. Arithmetic only; knows no slots and no nodes.
 */
import { PAGE_SLOTS } from './pool.ts';

export const roundUp = (n: number, step: number): number => Math.ceil(n / step) * step;

export class PoolBudget {
  maxBytes: number;
  /** Bytes of the store that the pool may not take. */
  reserved = 0;
  /** Bytes of `limit` that a borrower has until pool or store need them. */
  borrowed = 0;
  /** Bytes of a slot in the pool. */
  readonly bytesPerSlot: number;
  readonly #softSlots: number;
  readonly #reserve: number;

  /**
   * `softSlots`: the pool grows to this size before nodes are evicted. `reserve`: bytes kept free; fewer where that
   * would leave no space for two pages.
   */
  constructor({
    maxBytes,
    bytesPerSlot,
    softSlots,
    reserve,
  }: { maxBytes: number; bytesPerSlot: number; softSlots: number; reserve: number }) {
    this.maxBytes = maxBytes;
    this.bytesPerSlot = bytesPerSlot;
    this.#softSlots = softSlots;
    this.#reserve = reserve;
  }

  /** Bytes of pool and store together. */
  get limit(): number {
    return this.limitWith(this.maxBytes);
  }

  /** `limit` without the borrowed bytes. */
  get limitNow(): number {
    return this.limit - this.borrowed;
  }

  /** `limit` for another budget. */
  limitWith(maxBytes: number): number {
    // A pool of two pages can free one, a smaller one cannot.
    return maxBytes - Math.max(0, Math.min(this.#reserve, maxBytes - 2 * PAGE_SLOTS * this.bytesPerSlot));
  }

  /** The largest P, with an empty store. */
  get maxSlots(): number {
    return this.slotsUnder(this.limit);
  }

  /** The largest P beside the bytes reserved for the store. */
  get mostSlots(): number {
    return this.slotsBeside(this.reserved);
  }

  /**
   * As given, rounded up to whole pages where the budget has space for them. Otherwise the pool would become a single
   * page.
   */
  get softSlots(): number {
    return this.#hasPages ? roundUp(this.#softSlots, PAGE_SLOTS) : this.#softSlots;
  }

  /** `maxSlots` beside so many bytes of the store; whole pages too. */
  slotsBeside(bytes: number): number {
    if (bytes === 0) return this.maxSlots;
    const slots = this.slotsUnder(this.limit - bytes);
    return this.#hasPages ? slots - (slots % PAGE_SLOTS) : slots;
  }

  /** Bytes left beside so many slots. */
  bytesBeside(numSlots: number): number {
    return this.limit - (this.#hasPages ? roundUp(numSlots, PAGE_SLOTS) : numSlots) * this.bytesPerSlot;
  }

  /** Slots in so many bytes. */
  slotsUnder(bytes: number): number {
    const slots = Math.max(0, Math.floor(bytes / this.bytesPerSlot));
    return slots >= 4 * PAGE_SLOTS ? slots - (slots % PAGE_SLOTS) : slots;
  }

  /** `slotsUnder` for another budget. */
  slotsWith(maxBytes: number): number {
    return this.slotsUnder(this.limitWith(maxBytes));
  }

  get #hasPages(): boolean {
    return this.maxSlots >= 4 * PAGE_SLOTS;
  }
}
