/**
 * Idle demotion: moves long unused nodes from the pool to the store and frees their pages. Compresses them on the way
 * where memory is short, but drops nothing for them. Does not free slots for requests; that is up to PoolResizer.
 */
import { type Coding, codedPage, isLast, placeOf } from '../approx/codedPage.ts';
import { lossyWithin, BLOCK_TOKENS } from '../storedBlocks.ts';
import type { CachedNodes } from '../cachedNodes.ts';
import type { Tail } from '../pageTable.ts';
import { type KvPool, PAGE_SLOTS } from '../pool.ts';
import { type PoolBudget, roundUp } from '../poolBudget.ts';
import type { PoolResizer } from '../poolResizer.ts';
import type { RadixNode } from '../radixTree.ts';
import type { KvStore } from '../store.ts';
import type { EvictionOrder } from './eviction.ts';
import type { StoreEviction } from './storeEviction.ts';

/** Shortest time without use before a node leaves. */
const MIN_UNUSED_MS = 60_000;
/** What stays of a node is a multiple of this, the longest block of any codec, so that few blocks are shorter. */
const WHOLE_TOKENS = 128;

export class IdleDemotion {
  readonly #nodes: CachedNodes;
  readonly #pool: KvPool;
  readonly #store: KvStore;
  readonly #budget: PoolBudget;
  readonly #storeEviction: StoreEviction;
  readonly #resizer: PoolResizer;
  readonly #staleMs: number;

  /** `staleMs`: nodes that are unused for longer leave; at least MIN_UNUSED_MS. */
  constructor(
    nodes: CachedNodes,
    budget: PoolBudget,
    storeEviction: StoreEviction,
    resizer: PoolResizer,
    staleMs: number,
  ) {
    this.#nodes = nodes;
    this.#pool = nodes.pool;
    this.#store = nodes.store;
    this.#budget = budget;
    this.#storeEviction = storeEviction;
    this.#resizer = resizer;
    this.#staleMs = Math.max(MIN_UNUSED_MS, staleMs);
  }

  /**
   * Frees a page of the pool, or else moves about a page of stale rows out of it: nodes in eviction order, each from
   * its end. So rows are in pool and store at the same time only for a moment. One call takes no longer than one page,
   * because a request may arrive. Returns false when there was nothing to do.
   *
   * `coding`: how to compress nodes that the store has no space for; null: they stay. `tails`: see PageTable.
   */
  shrink(tails: readonly Tail[], coding: Coding | null = null): boolean {
    // Nodes that are in the store already leave first, because nothing is copied for them; children before parents.
    for (const node of this.#stale((a, b) => b.startIndex - a.startIndex))
      if (node.stored && isLast(node)) this.#nodes.leavePool(node);
    return this.#giveBackPage(tails) || this.#leavePage(this.#stale(this.#nodes.order()), tails, coding);
  }

  /** How many rows at the end of a node fit in the store now, when not all of them do. */
  #numFitting(node: RadixNode): number {
    const fits = node.pruned ? 0 : this.#resizer.rowsWithin(this.#resizer.storeMost);
    // Rows that free a page need not be whole blocks.
    return this.#freesPage(node) ? this.#resizer.numToPage : fits - (fits % BLOCK_TOKENS);
  }

  /** Whether so many of a node's rows fit in the store now that a page can be freed. */
  #freesPage(node: RadixNode): boolean {
    const { numToPage, storeMost } = this.#resizer;
    return (
      !node.pruned && numToPage > 0 && numToPage <= Math.min(node.slots!.length, this.#resizer.rowsWithin(storeMost))
    );
  }

  /**
   * Moves about a page of stale nodes out of the pool and drops nothing for them: nodes that fit in the store, whole or
   * as much as frees a page; or else a page of compressed rows, and frees the page; or else as many rows as fit.
   * Returns false when nothing has left.
   */
  #leavePage(nodes: readonly RadixNode[], tails: readonly Tail[], coding: Coding | null): boolean {
    const resizer = this.#resizer;
    let [numLeft, isFull] = [0, false];
    for (const node of nodes) {
      if (numLeft >= PAGE_SLOTS) break;
      if (!isLast(node)) continue;
      // Checked once: when no page can leave now, none can leave with the next node either.
      if (!isFull && !resizer.fitsInStore(node) && !this.#freesPage(node)) {
        isFull = true;
        // The pages of what has left are freed first. Then the store may have space.
        if (numLeft > 0) break;
        if (
          coding &&
          this.#leaveCoded(
            nodes.filter(({ slots }) => slots),
            coding,
          )
        ) {
          // The rows were added within the bytes that are kept free. Freeing the page makes those free again.
          this.#giveBackPage(tails);
          return true;
        }
      }
      const length = resizer.fitsInStore(node) ? node.slots!.length : this.#numFitting(node);
      if (length === 0) continue;
      // A node that is in the store already leaves whole, because nothing is copied for it.
      this.#storeEviction.cut(
        node,
        node.stored || length <= PAGE_SLOTS
          ? length
          : node.slots!.length - roundUp(node.slots!.length - PAGE_SLOTS, WHOLE_TOKENS),
      );
      numLeft += node.slots!.length;
      resizer.demote(node, resizer.storeMost);
    }
    return numLeft > 0;
  }

  /**
   * Compresses the rows of a page on their way out of the pool. Returns false when they do not fit in the store. All
   * rows are compressed before any of them leaves: if that throws, nothing has changed.
   */
  #leaveCoded(nodes: readonly RadixNode[], coding: Coding): boolean {
    const bytesFree = this.#budget.maxBytes - this.#budget.borrowed - this.#pool.bytes - this.#store.bytes;
    const page = codedPage(nodes, this.#resizer.numToPage, bytesFree, coding, this.#pool.shape);
    const coded = page.map(({ node, length, codec }) => {
      const from = node.tokenIds.length - length;
      return (
        codec &&
        this.#store.codedFrom(
          this.#pool,
          node.slots!.subarray(from),
          codec,
          placeOf(node, length),
          lossyWithin(node.lossy, from),
        )
      );
    });
    for (const [i, { node, length }] of page.entries()) {
      this.#storeEviction.cut(node, length);
      const made = coded[i];
      if (made) {
        node.stored = this.#store.add(made.blocks);
        node.lossy = made.lossy;
      }
      this.#nodes.leavePool(node);
    }
    return page.length > 0;
  }

  /** Frees at most one page of free slots, because slots move. Returns false when there are too few. */
  #giveBackPage(tails: readonly Tail[]): boolean {
    return this.#resizer.giveBack(tails, Math.max(this.#resizer.slotsAround(0), this.#pool.numSlots - PAGE_SLOTS));
  }

  /** Unreferenced nodes in the pool that were not used for long, without pinned ones, in this order. */
  #stale(order: EvictionOrder): RadixNode[] {
    const now = this.#nodes.now;
    return [...this.#nodes.tree.nodes()]
      .filter((node) => node.refCount === 0 && node.slots && !node.pinned && now - node.lastUse > this.#staleMs)
      .sort(order);
  }
}
