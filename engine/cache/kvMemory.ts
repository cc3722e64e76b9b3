/**
 * Where K/V rows live: window and store under one ceiling in bytes. Hands out slots, and makes room for them by
 * growing the window, demoting runs to the store (lossless) or dropping them; brings what a step looks at into few pages.
 * Knows runs and reference counts, but no sequence and no token. That something does not fit is a return value.
 *
 * Room is made in this order: free slots; growth up to `softSlots`; slots of unreferenced runs, in the order of eviction;
 * growth up to the ceiling. In the store, copies of runs that are also in the window go first, then runs in that order.
 */
import type { Compression } from './compression.ts';
import { type Eviction, type EvictionOrder, evictionOrder, firstToGo } from './eviction/eviction.ts';
import { packingOf, partnersOf } from './packing.ts';
import { isUsed, type Match, numRows, pathTo, PrefixTree, type TreeNode } from './prefixTree.ts';
import { SlotAllocator } from './slots.ts';
import type { SpillFile } from './disk/spillFile.ts';
import { keptBlock, KvStore, runOf, type StoredBlock } from './store.ts';
import { type KvRows, kvBytesPerToken } from './kvRows.ts';
import { type KvWindow, PAGE_SLOTS } from './window.ts';

/** P is whole pages, unless the ceiling allows less than four of them: a step of the window's growth. */
const WINDOW_STEP = PAGE_SLOTS;
const INITIAL_SLOTS = WINDOW_STEP;
/** Least number of tokens that leave the window at once, so that what comes in their place lies together. */
const RECLAIM_TOKENS = PAGE_SLOTS;
/** The same where the ceiling leaves no room in the store, so that they are lost. */
const DROP_TOKENS = 32;
/** Least number of tokens that leave the store at once. */
const STORE_DROP_TOKENS = 128;
/** Shrinking moves slots: it must free at least this many. */
const LEAST_SHRINK = 2 * WINDOW_STEP;
/** When all is quiet, runs unused for so long leave the window for the store. */
const STALE_MS = 60_000;

/** From step to step, of what was attended to in vain: who is gone has no claim. */
const FADING = 0.97;

