/**
 * The nodes of the radix tree with their rows: pool slots, stored rows, reference counts, lost rows. Makes the
 * primitive changes and keeps every count right. Does not decide which node leaves, or when.
 */
import { LostRows, type SpillFile } from './disk/spillFile.ts';
import { type Eviction, type EvictionOrder, evictionOrder } from './eviction/eviction.ts';
import type { KvRows } from './kvRows.ts';
import { PageTable, SlotAllocator } from './pageTable.ts';
import type { KvPool } from './pool.ts';
import { endIndex, isUsed, type Match, RadixTree, type RadixNode } from './radixTree.ts';
import { KvStore } from './store.ts';
import { keptBlocks } from './storedBlocks.ts';

export interface CachedNodesOptions {
  readonly pool: KvPool;
  readonly eviction: Eviction;
  /** Milliseconds, never going back. */
  readonly clock: () => number;
  readonly spillFile?: SpillFile | null;
}

export class CachedNodes {
  readonly pool: KvPool;
  readonly store: KvStore;
  readonly tree: RadixTree;
  readonly slots = new SlotAllocator();
  readonly pageTable: PageTable;
  readonly eviction: Eviction;
  readonly events = { evictions: 0, promotions: 0, demotions: 0 };
  /** Slots of nodes that nobody references. */
  numEvictable = 0;
  readonly #clock: () => number;
  readonly #log: (line: string) => void;
  /** Nodes in use whose stored rows cannot be read back. Each is dropped as soon as no lease uses it. */
  readonly #losses = new Map<RadixNode, LostRows>();

  constructor({ pool, eviction, clock, spillFile = null }: CachedNodesOptions) {
    this.pool = pool;
    this.eviction = eviction;
    this.#clock = clock;
    this.#log = spillFile?.log ?? (() => {});
    this.store = new KvStore(pool.shape, spillFile);
    this.tree = new RadixTree(this.store);
    this.pageTable = new PageTable(pool, this.slots, this.tree);
  }

  get now(): number {
    return this.#clock();
  }

  /** The order of eviction as of now. */
  order(): EvictionOrder {
    return evictionOrder(this.tree, this.eviction, this.now);
  }

  /** Protects a node from eviction and demotion, until as many calls of `unreference`. */
  reference(node: RadixNode): void {
    if (node.refCount++ === 0 && node.slots) this.numEvictable -= node.slots.length;
  }

  /**
   * Ends `reference`. Call it for the last node of a path first, because a node with lost rows is dropped with all
   * nodes below it.
   */
  unreference(node: RadixNode): void {
    if (--node.refCount === 0 && node.slots) this.numEvictable += node.slots.length;
    this.dropIfLost(node);
  }

  /** Does `work` while the nodes of a path, in order, are referenced. */
  withReferences<T>(nodes: readonly RadixNode[], work: () => T): T {
    for (const node of nodes) this.reference(node);
    try {
      return work();
    } finally {
      for (const node of nodes.toReversed()) this.unreference(node);
    }
  }

  /** The nodes of a match that is not empty. The last node is split where the match ends. */
  matchedNodes({ nodes, lastLength }: Match): RadixNode[] {
    return [...nodes.slice(0, -1), this.beginning(nodes.at(-1)!, lastLength)];
  }

  /** A node of the first `length` tokens of `node`: the node itself, or else the upper part of a split. */
  beginning(node: RadixNode, length: number): RadixNode {
    return length < node.tokenIds.length ? this.split(node, length) : node;
  }

  /** Splits a node after `at` tokens and returns the new upper part. Takes no more bytes and reads no rows. */
  split(node: RadixNode, at: number): RadixNode {
    const upper = this.tree.split(node, at);
    // It is not known which half has the lost rows.
    const loss = this.#losses.get(node);
    if (loss) this.#losses.set(upper, loss);
    return upper;
  }

  /** Adds an unreferenced node in the pool below `parent`. */
  insert(parent: RadixNode, tokenIds: number[], slots: Int32Array): RadixNode {
    const node = this.tree.insert(parent, tokenIds, slots);
    this.numEvictable += slots.length;
    return node;
  }

  /** Frees the slots of an unreferenced node that is also in the store. */
  leavePool(node: RadixNode): void {
    this.slots.give(node.slots!);
    this.numEvictable -= node.slots!.length;
    node.slots = null;
    this.events.demotions++;
  }

  /** Prunes an unreferenced node with exact rows: it keeps these rows, which are at these positions of its context. */
  prune(node: RadixNode, rows: KvRows, positions: Int32Array, by: string): void {
    this.tree.prune(node, by);
    if (node.stored) this.store.drop(node.stored);
    node.stored = null;
    if (node.slots) {
      const rest = node.slots.subarray(rows.numTokens);
      this.slots.give(rest);
      this.numEvictable -= rest.length;
      node.slots = node.slots.slice(0, rows.numTokens);
      this.pool.write(node.slots, rows, 0, positions);
    } else node.stored = this.store.add(keptBlocks(this.pool.shape, rows, positions, node.tokenIds.length));
  }

  /** Drops an unreferenced node and all nodes below it. */
  drop(node: RadixNode): void {
    for (const child of [...node.children.values()]) this.drop(child);
    this.eviction.gone(node, this.now - node.lastUse);
    if (node.slots) {
      this.slots.give(node.slots);
      this.numEvictable -= node.slots.length;
    }
    if (node.stored) this.store.drop(node.stored);
    // Other objects may still refer to the dropped node; they must not keep its rows alive.
    node.slots = null;
    node.stored = null;
    this.#losses.delete(node);
    this.tree.remove(node);
    this.events.evictions++;
  }

  isLost(node: RadixNode): boolean {
    return this.#losses.has(node);
  }

  /**
   * Returns what `read` returns for a node's stored rows. Null when they cannot be read back; then they count as lost.
   * Other errors pass.
   */
  readStored<T>(node: RadixNode, read: () => T): T | null {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof LostRows)) throw error;
      this.lose(node, error);
      return null;
    }
  }

  /**
   * Marks a node's stored rows as lost. Without a copy in the pool the node is dropped with all nodes below it, at once
   * or when no lease uses it any more; its tokens are computed again on request. With a copy in the pool only the
   * stored rows are dropped.
   */
  lose(node: RadixNode, loss: LostRows): void {
    if (this.#losses.has(node)) return;
    this.#losses.set(node, loss);
    const which = `tokens ${node.startIndex} to ${endIndex(node)} of a long context cannot be read back: ${loss.message}`;
    this.#log(
      node.slots
        ? `A copy of the rows of ${which}. Nothing is lost: they are in memory, too.`
        : `Rows of ${which}. They are forgotten, with what goes on from them, and computed anew when they are asked for.`,
    );
    this.dropIfLost(node);
  }

  /** Call it when a lease no longer uses a node: drops the node if its stored rows are lost. */
  dropIfLost(node: RadixNode): void {
    if (!this.#losses.has(node) || node.storedRefs > 0) return;
    if (node.slots) {
      this.#losses.delete(node);
      this.store.drop(node.stored!);
      node.stored = null;
    } else if (!isUsed(node)) this.drop(node);
  }
}
