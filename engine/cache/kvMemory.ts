/**
 * Where K/V rows live: window and store under one ceiling in bytes. Hands out slots, and makes room for them by
 * growing the window, demoting runs to the store (lossless) or dropping them.
 * Knows runs and reference counts, but no sequence and no token. That something does not fit is a return value.
 *
 * Room is made in this order: free slots; growth up to `softSlots`; slots of unreferenced runs, in the order of eviction;
 * growth up to the ceiling.
 */
import { Ceiling, roundUp } from './ceiling.ts';
import type { Compression } from './compression.ts';
import { type Eviction, type EvictionOrder, evictionOrder, firstToGo } from './eviction/eviction.ts';
import type { PruningName } from './keptRows.ts';
import { type Match, numRows, pathTo, PrefixTree, type TreeNode } from './prefixTree.ts';
import { LostRuns } from './lostRuns.ts';
import { SlotPlaces } from './slotPlaces.ts';
import { SlotAllocator } from './slots.ts';
import type { SpillFile } from './disk/spillFile.ts';
import { StoreRoom } from './storeRoom.ts';
import { BLOCK_TOKENS, keptBlocks, KvStore, runOf, splitReserve, type StoredBlock } from './store.ts';
import { type KvRows, kvBytesPerToken } from './kvRows.ts';
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
/** Of the rows that codecs are about to make smaller, the share that may go for the others to leave the window: those become half as large or less. */
const MOST_LOST = 0.25;
/** When all is quiet, runs unused for so long leave the window for the store. */
const STALE_MS = 60_000;

/** Slots in use that are in no run. */
type Tail = number[] | Int32Array;

export interface KvMemoryOptions {
  readonly window: KvWindow;
  readonly maxBytes: number;
  readonly softSlots: number;
  readonly clock: () => number;
  readonly eviction: Eviction;
  readonly compression: Compression | null;
  readonly spillFile: SpillFile | null;
}

export class KvMemory {
  readonly window: KvWindow;
  readonly store: KvStore;
  readonly tree: PrefixTree;
  readonly events = { evictions: 0, promotions: 0, demotions: 0 };
  readonly #slots = new SlotAllocator();
  /** What fits. */
  readonly ceiling: Ceiling;
  readonly places: SlotPlaces;
  readonly eviction: Eviction;
  readonly #clock: () => number;
  /** Runs whose stored rows the disk has not kept. */
  readonly lost: LostRuns;
  readonly #storeRoom: StoreRoom;
  /** Slots of runs that nobody references. */
  #evictable = 0;

