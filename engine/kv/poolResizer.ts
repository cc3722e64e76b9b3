/**
 * Room in the pool, and how large it is: it grows for who needs slots, and becomes smaller when others need the bytes; what is in
 * its way leaves it for the store or is lost. What leaves it when nobody needs anything is IdleDemotion'. The budget holds at every
 * moment: what leaves leaves a page's worth at a time where it has to, and that page is given back before the next one goes. Whose
 * slots are whose is KvMemory's.
 */

import { isLast } from './approx/codedPage.ts';
import type { CachedNodes } from './cachedNodes.ts';
import type { EvictionOrder } from './eviction/eviction.ts';
import { EvictionQueue } from './eviction/evictionQueue.ts';
import type { StoreEviction } from './eviction/storeEviction.ts';
import type { Tail } from './pageTable.ts';
import { type KvPool, PAGE_SLOTS } from './pool.ts';
import { type PoolBudget, roundUp } from './poolBudget.ts';
import type { RadixNode } from './radixTree.ts';
import type { SlotAllocator } from './slots.ts';
import type { KvStore } from './store.ts';

/** Of the pool's growth. */
const WINDOW_STEP = PAGE_SLOTS;
const INITIAL_SLOTS = WINDOW_STEP;
/** Least number of tokens that leave the pool at once, so that what comes in their place lies together. */
const RECLAIM_TOKENS = PAGE_SLOTS;
/** The same where the budget leaves no room in the store, so that they are lost. */
const DROP_TOKENS = 32;
/** The same of several runs that are no longer: who goes is reckoned each time, and a day's work leaves thousands of them. */
const DROP_SHORT_TOKENS = 128;
/** Of fewer runs each asks by itself for room in the store: that is a look at all runs, room for several a reckoning, which takes as long as several looks. */
const MIN_JOINT = 8;

export class PoolResizer {
  readonly #nodes: CachedNodes;
  readonly #pool: KvPool;
  readonly #store: KvStore;
  readonly #slots: SlotAllocator;
  readonly #budget: PoolBudget;
  readonly #storeEviction: StoreEviction;

  /** Makes the pool as small as it ever is. */
  constructor(nodes: CachedNodes, budget: PoolBudget, storeEviction: StoreEviction) {
    this.#nodes = nodes;
    this.#pool = nodes.pool;
    this.#store = nodes.store;
    this.#slots = nodes.slots;
    this.#budget = budget;
    this.#storeEviction = storeEviction;
    this.#resize(this.#initialSlots);
  }

  /** Slots that must become free for the pool to be a page smaller; 0 or less where they are, or it is as small as it ever is. */
  get numToPage(): number {
    return this.#slots.numHeld - Math.max(this.#pageLess, this.#initialSlots);
  }

  /** P without its last page. */
  get #pageLess(): number {
    return roundUp(this.#pool.numSlots, WINDOW_STEP) - WINDOW_STEP;
  }

