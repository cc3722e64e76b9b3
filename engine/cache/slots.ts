/**
 * Which window slots are free. Owns nothing but the flags; who holds a slot is known by the prefix tree and by the
 * sequences' tails. Low slots go first, so that the window can shrink, and contiguous ones where there are any,
 * because K is held transposed and a contiguous run is one copy per row.
 */
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

  /** Takes n free slots; null when there are fewer. A contiguous run is only looked for below `limit`. */
  take(n: number, limit = this.numSlots): Int32Array | null {
    if (n > this.numFree) return null;
    const taken = new Int32Array(n);
    const start = this.#contiguous(n, limit);
    if (start >= 0) for (let i = 0; i < n; i++) taken[i] = start + i;
    else for (let slot = 0, i = 0; i < n; slot++) if (this.#held[slot] === 0) taken[i++] = slot;
    for (const slot of taken) this.#held[slot] = 1;
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

  /** For another P; slots that fall away must be free. */
  resize(numSlots: number): void {
    const held = new Uint8Array(numSlots);
    held.set(this.#held.subarray(0, Math.min(numSlots, this.#held.length)));
    let numHeld = 0;
    for (const flag of held) numHeld += flag;
    if (numHeld !== this.numHeld) throw new Error('The window shrinks over slots that are held.');
    this.#held = held;
    this.numFree = numSlots - numHeld;
  }

  /** First of n free slots in a row below `limit`, or -1. */
  #contiguous(n: number, limit: number): number {
    let length = 0;
    for (let slot = 0; slot < limit; slot++) {
      length = this.#held[slot] === 0 ? length + 1 : 0;
      if (length === n) return slot - n + 1;
    }
    return -1;
  }
}
