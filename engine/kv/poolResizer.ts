/**
 * Grows and shrinks the pool, and evicts to fit the budget: unreferenced nodes are demoted to the store or dropped. The
 * budget holds at every moment: rows of a page leave, then the page is freed, then the next one follows. Does not do
 * idle demotion.
 */
import { isLast } from './approx/codedPage.ts';
import type { CachedNodes } from './cachedNodes.ts';
import { type EvictionOrder, EvictionQueue } from './eviction/eviction.ts';
import type { StoreEviction } from './eviction/storeEviction.ts';
import type { Tail, SlotAllocator } from './pageTable.ts';
import { type KvPool, PAGE_SLOTS } from './pool.ts';
import { type PoolBudget, roundUp } from './poolBudget.ts';
import type { RadixNode } from './radixTree.ts';
import type { KvStore } from './store.ts';

/** The pool grows by whole pages. */
const WINDOW_STEP = PAGE_SLOTS;
const INITIAL_SLOTS = WINDOW_STEP;
/** Fewest tokens that leave the pool at once, so that their successors are adjacent. */
const MIN_DEMOTED_TOKENS = PAGE_SLOTS;
/** The same when they are dropped, because the store is full. */
const MIN_DROPPED_TOKENS = 32;
/**
 * The same for nodes with up to MIN_DROPPED_TOKENS tokens: the order is computed each time, and there may be thousands of
 * them.
 */
const MIN_DROPPED_SHORT_TOKENS = 128;
/**
 * With fewer nodes each makes space in the store for itself, which looks at all nodes once. Making space for several at
 * once takes as long as several such looks.
 */
const MIN_JOINT = 8;

export class PoolResizer {
  readonly #nodes: CachedNodes;
  readonly #pool: KvPool;
  readonly #store: KvStore;
  readonly #slots: SlotAllocator;
  readonly #budget: PoolBudget;
  readonly #storeEviction: StoreEviction;

  /** Makes the pool as small as it can be. */
  constructor(nodes: CachedNodes, budget: PoolBudget, storeEviction: StoreEviction) {
    this.#nodes = nodes;
    this.#pool = nodes.pool;
    this.#store = nodes.store;
    this.#slots = nodes.slots;
    this.#budget = budget;
    this.#storeEviction = storeEviction;
    this.#resize(this.#initialSlots);
  }

  /**
   * Slots that must become free before a page can be freed. 0 or less: one can be freed, or the pool is as small as it
   * can be.
   */
  get numToPage(): number {
    return this.#slots.numHeld - Math.max(this.#pageLess, this.#initialSlots);
  }

  /** Size of the pool without its last page. */
  get #pageLess(): number {
    return roundUp(this.#pool.numSlots, WINDOW_STEP) - WINDOW_STEP;
  }

