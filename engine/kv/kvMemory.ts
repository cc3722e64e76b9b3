/**
 * The memory for K/V rows: pool and store under one budget in bytes. Allocates slots, evicts nodes for them and moves
 * nodes between pool and store. Knows no leases.
 */
import type { Coding } from './approx/codedPage.ts';
import { type Compression, codingReserve } from './approx/compression.ts';
import { CachedNodes } from './cachedNodes.ts';
import type { SpillFile } from './disk/spillFile.ts';
import type { Eviction } from './eviction/eviction.ts';
import { IdleDemotion } from './eviction/idleDemotion.ts';
import { StoreEviction } from './eviction/storeEviction.ts';
import { type KvRows, kvBytesPerToken } from './kvRows.ts';
import type { Tail } from './pageTable.ts';
import { type KvPool, PAGE_SLOTS } from './pool.ts';
import { PoolBudget, roundUp } from './poolBudget.ts';
import { PoolResizer } from './poolResizer.ts';
import { numRows, pathTo, type RadixTree, type RadixNode } from './radixTree.ts';
import type { KvStore } from './store.ts';
import { runOf, type StoredBlock } from './storedBlocks.ts';

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
  readonly nodes: CachedNodes;
  readonly budget: PoolBudget;
  readonly pool: KvPool;
  readonly store: KvStore;
  readonly tree: RadixTree;
  readonly #storeEviction: StoreEviction;
  readonly #poolResizer: PoolResizer;
  readonly #idleDemotion: IdleDemotion;
  /** Tells the borrower that its bytes are taken back. */
  #onTakenBack: (() => void) | null = null;

  constructor({ pool, maxBytes, softSlots, clock, eviction, compression, spillFile, staleMs }: KvMemoryOptions) {
    const nodes = new CachedNodes({ pool, eviction, clock, spillFile });
    const budget = new PoolBudget({
      maxBytes,
      bytesPerSlot: kvBytesPerToken(pool.shape),
      softSlots,
      reserve: codingReserve(compression, pool.shape),
    });
    this.nodes = nodes;
    this.budget = budget;
    this.pool = pool;
    this.store = nodes.store;
    this.tree = nodes.tree;
    this.#storeEviction = new StoreEviction(nodes);
    this.#poolResizer = new PoolResizer(nodes, budget, this.#storeEviction);
    this.#idleDemotion = new IdleDemotion(nodes, budget, this.#storeEviction, this.#poolResizer, staleMs);
  }

  /** Share of the budget that pool and store take. */
  get fullness(): number {
    return this.bytes / Math.max(1, this.budget.limit);
  }

  get bytes(): number {
    return this.pool.bytes + this.store.bytes;
  }

  /** Slots that `allocate` can return: free ones, those of unreferenced nodes, and those that the pool can grow by. */
  get available(): number {
    return this.budget.mostSlots - this.numReferenced;
  }

  /** `available` if so many bytes were reserved for the store. */
  availableBeside(bytes: number): number {
    return this.budget.slotsBeside(bytes) - this.numReferenced;
  }

  /** Slots that `allocate` can return without evicting anything from pool or store. */
  get spare(): number {
    return this.spareBeside(this.budget.borrowed);
  }

  /** `spare` if exactly so many bytes were borrowed; 0 where those do not fit. */
  spareBeside(borrowed: number): number {
    const { softSlots, mostSlots, limit } = this.budget;
    if (this.bytes + borrowed > limit) return 0;
    const [most, fits] = [Math.min(softSlots, mostSlots), this.budget.slotsUnder(limit - borrowed - this.store.bytes)];
    // The pool grows by whole pages.
    return (
      this.nodes.slots.numFree + Math.max(0, (fits < most ? fits - (fits % PAGE_SLOTS) : most) - this.pool.numSlots)
    );
  }

  /**
   * Lends bytes to one borrower, who must free them in `onTakenBack`. Returns false where something would have to be
   * evicted for them.
   */
  lend(bytes: number, onTakenBack: () => void): boolean {
    this.takeBack();
    if (this.bytes + bytes > this.budget.limit) return false;
    this.budget.borrowed = bytes;
    this.#onTakenBack = onTakenBack;
    return true;
  }

  /** Takes borrowed bytes back, if there are any. */
  takeBack(): void {
    const onTakenBack = this.#onTakenBack;
    this.#onTakenBack = null;
    this.budget.borrowed = 0;
    onTakenBack?.();
  }

  /** Slots that cannot be evicted: on a lease's path, in a tail or in a batch. */
  get numReferenced(): number {
    return this.nodes.slots.numHeld - this.nodes.numEvictable;
  }

  /**
   * n slots with undefined contents, near slot `after` or in the `preferred` pages (see SlotAllocator). Null when fewer
   * are available. May demote and drop unreferenced nodes.
   *
   * Slots come from, in this order: free slots; growth of the pool up to `softSlots`; unreferenced nodes in eviction
   * order, which are demoted without loss or dropped; growth up to the budget.
   */
  allocate(n: number, after = -1, preferred: Iterable<number> = []): Int32Array | null {
    if (n > this.available) return null;
    // Borrowed bytes are taken back before any node is evicted.
    if (n > this.spare) this.takeBack();
    while (this.nodes.slots.numFree < n) {
      const missing = n - this.nodes.slots.numFree;
      const more =
        this.#poolResizer.grow(missing, this.budget.softSlots) ||
        this.#poolResizer.reclaim(missing) ||
        this.#poolResizer.grow(missing, this.budget.mostSlots);
      if (!more) return null;
    }
    return this.nodes.slots.take(n, after, preferred);
  }

  /** n slots that are free now, or null. Evicts nothing and does not grow the pool. */
  takeFree(n: number, after: number): Int32Array | null {
    return this.nodes.slots.take(n, after);
  }

  free(slots: Int32Array): void {
    this.nodes.slots.give(slots);
  }

  get poolSlots(): { total: number; free: number; held: number } {
    const { numFree, numHeld } = this.nodes.slots;
    return { total: this.pool.numSlots, free: numFree, held: numHeld };
  }

  /**
   * Evicts from the store until it has space for so many bytes more. This node stays. Returns false when that is not
   * possible.
   */
  makeStoreSpace(bytes: number, node: RadixNode): boolean {
    return this.nodes.withReferences([node], () => this.#makeInStore(bytes));
  }

  #makeInStore(bytes: number): boolean {
    if (this.store.bytes + bytes > this.#poolResizer.storeMost) this.takeBack();
    return this.#storeEviction.make(this.#poolResizer.storeMost - bytes, null);
  }

  /** Reserves so many bytes of the store for a sparse lease. Slots move; `tails`: see PageTable. */
  reserved(bytes: number, tails: readonly Tail[]): void {
    if (bytes > 0) this.takeBack();
    this.budget.reserved = bytes;
    this.#poolResizer.shrinkTo(
      Math.max(this.budget.mostSlots, roundUp(this.numReferenced, PAGE_SLOTS)),
      this.budget.limit,
      tails,
    );
  }

  /** Copies a referenced node into the pool. Returns false when there are no slots for it, or its rows are lost. */
  promote(node: RadixNode): boolean {
    if (node.slots) return true;
    const slots = this.nodes.isLost(node) ? null : this.allocate(numRows(node), node.parent?.slots?.at(-1));
    if (!slots) return false;
    const isRead = this.nodes.readStored(node, () => {
      this.store.copyTo(this.pool, node.stored!, slots, node.startIndex);
      return true;
    });
    if (!isRead) {
      this.nodes.slots.give(slots);
      return false;
    }
    node.slots = slots;
    this.nodes.events.promotions++;
    return true;
  }

  /** A copy of rows [from, to) of a node, from pool or store. Null where they are lost. */
  read(node: RadixNode, from: number, to: number): KvRows | null {
    return node.slots
      ? this.pool.read(node.slots.subarray(from, to))
      : this.nodes.readStored(node, () => this.store.read(node.stored!, from, to));
  }

  /**
   * Adds a node below `parent` that consists of blocks with exact rows: in the store, or in the pool where the store
   * has no space. Older nodes may be evicted. Null when there is no space in either.
   */
  insertStored(parent: RadixNode, tokenIds: number[], blocks: readonly StoredBlock[]): RadixNode | null {
    const { bytes } = runOf(blocks);
    const path = pathTo(parent);
    const fits = this.nodes.withReferences(path, () => this.#makeInStore(bytes));
    // The parents of a node in the pool must be in the pool too.
    const slots = fits
      ? null
      : this.nodes.withReferences(path, () =>
          path.every((node) => this.promote(node)) ? this.allocate(tokenIds.length, parent.slots?.at(-1)) : null,
        );
    if (!fits && !slots) return null;
    const now = this.nodes.now;
    for (const node of path) node.lastUse = now;
    const node = slots
      ? this.nodes.insert(parent, tokenIds, slots)
      : this.tree.insertStored(parent, tokenIds, this.store.add(blocks), []);
    node.lastUse = now;
    if (slots) {
      let at = 0;
      for (const block of blocks) {
        this.pool.write(slots.subarray(at, at + block.numTokens), block.rows(), 0, node.startIndex + at);
        at += block.numTokens;
      }
    }
    return node;
  }

  /** Referenced slots beyond another budget; 0 or less when they fit. */
  excess(maxBytes: number): number {
    return this.numReferenced - this.budget.slotsWith(maxBytes);
  }

  /**
   * Shrinks to a budget and sets it; until then the old one holds. The caller makes sure that `excess` is at most 0 and
   * that sparse leases fit. `tails`: see PageTable.
   */
  setMaxBytes(maxBytes: number, tails: readonly Tail[]): void {
    const [limit, numSlots] = [this.budget.limitWith(maxBytes), this.budget.slotsWith(maxBytes)];
    if (this.bytes + this.budget.borrowed > limit || this.pool.numSlots > numSlots) this.takeBack();
    this.#poolResizer.shrinkTo(numSlots, limit, tails);
    if (!this.#storeEviction.make(Math.max(0, limit - this.pool.bytes), null))
      throw new Error('The store shrinks below what leases hold.');
    this.budget.maxBytes = maxBytes;
  }

  /** See IdleDemotion. */
  shrink(tails: readonly Tail[], coding: Coding | null = null): boolean {
    return this.#idleDemotion.shrink(tails, coding);
  }
}
