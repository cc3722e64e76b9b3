/**
 * The KV cache as the scheduler sees it: sequences lease a path in the prefix tree plus a private tail of slots.
 * Owns leases, reference counts and what joins the tree; where rows lie and what is evicted is KvMemory's. Nothing
 * here knows a queue or a tensor. That something does not fit is a return value, never an exception.
 */
import type { Compression } from './approx/compression.ts';
import { CacheMaintenance } from './cacheMaintenance.ts';
import type { SpillFile } from './disk/spillFile.ts';
import { checkCache } from './integrity.ts';
import { KvMemory } from './kvMemory.ts';
import { addPages, type Lease, ownSlots, slotsOf } from './lease.ts';
import { CachedPrefixes } from './cachedPrefixes.ts';
import { endIndex, lengths, type Match, numRows, pathTo, type RadixNode } from './radixTree.ts';
import { ShiftedRuns } from './approx/shifted/shiftedRuns.ts';
import { SparseLeases } from './approx/sparse/sparseLeases.ts';
import type { LongContexts } from './approx/approximation.ts';
import type { Eviction } from './eviction/eviction.ts';
import { Utility } from './eviction/utility.ts';
import { kvBytesPerToken } from './kvRows.ts';
import type { KvPool } from './pool.ts';

export interface KvCacheOptions {
  pool: KvPool;
  /** PoolBudget of pool + store. */
  maxBytes: number;
  /** Slots up to which the pool grows rather than reuses those of unreferenced runs. */
  softSlots: number;
  /** Milliseconds, never going back. */
  clock: () => number;
  /** None when left out. */
  compression?: Compression | null;
  /** For contexts that are longer than the pool; there are none when left out. */
  spillFile?: SpillFile | null;
  /** Of those, whether blocks are chosen by what attends to them, or else the newest. */
  ranks?: boolean;
  /** Layers whose keys are coded without their bias; none when left out. */
  biased?: ReadonlySet<number>;
  /** By utility when left out. */
  eviction?: Eviction;
  /** In the pool everything stays that has been used in so many ms, and for a minute at least. */
  staleMs?: number;
}

/** Bytes of a budget, about, from which on texts of so many tokens, as long as they come, are read. */
export interface Needs {
  readonly numTokens: number;
  readonly whole: number;
  /** With a file for what is not in memory, less than `whole`. */
  readonly inParts: number;
  /** Whether there is such a file. */
  readonly spills: boolean;
}

export class KvCache {
  /** Slots and bytes. Whoever takes slots from it gives them back, or to a lease by `append`. */
  readonly memory: KvMemory;
  /** What users see of cached prefixes, and what they pin and evict. */
  readonly prefixes: CachedPrefixes;
  /** Tokens of changed texts, taken over from where they stood before. */
  readonly shifted: ShiftedRuns;
  /** For what is no request: the disk tier, and what idle maintenance do. */
  readonly runs: CacheMaintenance;
  /** Of contexts that are longer than the pool. */
  readonly longContexts: LongContexts;
  /** The budget as users know it: with what is kept for others than this cache. */
  displayedLimitBytes: number;
  /** How many windows share the memory of which that is this one's part. */
  numEditorWindows: () => number = () => 1;
  /** What would be enough; null: there are no figures. */
  needs: () => Needs | null = () => null;
  readonly #clock: () => number;
  readonly #leases = new Set<Lease>();

  constructor({
    pool,
    maxBytes,
    softSlots,
    clock,
    compression = null,
    spillFile = null,
    ranks = true,
    biased = new Set(),
    eviction = new Utility(kvBytesPerToken(pool.shape)),
    staleMs = 0,
  }: KvCacheOptions) {
    this.memory = new KvMemory({ pool, maxBytes, softSlots, clock, eviction, compression, spillFile, staleMs });
    this.prefixes = new CachedPrefixes(this.memory);
    this.#clock = clock;
    this.displayedLimitBytes = maxBytes;
    this.shifted = new ShiftedRuns(this.memory, clock);
    this.longContexts = new SparseLeases(this.memory, { spillFile, clock, ranks, biased });
    this.runs = new CacheMaintenance(this.memory, { clock, compression, onInsert: () => this.prefixes.markPinned() });
  }

  /** The most tokens that fit in the pool, with nothing else in the cache. */
  get capacity(): number {
    return this.memory.budget.maxSlots;
  }

  /** Adds the pages of the pool that a lease's computed tokens lie in; returns how many those are. */
  addPages(lease: Lease, pages: Set<number>): number {
    return addPages(this.memory, lease, pages);
  }

  /**
   * Longest cached prefix of tokenIds[0 .. limit): its length, how much of it has no rows any more, and how much takes
   * no further slots, for that reason or because running sequences hold it in place.
   */
  lookUp(
    tokenIds: readonly number[],
    limit: number,
  ): { numTokens: number; numPruned: number; numFree: number; path: Match } {
    const match = this.memory.tree.match(tokenIds, limit);
    let [numPruned, numFree] = [0, 0];
    for (const [node, length] of lengths(match)) {
      numPruned += prunedTokens(node);
      numFree += node.refCount > 0 ? length : prunedTokens(node);
    }
    return { numTokens: match.numTokens, numPruned, numFree, path: match };
  }