  /** Smallest size of the pool for so many held slots. */
  slotsAround(numHeld: number): number {
    return Math.max(this.#initialSlots, roundUp(numHeld, WINDOW_STEP));
  }

  get #initialSlots(): number {
    return Math.min(INITIAL_SLOTS, this.#budget.softSlots, this.#budget.maxSlots);
  }

  grow(missing: number, limit: number): boolean {
    const P = this.#pool.numSlots;
    // A lower budget may have left a part of a page, so the pool grows to whole pages again.
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
   * Shrinks the pool to `target` slots; does nothing if it is smaller. `limit`: bytes of pool and store afterwards.
   * Until then the present budget holds, so rows leave for the store a page at a time where it has no space for more,
   * and the page is freed.
   */
  shrinkTo(target: number, limit: number, tails: readonly Tail[]): void {
    let leaving: EvictionQueue | null = null;
    while (this.#pool.numSlots > target) {
      // Slots move each time, so only when necessary.
      if (this.#slots.numHeld <= target) this.giveBack(tails, target);
      // Making the queue may already have freed enough.
      else if (!leaving)
        leaving = this.#leaving(this.#slots.numHeld - target, limit - target * this.#budget.bytesPerSlot);
      else if (!this.#leave(leaving, target, limit, tails)) throw new Error('The pool shrinks below the slots in use.');
    }
  }

  /** Frees the memory of free slots: whole pages, or all beyond `least`. Returns false when there are too few. */
  giveBack(tails: readonly Tail[], least = this.#initialSlots): boolean {
    const target = Math.max(least, this.#slots.numHeld <= least ? 0 : roundUp(this.#slots.numHeld, WINDOW_STEP));
    if (target >= this.#pool.numSlots) return false;
    this.#nodes.pageTable.compact(target, tails);
    this.#resize(target);
    return true;
  }

  /**
   * On the way to `target` slots: takes slots of the unreferenced node that is evicted first, or makes space for it to
   * leave. `limit`: see shrinkTo.
   */
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
    // A node that will not fit at the end is dropped first. Later its children would have to be dropped with it.
    if (!victim.stored && !this.#storeEviction.make(most - this.bytesInStore(victim, length), victim, order)) {
      this.#dropEnd(victim, all - this.rowsWithin(most));
      return true;
    }
    const now = Math.min(most, this.storeMost);
    const fits = victim.stored ? all : this.rowsWithin(now);
    if (fits < length && this.giveBack(tails, target)) return true;
    const page = this.#slots.numHeld - Math.max(target, this.#pageLess);
    if (fits < length && victim.pruned && page <= fits) {
      // A pruned node leaves as a whole. Where both fit at the end, a node that can leave a page at a time leaves
      // first.
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
   * Frees slots by evicting unreferenced nodes, until so many are free. Continues up to MIN_DEMOTED_TOKENS as long as the
   * store has space. Returns false when nothing was freed.
   */
  reclaim(missing: number): boolean {
    const numFreeBefore = this.#slots.numFree;
    const leaving = this.#leaving(missing, this.storeMost);
    let numFreed = this.#slots.numFree - numFreeBefore;
    for (let victim = leaving.first(); victim; victim = leaving.first()) {
      const least = Math.max(missing, victim.slots!.length > MIN_DROPPED_TOKENS ? 0 : MIN_DROPPED_SHORT_TOKENS);
      if (numFreed >= Math.max(missing, MIN_DEMOTED_TOKENS) || (numFreed >= least && !this.fitsInStore(victim))) break;
      const { startIndex } = victim;
      this.#storeEviction.cut(victim, Math.max(missing, MIN_DEMOTED_TOKENS) - numFreed);
      if (!this.demote(victim, this.storeMost, leaving.order)) this.#dropEnd(victim, missing - numFreed);
      numFreed = this.#slots.numFree - numFreeBefore;
      // What is left of the node may be short, but must not be treated as a short node.
      if (victim.startIndex > startIndex) break;
    }
    return numFreed > 0;
  }

  /**
   * The nodes that may leave the pool. When the first `numTokens` tokens are many nodes, makes space for all of them in
   * the store (`most` bytes in total); nodes that do not fit are dropped.
   */
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
    this.#storeEviction.makeSpaceForAll(most, new Set(coming), bytes, leaving.order);
    return leaving;
  }

  /** Drops the last tokens of an unreferenced node. */
  #dropEnd(node: RadixNode, numTokens: number): void {
    this.#storeEviction.cut(node, Math.max(numTokens, MIN_DROPPED_TOKENS));
    this.#nodes.drop(node);
  }

  /**
   * Moves an unreferenced node to the store, if the store has at most `most` bytes afterwards. Older nodes may be
   * evicted for it. Returns false when that is not enough; then the node stays. `known`: see StoreEviction.make.
   */
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

  /** Bytes that the store may have beside the pool at its current size. */
  get storeMost(): number {
    return this.#budget.limitNow - this.#pool.bytes;
  }

  /** Bytes in the store of a node of the pool, or of so many of its rows. */
  bytesInStore(node: RadixNode, numRows = node.slots!.length): number {
    return this.#storeEviction.bytesFor(node, numRows);
  }

  /** Exact rows that the store has space for below so many bytes. */
  rowsWithin(bytes: number): number {
    return Math.max(0, Math.floor((bytes - this.#store.bytes) / this.#store.bytesPerToken));
  }

  /** Whether a node of the pool fits in the store without evicting anything. */
  fitsInStore(node: RadixNode): boolean {
    return node.stored !== null || this.#store.bytes + this.bytesInStore(node) <= this.storeMost;
  }
}
