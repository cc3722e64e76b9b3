/**
 * The KV cache as the scheduler sees it. A sequence leases a path in the radix tree and slots for its new tokens. Owns
 * leases and adds computed tokens to the tree. Does not decide where rows lie or what is evicted; that is KvMemory's.
 */
import { type LongContexts, noLongContexts } from './approx/interfaces.ts';
import type { Compression } from './approx/compression.ts';
import { StoreCompression } from './approx/storeCompression.ts';
import { CachedPrefixes } from './cachedPrefixes.ts';
import type { SpillFile } from './disk/spillFile.ts';
import { type Eviction, Utility } from './eviction/eviction.ts';
import { checkCache } from './integrity.ts';
import { KvMemory } from './kvMemory.ts';
import { kvBytesPerToken } from './kvRows.ts';
import { addPages, type Lease, newLease, ownSlots, slotsOf } from './lease.ts';
import type { KvPool } from './pool.ts';
import { endIndex, lengths, type Match, numRows, pathTo, type RadixNode } from './radixTree.ts';

export interface KvCacheOptions {
  pool: KvPool;
  /** Budget of pool and store, in bytes. */
  maxBytes: number;
  /** The pool grows to this size before unreferenced nodes are evicted. */
  softSlots: number;
  /** Milliseconds, never going back. */
  clock: () => number;
  /** Nothing is compressed when left out. */
  compression?: Compression | null;
  /** Where rows of long contexts are written; needed by `longContexts`. */
  spillFile?: SpillFile | null;
  /** Makes the part for contexts that are longer than the pool. Without it there are none. */
  longContexts?: (memory: KvMemory) => LongContexts;
  /** The utility policy when left out. */
  eviction?: Eviction;
  /** Nodes that were used within so many ms stay in the pool while idle; at least a minute. */
  staleMs?: number;
}

/** A cached prefix of a text, as it is now. */
export interface CachedPrefix {
  readonly numTokens: number;
  /** Tokens whose rows were dropped. */
  readonly numWithoutRows: number;
  /** Tokens that need no more slots: they have no rows, or running sequences hold their rows in place. */
  readonly numFree: number;
  readonly path: Match;
}

export class KvCache {
  /** Slots and bytes. A caller that allocates slots frees them, or hands them to a lease with `append`. */
  readonly memory: KvMemory;
  readonly prefixes: CachedPrefixes;
  readonly compression: StoreCompression;
  readonly longContexts: LongContexts;
  readonly #clock: () => number;
  readonly #leases = new Set<Lease>();

  constructor({
    pool,
    maxBytes,
    softSlots,
    clock,
    compression = null,
    spillFile = null,
    longContexts = noLongContexts,
    eviction = new Utility(kvBytesPerToken(pool.shape)),
    staleMs = 0,
  }: KvCacheOptions) {
    this.memory = new KvMemory({ pool, maxBytes, softSlots, clock, eviction, compression, spillFile, staleMs });
    this.#clock = clock;
    this.longContexts = longContexts(this.memory);
    this.prefixes = new CachedPrefixes(this.memory, this.longContexts);
    this.compression = new StoreCompression(this.memory, compression);
  }

  /** The most tokens that fit in the pool, with nothing else in the cache. */
  get capacity(): number {
    return this.memory.budget.maxSlots;
  }

  /** Adds the pages with the lease's computed tokens to `pages`. Returns how many pages the lease has. */
  addPages(lease: Lease, pages: Set<number>): number {
    return addPages(this.memory, lease, pages);
  }

  /** The longest cached prefix of tokenIds[0 .. limit). */
  lookUp(tokenIds: readonly number[], limit: number): CachedPrefix {
    return this.prefixOf(this.memory.tree.match(tokenIds, limit));
  }

  /** What a match in the tree holds now. The match must be up to date (see RadixTree.version). */
  prefixOf(match: Match): CachedPrefix {
    let [numWithoutRows, numFree] = [0, 0];
    for (const [node, length] of lengths(match)) {
      numWithoutRows += prunedTokens(node);
      numFree += node.refCount > 0 ? length : prunedTokens(node);
    }
    return { numTokens: match.numTokens, numWithoutRows, numFree, path: match };
  }

  /**
   * An empty lease, which `release` ends. `tag`, `quiet`: see Lease. `longTokens`: makes a partial lease for a context
   * of so many tokens.
   */
  open(tag = '', { quiet = false, longTokens = 0 } = {}): Lease {
    const partial = longTokens > 0 ? this.longContexts.begin(longTokens) : null;
    const lease = newLease(this.memory.tree.root, { partial, quiet, tag });
    this.#leases.add(lease);
    return lease;
  }

  /**
   * Extends a lease without tail by the cached tokens of tokenIds[.. limit), and promotes their nodes. Returns the
   * number of tokens gained. Stops where the pool has no free slots or rows are lost; those tokens must be computed.
   */
  advance(lease: Lease, tokenIds: readonly number[], limit: number): number {
    // With a tail, nodes below the lease's node belong to other sequences.
    if (lease.partial) return lease.tail.length > 0 ? 0 : this.longContexts.advance(lease, tokenIds, limit);
    const { tree } = this.memory;
    const match = tree.match(tokenIds, limit, lease.node);
    if (match.numTokens === 0) return 0;
    const before = endIndex(lease.node);
    const nodes = this.memory.nodes.matchedNodes(match);
    for (const node of nodes) this.memory.nodes.reference(node);
    const missing = nodes.findIndex((node) => !this.memory.promote(node));
    const placed = missing < 0 ? nodes : nodes.slice(0, missing);
    for (const node of nodes.slice(placed.length).reverse()) this.memory.nodes.unreference(node);
    const now = this.#clock();
    if (!lease.quiet) for (const node of placed) this.memory.nodes.eviction.hit(node, now - node.lastUse);
    lease.numPruned += placed.reduce((sum, node) => sum + prunedTokens(node), 0);
    lease.node = placed.at(-1) ?? lease.node;
    if (!lease.quiet) this.#touch(lease.node);
    return endIndex(lease.node) - before;
  }