const roundUp = (n: number, step: number): number => Math.ceil(n / step) * step;

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
  readonly bytesPerSlot: number;
  /** Changes whenever slots of runs or tails become others, or lie in other pages. */
  layout = 0;
  #maxBytes: number;
  readonly eviction: Eviction;
  readonly #clock: () => number;
  /** What splitting a compressed block may take beyond what it took. */
  readonly #reserve: number;
  readonly #softSlots: number;
  /** Slots of runs that nobody references. */
  #evictable = 0;
  /** Tokens that have attended to pages in vain since slots were last packed. */
  #inVain = 0;
  /** Bytes that the window leaves to the store. */
  #aside = 0;

  constructor({ window, maxBytes, softSlots, clock, eviction, compression, spillFile }: KvMemoryOptions) {
    this.window = window;
    this.eviction = eviction;
    this.#clock = clock;
    this.store = new KvStore(window.shape, spillFile);
    this.tree = new PrefixTree(this.store);
    this.#softSlots = softSlots;
    this.bytesPerSlot = kvBytesPerToken(window.shape);
    this.#maxBytes = maxBytes;
    this.#reserve = (compression?.codec.format.blockTokens ?? 0) * this.store.bytesPerToken;
    this.#resize(this.#initialSlots);
  }

  get maxBytes(): number {
    return this.#maxBytes;
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

  get #limit(): number {
    return this.#maxBytes - this.#reserve;
  }

  /** The largest P under the ceiling, with an empty store. */
  get maxSlots(): number {
    return this.#slotsUnder(this.#limit);
  }

  /** As given, but whole pages where the ceiling allows for them: anything else would make the window a single one. */
  get softSlots(): number {
    return this.#hasPages ? roundUp(this.#softSlots, WINDOW_STEP) : this.#softSlots;
  }

  /** Slots that `allocate` can hand out: free ones, those of unreferenced runs and those of growth. */
  get available(): number {
    return this.#mostSlots - this.numReferenced;
  }

  /** As maxSlots, beside what is set aside for the store. */
  get #mostSlots(): number {
    return this.slotsBeside(this.#aside);
  }

  /** As `available`, were so many bytes set aside. */
  availableBeside(bytes: number): number {
    return this.slotsBeside(bytes) - this.numReferenced;
  }

  /** As maxSlots, beside so many bytes of the store; whole pages, too. */
  slotsBeside(bytes: number): number {
    if (bytes === 0) return this.maxSlots;
    const slots = this.#slotsUnder(this.#limit - bytes);
    return this.#hasPages ? slots - (slots % WINDOW_STEP) : slots;
  }

  get #hasPages(): boolean {
    return this.maxSlots % WINDOW_STEP === 0;
  }

  /** What is left of the ceiling beside so many slots. */
  bytesBeside(numSlots: number): number {
    return this.#limit - (this.#hasPages ? roundUp(numSlots, WINDOW_STEP) : numSlots) * this.bytesPerSlot;
  }

  /** Slots that `allocate` can hand out as long as nothing has to leave the window or the store for them. */
  get spare(): number {
    const most = Math.min(this.softSlots, this.#mostSlots, this.#slotsUnder(this.#limit - this.store.bytes));
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
      const more = this.#grow(missing, this.softSlots) || this.#reclaim(missing, this.window.numSlots) || this.#grow(missing, this.#mostSlots);
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

  unreference(node: TreeNode): void {
    if (--node.refCount === 0 && node.slots) this.#evictable += node.slots.length;
  }

  /** Whether the store has so many bytes more, older runs gone or not; this run stays. */
  makeRoomInStore(bytes: number, node: TreeNode): boolean {
    this.reference(node);
    const fits = this.#makeStoreRoom(this.#limit - this.window.bytes - bytes, null);
    this.unreference(node);
    return fits;
  }

  /** Keeps so many bytes for what a sparse lease will hold. Slots move: `tails`, see #compact. */
  setAside(bytes: number, tails: Iterable<number[] | Int32Array>): void {
    this.#aside = bytes;
    const target = Math.max(this.#mostSlots, roundUp(this.numReferenced, WINDOW_STEP));
    if (target < this.window.numSlots) this.#shrinkTo(target, tails);
  }

  /** Brings a referenced run into the window; false when there is no room for it. */
  promote(node: TreeNode): boolean {
    if (node.slots) return true;
    const slots = this.allocate(numRows(node), node.parent?.slots?.at(-1));
    if (!slots) return false;
    this.store.copyTo(this.window, node.stored!, slots, node.startIndex);
    node.slots = slots;
    this.events.promotions++;
    return true;
  }

  /** Copies rows [from, to) of a run out, wherever they are. */
  read(node: TreeNode, from: number, to: number): KvRows {
    return node.slots ? this.window.read(node.slots.subarray(from, to)) : this.store.read(node.stored!, from, to);
  }

  /** The runs of a match, which is not empty, the last one cut where it ends. */
  runsOf({ nodes, lastLength }: Match): TreeNode[] {
    const last = nodes.at(-1)!;
    return [...nodes.slice(0, -1), lastLength < last.tokenIds.length ? this.split(last, lastLength) : last];
  }

  /** Cuts a run after `at` tokens; returns the new upper part. Halves of a compressed block take more than it did: others may have to go. */
  split(node: TreeNode, at: number): TreeNode {
    const before = this.store.bytes;
    const upper = this.tree.split(node, at);
    if (this.store.bytes > before) {
      const path = pathTo(upper);
      for (const each of path) this.reference(each);
      this.#makeStoreRoom(this.#limit - this.window.bytes, null);
      for (const each of path) this.unreference(each);
    }
    return upper;
  }

  /**
   * Takes blocks over as a run that goes on from `parent`: in the store, or in slots of others where the window leaves no room for
   * one. Null when there is no room for it, older runs gone or not.
   */
  insertStored(parent: TreeNode, tokenIds: number[], blocks: readonly StoredBlock[]): TreeNode | null {
    const { bytes } = runOf(blocks);
    const path = pathTo(parent);
    for (const node of path) this.reference(node);
    const fits = this.#makeStoreRoom(this.#limit - this.window.bytes - bytes, null);
    // A run in the window has all that stands before it there, too.
    const slots = !fits && path.every((node) => this.promote(node)) ? this.allocate(tokenIds.length, parent.slots?.at(-1)) : null;
    for (const node of path) this.unreference(node);
    if (!fits && !slots) return null;
    const now = this.#clock();
    for (const node of path) node.lastUse = now;
    const node = slots ? this.tree.insert(parent, tokenIds, slots) : this.tree.insertStored(parent, tokenIds, this.store.add(blocks));
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

  /** Leaves an unreferenced run with these rows only, at these positions of its context. */
  prune(node: TreeNode, rows: KvRows, positions: Int32Array, name: string): void {
    this.tree.prune(node);
    if (node.stored) this.store.drop(node.stored);
    node.stored = null;
    if (node.slots) {
      const rest = node.slots.subarray(rows.numTokens);
      this.#slots.give(rest);
      this.#evictable -= rest.length;
      node.slots = node.slots.slice(0, rows.numTokens);
      this.window.write(node.slots, rows, 0, positions);
    } else node.stored = this.store.add([keptBlock(rows, positions, node.tokenIds.length)]);
    node.codec = name;
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
    this.tree.remove(node);
    this.events.evictions++;
  }

  /** Referenced slots beyond what another ceiling would allow; 0 or less when there are none. */
  excess(maxBytes: number): number {
    return this.numReferenced - this.#slotsUnder(maxBytes - this.#reserve);
  }

  /** Sets the ceiling and keeps it at once. The caller has seen to it that `excess` is at most 0. `tails`: see #compact. */
  setMaxBytes(maxBytes: number, tails: Iterable<number[]>): void {
    this.#maxBytes = maxBytes;
    const target = Math.min(this.window.numSlots, this.maxSlots);
    if (target < this.window.numSlots) this.#shrinkTo(target, tails);
    this.#makeStoreRoom(this.#limit - this.window.bytes, null);
  }

  /** For quiet moments: demotes stale runs, and gives the memory of free slots back when there are many. */
  shrink(tails: Iterable<number[]>): void {
    const now = this.#clock();
    for (const node of this.#dead()) {
      if (!node.pinned && now - node.lastUse > STALE_MS && !this.#demote(node, this.window.numSlots)) break;
    }
    const target = Math.max(this.#initialSlots, roundUp(this.numHeld, WINDOW_STEP));
    if (this.window.numSlots - target >= Math.max(LEAST_SHRINK, this.window.numSlots / 4)) this.#shrinkTo(target, tails);
  }

  /**
   * `numTokens` tokens are about to attend to `slots` together: brings these into as few pages as they fill, as far as that pays.
   * `tails`: all slots in use that are in no run; rewritten where they move.
   */
  pack(slots: readonly Int32Array[], numTokens: number, tails: Iterable<number[] | Int32Array>): void {
    const { numSlots, pageSlots } = this.window;
    const packing = packingOf(slots, numSlots, pageSlots);
    this.#inVain = FADING * this.#inVain + numTokens * packing.pagesInVain;
    if (packing.from.length === 0 || this.#inVain < packing.price) return;
    this.#inVain -= packing.price;
    const isIdle = new Uint8Array(numSlots);
    for (const node of this.tree.nodes()) if (node.refCount === 0) for (const slot of node.slots ?? []) isIdle[slot] = 1;
    const from = Int32Array.from(packing.from).sort();
    const to = partnersOf(packing, pageSlots, (slot) => !this.#slots.isHeld(slot), (slot) => isIdle[slot] === 1);
    this.window.exchange(from, to);
    this.#slots.exchange(from, to);
    this.#rewrite(from, to, tails);
  }

  /** Unreferenced runs in the window, in the order in which they go. */
  #dead(): TreeNode[] {
    return [...this.tree.nodes()].filter((node) => node.refCount === 0 && node.slots).sort(this.order());
  }

  /** Who goes before whom, as things are now. */
  order(): EvictionOrder {
    return evictionOrder(this.tree, this.eviction, this.#clock());
  }

  get #initialSlots(): number {
    return Math.min(INITIAL_SLOTS, this.softSlots, this.maxSlots);
  }

  #slotsUnder(maxBytes: number): number {
    const slots = Math.max(0, Math.floor(maxBytes / this.bytesPerSlot));
    return slots >= 4 * WINDOW_STEP ? slots - (slots % WINDOW_STEP) : slots;
  }

  #grow(missing: number, limit: number): boolean {
    const P = this.window.numSlots;
    const target = Math.min(P + roundUp(missing, WINDOW_STEP), limit, this.#mostSlots);
    if (target <= P || !this.#makeStoreRoom(this.#limit - target * this.bytesPerSlot, null)) return false;
    this.#resize(target);
    return true;
  }

  #resize(numSlots: number): void {
    const { pageSlots } = this.window;
    this.#slots.resize(numSlots);
    this.window.resize(numSlots, this.maxSlots);
    if (this.window.pageSlots !== pageSlots) this.layout++;
  }

  #shrinkTo(target: number, tails: Iterable<number[] | Int32Array>): void {
    while (this.numHeld > target) {
      if (!this.#reclaim(this.numHeld - target, target)) throw new Error('The window shrinks below the slots in use.');
    }
    this.#compact(target, tails);
    this.#resize(target);
  }

  /** Takes slots from the unreferenced run that goes first. `numSlots` is the P that the ceiling is reckoned with. */
  #reclaim(missing: number, numSlots: number): boolean {
    const victim = firstToGo(this.tree.nodes(), this.order(), (node) => node.refCount === 0 && node.slots !== null);
    if (!victim) return false;
    this.#cut(victim, Math.max(missing, RECLAIM_TOKENS));
    if (this.#demote(victim, numSlots)) return true;
    this.#cut(victim, Math.max(missing, DROP_TOKENS));
    this.drop(victim);
    return true;
  }

  /** Moves an unreferenced run to the store; false when the ceiling leaves no room, though older runs were to go. */
  #demote(node: TreeNode, numSlots: number): boolean {
    if (!node.stored) {
      const limit = this.#limit - numSlots * this.bytesPerSlot - node.slots!.length * (node.pruned ? this.store.bytesPerKeptRow : this.store.bytesPerToken);
      if (!this.#makeStoreRoom(limit, node)) return false;
      node.stored = node.pruned ? this.store.putKept(this.window, node.slots!, node.tokenIds.length) : this.store.put(this.window, node.slots!);
    }
    this.#slots.give(node.slots!);
    this.#evictable -= node.slots!.length;
    node.slots = null;
    this.events.demotions++;
    return true;
  }

  /** Leaves `node` with its last tokens only, at most `length`, for an eviction that needs no more. */
  #cut(node: TreeNode, length: number): void {
    const at = node.tokenIds.length - length;
    if (at <= 0 || node.pruned) return;
    // A compressed block goes as a whole.
    const whole = node.slots || !node.stored ? at : this.store.wholeBlocks(node.stored, at);
    if (whole > 0) this.tree.split(node, whole);
  }

  /**
   * Brings the store down to `limit` bytes by dropping copies, then runs that go before `before` (null: any run).
   * False, and nothing is dropped, when that is not enough.
   */
  #makeStoreRoom(limit: number, before: TreeNode | null): boolean {
    if (this.store.bytes <= limit) return true;
    if (limit < 0) return false;
    let order = this.order();
    const mayDrop = (node: TreeNode): boolean =>
      node.stored !== null && node.slots === null && !isUsed(node) && (!before || order(node, before) < 0);
    let left = this.store.bytes;
    for (const node of this.tree.nodes()) if (node.stored && ((node.slots && node.storedRefs === 0) || mayDrop(node))) left -= node.stored.bytes;
    if (left > limit) return false;

    for (const node of this.tree.nodes()) {
      if (this.store.bytes <= limit) return true;
      if (node.slots && node.stored && node.storedRefs === 0) {
        this.store.drop(node.stored);
        node.stored = null;
      }
    }
    while (this.store.bytes > limit) {
      const victim = firstToGo(this.tree.nodes(), order, mayDrop);
      if (!victim) return false;
      this.#cut(victim, Math.max(Math.ceil((this.store.bytes - limit) / this.store.bytesPerToken), STORE_DROP_TOKENS));
      this.drop(victim);
      order = this.order();
    }
    return true;
  }

  /** Moves held slots from `target` and above to free ones below. `tails` are slots that are in no run; rewritten too. */
  #compact(target: number, tails: Iterable<number[] | Int32Array>): void {
    const from: number[] = [];
    for (let slot = target; slot < this.window.numSlots; slot++) if (this.#slots.isHeld(slot)) from.push(slot);
    if (from.length === 0) return;
    const to = this.#slots.takeLowest(from.length);
    const movedFrom = Int32Array.from(from);
    this.window.exchange(movedFrom, to);
    this.#slots.give(from);
    this.#rewrite(movedFrom, to, tails);
  }

  /** What was in slot from[i] is in slot to[i] now, and the other way round. */
  #rewrite(from: Int32Array, to: Int32Array, tails: Iterable<number[] | Int32Array>): void {
    const moved = new Int32Array(this.window.numSlots).fill(-1);
    for (let i = 0; i < from.length; i++) {
      moved[from[i]!] = to[i]!;
      moved[to[i]!] = from[i]!;
    }
    const rewrite = (slots: Int32Array | number[]): void => {
      for (let i = 0; i < slots.length; i++) if (moved[slots[i]!]! >= 0) slots[i] = moved[slots[i]!]!;
    };
    for (const node of this.tree.nodes()) if (node.slots) rewrite(node.slots);
    for (const tail of tails) rewrite(tail);
    this.layout++;
  }
}
