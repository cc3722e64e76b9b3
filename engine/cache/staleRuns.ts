/**
 * Quiet moments: runs that nobody has used for long leave the window, and its memory is given back when there is much of it. Where
 * memory is short they are coded on their way, and a moment is no longer than a page takes. What is done when somebody needs room is
 * WindowRoom's.
 */
import type { Ceiling } from './ceiling.ts';
import { codedPage, type Coding, isLast } from './codedPage.ts';
import type { EvictionOrder } from './eviction/eviction.ts';
import { lossyWithin } from './lossyRows.ts';
import { placeOf, type PrefixTree, type TreeNode } from './prefixTree.ts';
import type { Tail } from './slotPlaces.ts';
import type { SlotAllocator } from './slots.ts';
import type { KvStore } from './store.ts';
import { BLOCK_TOKENS } from './storedBlocks.ts';
import type { StoreRoom } from './storeRoom.ts';
import { type KvWindow, PAGE_SLOTS } from './window.ts';
import type { WindowRoom } from './windowRoom.ts';

/** Unused for so long. */
const STALE_MS = 60_000;
/** Shrinking moves slots: it must free at least this many. */
const LEAST_SHRINK = 2 * PAGE_SLOTS;

export interface StaleRunsOptions {
  readonly window: KvWindow;
  readonly store: KvStore;
  readonly tree: PrefixTree;
  readonly ceiling: Ceiling;
  readonly slots: SlotAllocator;
  readonly storeRoom: StoreRoom;
  readonly windowRoom: WindowRoom;
  readonly clock: () => number;
  /** Who goes before whom, as things are now. */
  readonly order: () => EvictionOrder;
  /** Takes its slots from an unreferenced run that the store has. */
  readonly demoted: (node: TreeNode) => void;
}

export class StaleRuns {
  readonly #window: KvWindow;
  readonly #store: KvStore;
  readonly #tree: PrefixTree;
  readonly #ceiling: Ceiling;
  readonly #slots: SlotAllocator;
  readonly #storeRoom: StoreRoom;
  readonly #room: WindowRoom;
  readonly #clock: () => number;
  readonly #order: () => EvictionOrder;
  readonly #demoted: (node: TreeNode) => void;

  constructor({ window, store, tree, ceiling, slots, storeRoom, windowRoom, clock, order, demoted }: StaleRunsOptions) {
    this.#window = window;
    this.#store = store;
    this.#tree = tree;
    this.#ceiling = ceiling;
    this.#slots = slots;
    this.#storeRoom = storeRoom;
    this.#room = windowRoom;
    this.#clock = clock;
    this.#order = order;
    this.#demoted = demoted;
  }

