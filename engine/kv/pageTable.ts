/**
 * Moves rows between slots: brings the slots that a step attends to into few pages, and held slots to the front before
 * the pool
 * shrinks. Rewrites the slot numbers of nodes and tails. Does not change who owns a row.
 */
import { packingOf, partnersOf } from './packing.ts';
import type { KvPool } from './pool.ts';
import type { RadixTree } from './radixTree.ts';
import type { SlotAllocator } from './slots.ts';

/** From step to step, of what was attended to in vain: who is gone has no claim. */
const FADING = 0.97;

/** Slots in use that are in no run; rewritten where they move. */
export type Tail = number[] | Int32Array;

export class PageTable {
  /** Changes whenever slots of runs or tails become others, or lie in other pages. */
  layout = 0;
  readonly #pool: KvPool;
  readonly #slots: SlotAllocator;
  readonly #tree: RadixTree;
  /** Tokens that have attended to pages in vain since slots were last packed. */
  #inVain = 0;

  constructor(pool: KvPool, slots: SlotAllocator, tree: RadixTree) {
    this.#pool = pool;
    this.#slots = slots;
    this.#tree = tree;
  }

  /**
   * `numTokens` tokens are about to attend to `slots` together: brings these into as few pages as they fill, as far as
   * that pays.
   * `tails`: all slots in use that are in no run; rewritten where they move.
   */
  pack(slots: readonly Int32Array[], numTokens: number, tails: Iterable<Tail>): void {
    const { numSlots, pageSlots } = this.#pool;
    const packing = packingOf(slots, numSlots, pageSlots);
    this.#inVain = FADING * this.#inVain + numTokens * packing.pagesInVain;
    if (packing.from.length === 0 || this.#inVain < packing.price) return;
    this.#inVain -= packing.price;
    const isIdle = new Uint8Array(numSlots);
    for (const node of this.#tree.nodes())
      if (node.refCount === 0) for (const slot of node.slots ?? []) isIdle[slot] = 1;
    const from = Int32Array.from(packing.from).sort();
    const to = partnersOf(
      packing,
      pageSlots,
      (slot) => !this.#slots.isHeld(slot),
      (slot) => isIdle[slot] === 1,
    );
    const pairs = (areHeld: boolean): [Int32Array, Int32Array] => [
      from.filter((_, i) => this.#slots.isHeld(to[i]!) === areHeld),
      to.filter((slot) => this.#slots.isHeld(slot) === areHeld),
    ];
    this.#pool.exchange(...pairs(true));
    // What is in a free slot is nobody's.
    this.#pool.move(...pairs(false));
    this.#slots.exchange(from, to);
    this.#rewrite(from, to, tails);
  }

  /**
   * Moves held slots from `target` and above to free ones below. `tails` are slots that are in no run; rewritten too.
   */
  compact(target: number, tails: Iterable<Tail>): void {
    const from: number[] = [];
    for (let slot = target; slot < this.#pool.numSlots; slot++) if (this.#slots.isHeld(slot)) from.push(slot);
    if (from.length === 0) return;
    const to = this.#slots.takeLowest(from.length);
    const movedFrom = Int32Array.from(from);
    this.#pool.move(movedFrom, to);
    this.#slots.give(from);
    this.#rewrite(movedFrom, to, tails);
  }

  /** What was in slot from[i] is in slot to[i] now, and the other way round. */
  #rewrite(from: Int32Array, to: Int32Array, tails: Iterable<Tail>): void {
    const moved = new Int32Array(this.#pool.numSlots).fill(-1);
    for (let i = 0; i < from.length; i++) {
      moved[from[i]!] = to[i]!;
      moved[to[i]!] = from[i]!;
    }
    const rewrite = (slots: Int32Array | number[]): void => {
      for (let i = 0; i < slots.length; i++) if (moved[slots[i]!]! >= 0) slots[i] = moved[slots[i]!]!;
    };
    for (const node of this.#tree.nodes()) if (node.slots) rewrite(node.slots);
    for (const tail of tails) rewrite(tail);
    this.layout++;
  }
}
