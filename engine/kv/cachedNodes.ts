/**
 * The nodes of the radix tree with their rows: pool slots, stored rows, reference counts, and nodes whose stored rows
 * are lost.
 * Does the primitive changes and keeps every count right. Does not decide which node leaves, or when.
 */
import { LostRows, type SpillFile } from './disk/spillFile.ts';
import { type Eviction, type EvictionOrder, evictionOrder } from './eviction/eviction.ts';
import type { KvRows } from './kvRows.ts';
import { PageTable } from './pageTable.ts';
import type { KvPool } from './pool.ts';
import { endIndex, isUsed, type Match, RadixTree, type RadixNode } from './radixTree.ts';
import { SlotAllocator } from './slots.ts';
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
  /** Nodes in use whose stored rows cannot be read back. They are dropped as soon as nobody uses them. */
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

  /** Which node leaves before which, as of now. */
  order(): EvictionOrder {
    return evictionOrder(this.tree, this.eviction, this.now);
  }

  /** Keeps a node in its place, neither evicted nor demoted, until as many calls of `unreference`. */
  reference(node: RadixNode): void {
    if (node.refCount++ === 0 && node.slots) this.numEvictable -= node.slots.length;
  }

  /**
   * Call it for the last node of a path first: a node whose stored rows are lost is dropped with all nodes below it.
   */
  unreference(node: RadixNode): void {
    if (--node.refCount === 0 && node.slots) this.numEvictable += node.slots.length;
    this.dropIfLost(node);
  }

  /** Does `work` while the nodes of a path, in order, stay in their places. */
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

  /** A node's first `length` tokens as a node of their own: the node itself, or else it is split behind them. */
  beginning(node: RadixNode, length: number): RadixNode {
    return length < node.tokenIds.length ? this.split(node, length) : node;
  }

  /** Splits a node after `at` tokens and returns the new upper part. Takes no more bytes and reads nothing. */
  split(node: RadixNode, at: number): RadixNode {
    const upper = this.tree.split(node, at);
    // It is not known which half has the lost rows.
    const loss = this.#losses.get(node);
    if (loss) this.#losses.set(upper, loss);
    return upper;
  }

  /** Adds a node in the pool below `parent`. Nobody references it. */
  insert(parent: RadixNode, tokenIds: number[], slots: Int32Array): RadixNode {
    const node = this.tree.insert(parent, tokenIds, slots);
    this.numEvictable += slots.length;
    return node;
  }

  /** Frees the slots of an unreferenced node whose rows the store has. */
  leavePool(node: RadixNode): void {
    this.slots.give(node.slots!);
    this.numEvictable -= node.slots!.length;
    node.slots = null;
    this.events.demotions++;
  }

  /** Reduces an unreferenced node, all of whose rows are exact, to these rows at these positions of its context. */
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
    // A holder of the dropped node must not keep its rows alive.
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
   * What `read` returns for a node's stored rows; null, and the rows count as lost, where they cannot be read back.
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
   * Stored rows of a node could not be read back. It is dropped with all nodes below it, at once or when no lease uses
   * it any
   * more, and computed again when somebody asks for it. Where the pool has the rows too, only the copy in the store is
   * dropped.
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

  /** A lease has let go of a node: if its stored rows are lost, it can be dropped now. */
  dropIfLost(node: RadixNode): void {
    if (!this.#losses.has(node) || node.storedRefs > 0) return;
    if (node.slots) {
      this.#losses.delete(node);
      this.store.drop(node.stored!);
      node.stored = null;
    } else if (!isUsed(node)) this.drop(node);
  }
}
