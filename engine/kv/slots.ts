/**
 * Which pool slots are free. Does not know who holds a slot. A step attends to whole pages, so a sequence's next slot
 * follows its last one or is in the same page, and a new sequence starts in the page with most free slots.
 */
import { PAGE_SLOTS } from './pool.ts';

export class SlotAllocator {
  /** 1 = held, [P]. */
  #held = new Uint8Array(0);
  numFree = 0;

  get numSlots(): number {
    return this.#held.length;
  }

  get numHeld(): number {
    return this.#held.length - this.numFree;
  }

  isHeld(slot: number): boolean {
    return this.#held[slot] === 1;
  }

  /**
   * Takes n free slots; null when there are fewer. Prefers the page of slot `after`, there the slots behind it, then
   * the `preferred` pages.
   */
  take(n: number, after = -1, preferred: Iterable<number> = []): Int32Array | null {
    if (n > this.numFree) return null;
    const taken = new Int32Array(n);
    let count = 0;
    const takeFrom = (first: number, end: number): void => {
      for (let slot = first; count < n && slot < Math.min(end, this.numSlots); slot++) {
        if (this.#held[slot] !== 0) continue;
        this.#held[slot] = 1;
        taken[count++] = slot;
      }
    };
    if (after >= 0) {
      const start = Math.floor(after / PAGE_SLOTS) * PAGE_SLOTS;
      takeFrom(after + 1, start + PAGE_SLOTS);
      takeFrom(start, after);
    }
    for (const page of preferred) takeFrom(page * PAGE_SLOTS, (page + 1) * PAGE_SLOTS);
    while (count < n) {
      const page = this.#emptiestPage();
      takeFrom(page * PAGE_SLOTS, (page + 1) * PAGE_SLOTS);
    }
    this.numFree -= n;
    return taken;
  }

  /** Takes the n lowest free slots. The caller knows that there are so many. */
  takeLowest(n: number): Int32Array {
    const taken = new Int32Array(n);
    for (let slot = 0, i = 0; i < n; slot++) {
      if (this.#held[slot] !== 0) continue;
      this.#held[slot] = 1;
      taken[i++] = slot;
    }
    this.numFree -= n;
    return taken;
  }

  give(slots: ArrayLike<number>): void {
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[i]!;
      if (this.#held[slot] !== 1) throw new Error(`Slot ${slot} is freed but not held.`);
      this.#held[slot] = 0;
    }
    this.numFree += slots.length;
  }

  /** Slot from[i] and slot to[i] change places. */
  exchange(from: Int32Array, to: Int32Array): void {
    for (let i = 0; i < from.length; i++) {
      const flag = this.#held[from[i]!]!;
      this.#held[from[i]!] = this.#held[to[i]!]!;
      this.#held[to[i]!] = flag;
    }
  }

  /** Changes P. Slots that are removed must be free. */
  resize(numSlots: number): void {
    const held = new Uint8Array(numSlots);
    held.set(this.#held.subarray(0, Math.min(numSlots, this.#held.length)));
    if (this.#held.includes(1, numSlots)) throw new Error('The pool shrinks over slots that are held.');
    this.numFree += numSlots - this.#held.length;
    this.#held = held;
  }

  /** The page with most free slots; the first of several. */
  #emptiestPage(): number {
    let best = -1;
    let most = 0;
    for (let from = 0; from < this.#held.length && most < PAGE_SLOTS; from += PAGE_SLOTS) {
      const to = Math.min(this.#held.length, from + PAGE_SLOTS);
      let free = 0;
      for (let slot = from; slot < to; slot++) free += 1 - this.#held[slot]!;
      if (free > most) [best, most] = [from / PAGE_SLOTS, free];
    }
    return best;
  }
}