  /**
   * Stale runs leave the window, first to go first and each from its end, until there is no room for the next one, and the memory of free
   * slots is given back when there are many. `coding`: memory is short, and every page is worth it. True where rows have left then, and others
   * may be next: no more than about a page's worth at a time, for somebody may ask meanwhile. `tails`: see SlotPlaces.
   */
  shrink(tails: readonly Tail[], coding: Coding | null = null): boolean {
    const order = this.#order();
    // Those that the store has leave first, and nothing goes for them; what goes on from a run before it.
    for (const node of this.#stale((a, b) => b.startIndex - a.startIndex)) if (node.stored && isLast(node)) this.#demoted(node);
    const runs = this.#stale(order);
    if (coding && this.#leavePage(runs, tails, coding)) return true;
    if (!coding) this.#leaveAll(runs, tails, order);
    const target = this.#room.slotsAround(this.#slots.numHeld);
    if (coding || this.#isWorthShrinking(target)) this.#room.giveBack(tails, target);
    return false;
  }

  /** Of stale `runs`, what there is room for leaves the window, older ones gone or not where it becomes smaller then. */
  #leaveAll(runs: readonly TreeNode[], tails: readonly Tail[], order: EvictionOrder): void {
    const room = this.#room;
    const numStale = runs.reduce((sum, { slots }) => sum + slots!.length, 0);
    const shrinks = this.#isWorthShrinking(room.slotsAround(this.#slots.numHeld - numStale));
    for (const run of runs) {
      for (let rest: TreeNode | null = run; rest; ) {
        // The ceiling holds meanwhile. Each time slots move: not before room is needed.
        if (shrinks && !room.hasStoreRoom(rest)) room.giveBack(tails);
        const length = this.#numToLeave(rest, shrinks ? order : null);
        if (length === 0) break;
        const end: TreeNode = rest;
        rest = this.#storeRoom.cut(end, length);
        room.demote(end, room.storeMost);
      }
    }
  }

  /** Rows at the end of a run that leave next: all of it where the store has room for it; or else a page's worth for which older ones go, or what fits of that. `order` null: nobody wants the room, nothing goes for it. */
  #numToLeave(run: TreeNode, order: EvictionOrder | null): number {
    const room = this.#room;
    // What stays keeps what it goes on from.
    if (!isLast(run)) return 0;
    const all = run.slots!.length;
    if (room.hasStoreRoom(run)) return all;
    const page = run.pruned ? all : Math.min(PAGE_SLOTS, all);
    return order && this.#storeRoom.make(room.storeMost - room.bytesInStore(run, page), run, order) ? page : this.#numFitting(run);
  }

  /** Rows at the end of a run, not all of which the store has room for, that it has room for as things are. */
  #numFitting(run: TreeNode): number {
    const fits = run.pruned ? 0 : this.#room.rowsWithin(this.#room.storeMost);
    const { numToPage } = this.#room;
    // What frees a page need not be whole blocks.
    return numToPage > 0 && numToPage <= fits ? numToPage : fits - (fits % BLOCK_TOKENS);
  }

  /**
   * About a page's worth of stale `runs` leaves the window, and nothing goes for it: those that the store has room for as they are; or else a
   * page of what may be coded, straight out of the window, which is given back; or else what fits. False where nothing has left.
   */
  #leavePage(runs: readonly TreeNode[], tails: readonly Tail[], coding: Coding): boolean {
    const room = this.#room;
    let [numLeft, isFull] = [0, false];
    for (const run of runs) {
      if (numLeft >= PAGE_SLOTS) break;
      if (!isLast(run)) continue;
      // Once: where no page can leave now, none can beside the next run either.
      if (!isFull && !room.hasStoreRoom(run)) {
        isFull = true;
        room.giveBack(tails);
        if (!room.hasStoreRoom(run) && this.#leaveCoded(runs.filter(({ slots }) => slots), coding)) {
          // It has come into bytes that are kept free: those are free again now.
          room.giveBack(tails);
          return true;
        }
      }
      const length = room.hasStoreRoom(run) ? run.slots!.length : this.#numFitting(run);
      if (length === 0) continue;
      // What the store has is not copied.
      this.#storeRoom.cut(run, run.stored ? length : Math.min(PAGE_SLOTS, length));
      numLeft += run.slots!.length;
      room.demote(run, room.storeMost);
    }
    return numLeft > 0;
  }

  /** What frees a page leaves the window coded; false where it has no room. All of it is coded before any of it leaves: where that fails, everything is as it was. */
  #leaveCoded(runs: readonly TreeNode[], coding: Coding): boolean {
    const bytesFree = this.#ceiling.maxBytes - this.#window.bytes - this.#store.bytes;
    const page = codedPage(runs, this.#room.numToPage, bytesFree, coding, this.#window.shape);
    const coded = page.map(({ node, length, codec }) => {
      const from = node.tokenIds.length - length;
      return codec && this.#store.codedFrom(this.#window, node.slots!.subarray(from), codec, placeOf(node, length), lossyWithin(node.lossy, from));
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

  #isWorthShrinking(target: number): boolean {
    return this.#window.numSlots - target >= Math.max(LEAST_SHRINK, this.#window.numSlots / 4);
  }

  /** Unreferenced runs in the window that nobody has used for long, pinned ones left out, in the order in which they go. */
  #stale(order: EvictionOrder): TreeNode[] {
    const now = this.#clock();
    return [...this.#tree.nodes()].filter((node) => node.refCount === 0 && node.slots && !node.pinned && now - node.lastUse > STALE_MS).sort(order);
  }
}