  /** P with room for so many slots. */
  slotsAround(numHeld: number): number {
    return Math.max(this.#initialSlots, roundUp(numHeld, WINDOW_STEP));
  }

  get #initialSlots(): number {
    return Math.min(INITIAL_SLOTS, this.#budget.softSlots, this.#budget.maxSlots);
  }

  grow(missing: number, limit: number): boolean {
    const P = this.#pool.numSlots;
    // Whole pages, also where it was none before: a lower budget may have left it with a part of one.
    const target = Math.min(roundUp(P + missing, WINDOW_STEP), limit, this.#budget.mostSlots);
    if (target <= P || !this.#storeEviction.make(this.#budget.limitNow - target * this.#budget.bytesPerSlot, null))
      return false;
    this.#resize(target);
    return true;
  }

  #resize(numSlots: number): void {
    const { pageSlots } = this.#pool;
    this.#slots.resize(numSlots);
    this.#pool.resize(numSlots, this.#budget.maxSlots);
    if (this.#pool.pageSlots !== pageSlots) this.#nodes.pageTable.layout++;
  }

  /**
   * Brings the pool down to `target` slots, or leaves it as small as it is. `limit`: bytes of pool and store then; meanwhile
   * the budget's holds, so what leaves for the store leaves a page's worth at a time where there is no room for more, and the page is given back.
   */
  shrinkTo(target: number, limit: number, tails: readonly Tail[]): void {
    let leaving: EvictionQueue | null = null;
    while (this.#pool.numSlots > target) {
      // Each time slots move: not before it has to be.
      if (this.#slots.numHeld <= target) this.giveBack(tails, target);
      // That may be enough.
      else if (!leaving)
        leaving = this.#leaving(this.#slots.numHeld - target, limit - target * this.#budget.bytesPerSlot);
      else if (!this.#leave(leaving, target, limit, tails)) throw new Error('The pool shrinks below the slots in use.');
    }
  }

  /** Gives back the memory of free slots, whole pages of them or all beyond `least`; false where there are too few. */
  giveBack(tails: readonly Tail[], least = this.#initialSlots): boolean {
    const target = Math.max(least, this.#slots.numHeld <= least ? 0 : roundUp(this.#slots.numHeld, WINDOW_STEP));
    if (target >= this.#pool.numSlots) return false;
    this.#nodes.pageTable.compact(target, tails);
    this.#resize(target);
    return true;
  }

  /** Takes slots of an unreferenced run, of the one that goes first, on the pool's way to `target` slots, or makes room for it to leave; `limit`: see shrinkTo. */
  #leave(
    leaving: EvictionQueue,
    target: number,
    limit: number,
    tails: readonly Tail[],
    victim = leaving.first(),
  ): boolean {
    if (!victim) return false;
    const { order } = leaving;
    const most = limit - target * this.#budget.bytesPerSlot;
    const all = this.#slots.numHeld - target;
    const length = Math.min(all, victim.slots!.length);
    // What has no room at the end goes first: it would take with it what goes on from it.
    if (!victim.stored && !this.#storeEviction.make(most - this.bytesInStore(victim, length), victim, order)) {
      this.#dropEnd(victim, all - this.rowsWithin(most));
      return true;
    }
    const now = Math.min(most, this.storeMost);
    const fits = victim.stored ? all : this.rowsWithin(now);
    if (fits < length && this.giveBack(tails, target)) return true;
    const page = this.#slots.numHeld - Math.max(target, this.#pageLess);
    if (fits < length && victim.pruned && page <= fits) {
      // It leaves as a whole, so one that leaves a page at a time goes before it, where both have room at the end.
      const other = leaving.first((node) => !node.pruned && isLast(node));
      if (
        other &&
        this.#storeEviction.make(
          most - this.bytesInStore(victim) - this.bytesInStore(other, Math.min(all, other.slots!.length)),
          victim,
          order,
        )
      )
        return this.#leave(leaving, target, limit, tails, other);
    }
    this.#storeEviction.cut(victim, Math.max(page, Math.min(all, fits)));
    if (!this.demote(victim, now, order)) this.#dropEnd(victim, page - this.rowsWithin(now));
    return true;
  }

  /**
   * Takes slots from the unreferenced runs that go first, until so many are free; what the store has room for goes on, up to
   * RECLAIM_TOKENS. False where there is none.
   */
  reclaim(missing: number): boolean {
    const numFreeBefore = this.#slots.numFree;
    const leaving = this.#leaving(missing, this.storeMost);
    let numFreed = this.#slots.numFree - numFreeBefore;
    for (let victim = leaving.first(); victim; victim = leaving.first()) {
      const least = Math.max(missing, victim.slots!.length > DROP_TOKENS ? 0 : DROP_SHORT_TOKENS);
      if (numFreed >= Math.max(missing, RECLAIM_TOKENS) || (numFreed >= least && !this.hasStoreRoom(victim))) break;
      const { startIndex } = victim;
      this.#storeEviction.cut(victim, Math.max(missing, RECLAIM_TOKENS) - numFreed);
      if (!this.demote(victim, this.storeMost, leaving.order)) this.#dropEnd(victim, missing - numFreed);
      numFreed = this.#slots.numFree - numFreeBefore;
      // What is left of it may be short, and is not to go as one that was.
      if (victim.startIndex > startIndex) break;
    }
    return numFreed > 0;
  }

  /** The runs that may leave; for those of the first so many tokens, if they are many runs, there is room in the store once it has `most` bytes, or else they have gone. */
  #leaving(numTokens: number, most: number): EvictionQueue {
    const leaving = new EvictionQueue(this.#nodes.tree, this.#nodes.order());
    const coming = leaving.firstOf(numTokens);
    if (coming.length < MIN_JOINT) return leaving;
    let [missing, bytes] = [numTokens, 0];
    for (const victim of coming) {
      const { length } = victim.slots!;
      if (!victim.stored) bytes += this.bytesInStore(victim, victim.pruned ? length : Math.min(length, missing));
      missing -= length;
    }
    this.#storeEviction.makeRoomForAll(most, new Set(coming), bytes, leaving.order);
    return leaving;
  }

  /** Of a run that nobody uses. */
  #dropEnd(node: RadixNode, numTokens: number): void {
    this.#storeEviction.cut(node, Math.max(numTokens, DROP_TOKENS));
    this.#nodes.drop(node);
  }

  /** Moves an unreferenced run to the store; false, and it stays, when it would have more than `most` bytes then, though older runs were to go. `known`: see StoreEviction.make. */
  demote(node: RadixNode, most: number, known?: EvictionOrder): boolean {
    const slots = node.slots!;
    if (!node.stored) {
      if (!this.#storeEviction.make(most - this.bytesInStore(node), node, known)) return false;
      node.stored = node.pruned
        ? this.#store.putKept(this.#pool, slots, node.tokenIds.length)
        : this.#store.put(this.#pool, slots);
    }
    this.#nodes.leavePool(node);
    return true;
  }

  /** Bytes that the store may have beside the pool as it is. */
  get storeMost(): number {
    return this.#budget.limitNow - this.#pool.bytes;
  }

  /** That a run of the pool takes there, or so many rows of it. */
  bytesInStore(node: RadixNode, numRows = node.slots!.length): number {
    return this.#storeEviction.bytesFor(node, numRows);
  }

  /** That the store can take before it has so many bytes. */
  rowsWithin(bytes: number): number {
    return Math.max(0, Math.floor((bytes - this.#store.bytes) / this.#store.bytesPerToken));
  }

  /** Whether a run of the pool can go to the store with nothing else gone. */
  hasStoreRoom(node: RadixNode): boolean {
    return node.stored !== null || this.#store.bytes + this.bytesInStore(node) <= this.storeMost;
  }
}
