/**
 * How many slots a pool may have under the cache's budget, in bytes, beside what else there is. Whole pages, unless the
 * budget allows less than four of them. Arithmetic only: what is there, and where, is KvMemory's.
 */
import { PAGE_SLOTS } from './pool.ts';

export const roundUp = (n: number, step: number): number => Math.ceil(n / step) * step;

export class PoolBudget {
  maxBytes: number;
  /** Bytes that the pool leaves to the store. */
  reserved = 0;
  /** Bytes of `limit` that somebody else has until pool or store need them. */
  borrowed = 0;
  /** Of a row in the pool. */
  readonly bytesPerSlot: number;
  readonly #softSlots: number;
  readonly #reserve: number;

  /** `softSlots`: up to which the pool grows before others leave it. `reserve`: bytes that nothing may take for long, fewer where the budget has no two pages of the pool beside them. */
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

  /** The same, as long as what is lent stays so. */
  get limitNow(): number {
    return this.limit - this.borrowed;
  }

  /** As `limit`, were this the budget. */
  limitWith(maxBytes: number): number {
    // A page is given back of a pool of two: of a smaller one none.
    return maxBytes - Math.max(0, Math.min(this.#reserve, maxBytes - 2 * PAGE_SLOTS * this.bytesPerSlot));
  }

  /** The largest P, with an empty store. */
  get maxSlots(): number {
    return this.slotsUnder(this.limit);
  }

  /** The same beside what is set aside for the store. */
  get mostSlots(): number {
    return this.slotsBeside(this.reserved);
  }

  /** As given, but whole pages where the budget allows for them: anything else would make the pool a single one. */
  get softSlots(): number {
    return this.#hasPages ? roundUp(this.#softSlots, PAGE_SLOTS) : this.#softSlots;
  }

  /** As maxSlots, beside so many bytes of the store; whole pages, too. */
  slotsBeside(bytes: number): number {
    if (bytes === 0) return this.maxSlots;
    const slots = this.slotsUnder(this.limit - bytes);
    return this.#hasPages ? slots - (slots % PAGE_SLOTS) : slots;
  }

  /** What is left beside so many slots. */
  bytesBeside(numSlots: number): number {
    return this.limit - (this.#hasPages ? roundUp(numSlots, PAGE_SLOTS) : numSlots) * this.bytesPerSlot;
  }

  /** Of so many bytes. */
  slotsUnder(bytes: number): number {
    const slots = Math.max(0, Math.floor(bytes / this.bytesPerSlot));
    return slots >= 4 * PAGE_SLOTS ? slots - (slots % PAGE_SLOTS) : slots;
  }

  /** As slotsUnder, were this the budget. */
  slotsWith(maxBytes: number): number {
    return this.slotsUnder(this.limitWith(maxBytes));
  }

  get #hasPages(): boolean {
    return this.maxSlots >= 4 * PAGE_SLOTS;
  }
}
