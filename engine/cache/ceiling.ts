/**
 * How many slots a window may have under the cache's ceiling, in bytes, beside what else there is. Whole pages, unless the
 * ceiling allows less than four of them. Arithmetic only: what is there, and where, is KvMemory's.
 */
import { PAGE_SLOTS } from './window.ts';

export const roundUp = (n: number, step: number): number => Math.ceil(n / step) * step;

export class Ceiling {
  maxBytes: number;
  /** Bytes that the window leaves to the store. */
  aside = 0;
  /** Bytes of `limit` that somebody else has until window or store need them. */
  lent = 0;
  /** Of a row in the window. */
  readonly bytesPerSlot: number;
  readonly #softSlots: number;
  readonly #reserve: number;

  /** `softSlots`: up to which the window grows before others leave it. `reserve`: bytes that nothing may take for long, fewer where the ceiling has no two pages of the window beside them. */
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

  /** Bytes of window and store together. */
  get limit(): number {
    return this.limitWith(this.maxBytes);
  }

  /** The same, as long as what is lent stays so. */
  get limitNow(): number {
    return this.limit - this.lent;
  }

  /** As `limit`, were this the ceiling. */
  limitWith(maxBytes: number): number {
    // A page is given back of a window of two: of a smaller one none.
    return maxBytes - Math.max(0, Math.min(this.#reserve, maxBytes - 2 * PAGE_SLOTS * this.bytesPerSlot));
  }

  /** The largest P, with an empty store. */
  get maxSlots(): number {
    return this.slotsUnder(this.limit);
  }

  /** The same beside what is set aside for the store. */
  get mostSlots(): number {
    return this.slotsBeside(this.aside);
  }

  /** As given, but whole pages where the ceiling allows for them: anything else would make the window a single one. */
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

  /** As slotsUnder, were this the ceiling. */
  slotsWith(maxBytes: number): number {
    return this.slotsUnder(this.limitWith(maxBytes));
  }

  get #hasPages(): boolean {
    return this.maxSlots >= 4 * PAGE_SLOTS;
  }
}