  /**
   * An empty lease. It must be given back by `release`. `tag` is what the monitor calls what it adds; `quiet`: see
   * Lease; `longTokens`: a partial lease for a context of so many tokens.
   */
  open(tag = '', { quiet = false, longTokens = 0 } = {}): Lease {
    const lease: Lease = {
      node: this.memory.tree.root,
      tail: [],
      partial: longTokens > 0 ? this.longContexts.begin(longTokens) : null,
      numPruned: 0,
      slots: new Int32Array(0),
      numKnown: 0,
      pages: new Set(),
      numPaged: 0,
      layout: 0,
      quiet,
      failure: null,
      tag,
    };
    this.#leases.add(lease);
    return lease;
  }

  /**
   * Moves a lease without tail on to what the tree holds of tokenIds[.. limit), promoting runs from the store.
   * Returns the number of tokens gained; stops short where the pool has no room, or rows are lost: from there on it is
   * computed.
   */
  advance(lease: Lease, tokenIds: readonly number[], limit: number): number {
    // A tail has been computed behind the node; what stands there by now is another's.
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

  /** The tokens of `slots` have been computed: they become the lease's tail. */
  append(lease: Lease, slots: Int32Array): void {
    for (const slot of slots) lease.tail.push(slot);
  }

  /**
   * Puts a lease's tail into the tree; `tokenIds` are the sequence's. Where another sequence has computed the same
   * tokens, one copy stays and the lease goes on with that one.
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
      // From here on the slots may be another's.
      lease.numKnown = Math.min(lease.numKnown, start - lease.numPruned);
      const child = match.nodes[0]!;
      const length = match.nodes.length > 1 ? child.tokenIds.length : match.lastLength;
      const node = this.memory.nodes.beginning(child, length);
      this.memory.nodes.reference(node);
      const mine = slots.slice(0, length);
      if (node.slots) this.memory.nodes.slots.give(mine);
      // What is said of its rows stays: those in the store may be coded, and what goes on from them may have been
      // computed from them.
      else node.slots = mine;
      lease.node = node;
      slots = slots.slice(length);
    }
    this.#touch(lease.node);
    this.prefixes.markPinned();
  }

  /** Ends a lease. What is in the tree stays cached until its room is needed; commit first, or the tail is lost. */
  release(lease: Lease): void {
    if (!this.#leases.delete(lease)) throw new Error('A lease is released twice.');
    this.memory.nodes.slots.give(lease.tail);
    if (!lease.quiet) this.#touch(lease.node);
    if (lease.partial) this.longContexts.release(lease);
    else for (const node of pathTo(lease.node).reverse()) this.memory.nodes.unreference(node);
  }

  /**
   * Pool slots of a lease's rows, in order; valid until the lease changes or slots move (`pack`, `setMaxBytes`,
   * `shrink`).
   */
  slotsOf(lease: Lease): Int32Array {
    return slotsOf(this.memory, lease);
  }

  /**
   * `numTokens` tokens are about to attend to what these leases have computed: brings it, with the `added` slots that
   * come to it,
   * into few pages where that pays. Slots move, also those of `inFlight`, which belong to a batch.
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
   * Sets the budget and keeps it at once: demotes and drops unreferenced runs, shrinks the pool. Slots move. Throws
   * where partial leases hold more.
   */
  setMaxBytes(maxBytes: number): void {
    this.memory.setMaxBytes(maxBytes, [...this.#tails()]);
  }

  /**
   * Keeps room in the store for what a partial lease on so many tokens holds; 0: none. Slots move, also those of
   * `inFlight`, which belong to a batch.
   */
  reserved(numTokens: number, inFlight: readonly Int32Array[] = []): void {
    this.memory.reserved(numTokens === 0 ? 0 : this.longContexts.storeBytes(numTokens), [
      ...this.#tails(),
      ...inFlight,
    ]);
  }

  /**
   * For idle maintenance: a page of memory is given back, or about a page's worth of what is long out of use leaves the
   * pool, coded where the store has no room for it as it is. `codes` false: nothing is coded. False where there was
   * nothing to do. Slots move.
   */
  shrink(codes = true): boolean {
    return this.memory.shrink([...this.#tails()], codes ? this.runs.coding : null);
  }

  /** Throws at the first broken invariant. `inFlight` are slots that a batch holds. */
  checkIntegrity(inFlight: Iterable<number> = []): void {
    checkCache(this.memory, this.#leases, inFlight);
  }

  /**
   * Adds a run below the one that the lease ends in: into that one itself where nobody else could tell. What is pinned
   * does not grow.
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

/** Tokens of a run without rows. */
function prunedTokens(node: RadixNode): number {
  return node.tokenIds.length - numRows(node);
}
