/**
 * Quiet moments: runs that nobody has used for long leave the pool, and its memory is given back. Where memory is short they are
 * coded on their way; nothing ever goes for them. A moment is no longer than a page takes. What is done when somebody needs room is
 * PoolResizer's.
 */
import { type PoolBudget, roundUp } from './poolBudget.ts';
import { codedPage, type Coding, isLast } from './approx/codedPage.ts';
import type { EvictionOrder } from './eviction/eviction.ts';
import { lossyWithin } from './approx/lossyRows.ts';
import { placeOf, type RadixTree, type TreeNode } from './radixTree.ts';
import type { Tail } from './pageTable.ts';
import type { KvStore } from './store.ts';
import { BLOCK_TOKENS } from './storedBlocks.ts';
import type { StoreEviction } from './storeEviction.ts';
import { type KvPool, PAGE_SLOTS } from './pool.ts';
import type { PoolResizer } from './poolResizer.ts';

/** Unused for so long. */
const STALE_MS = 60_000;
/** What stays of a run is a multiple of this: of the longest block of a codec, so that few blocks are shorter. */
const WHOLE_TOKENS = 128;

export interface StaleRunsOptions {
  readonly pool: KvPool;
  readonly store: KvStore;
  readonly tree: RadixTree;
  readonly budget: PoolBudget;
  readonly storeRoom: StoreEviction;
  readonly poolResizer: PoolResizer;
  readonly clock: () => number;
  /** What nobody has used for longer than so many ms leaves; STALE_MS when less. */
  readonly staleMs: number;
  /** Who goes before whom, as things are now. */
  readonly order: () => EvictionOrder;
  /** Takes its slots from an unreferenced run that the store has. */
  readonly demoted: (node: TreeNode) => void;
}

export class IdleDemotion {
  readonly #pool: KvPool;
  readonly #store: KvStore;
  readonly #tree: RadixTree;
  readonly #budget: PoolBudget;
  readonly #storeRoom: StoreEviction;
  readonly #room: PoolResizer;
  readonly #clock: () => number;
  readonly #staleMs: number;
  readonly #order: () => EvictionOrder;
  readonly #demoted: (node: TreeNode) => void;

  constructor({ pool, store, tree, budget, storeRoom, poolResizer, clock, staleMs, order, demoted }: StaleRunsOptions) {
    this.#pool = pool;
    this.#store = store;
    this.#tree = tree;
    this.#budget = budget;
    this.#storeRoom = storeRoom;
    this.#room = poolResizer;
    this.#clock = clock;
    this.#staleMs = Math.max(STALE_MS, staleMs);
    this.#order = order;
    this.#demoted = demoted;
  }

  /**
   * A page of the pool's memory is given back; or else about a page's worth of stale runs leaves it, first to go first and each from its
   * end: so what has left is not kept twice for longer than a moment. True where that has been done, and others may be next: no more at a
   * time, for somebody may ask meanwhile. `coding`: for what the store has no room for as it is; null: that stays. `tails`: see PageTable.
   */
  shrink(tails: readonly Tail[], coding: Coding | null = null): boolean {
    // Those that the store has leave first, and nothing is copied for them; what goes on from a run before it.
    for (const node of this.#stale((a, b) => b.startIndex - a.startIndex))
      if (node.stored && isLast(node)) this.#demoted(node);
    return this.#giveBackPage(tails) || this.#leavePage(this.#stale(this.#order()), tails, coding);
  }

  /** Rows at the end of a run, not all of which the store has room for, that it has room for as things are. */
  #numFitting(run: TreeNode): number {
    const fits = run.pruned ? 0 : this.#room.rowsWithin(this.#room.storeMost);
    // What frees a page need not be whole blocks.
    return this.#freesPage(run) ? this.#room.numToPage : fits - (fits % BLOCK_TOKENS);
  }

  /** Whether the store has room for so much of a run, as it is, that a page can be given back for it. */
  #freesPage(run: TreeNode): boolean {
    const { numToPage, storeMost } = this.#room;
    return !run.pruned && numToPage > 0 && numToPage <= Math.min(run.slots!.length, this.#room.rowsWithin(storeMost));
  }

  /**
   * About a page's worth of stale `runs` leaves the pool, and nothing goes for it: those that the store has room for as they are, whole or
   * as much as frees a page; or else a page of what may be coded, straight out of the pool, which is given back; or else what fits. False
   * where nothing has left.
   */
  #leavePage(runs: readonly TreeNode[], tails: readonly Tail[], coding: Coding | null): boolean {
    const room = this.#room;
    let [numLeft, isFull] = [0, false];
    for (const run of runs) {
      if (numLeft >= PAGE_SLOTS) break;
      if (!isLast(run)) continue;
      // Once: where no page can leave now, none can beside the next run either.
      if (!isFull && !room.hasStoreRoom(run) && !this.#freesPage(run)) {
        isFull = true;
        // First what has left is given back: then there may be room.
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
      const length = room.hasStoreRoom(run) ? run.slots!.length : this.#numFitting(run);
      if (length === 0) continue;
      // What the store has is not copied.
      this.#storeRoom.cut(
        run,
        run.stored || length <= PAGE_SLOTS
          ? length
          : run.slots!.length - roundUp(run.slots!.length - PAGE_SLOTS, WHOLE_TOKENS),
      );
      numLeft += run.slots!.length;
      room.demote(run, room.storeMost);
    }
    return numLeft > 0;
  }

  /** What frees a page leaves the pool coded; false where it has no room. All of it is coded before any of it leaves: where that fails, everything is as it was. */
  #leaveCoded(runs: readonly TreeNode[], coding: Coding): boolean {
    const bytesFree = this.#budget.maxBytes - this.#budget.lent - this.#pool.bytes - this.#store.bytes;
    const page = codedPage(runs, this.#room.numToPage, bytesFree, coding, this.#pool.shape);
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
      this.#storeRoom.cut(node, length);
      const made = coded[i];
      if (made) {
        node.stored = this.#store.add(made.blocks);
        node.lossy = made.lossy;
      }
      this.#demoted(node);
    }
    return page.length > 0;
  }

  /** Gives back the memory of a page of free slots, no more at once: slots move. False where there are too few. */
  #giveBackPage(tails: readonly Tail[]): boolean {
    return this.#room.giveBack(tails, Math.max(this.#room.slotsAround(0), this.#pool.numSlots - PAGE_SLOTS));
  }

  /** Unreferenced runs in the pool that nobody has used for long, pinned ones left out, in the order in which they go. */
  #stale(order: EvictionOrder): TreeNode[] {
    const now = this.#clock();
    return [...this.#tree.nodes()]
      .filter((node) => node.refCount === 0 && node.slots && !node.pinned && now - node.lastUse > this.#staleMs)
      .sort(order);
  }
}
