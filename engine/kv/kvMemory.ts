/**
 * Where K/V rows live: pool and store under one budget in bytes. Hands out slots, and has room made for them by
 * growing the pool, demoting runs to the store (lossless) or dropping them: how, and which runs, is PoolResizer's and StoreEviction's.
 * Knows runs and reference counts, but no sequence and no token. That something does not fit is a return value.
 *
 * Room is made in this order: free slots; growth up to `softSlots`; slots of unreferenced runs, in the order of eviction;
 * growth up to the budget.
 */
import { PoolBudget, roundUp } from './poolBudget.ts';
import type { Coding } from './approx/codedPage.ts';
import type { Compression } from './approx/compression.ts';
import { type Eviction, type EvictionOrder, evictionOrder } from './eviction/eviction.ts';
import type { PruningName } from './approx/pruned/keptRows.ts';
import { type Match, numRows, pathTo, RadixTree, type TreeNode } from './radixTree.ts';
import { LostRuns } from './lostRuns.ts';
import { PageTable, type Tail } from './pageTable.ts';
import { SlotAllocator } from './slots.ts';
import { IdleDemotion } from './idleDemotion.ts';
import type { SpillFile } from './disk/spillFile.ts';
import { StoreEviction } from './storeEviction.ts';
import { KvStore } from './store.ts';
import { keptBlocks, runOf, type StoredBlock } from './storedBlocks.ts';
import { codingReserve } from './approx/toCode.ts';
import { type KvRows, kvBytesPerToken } from './kvRows.ts';
import { type KvPool, PAGE_SLOTS } from './pool.ts';
import { PoolResizer } from './poolResizer.ts';

export interface KvMemoryOptions {
  readonly pool: KvPool;
  readonly maxBytes: number;
  readonly softSlots: number;
  readonly clock: () => number;
  readonly eviction: Eviction;
  readonly compression: Compression | null;
  readonly spillFile: SpillFile | null;
  /** See IdleDemotion. */
  readonly staleMs: number;
}

export class KvMemory {
  readonly pool: KvPool;
  readonly store: KvStore;
  readonly tree: RadixTree;
  readonly events = { evictions: 0, promotions: 0, demotions: 0 };
  readonly #slots = new SlotAllocator();
  /** What fits. */
  readonly budget: PoolBudget;
  readonly places: PageTable;
  readonly eviction: Eviction;
  readonly #clock: () => number;
  /** Runs whose stored rows the disk has not kept. */
  readonly lost: LostRuns;
  readonly #storeRoom: StoreEviction;
  readonly #poolResizer: PoolResizer;
  readonly #staleRuns: IdleDemotion;
  /** Slots of runs that nobody references. */
  #evictable = 0;
  /** Tells who has what is lent that it is not any more. */
  #onTakenBack: (() => void) | null = null;

