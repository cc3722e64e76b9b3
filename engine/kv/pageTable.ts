/**
 * Slots of the pool: which are free, and moving rows between them. Packs the slots that a step attends to into few
 * pages, and moves held slots to the front before the pool shrinks. Does not change who owns a row.
 */
import { type KvPool, PAGE_SLOTS } from './pool.ts';
import type { RadixTree } from './radixTree.ts';

/*
 * Prices are in tokens that attend to one page more than needed. One such token takes 0.34 ms with the shape of
 * Qwen2.5-0.5B. There exchanging a run of slots takes 1 ms and 6 µs per slot, exchanging single slots 92 µs each.
 */
const RUN_PRICE = 3;
const SLOT_PRICE = 0.02;
const SINGLE_PRICE = 0.27;
/** Most that is paid before one step: the step's time budget does not include it. */
const MAX_PRICE = 30;

/** Factor per step for pages attended to in vain earlier, because those sequences may have ended. */
const FADING = 0.97;

/** Slots in use that belong to no node. Rewritten when slots move. */
export type Tail = number[] | Int32Array;

export class PageTable {
  /** Changes whenever slots of nodes or tails move. */
  layout = 0;
  readonly #pool: KvPool;
  readonly #slots: SlotAllocator;
  readonly #tree: RadixTree;
  /** Tokens times pages attended to in vain since slots were last packed. */
  #inVain = 0;

  constructor(pool: KvPool, slots: SlotAllocator, tree: RadixTree) {
    this.#pool = pool;
    this.#slots = slots;
    this.#tree = tree;
  }

  /**
   * Call it before `numTokens` tokens attend to `slots` together: moves these into as few pages as possible, where that
   * is worth the copies. `tails`: all slots in use that belong to no node.
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
    // A free slot has no rows to keep.
    this.#pool.move(...pairs(false));
    this.#slots.exchange(from, to);
    this.#rewrite(from, to, tails);
  }

  /** Moves held slots from `target` and above to free ones below. `tails`: slots that belong to no node. */
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

  /** The rows of slots from[i] and to[i] have changed places. */
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

export interface Packing {
  /** Number of pages with such slots beyond the fewest that could hold them. */
  readonly pagesInVain: number;
  /**
   * Slots to be exchanged with others in `pages`, those of the emptiest page first; no more than may be moved before
   * one step.
   */
  readonly from: readonly number[];
  readonly price: number;
  /** 1 = the slot is in one of the lists, [P]. */
  readonly isMeant: Uint8Array;
  /** The fullest pages, which will hold all slots. Empty where nothing is to be moved. */
  readonly pages: ReadonlySet<number>;
}

/**
 * Pure: how to move slots into the fewest pages. `lists`: slots that may overlap, of a pool of `numSlots` in pages of
 * `pageSlots`.
 */
export function packingOf(lists: readonly Int32Array[], numSlots: number, pageSlots: number): Packing {
  const isMeant = new Uint8Array(numSlots);
  const counts = new Int32Array(Math.ceil(numSlots / pageSlots));
  let total = 0;
  let numPages = 0;
  for (const list of lists) {
    for (let i = 0; i < list.length; i++) {
      const slot = list[i]!;
      if (isMeant[slot] === 1) continue;
      isMeant[slot] = 1;
      total++;
      const page = (slot / pageSlots) | 0;
      if (counts[page]!++ === 0) numPages++;
    }
  }
  const fewest = Math.ceil(total / pageSlots);
  // The usual case: nothing is to be moved.
  if (numPages === fewest) return { pagesInVain: 0, from: [], price: 0, isMeant, pages: new Set() };
  const fullestFirst = [...counts.keys()]
    .filter((page) => counts[page]! > 0)
    .sort((a, b) => counts[b]! - counts[a]! || a - b);
  const from: number[] = [];
  let price = 0;
  for (const page of fullestFirst.slice(fewest).reverse()) {
    const end = Math.min((page + 1) * pageSlots, numSlots);
    for (let slot = page * pageSlots; slot < end; slot++) {
      if (isMeant[slot] === 0) continue;
      const first = slot;
      while (slot + 1 < end && isMeant[slot + 1] === 1) slot++;
      const length = slot + 1 - first;
      const runPrice = Math.min(SINGLE_PRICE * length, RUN_PRICE + SLOT_PRICE * length);
      if (price + runPrice > MAX_PRICE) break;
      price += runPrice;
      for (let i = first; i <= slot; i++) from.push(i);
    }
  }
  return { pagesInVain: numPages - fewest, from, price, isMeant, pages: new Set(fullestFirst.slice(0, fewest)) };
}

/**
 * Pure: the slots that `from` is exchanged with, as many, ascending. Free ones are taken first, then those that
 * `isIdle`, then any.
 */
export function partnersOf(
  { from, isMeant, pages }: Packing,
  pageSlots: number,
  isFree: (slot: number) => boolean,
  isIdle: (slot: number) => boolean,
): Int32Array {
  const kinds: number[][] = [[], [], []];
  for (const page of pages) {
    for (let slot = page * pageSlots; slot < Math.min((page + 1) * pageSlots, isMeant.length); slot++) {
      if (isMeant[slot] === 0) kinds[isFree(slot) ? 0 : isIdle(slot) ? 1 : 2]!.push(slot);
    }
  }
  return Int32Array.from(kinds.flat().slice(0, from.length)).sort();
}

/**
 * Which slots are free. Does not know who holds a slot. A step attends to whole pages. So a sequence's next slot
 * follows its last one or is in the same page, and a new sequence starts in the page with most free slots.
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