  /** Adds the slots of computed tokens to the lease's tail. */
  append(lease: Lease, slots: Int32Array): void {
    for (const slot of slots) lease.tail.push(slot);
  }

  /**
   * Moves a lease's tail into the tree. `tokenIds`: of the whole sequence. Where the tree has the same tokens already,
   * the lease uses that node and its own copy is freed.
   */
  commit(lease: Lease, tokenIds: readonly number[]): void {
    if (lease.partial) return this.longContexts.commit(lease, tokenIds);
    const { tree } = this.memory;
    let slots = Int32Array.from(lease.tail);
    lease.tail.length = 0;
    while (slots.length > 0) {
      const start = endIndex(lease.node);
      const match = tree.match(tokenIds, start + slots.length, lease.node, false);
      if (match.numTokens === 0) {
        lease.node = this.#join(lease, tokenIds.slice(start, start + slots.length), slots);
        break;
      }
      // From here on the slots may be those of another sequence.
      lease.numKnown = Math.min(lease.numKnown, start - lease.numPruned);
      const child = match.nodes[0]!;
      const length = match.nodes.length > 1 ? child.tokenIds.length : match.lastLength;
      const node = this.memory.nodes.beginning(child, length);
      this.memory.nodes.reference(node);
      const mine = slots.slice(0, length);
      if (node.slots) this.memory.nodes.slots.give(mine);
      // `node.lossy` stays: the stored rows may be compressed, and later rows may have been computed from them.
      else node.slots = mine;
      lease.node = node;
      slots = slots.slice(length);
    }
    this.#touch(lease.node);
    this.prefixes.markPinned();
  }

  /** Ends a lease. Its nodes stay cached until they are evicted. A tail that was not committed is lost. */
  release(lease: Lease): void {
    if (!this.#leases.delete(lease)) throw new Error('A lease is released twice.');
    this.memory.nodes.slots.give(lease.tail);
    if (!lease.quiet) this.#touch(lease.node);
    if (lease.partial) this.longContexts.release(lease);
    else for (const node of pathTo(lease.node).reverse()) this.memory.nodes.unreference(node);
  }

  /** Pool slots of a lease's rows, in order. Valid until the lease changes or slots move. */
  slotsOf(lease: Lease): Int32Array {
    return slotsOf(this.memory, lease);
  }

  /**
   * Call it before `numTokens` tokens attend to these leases and the `added` slots: moves rows into few pages where
   * that is worth the copies. Slots move, those of a batch (`inFlight`) too.
   */
  pack(
    leases: Iterable<Lease>,
    added: readonly Int32Array[],
    numTokens: number,
    inFlight: readonly Int32Array[],
  ): void {
    const slots = Array.from(leases, (lease) => this.slotsOf(lease));
    this.memory.nodes.pageTable.pack([...slots, ...added], numTokens, [...this.#tails(), ...inFlight]);
  }

  /**
   * Sets the budget and fits into it at once: demotes and drops unreferenced nodes, shrinks the pool. Slots move.
   * `memory.excess(maxBytes)` must be at most 0. @throws Error when partial leases hold more.
   */
  setMaxBytes(maxBytes: number): void {
    this.memory.setMaxBytes(maxBytes, [...this.#tails()]);
  }

  /**
   * Reserves bytes of the store for a partial lease on so many tokens; 0: none. Slots move, those of a batch
   * (`inFlight`) too.
   */
  reserved(numTokens: number, inFlight: readonly Int32Array[] = []): void {
    this.memory.reserved(numTokens === 0 ? 0 : this.longContexts.storeBytes(numTokens), [
      ...this.#tails(),
      ...inFlight,
    ]);
  }

  /**
   * Idle maintenance: gives back a page of memory, or demotes about a page of long unused rows. `compresses`: rows are
   * compressed where the store is too full for exact ones. Slots move. Returns false when there was nothing to do.
   */
  shrink(compresses = true): boolean {
    return this.memory.shrink([...this.#tails()], compresses ? this.compression.coding : null);
  }

  /** @throws Error at the first broken invariant. `inFlight`: slots that a batch holds. */
  checkIntegrity(inFlight: Iterable<number> = []): void {
    checkCache(this.memory, this.#leases, inFlight);
  }

  /**
   * Adds computed tokens below the lease's last node. Extends that node instead when no other lease or child uses it.
   * A pinned node is not extended, because the new tokens are not pinned.
   */
  #join({ node: parent, tag }: Lease, tokenIds: number[], slots: Int32Array): RadixNode {
    const { tree } = this.memory;
    if (
      parent.parent &&
      parent.refCount === 1 &&
      parent.children.size === 0 &&
      !parent.stored &&
      !parent.pinned &&
      !parent.pruned
    ) {
      tree.extend(parent, tokenIds, slots);
      parent.tag = tag;
      return parent;
    }
    const node = tree.insert(parent, tokenIds, slots);
    node.refCount = 1;
    node.tag = tag;
    return node;
  }

  #touch(node: RadixNode): void {
    const now = this.#clock();
    for (const n of pathTo(node)) n.lastUse = now;
  }

  *#tails(): Generator<number[]> {
    for (const lease of this.#leases) yield* ownSlots(lease);
  }
}

/** Tokens of a node without rows. */
function prunedTokens(node: RadixNode): number {
  return node.tokenIds.length - numRows(node);
}