  constructor({ pool, maxBytes, softSlots, clock, eviction, compression, spillFile, staleMs }: KvMemoryOptions) {
    this.pool = pool;
    this.eviction = eviction;
    this.#clock = clock;
    this.store = new KvStore(pool.shape, spillFile);
    this.tree = new RadixTree(this.store);
    const drop = (node: TreeNode): void => this.drop(node);
    this.lost = new LostRuns({ tree: this.tree, store: this.store, log: spillFile?.log ?? (() => {}), drop });
    this.#storeRoom = new StoreEviction({
      tree: this.tree,
      store: this.store,
      order: () => this.order(),
      drop,
      split: (node, at) => this.split(node, at),
    });
    this.places = new PageTable(pool, this.#slots, this.tree);
    this.budget = new PoolBudget({
      maxBytes,
      bytesPerSlot: kvBytesPerToken(pool.shape),
      softSlots,
      reserve: codingReserve(compression, pool.shape),
    });
    const demoted = (node: TreeNode): void => this.#demoted(node);
    this.#poolResizer = new PoolResizer({
      pool,
      store: this.store,
      tree: this.tree,
      budget: this.budget,
      slots: this.#slots,
      places: this.places,
      storeRoom: this.#storeRoom,
      order: () => this.order(),
      drop,
      demoted,
    });
    this.#staleRuns = new IdleDemotion({
      pool,
      store: this.store,
      tree: this.tree,
      budget: this.budget,
      storeRoom: this.#storeRoom,
      poolResizer: this.#poolResizer,
      clock,
      staleMs,
      order: () => this.order(),
      demoted,
    });
  }

  get bytes(): number {
    return this.pool.bytes + this.store.bytes;
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
    return this.budget.mostSlots - this.numReferenced;
  }

  /** As `available`, were so many bytes set aside. */
  availableBeside(bytes: number): number {
    return this.budget.slotsBeside(bytes) - this.numReferenced;
  }

  /** Slots that `allocate` can hand out as long as nothing has to leave the pool or the store for them. */
  get spare(): number {
    return this.spareBeside(this.budget.lent);
  }

  /** As `spare`, were so many bytes lent, and no others; 0 where those have no room. */
  spareBeside(lent: number): number {
    const { softSlots, mostSlots, limit } = this.budget;
    if (this.bytes + lent > limit) return 0;
    const [most, fits] = [Math.min(softSlots, mostSlots), this.budget.slotsUnder(limit - lent - this.store.bytes)];
    // It grows by whole pages, whatever is asked for.
    return this.#slots.numFree + Math.max(0, (fits < most ? fits - (fits % PAGE_SLOTS) : most) - this.pool.numSlots);
  }

  /** Lends bytes to one at a time, who must let go of them in `onTakenBack`; false where something would have to go for them. */
  lend(bytes: number, onTakenBack: () => void): boolean {
    this.takeBack();
    if (this.bytes + bytes > this.budget.limit) return false;
    this.budget.lent = bytes;
    this.#onTakenBack = onTakenBack;
    return true;
  }

  /** Ends what `lend` began, if anything. */
  takeBack(): void {
    const onTakenBack = this.#onTakenBack;
    this.#onTakenBack = null;
    this.budget.lent = 0;
    onTakenBack?.();
  }

  /** Slots that may not be taken away: on a lease's path, in a tail or in a batch. */
  get numReferenced(): number {
    return this.#slots.numHeld - this.#evictable;
  }

  /** n slots with undefined contents, or null when they cannot be had; `after`, `preferred`: see SlotAllocator. May demote and drop unreferenced runs. */
  allocate(n: number, after = -1, preferred: Iterable<number> = []): Int32Array | null {
    if (n > this.available) return null;
    // Before anything goes for it.
    if (n > this.spare) this.takeBack();
    while (this.#slots.numFree < n) {
      const missing = n - this.#slots.numFree;
      const more =
        this.#poolResizer.grow(missing, this.budget.softSlots) ||
        this.#poolResizer.reclaim(missing) ||
        this.#poolResizer.grow(missing, this.budget.mostSlots);
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
    return this.keeping([node], () => this.#makeInStore(bytes));
  }

  #makeInStore(bytes: number): boolean {
    if (this.store.bytes + bytes > this.#poolResizer.storeMost) this.takeBack();
    return this.#storeRoom.make(this.#poolResizer.storeMost - bytes, null);
  }

  /** Keeps so many bytes for what a sparse lease will hold. Slots move: `tails`, see PageTable. */
  reserved(bytes: number, tails: readonly Tail[]): void {
    if (bytes > 0) this.takeBack();
    this.budget.aside = bytes;
    this.#poolResizer.shrinkTo(
      Math.max(this.budget.mostSlots, roundUp(this.numReferenced, PAGE_SLOTS)),
      this.budget.limit,
      tails,
    );
  }

  /** Brings a referenced run into the pool; false when there is no room for it, or its rows are lost. */
  promote(node: TreeNode): boolean {
    if (node.slots) return true;
    const slots = this.lost.has(node) ? null : this.allocate(numRows(node), node.parent?.slots?.at(-1));
    if (!slots) return false;
    const isRead = this.lost.reading(node, () => {
      this.store.copyTo(this.pool, node.stored!, slots, node.startIndex);
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
    return node.slots
      ? this.pool.read(node.slots.subarray(from, to))
      : this.lost.reading(node, () => this.store.read(node.stored!, from, to));
  }

  /** The runs of a match, which is not empty, the last one cut where it ends. */
  runsOf({ nodes, lastLength }: Match): TreeNode[] {
    return [...nodes.slice(0, -1), this.beginning(nodes.at(-1)!, lastLength)];
  }

  /** A run's first tokens as one of their own: itself, or else it is cut behind them. */
  beginning(node: TreeNode, length: number): TreeNode {
    return length < node.tokenIds.length ? this.split(node, length) : node;
  }

  /** Cuts a run after `at` tokens; returns the new upper part. No byte more is taken, and nothing read. */
  split(node: TreeNode, at: number): TreeNode {
    return this.lost.split(node, at);
  }

  /**
   * Takes blocks over, of rows as they were computed, as a run that goes on from `parent`: in the store, or in slots of others where
   * the pool leaves no room for one. Null when there is no room for it, older runs gone or not.
   */
  insertStored(parent: TreeNode, tokenIds: number[], blocks: readonly StoredBlock[]): TreeNode | null {
    const { bytes } = runOf(blocks);
    const path = pathTo(parent);
    const fits = this.keeping(path, () => this.#makeInStore(bytes));
    // A run in the pool has all that stands before it there, too.
    const slots = fits
      ? null
      : this.keeping(path, () =>
          path.every((node) => this.promote(node)) ? this.allocate(tokenIds.length, parent.slots?.at(-1)) : null,
        );
    if (!fits && !slots) return null;
    const now = this.#clock();
    for (const node of path) node.lastUse = now;
    const node = slots
      ? this.tree.insert(parent, tokenIds, slots)
      : this.tree.insertStored(parent, tokenIds, this.store.add(blocks), []);
    node.lastUse = now;
    if (slots) {
      this.#evictable += slots.length;
      let at = 0;
      for (const block of blocks) {
        this.pool.write(slots.subarray(at, at + block.numTokens), block.rows(), 0, node.startIndex + at);
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
      this.pool.write(node.slots, rows, 0, positions);
    } else node.stored = this.store.add(keptBlocks(this.pool.shape, rows, positions, node.tokenIds.length));
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
    // Whoever still knows the run keeps no rows with it.
    node.slots = null;
    node.stored = null;
    this.lost.gone(node);
    this.tree.remove(node);
    this.events.evictions++;
  }

  /** Referenced slots beyond what another budget would allow; 0 or less when there are none. */
  excess(maxBytes: number): number {
    return this.numReferenced - this.budget.slotsWith(maxBytes);
  }

  /** Sets the budget, having kept it: the one before holds meanwhile. The caller has seen to it that `excess` is at most 0, and that no sparse lease holds what has no room then. `tails`: see PageTable. */
  setMaxBytes(maxBytes: number, tails: readonly Tail[]): void {
    const [limit, numSlots] = [this.budget.limitWith(maxBytes), this.budget.slotsWith(maxBytes)];
    if (this.bytes + this.budget.lent > limit || this.pool.numSlots > numSlots) this.takeBack();
    this.#poolResizer.shrinkTo(numSlots, limit, tails);
    if (!this.#storeRoom.make(Math.max(0, limit - this.pool.bytes), null))
      throw new Error('The store shrinks below what leases hold.');
    this.budget.maxBytes = maxBytes;
  }

  /** For idle maintenance: see IdleDemotion. */
  shrink(tails: readonly Tail[], coding: Coding | null = null): boolean {
    return this.#staleRuns.shrink(tails, coding);
  }

  /** Who goes before whom, as things are now. */
  order(): EvictionOrder {
    return evictionOrder(this.tree, this.eviction, this.#clock());
  }

  /** An unreferenced run that the store has is in the pool no more. */
  #demoted(node: TreeNode): void {
    this.#slots.give(node.slots!);
    this.#evictable -= node.slots!.length;
    node.slots = null;
    this.events.demotions++;
  }
}
