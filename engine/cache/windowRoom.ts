/**
 * Room in the window, and how large it is: it grows for who needs slots, and becomes smaller when others need the bytes or nobody
 * its slots; what is in its way leaves it for the store or is lost. The ceiling holds at every moment: what leaves leaves a page's
 * worth at a time where it has to, and that page is given back before the next one goes. Whose slots are whose is KvMemory's.
 */
import { type Ceiling, roundUp } from './ceiling.ts';
import { codedPage, type Coding, isLast, type Leaving } from './codedPage.ts';
import type { KvCodec } from './codecs/kvCodec.ts';
import { type EvictionOrder, firstToGo } from './eviction/eviction.ts';
import { joinLossy } from './lossyRows.ts';
import { placeOf, type PrefixTree, type TreeNode } from './prefixTree.ts';
import type { SlotPlaces, Tail } from './slotPlaces.ts';
import type { SlotAllocator } from './slots.ts';
import type { KvStore } from './store.ts';
import { BLOCK_TOKENS } from './storedBlocks.ts';
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
   * For quiet moments: stale runs leave the window, first to go first and each from its end, until there is no room for the next one,
   * and the memory of free slots is given back when there are many. `coding`: memory is short, and every page is worth it. True where one
   * has been coded, and others may be next: no more than one at a time, for somebody may ask meanwhile.
   */
  shrink(tails: readonly Tail[], coding: Coding | null = null): boolean {
    const order = this.#order();
    // Those that the store has leave first, and nothing goes for them; what goes on from a run before it.
    for (const node of this.#stale((a, b) => b.startIndex - a.startIndex)) if (node.stored && isLast(node)) this.#demoted(node);
    const runs = this.#stale(order);
    const least = this.#slotsAround(this.#slots.numHeld - numSlotsOf(runs));
    const shrinks = coding ? least < this.#window.numSlots : this.#isWorthShrinking(least);
    for (let [run] = runs; run; [run] = runs) {
      // The ceiling holds meanwhile. Each time slots move: not before room is needed.
      if (shrinks && !this.#hasStoreRoom(run)) this.#giveBack(this.#initialSlots, tails);
      const leaving = this.#nextToLeave(run, runs, shrinks && !coding ? order : null, coding);
      if (leaving.length === 0) runs.shift();
      for (const { node, length, codec } of leaving) {
        const rest = this.#storeRoom.cut(node, length);
        runs.splice(runs.indexOf(node), 1, ...(rest ? [rest] : []));
        this.#demote(node, this.storeMost, codec);
      }
      // It has come into bytes that are kept free: those are free again now.
      if (leaving[0]?.codec) return this.#giveBack(this.#initialSlots, tails);
    }
    const target = this.#slotsAround(this.#slots.numHeld);
    if (this.#isWorthShrinking(target)) this.shrinkTo(target, this.#ceiling.limit, tails);
    return false;
  }

  /**
   * What leaves next, of stale `runs` of which `run` is the first: all of it where the store has room for it; or else a page's worth of
   * what may be coded; or else a page's worth of it for which older ones go, or what fits of that. `order` null: nobody wants the room, nothing goes for it.
   */
  #nextToLeave(run: TreeNode, runs: readonly TreeNode[], order: EvictionOrder | null, coding: Coding | null): Leaving[] {
    // What stays keeps what it goes on from.
    if (!isLast(run)) return [];
    const all = run.slots!.length;
    if (this.#hasStoreRoom(run)) return [{ node: run, length: all, codec: null }];
    const target = Math.max(this.#pageLess, this.#initialSlots);
    const toPage = this.#slots.numHeld - target;
    const { maxBytes, limit, bytesPerSlot } = this.#ceiling;
    const room = Math.min(maxBytes - this.#window.bytes, limit - target * bytesPerSlot) - this.#store.bytes;
    const coded = coding ? codedPage(runs, toPage, room, coding, this.#window.shape) : [];
    if (coded.length > 0) return coded;
    const page = run.pruned ? all : Math.min(RECLAIM_TOKENS, all);
    if (order && this.#storeRoom.make(this.storeMost - this.#bytesInStore(run, page), run, order)) return [{ node: run, length: page, codec: null }];
    const fits = run.pruned ? 0 : this.#rowsWithin(this.storeMost);
    // What frees a page need not be whole blocks.
    const length = toPage > 0 && toPage <= fits ? toPage : fits - (fits % BLOCK_TOKENS);
    return length > 0 ? [{ node: run, length, codec: null }] : [];
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

  /** Unreferenced runs in the window that nobody has used for long, pinned ones left out, in the order in which they go. */
  #stale(order: EvictionOrder): TreeNode[] {
    const now = this.#clock();
    return [...this.#tree.nodes()].filter((node) => node.refCount === 0 && node.slots && !node.pinned && now - node.lastUse > STALE_MS).sort(order);
  }

  get #initialSlots(): number {
    return Math.min(INITIAL_SLOTS, this.#ceiling.softSlots, this.#ceiling.maxSlots);
  }

  grow(missing: number, limit: number): boolean {
    const P = this.#window.numSlots;
    // Whole pages, also where it was none before: a lower ceiling may have left it with a part of one.
    const target = Math.min(roundUp(P + missing, WINDOW_STEP), limit, this.#ceiling.mostSlots);
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

  /** Takes slots of an unreferenced run, of the one that goes first, on the window's way to `target` slots, or makes room for it to leave; `limit`: see shrinkTo. */
  #leave(target: number, limit: number, tails: readonly Tail[], victim = this.#firstToGo()): boolean {
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
    if (fits < length && victim.pruned && page <= fits) {
      // It leaves as a whole, so one that leaves a page at a time goes before it, where both have room at the end.
      const other = this.#firstToGo((node) => !node.pruned && isLast(node));
      if (other && this.#storeRoom.make(most - this.#bytesInStore(victim) - this.#bytesInStore(other, Math.min(all, other.slots!.length)), victim)) return this.#leave(target, limit, tails, other);
    }
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

  /** Of the runs in the window that nobody references, and that `may` go. */
  #firstToGo(may: (node: TreeNode) => boolean = () => true): TreeNode | null {
    return firstToGo(this.#tree.nodes(), this.#order(), (node) => node.refCount === 0 && node.slots !== null && may(node));
  }

  /** Of a run that nobody uses. */
  #dropEnd(node: TreeNode, numTokens: number): void {
    this.#storeRoom.cut(node, Math.max(numTokens, DROP_TOKENS));
    this.#drop(node);
  }

  /**
   * Moves an unreferenced run to the store; false when it would have more than `most` bytes then, though older runs were to go. `codec`:
   * it is coded on its way, and there is room for it (see codedPage).
   */
  #demote(node: TreeNode, most: number, codec: KvCodec | null = null): boolean {
    const slots = node.slots!;
    if (codec) {
      const { run, lossy } = this.#store.putCoded(this.#window, slots, codec, placeOf(node));
      node.stored = run;
      node.lossy = joinLossy(node.lossy, lossy);
    } else if (!node.stored) {
      if (!this.#storeRoom.make(most - this.#bytesInStore(node), node)) return false;
      node.stored = node.pruned ? this.#store.putKept(this.#window, slots, node.tokenIds.length) : this.#store.put(this.#window, slots);
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

function numSlotsOf(nodes: readonly TreeNode[]): number {
  return nodes.reduce((sum, { slots }) => sum + slots!.length, 0);
}