  constructor({ window, maxBytes, softSlots, clock, eviction, compression, spillFile }: KvMemoryOptions) {
    this.window = window;
    this.eviction = eviction;
    this.#clock = clock;
    this.store = new KvStore(window.shape, spillFile);
    this.tree = new PrefixTree(this.store);
    const drop = (node: TreeNode): void => this.drop(node);
    this.lost = new LostRuns({ tree: this.tree, store: this.store, log: spillFile?.log ?? (() => {}), drop });
    this.#storeRoom = new StoreRoom({ tree: this.tree, store: this.store, order: () => this.order(), drop, split: (node, at) => this.lost.split(node, at) });
    this.places = new SlotPlaces(window, this.#slots, this.tree);
    this.ceiling = new Ceiling({ maxBytes, bytesPerSlot: kvBytesPerToken(window.shape), softSlots, reserve: splitReserve(compression, window.shape) });
    this.#resize(this.#initialSlots);
  }

  get bytes(): number {
    return this.window.bytes + this.store.bytes;
  }

  get numFree(): number {
    return this.#slots.numFree;
  }

  get numHeld(): number {
    return this.#slots.numHeld;
  }

  get numEvictable(): number {
    return this.#evictable;
  }

  isHeld(slot: number): boolean {
    return this.#slots.isHeld(slot);
  }

  /** Slots that `allocate` can hand out: free ones, those of unreferenced runs and those of growth. */
  get available(): number {
    return this.ceiling.mostSlots - this.numReferenced;
  }

  /** As `available`, were so many bytes set aside. */
  availableBeside(bytes: number): number {
    return this.ceiling.slotsBeside(bytes) - this.numReferenced;
  }

  /** Slots that `allocate` can hand out as long as nothing has to leave the window or the store for them. */
  get spare(): number {
    const { softSlots, mostSlots, limit } = this.ceiling;
    const most = Math.min(softSlots, mostSlots, this.ceiling.slotsUnder(limit - this.store.bytes));
    return this.#slots.numFree + Math.max(0, most - this.window.numSlots);
  }

  /** Slots that may not be taken away: on a lease's path, in a tail or in a batch. */
  get numReferenced(): number {
    return this.#slots.numHeld - this.#evictable;
  }

  /** n slots with undefined contents, or null when they cannot be had; `after`, `preferred`: see SlotAllocator. May demote and drop unreferenced runs. */
  allocate(n: number, after = -1, preferred: Iterable<number> = []): Int32Array | null {
    if (n > this.available) return null;
    while (this.#slots.numFree < n) {
      const missing = n - this.#slots.numFree;
      const more = this.#grow(missing, this.ceiling.softSlots) || this.#reclaim(missing) || this.#grow(missing, this.ceiling.mostSlots);
      if (!more) return null;
    }
    return this.#slots.take(n, after, preferred);
  }

  /** n free slots, or null; moves nothing. */
  takeFree(n: number, after: number): Int32Array | null {
    return this.#slots.take(n, after);
  }

  free(slots: ArrayLike<number>): void {
    this.#slots.give(slots);
  }

  /** Keeps a run where it is (it is not evicted, not demoted) until as many calls of `unreference`. */
  reference(node: TreeNode): void {
    if (node.refCount++ === 0 && node.slots) this.#evictable -= node.slots.length;
  }

  /** Of a path the last run first: one whose stored rows are lost takes with it what goes on from it. */
  unreference(node: TreeNode): void {
    if (--node.refCount === 0 && node.slots) this.#evictable += node.slots.length;
    this.lost.settle(node);
  }

  /** Does `work` while these runs, in the order of their path, stay where they are. */
  keeping<T>(nodes: readonly TreeNode[], work: () => T): T {
    for (const node of nodes) this.reference(node);
    try {
      return work();
    } finally {
      for (const node of nodes.toReversed()) this.unreference(node);
    }
  }

  /** Whether the store has so many bytes more, older runs gone or not; this run stays. */
  makeRoomInStore(bytes: number, node: TreeNode): boolean {
    return this.keeping([node], () => this.#storeRoom.make(this.#storeMost - bytes, null));
  }

  /** Keeps so many bytes for what a sparse lease will hold. Slots move: `tails`, see SlotPlaces. */
  setAside(bytes: number, tails: readonly Tail[]): void {
    this.ceiling.aside = bytes;
    this.#shrinkTo(Math.max(this.ceiling.mostSlots, roundUp(this.numReferenced, WINDOW_STEP)), this.ceiling.limit, tails);
  }

  /** Brings a referenced run into the window; false when there is no room for it, or its rows are lost. */
  promote(node: TreeNode): boolean {
    if (node.slots) return true;
    const slots = this.lost.has(node) ? null : this.allocate(numRows(node), node.parent?.slots?.at(-1));
    if (!slots) return false;
    const isRead = this.lost.reading(node, () => {
      this.store.copyTo(this.window, node.stored!, slots, node.startIndex);
      return true;
    });
    if (!isRead) {
      this.free(slots);
      return false;
    }
    node.slots = slots;
    this.events.promotions++;
    return true;
  }

  /** Copies rows [from, to) of a run out, wherever they are; null where they are lost. */
  read(node: TreeNode, from: number, to: number): KvRows | null {
    return node.slots ? this.window.read(node.slots.subarray(from, to)) : this.lost.reading(node, () => this.store.read(node.stored!, from, to));
  }

  /** The runs of a match, which is not empty, the last one cut where it ends, or left out where that would take rows that are lost. */
  runsOf({ nodes, lastLength }: Match): TreeNode[] {
    const [last, before] = [nodes.at(-1)!, nodes.slice(0, -1)];
    const upper = lastLength < last.tokenIds.length ? this.split(last, lastLength) : last;
    return upper ? [...before, upper] : before;
  }

  /**
   * Cuts a run after `at` tokens; returns the new upper part. Null, and nothing is cut, where that would take rows that are lost.
   * Halves of a compressed block take more than it did: others may have to go.
   */
  split(node: TreeNode, at: number): TreeNode | null {
    const before = this.store.bytes;
    const halve = (): TreeNode | null => this.lost.reading(node, () => this.lost.split(node, at));
    // Of rows that the window has, too, a copy that cannot be read is gone with the first attempt.
    const upper = halve() ?? (node.slots && !node.stored ? halve() : null);
    if (upper && this.store.bytes > before) this.keeping(pathTo(upper), () => this.#storeRoom.make(this.#storeMost, null));
    return upper;
  }

  /**
   * Takes blocks over, of rows as they were computed, as a run that goes on from `parent`: in the store, or in slots of others where
   * the window leaves no room for one. Null when there is no room for it, older runs gone or not.
   */
  insertStored(parent: TreeNode, tokenIds: number[], blocks: readonly StoredBlock[]): TreeNode | null {
    const { bytes } = runOf(blocks);
    const path = pathTo(parent);
    const fits = this.keeping(path, () => this.#storeRoom.make(this.#storeMost - bytes, null));
    // A run in the window has all that stands before it there, too.
    const slots = fits ? null : this.keeping(path, () => (path.every((node) => this.promote(node)) ? this.allocate(tokenIds.length, parent.slots?.at(-1)) : null));
    if (!fits && !slots) return null;
    const now = this.#clock();
    for (const node of path) node.lastUse = now;
    const node = slots ? this.tree.insert(parent, tokenIds, slots) : this.tree.insertStored(parent, tokenIds, this.store.add(blocks), []);
    node.lastUse = now;
    if (slots) {
      this.#evictable += slots.length;
      let at = 0;
      for (const block of blocks) {
        this.window.write(slots.subarray(at, at + block.numTokens), block.rows(), 0, node.startIndex + at);
        at += block.numTokens;
      }
    }
    return node;
  }

  /** Leaves an unreferenced run, all of it as it was computed, with these rows only, at these positions of its context. */
  prune(node: TreeNode, rows: KvRows, positions: Int32Array, by: PruningName): void {
    this.tree.prune(node, by);
    if (node.stored) this.store.drop(node.stored);
    node.stored = null;
    if (node.slots) {
      const rest = node.slots.subarray(rows.numTokens);
      this.#slots.give(rest);
      this.#evictable -= rest.length;
      node.slots = node.slots.slice(0, rows.numTokens);
      this.window.write(node.slots, rows, 0, positions);
    } else node.stored = this.store.add(keptBlocks(this.window.shape, rows, positions, node.tokenIds.length));
  }

  /** Drops an unreferenced run and all below it. */
  drop(node: TreeNode): void {
    for (const child of [...node.children.values()]) this.drop(child);
    this.eviction.gone(node, this.#clock() - node.lastUse);
    if (node.slots) {
      this.#slots.give(node.slots);
      this.#evictable -= node.slots.length;
    }
    if (node.stored) this.store.drop(node.stored);
    this.lost.gone(node);
    this.tree.remove(node);
    this.events.evictions++;
  }

  /** Referenced slots beyond what another ceiling would allow; 0 or less when there are none. */
  excess(maxBytes: number): number {
    return this.numReferenced - this.ceiling.slotsWith(maxBytes);
  }

  /** Sets the ceiling, having kept it: the one before holds meanwhile. The caller has seen to it that `excess` is at most 0. `tails`: see SlotPlaces. */
  setMaxBytes(maxBytes: number, tails: readonly Tail[]): void {
    const limit = this.ceiling.limitWith(maxBytes);
    this.#shrinkTo(this.ceiling.slotsWith(maxBytes), limit, tails);
    this.#storeRoom.make(Math.max(0, limit - this.window.bytes), null);
    this.ceiling.maxBytes = maxBytes;
  }

  /**
   * For quiet moments: demotes stale runs as far as the store has room, and gives the memory of free slots back when there are many.
   * `codedAfterMs`: memory is short, and what nobody has used for so long is coded once it is in the store; then every page is worth it.
   */
  shrink(tails: readonly Tail[], codedAfterMs = Number.POSITIVE_INFINITY): void {
    const stale = this.#stale(STALE_MS);
    const least = this.#slotsAround(this.numHeld - numSlotsOf(stale));
    const isShort = codedAfterMs < Number.POSITIVE_INFINITY;
    const shrinks = isShort ? least < this.window.numSlots : this.#isWorthShrinking(least);
    if (isShort && shrinks) this.#makeWay(this.#stale(Math.max(STALE_MS, codedAfterMs)), tails);
    // What stays keeps what it goes on from.
    for (const node of this.#stale(STALE_MS)) if (![...node.children.values()].some(({ slots }) => slots)) this.#demoteWhatFits(node, shrinks ? tails : null);
    const target = this.#slotsAround(this.numHeld);
    if (this.#isWorthShrinking(target)) this.#shrinkTo(target, this.ceiling.limit, tails);
  }

  /**
   * Demotes a run, from its end, as far as the store has room beside a window that shrinks with it. The ceiling holds meanwhile: free
   * slots are given back first, and where there is no room for all, the run leaves a page's worth at a time, or what fits of that. `tails` null: the window stays as large as it is.
   */
  #demoteWhatFits(node: TreeNode, tails: readonly Tail[] | null): void {
    for (let rest: TreeNode | null = node; rest; ) {
      const run = rest;
      if (tails && !this.#hasStoreRoom(run)) this.#giveBack(this.#initialSlots, tails);
      const length = this.#lengthThatFits(run);
      if (length === 0) return;
      rest = this.#storeRoom.cut(run, length);
      if (!this.#demote(run, this.#storeMost)) return;
    }
  }

  /** Rows at the end of a run in the window for which the store has room, at most a page's worth where not for all; older runs go for that. */
  #lengthThatFits(node: TreeNode): number {
    const all = node.slots!.length;
    if (this.#hasStoreRoom(node)) return all;
    const page = node.pruned ? all : Math.min(RECLAIM_TOKENS, all);
    if (this.#storeRoom.make(this.#storeMost - this.#bytesInStore(node, page), node)) return page;
    return node.pruned ? 0 : this.#blocksWithin(this.#storeMost);
  }

  /**
   * A window that fills its ceiling leaves codecs nothing: what could leave it a page at a time finds no room for the first one. So of
   * runs that are about to be coded, first to go first, lets as many rows go as that page lacks, where far more is won by it.
   */
  #makeWay(coded: readonly TreeNode[], tails: readonly Tail[]): void {
    this.#giveBack(this.#initialSlots, tails);
    // What goes on from a run would go with it; what is coded already is not won.
    const leaves = coded.filter(({ children, lossy, pruned, stored }) => children.size === 0 && lossy.length === 0 && !pruned && !stored);
    const [first] = leaves;
    const page = this.numHeld - this.#pageLess;
    if (!first || this.#storeRoom.make(this.#storeMost - this.#bytesInStore(first, page), first)) return;
    let missing = page - this.#blocksWithin(this.#storeMost);
    const won = numSlotsOf(coded.filter(({ lossy, pruned }) => lossy.length === 0 && !pruned));
    if (missing > Math.min(numSlotsOf(leaves), won * MOST_LOST)) return;
    for (const node of leaves) {
      if (missing <= 0) return;
      this.#storeRoom.cut(node, missing);
      missing -= node.slots!.length;
      this.drop(node);
    }
  }

  /** P without its last page. */
  get #pageLess(): number {
    return roundUp(this.window.numSlots, WINDOW_STEP) - WINDOW_STEP;
  }

  /** P with room for so many slots. */
  #slotsAround(numHeld: number): number {
    return Math.max(this.#initialSlots, roundUp(numHeld, WINDOW_STEP));
  }

  #isWorthShrinking(target: number): boolean {
    return this.window.numSlots - target >= Math.max(LEAST_SHRINK, this.window.numSlots / 4);
  }

  /** Unreferenced runs in the window that nobody has used for longer, pinned ones left out, in the order in which they go. */
  #stale(ms: number): TreeNode[] {
    const now = this.#clock();
    return [...this.tree.nodes()].filter((node) => node.refCount === 0 && node.slots && !node.pinned && now - node.lastUse > ms).sort(this.order());
  }

  /** Who goes before whom, as things are now. */
  order(): EvictionOrder {
    return evictionOrder(this.tree, this.eviction, this.#clock());
  }

  get #initialSlots(): number {
    return Math.min(INITIAL_SLOTS, this.ceiling.softSlots, this.ceiling.maxSlots);
  }

  #grow(missing: number, limit: number): boolean {
    const P = this.window.numSlots;
    const target = Math.min(P + roundUp(missing, WINDOW_STEP), limit, this.ceiling.mostSlots);
    if (target <= P || !this.#storeRoom.make(this.ceiling.limit - target * this.ceiling.bytesPerSlot, null)) return false;
    this.#resize(target);
    return true;
  }

  #resize(numSlots: number): void {
    const { pageSlots } = this.window;
    this.#slots.resize(numSlots);
    this.window.resize(numSlots, this.ceiling.maxSlots);
    if (this.window.pageSlots !== pageSlots) this.places.layout++;
  }

  /**
   * Brings the window down to `target` slots, or leaves it as small as it is. `limit`: bytes of window and store then; meanwhile
   * the ceiling's holds, so what leaves for the store leaves a page's worth at a time, and the pages behind it are given back.
   */
  #shrinkTo(target: number, limit: number, tails: readonly Tail[]): void {
    while (this.window.numSlots > target) {
      if (!this.#giveBack(target, tails) && !this.#leave(target, limit)) throw new Error('The window shrinks below the slots in use.');
    }
  }

  /** Gives back the memory of free slots, whole pages of them or all beyond `least`; false where there are too few. */
  #giveBack(least: number, tails: readonly Tail[]): boolean {
    const target = Math.max(least, this.numHeld <= least ? 0 : roundUp(this.numHeld, WINDOW_STEP));
    if (target >= this.window.numSlots) return false;
    this.places.compact(target, tails);
    this.#resize(target);
    return true;
  }

  /** Takes slots of the unreferenced run that goes first, for the window to have a page less on its way to `target` slots; `limit`: see #shrinkTo. */
  #leave(target: number, limit: number): boolean {
    const victim = this.#firstToGo();
    if (!victim) return false;
    const most = limit - target * this.ceiling.bytesPerSlot;
    const all = this.numHeld - target;
    const page = this.numHeld - Math.max(target, this.#pageLess);
    // What has no room at the end goes first: it would take with it what goes on from it.
    if (!victim.stored && !this.#storeRoom.make(most - this.#bytesInStore(victim, Math.min(all, victim.slots!.length)), victim)) {
      this.#dropEnd(victim, all - this.#rowsWithin(most));
      return true;
    }
    const now = Math.min(most, this.#storeMost);
    this.#storeRoom.cut(victim, Math.max(page, Math.min(all, this.#rowsWithin(now))));
    if (!this.#demote(victim, now)) this.#dropEnd(victim, page - this.#rowsWithin(now));
    return true;
  }

  /** Takes slots from the unreferenced run that goes first. */
  #reclaim(missing: number): boolean {
    const victim = this.#firstToGo();
    if (!victim) return false;
    this.#storeRoom.cut(victim, Math.max(missing, RECLAIM_TOKENS));
    if (!this.#demote(victim, this.#storeMost)) this.#dropEnd(victim, missing);
    return true;
  }

  /** Of the runs in the window that nobody references. */
  #firstToGo(): TreeNode | null {
    return firstToGo(this.tree.nodes(), this.order(), (node) => node.refCount === 0 && node.slots !== null);
  }

  /** Of a run that nobody uses. */
  #dropEnd(node: TreeNode, numTokens: number): void {
    this.#storeRoom.cut(node, Math.max(numTokens, DROP_TOKENS));
    this.drop(node);
  }

  /** Moves an unreferenced run to the store; false when it would have more than `most` bytes then, though older runs were to go. */
  #demote(node: TreeNode, most: number): boolean {
    if (!node.stored) {
      if (!this.#storeRoom.make(most - this.#bytesInStore(node), node)) return false;
      node.stored = node.pruned ? this.store.putKept(this.window, node.slots!, node.tokenIds.length) : this.store.put(this.window, node.slots!);
    }
    this.#slots.give(node.slots!);
    this.#evictable -= node.slots!.length;
    node.slots = null;
    this.events.demotions++;
    return true;
  }

  /** Bytes that the store may have beside the window as it is. */
  get #storeMost(): number {
    return this.ceiling.limit - this.window.bytes;
  }

  /** That a run of the window takes there, or so many rows of it. */
  #bytesInStore(node: TreeNode, numRows = node.slots!.length): number {
    return numRows * (node.pruned ? this.store.bytesPerKeptRow : this.store.bytesPerToken);
  }

  /** That the store can take before it has so many bytes. */
  #rowsWithin(bytes: number): number {
    return Math.max(0, Math.floor((bytes - this.store.bytes) / this.store.bytesPerToken));
  }

  /** The same in whole blocks. */
  #blocksWithin(bytes: number): number {
    const rows = this.#rowsWithin(bytes);
    return rows - (rows % BLOCK_TOKENS);
  }

  /** Whether a run of the window can go to the store with nothing else gone. */
  #hasStoreRoom(node: TreeNode): boolean {
    return node.stored !== null || this.store.bytes + this.#bytesInStore(node) <= this.#storeMost;
  }
}

function numSlotsOf(nodes: readonly TreeNode[]): number {
  return nodes.reduce((sum, { slots }) => sum + slots!.length, 0);
}
