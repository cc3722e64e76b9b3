/**
 * Room in the window, and how large it is: it grows for who needs slots, and becomes smaller when others need the bytes or nobody
 * its slots; what is in its way leaves it for the store or is lost. The ceiling holds at every moment: what leaves leaves a page's
 * worth at a time where it has to, and that page is given back before the next one goes. Whose slots are whose is KvMemory's.
 */
import { type Ceiling, roundUp } from './ceiling.ts';
import { type EvictionOrder, firstToGo } from './eviction/eviction.ts';
import type { PrefixTree, TreeNode } from './prefixTree.ts';
import type { SlotPlaces, Tail } from './slotPlaces.ts';
import type { SlotAllocator } from './slots.ts';
import { BLOCK_TOKENS, type KvStore } from './store.ts';
import type { StoreRoom } from './storeRoom.ts';
import { type KvWindow, PAGE_SLOTS } from './window.ts';

/** Of the window's growth. */
const WINDOW_STEP = PAGE_SLOTS;
const INITIAL_SLOTS = WINDOW_STEP;
/** Least number of tokens that leave the window at once, so that what comes in their place lies together. */
const RECLAIM_TOKENS = PAGE_SLOTS;
/** The same where the ceiling leaves no room in the store, so that they are lost. */
const DROP_TOKENS = 32;
/** Shrinking moves slots: it must free at least this many. */
const LEAST_SHRINK = 2 * WINDOW_STEP;
/** Codecs that make rows smaller by less than this share of them are not worth a row. */
const LEAST_WON = 0.3;
/** Of the bytes that codecs win, the share that may go for rows to leave the window and be coded. */
const MOST_LOST = 0.5;
/** When all is quiet, runs unused for so long leave the window for the store. */
const STALE_MS = 60_000;

export interface WindowRoomOptions {
  readonly window: KvWindow;
  readonly store: KvStore;
  readonly tree: PrefixTree;
  readonly ceiling: Ceiling;
  readonly slots: SlotAllocator;
  readonly places: SlotPlaces;
  readonly storeRoom: StoreRoom;
  readonly clock: () => number;
  /** Who goes before whom, as things are now. */
  readonly order: () => EvictionOrder;
  /** Lets an unused run go with all below it. */
  readonly drop: (node: TreeNode) => void;
  /** Takes its slots from an unreferenced run that the store has. */
  readonly demoted: (node: TreeNode) => void;
}

/** What becomes of runs in the store while memory is short. */
export interface Coding {
  /** For how long, in ms, nobody has used them. */
  readonly afterMs: number;
  /** Bytes that a run, all of it as it was computed, takes less then. */
  readonly wonBy: (node: TreeNode) => number;
}

export class WindowRoom {
  readonly #window: KvWindow;
  readonly #store: KvStore;
  readonly #tree: PrefixTree;
  readonly #ceiling: Ceiling;
  readonly #slots: SlotAllocator;
  readonly #places: SlotPlaces;
  readonly #storeRoom: StoreRoom;
  readonly #clock: () => number;
  readonly #order: () => EvictionOrder;
  readonly #drop: (node: TreeNode) => void;
  readonly #demoted: (node: TreeNode) => void;

  /** The window is as small as it ever is. */
  constructor({ window, store, tree, ceiling, slots, places, storeRoom, clock, order, drop, demoted }: WindowRoomOptions) {
    this.#window = window;
    this.#store = store;
    this.#tree = tree;
    this.#ceiling = ceiling;
    this.#slots = slots;
    this.#places = places;
    this.#storeRoom = storeRoom;
    this.#clock = clock;
    this.#order = order;
    this.#drop = drop;
    this.#demoted = demoted;
    this.#resize(this.#initialSlots);
  }

