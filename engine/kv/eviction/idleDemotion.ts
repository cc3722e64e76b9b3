/**
 * Demotion while idle: nodes that nobody has used for long leave the pool, and its memory is given back. Where memory
 * is short they
 * are compressed on the way. Nothing is dropped for them. One call takes no longer than one page. Room on request is
 * PoolResizer's.
 */

import { type Coding, codedPage, isLast, placeOf } from '../approx/codedPage.ts';
import { lossyWithin } from '../approx/lossyRows.ts';
import type { CachedNodes } from '../cachedNodes.ts';
import type { Tail } from '../pageTable.ts';
import { type KvPool, PAGE_SLOTS } from '../pool.ts';
import { type PoolBudget, roundUp } from '../poolBudget.ts';
import type { PoolResizer } from '../poolResizer.ts';
import type { RadixNode } from '../radixTree.ts';
import type { KvStore } from '../store.ts';
import { BLOCK_TOKENS } from '../storedBlocks.ts';
import type { EvictionOrder } from './eviction.ts';
import type { StoreEviction } from './storeEviction.ts';

/** Unused for so long. */
const STALE_MS = 60_000;
/** What stays of a run is a multiple of this: of the longest block of a codec, so that few blocks are shorter. */
const WHOLE_TOKENS = 128;

export class IdleDemotion {
  readonly #nodes: CachedNodes;
  readonly #pool: KvPool;
  readonly #store: KvStore;
  readonly #budget: PoolBudget;
  readonly #storeEviction: StoreEviction;
  readonly #resizer: PoolResizer;
  readonly #staleMs: number;

  /** `staleMs`: nodes that nobody has used for longer leave; STALE_MS at least. */
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
    this.#staleMs = Math.max(STALE_MS, staleMs);
  }

  /**
   * A page of the pool's memory is given back; or else about a page's worth of stale runs leaves it, first to go first
   * and each from its
   * end: so what has left is not kept twice for longer than a moment. True where that has been done, and others may be
   * next: no more at a
   * time, for somebody may ask meanwhile. `coding`: for what the store has no room for as it is; null: that stays.
   * `tails`: see PageTable.
   */
  shrink(tails: readonly Tail[], coding: Coding | null = null): boolean {
    // Those that the store has leave first, and nothing is copied for them; what goes on from a run before it.
    for (const node of this.#stale((a, b) => b.startIndex - a.startIndex))
      if (node.stored && isLast(node)) this.#nodes.leavePool(node);
    return this.#giveBackPage(tails) || this.#leavePage(this.#stale(this.#nodes.order()), tails, coding);
  }

  /** Rows at the end of a run, not all of which the store has room for, that it has room for as things are. */
  #numFitting(run: RadixNode): number {
    const fits = run.pruned ? 0 : this.#resizer.rowsWithin(this.#resizer.storeMost);
    // What frees a page need not be whole blocks.
    return this.#freesPage(run) ? this.#resizer.numToPage : fits - (fits % BLOCK_TOKENS);
  }

  /** Whether the store has room for so much of a run, as it is, that a page can be given back for it. */
  #freesPage(run: RadixNode): boolean {
    const { numToPage, storeMost } = this.#resizer;
    return (
      !run.pruned && numToPage > 0 && numToPage <= Math.min(run.slots!.length, this.#resizer.rowsWithin(storeMost))
    );
  }

  /**
   * About a page's worth of stale `runs` leaves the pool, and nothing goes for it: those that the store has room for as
   * they are, whole or
   * as much as frees a page; or else a page of what may be coded, straight out of the pool, which is given back; or
   * else what fits. False
   * where nothing has left.
   */
  #leavePage(runs: readonly RadixNode[], tails: readonly Tail[], coding: Coding | null): boolean {
    const resizer = this.#resizer;
    let [numLeft, isFull] = [0, false];
    for (const run of runs) {
      if (numLeft >= PAGE_SLOTS) break;
      if (!isLast(run)) continue;
      // Once: where no page can leave now, none can beside the next run either.
      if (!isFull && !resizer.hasStoreRoom(run) && !this.#freesPage(run)) {
        isFull = true;
        // First what has left is given back: then there may be resizer.
        if (numLeft > 0) break;
        if (
          coding &&
          this.#leaveCoded(
            runs.filter(({ slots }) => slots),
            coding,
          )
        ) {
          // It has come into bytes that are kept free: those are free again now.
          this.#giveBackPage(tails);
          return true;
        }
      }
      const length = resizer.hasStoreRoom(run) ? run.slots!.length : this.#numFitting(run);
      if (length === 0) continue;
      // What the store has is not copied.
      this.#storeEviction.cut(
        run,
        run.stored || length <= PAGE_SLOTS
          ? length
          : run.slots!.length - roundUp(run.slots!.length - PAGE_SLOTS, WHOLE_TOKENS),
      );
      numLeft += run.slots!.length;
      resizer.demote(run, resizer.storeMost);
    }
    return numLeft > 0;
  }

  /**
   * What frees a page leaves the pool coded; false where it has no resizer. All of it is coded before any of it leaves:
   * where that fails, everything is as it was.
   */
  #leaveCoded(runs: readonly RadixNode[], coding: Coding): boolean {
    const bytesFree = this.#budget.maxBytes - this.#budget.borrowed - this.#pool.bytes - this.#store.bytes;
    const page = codedPage(runs, this.#resizer.numToPage, bytesFree, coding, this.#pool.shape);
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

  /** Gives back the memory of a page of free slots, no more at once: slots move. False where there are too few. */
  #giveBackPage(tails: readonly Tail[]): boolean {
    return this.#resizer.giveBack(tails, Math.max(this.#resizer.slotsAround(0), this.#pool.numSlots - PAGE_SLOTS));
  }

  /**
   * Unreferenced runs in the pool that nobody has used for long, pinned ones left out, in the order in which they go.
   */
  #stale(order: EvictionOrder): RadixNode[] {
    const now = this.#nodes.now;
    return [...this.#nodes.tree.nodes()]
      .filter((node) => node.refCount === 0 && node.slots && !node.pinned && now - node.lastUse > this.#staleMs)
      .sort(order);
  }
}