  /**
   * For quiet moments: demotes stale runs as far as the store has room, and gives the memory of free slots back when there are many.
   * `coding`: memory is short, and what is stale is coded once it is in the store; then every page is worth it.
   */
  shrink(tails: readonly Tail[], coding: Coding | null = null): void {
    const order = this.#order();
    // Those that the store has leave first, and nothing goes for them; what goes on from a run before it.
    for (const node of this.#stale(STALE_MS, (a, b) => b.startIndex - a.startIndex)) if (node.stored && isLast(node)) this.#demoted(node);
    const stale = this.#stale(STALE_MS, order);
    const least = this.#slotsAround(this.#slots.numHeld - numSlotsOf(stale));
    const shrinks = coding ? least < this.#window.numSlots : this.#isWorthShrinking(least);
    if (coding && shrinks) this.#makeWay(this.#stale(Math.max(STALE_MS, coding.afterMs), order), coding, tails);
    // What stays keeps what it goes on from.
    for (const node of this.#stale(STALE_MS, order)) if (isLast(node)) this.#demoteWhatFits(node, shrinks ? { tails, order } : null);
    const target = this.#slotsAround(this.#slots.numHeld);
    if (this.#isWorthShrinking(target)) this.shrinkTo(target, this.#ceiling.limit, tails);
  }

  /**
   * Demotes a run, from its end, as far as the store has room beside a window that shrinks with it. The ceiling holds meanwhile: free
   * slots are given back first, and where there is no room for all, the run leaves a page's worth at a time, or what fits of that.
   * `shrinking` null: the window stays as large as it is. Nobody wants the room, and nothing goes for it.
   */
  #demoteWhatFits(node: TreeNode, shrinking: { tails: readonly Tail[]; order: EvictionOrder } | null): void {
    for (let rest: TreeNode | null = node; rest; ) {
      const run = rest;
      if (shrinking && !this.#hasStoreRoom(run)) this.#giveBack(this.#initialSlots, shrinking.tails);
      const length = this.#lengthThatFits(run, shrinking?.order ?? null);
      if (length === 0) return;
      rest = this.#storeRoom.cut(run, length);
      if (!this.#demote(run, this.storeMost)) return;
    }
  }

  /** Rows at the end of a run in the window for which the store has room, at most a page's worth where not for all; older runs, by `order`, go for that. */
  #lengthThatFits(node: TreeNode, order: EvictionOrder | null): number {
    const all = node.slots!.length;
    if (this.#hasStoreRoom(node)) return all;
    const page = node.pruned ? all : Math.min(RECLAIM_TOKENS, all);
    if (order && this.#storeRoom.make(this.storeMost - this.#bytesInStore(node, page), node, order)) return page;
    if (node.pruned) return 0;
    const fits = this.#rowsWithin(this.storeMost);
    const toPage = this.#slots.numHeld - Math.max(this.#pageLess, this.#initialSlots);
    // What frees a page need not be whole blocks.
    return toPage > 0 && toPage <= fits ? toPage : fits - (fits % BLOCK_TOKENS);
  }

  /**
   * A window that fills its ceiling leaves codecs nothing: what could leave it a page at a time finds no room for the first one. So of
   * runs that are about to be coded, first to go first, lets as many rows go as that page lacks, where far more bytes are won by it.
   */
  #makeWay(coded: readonly TreeNode[], { wonBy }: Coding, tails: readonly Tail[]): void {
    this.#giveBack(this.#initialSlots, tails);
    if (this.#pageLess < this.#initialSlots) return;
    // What goes on from a run would go with it; what is coded already is not won.
    const leaves = coded.filter(({ children, lossy, pruned, stored }) => children.size === 0 && lossy.length === 0 && !pruned && !stored);
    const [first] = leaves;
    const page = this.#slots.numHeld - this.#pageLess;
    if (!first || this.#storeRoom.make(this.storeMost - this.#bytesInStore(first, page), first)) return;
    let missing = page - this.#rowsWithin(this.storeMost);
    const exact = coded.filter(({ lossy, pruned }) => lossy.length === 0 && !pruned);
    const won = exact.reduce((sum, node) => sum + wonBy(node), 0);
    if (won < LEAST_WON * numSlotsOf(exact) * this.#store.bytesPerToken) return;
    if (missing > numSlotsOf(leaves) || missing * this.#store.bytesPerToken > won * MOST_LOST) return;
    for (const node of leaves) {
      if (missing <= 0) return;
      this.#storeRoom.cut(node, missing);
      missing -= node.slots!.length;
      this.#drop(node);
    }
  }

  /** P without its last page. */
  get #pageLess(): number {
    return roundUp(this.#window.numSlots, WINDOW_STEP) - WINDOW_STEP;
  }

  /** P with room for so many slots. */
  #slotsAround(numHeld: number): number {
    return Math.max(this.#initialSlots, roundUp(numHeld, WINDOW_STEP));
  }

  #isWorthShrinking(target: number): boolean {
    return this.#window.numSlots - target >= Math.max(LEAST_SHRINK, this.#window.numSlots / 4);
  }

  /** Unreferenced runs in the window that nobody has used for longer, pinned ones left out, in the order in which they go. */
  #stale(ms: number, order: EvictionOrder): TreeNode[] {
    const now = this.#clock();
    return [...this.#tree.nodes()].filter((node) => node.refCount === 0 && node.slots && !node.pinned && now - node.lastUse > ms).sort(order);
  }

  get #initialSlots(): number {
    return Math.min(INITIAL_SLOTS, this.#ceiling.softSlots, this.#ceiling.maxSlots);
  }

  grow(missing: number, limit: number): boolean {
    const P = this.#window.numSlots;
    const target = Math.min(P + roundUp(missing, WINDOW_STEP), limit, this.#ceiling.mostSlots);
    if (target <= P || !this.#storeRoom.make(this.#ceiling.limit - target * this.#ceiling.bytesPerSlot, null)) return false;
    this.#resize(target);
    return true;
  }

  #resize(numSlots: number): void {
    const { pageSlots } = this.#window;
    this.#slots.resize(numSlots);
    this.#window.resize(numSlots, this.#ceiling.maxSlots);
    if (this.#window.pageSlots !== pageSlots) this.#places.layout++;
  }

  /**
   * Brings the window down to `target` slots, or leaves it as small as it is. `limit`: bytes of window and store then; meanwhile
   * the ceiling's holds, so what leaves for the store leaves a page's worth at a time where there is no room for more, and the page is given back.
   */
  shrinkTo(target: number, limit: number, tails: readonly Tail[]): void {
    while (this.#window.numSlots > target) {
      // Each time slots move: not before it has to be.
      if (this.#slots.numHeld <= target) this.#giveBack(target, tails);
      else if (!this.#leave(target, limit, tails)) throw new Error('The window shrinks below the slots in use.');
    }
  }

  /** Gives back the memory of free slots, whole pages of them or all beyond `least`; false where there are too few. */
  #giveBack(least: number, tails: readonly Tail[]): boolean {
    const target = Math.max(least, this.#slots.numHeld <= least ? 0 : roundUp(this.#slots.numHeld, WINDOW_STEP));
    if (target >= this.#window.numSlots) return false;
    this.#places.compact(target, tails);
    this.#resize(target);
    return true;
  }

  /** Takes slots of the unreferenced run that goes first, on the window's way to `target` slots, or makes room for it to leave; `limit`: see shrinkTo. */
  #leave(target: number, limit: number, tails: readonly Tail[]): boolean {
    const victim = this.#firstToGo();
    if (!victim) return false;
    const most = limit - target * this.#ceiling.bytesPerSlot;
    const all = this.#slots.numHeld - target;
    const length = Math.min(all, victim.slots!.length);
    // What has no room at the end goes first: it would take with it what goes on from it.
    if (!victim.stored && !this.#storeRoom.make(most - this.#bytesInStore(victim, length), victim)) {
      this.#dropEnd(victim, all - this.#rowsWithin(most));
      return true;
    }
    const now = Math.min(most, this.storeMost);
    const fits = victim.stored ? all : this.#rowsWithin(now);
    if (fits < length && this.#giveBack(target, tails)) return true;
    const page = this.#slots.numHeld - Math.max(target, this.#pageLess);
    this.#storeRoom.cut(victim, Math.max(page, Math.min(all, fits)));
    if (!this.#demote(victim, now)) this.#dropEnd(victim, page - this.#rowsWithin(now));
    return true;
  }

  /** Takes slots from the unreferenced run that goes first. */
  reclaim(missing: number): boolean {
    const victim = this.#firstToGo();
    if (!victim) return false;
    this.#storeRoom.cut(victim, Math.max(missing, RECLAIM_TOKENS));
    if (!this.#demote(victim, this.storeMost)) this.#dropEnd(victim, missing);
    return true;
  }

  /** Of the runs in the window that nobody references. */
  #firstToGo(): TreeNode | null {
    return firstToGo(this.#tree.nodes(), this.#order(), (node) => node.refCount === 0 && node.slots !== null);
  }

  /** Of a run that nobody uses. */
  #dropEnd(node: TreeNode, numTokens: number): void {
    this.#storeRoom.cut(node, Math.max(numTokens, DROP_TOKENS));
    this.#drop(node);
  }

  /** Moves an unreferenced run to the store; false when it would have more than `most` bytes then, though older runs were to go. */
  #demote(node: TreeNode, most: number): boolean {
    if (!node.stored) {
      if (!this.#storeRoom.make(most - this.#bytesInStore(node), node)) return false;
      node.stored = node.pruned ? this.#store.putKept(this.#window, node.slots!, node.tokenIds.length) : this.#store.put(this.#window, node.slots!);
    }
    this.#demoted(node);
    return true;
  }

  /** Bytes that the store may have beside the window as it is. */
  get storeMost(): number {
    return this.#ceiling.limit - this.#window.bytes;
  }

  /** That a run of the window takes there, or so many rows of it. */
  #bytesInStore(node: TreeNode, numRows = node.slots!.length): number {
    return numRows * (node.pruned ? this.#store.bytesPerKeptRow : this.#store.bytesPerToken);
  }

  /** That the store can take before it has so many bytes. */
  #rowsWithin(bytes: number): number {
    return Math.max(0, Math.floor((bytes - this.#store.bytes) / this.#store.bytesPerToken));
  }

  /** Whether a run of the window can go to the store with nothing else gone. */
  #hasStoreRoom(node: TreeNode): boolean {
    return node.stored !== null || this.#store.bytes + this.#bytesInStore(node) <= this.storeMost;
  }
}

/** Whether nothing in the window goes on from a run. */
function isLast({ children }: TreeNode): boolean {
  return ![...children.values()].some(({ slots }) => slots);
}

function numSlotsOf(nodes: readonly TreeNode[]): number {
  return nodes.reduce((sum, { slots }) => sum + slots!.length, 0);
}
