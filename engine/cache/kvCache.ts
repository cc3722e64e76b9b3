/**
 * The KV cache as the scheduler sees it: sequences lease a path in the prefix tree plus a private tail of slots.
 * Owns leases, reference counts and what joins the tree; where rows lie and what is evicted is KvMemory's. Nothing
 * here knows a queue or a tensor. That something does not fit is a return value, never an exception.
 */
import type { TreeNode as OutlineNode, Tier } from '../protocol.ts';
import type { Attended } from './attendedPages.ts';
import type { Compression } from './compression.ts';
import { checkCache } from './integrity.ts';
import { KvMemory } from './kvMemory.ts';
import { keptTokens, rowsOf } from './keptRows.ts';
import { lastSlot, type Lease, numLeased } from './lease.ts';
import { type Block, outline } from './outline.ts';
import { endIndex, type Match, numRows, pathTo, type TreeNode } from './prefixTree.ts';
import { ShiftedRuns } from './shiftedRuns.ts';
import type { Eviction } from './eviction/eviction.ts';
import { Lru } from './eviction/lru.ts';
import type { KvRows } from './kvRows.ts';
import { exactBlock, joinRows, runOf, sliceRows, type StoredBlock } from './store.ts';
import type { KvWindow } from './window.ts';

/** Shorter runs keep their rows. */
const LEAST_PRUNED = 64;

export interface KvCacheOptions {
  window: KvWindow;
  /** Ceiling of window + store. */
  maxBytes: number;
  /** Slots up to which the window grows rather than reuses those of unreferenced runs. */
  softSlots: number;
  /** Milliseconds, never going back. */
  clock: () => number;
  /** None when left out. */
  compression?: Compression | null;
  /** Least recently used when left out. */
  eviction?: Eviction;
}

export class KvCache {
  readonly #memory: KvMemory;
  /** Tokens of changed texts, taken over from where they stood before. */
  readonly shifted: ShiftedRuns;
  readonly #clock: () => number;
  readonly #leases = new Set<Lease>();
  /** Pinned token prefixes by key. */
  readonly #pins = new Map<string, readonly number[]>();

  constructor({ window, maxBytes, softSlots, clock, compression = null, eviction = new Lru() }: KvCacheOptions) {
    this.#memory = new KvMemory({ window, maxBytes, softSlots, clock, eviction, compression });
    this.#clock = clock;
    this.shifted = new ShiftedRuns(this.#memory, clock);
  }

  get maxBytes(): number {
    return this.#memory.maxBytes;
  }

  /** The most tokens that fit at once, with nothing else in the cache. */
  get capacity(): number {
    return this.#memory.maxSlots;
  }

  /** Slots that `allocate` could hand out now. */
  get available(): number {
    return this.#memory.available;
  }

  /** Slots of what sequences hold. */
  get numReferenced(): number {
    return this.#memory.numReferenced;
  }

  get windowBytes(): number {
    return this.#memory.window.bytes;
  }

  get storeBytes(): number {
    return this.#memory.store.bytes;
  }

  get windowSlots(): { total: number; free: number; held: number } {
    return { total: this.#memory.window.numSlots, free: this.#memory.numFree, held: this.#memory.numHeld };
  }

  /** Slots of a page of the window: a step attends to whole pages. */
  get pageSlots(): number {
    return this.#memory.window.pageSlots;
  }

  /** What tokens of a step pay for, of pages: see attendedPages. */
  attended(numTokens: number, most: number, all: number): Attended {
    return this.#memory.window.attended(numTokens, most, all);
  }

  /** Adds the pages of the window that a lease's computed tokens lie in; returns how many those are. */
  addPages(lease: Lease, pages: Set<number>): number {
    const { window } = this.#memory;
    const slots = this.slotsOf(lease);
    window.addPages(slots.subarray(lease.numPaged), lease.pages);
    lease.numPaged = slots.length;
    for (const page of lease.pages) pages.add(page);
    return lease.pages.size;
  }

  get events(): Readonly<{ evictions: number; promotions: number; demotions: number }> {
    return this.#memory.events;
  }

  /** Longest cached prefix of tokenIds[0 .. limit): its length, and how much of it takes no further slots: running sequences hold it in place, or its rows were let go. */
  lookUp(tokenIds: readonly number[], limit: number): { numTokens: number; numFree: number } {
    const match = this.#memory.tree.match(tokenIds, limit);
    let numFree = 0;
    for (const [node, length] of lengths(match)) numFree += node.refCount > 0 ? length : prunedTokens(node);
    return { numTokens: match.numTokens, numFree };
  }

  /** An empty lease. It must be given back by `release`. `tag` is what the monitor calls what it adds; `quiet`: see Lease. */
  open(tag = '', quiet = false): Lease {
    const lease: Lease = { node: this.#memory.tree.root, tail: [], numPruned: 0, slots: new Int32Array(0), numKnown: 0, pages: new Set(), numPaged: 0, layout: 0, quiet, tag };
    this.#leases.add(lease);
    return lease;
  }

  /**
   * Moves a lease without tail on to what the tree holds of tokenIds[.. limit), promoting runs from the store.
   * Returns the number of tokens gained; stops short where the window has no room.
   */
  advance(lease: Lease, tokenIds: readonly number[], limit: number): number {
    const { tree } = this.#memory;
    const match = tree.match(tokenIds, limit, lease.node);
    if (match.numTokens === 0) return 0;
    const before = endIndex(lease.node);
    const nodes = [...match.nodes];
    const last = nodes.pop()!;
    nodes.push(match.lastLength < last.tokenIds.length ? this.#memory.split(last, match.lastLength) : last);

    for (const node of nodes) this.#memory.reference(node);
    const missing = nodes.findIndex((node) => !this.#memory.promote(node));
    const placed = missing < 0 ? nodes : nodes.slice(0, missing);
    for (const node of nodes.slice(placed.length)) this.#memory.unreference(node);
    const now = this.#clock();
    if (!lease.quiet) for (const node of placed) this.#memory.eviction.hit(node, now - node.lastUse);
    lease.numPruned += placed.reduce((sum, node) => sum + prunedTokens(node), 0);
    lease.node = placed.at(-1) ?? lease.node;
    if (!lease.quiet) this.#touch(lease.node);
    return endIndex(lease.node) - before;
  }

  /**
   * n slots for new tokens of a lease, with undefined contents, or null; near its last one, or else in the `preferred` pages. They
   * belong to the caller until `append` or `free`.
   */
  allocate(n: number, lease?: Lease, preferred?: Iterable<number>): Int32Array | null {
    return this.#memory.allocate(n, lease && lastSlot(lease), preferred);
  }

  /** n slots that are free as things are: nothing is evicted and the window does not grow for them. Null when there are fewer. */
  takeFree(n: number, after: number): Int32Array | null {
    return this.#memory.takeFree(n, after);
  }

  free(slots: Int32Array): void {
    this.#memory.free(slots);
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
    const { tree } = this.#memory;
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
      const node = length < child.tokenIds.length ? this.#memory.split(child, length) : child;
      this.#memory.reference(node);
      const mine = slots.slice(0, length);
      if (node.slots) this.#memory.free(mine);
      else node.slots = mine;
      lease.node = node;
      slots = slots.slice(length);
    }
    this.#touch(lease.node);
    this.#markPins();
  }

  /** Ends a lease. What is in the tree stays cached until its room is needed; commit first, or the tail is lost. */
  release(lease: Lease): void {
    if (!this.#leases.delete(lease)) throw new Error('A lease is released twice.');
    this.#memory.free(lease.tail);
    if (!lease.quiet) this.#touch(lease.node);
    for (const node of pathTo(lease.node)) this.#memory.unreference(node);
  }

  /** Window slots of a lease's rows, in order; valid until the lease changes or slots move (`pack`, `setMaxBytes`, `shrink`). */
  slotsOf(lease: Lease): Int32Array {
    const length = numLeased(lease);
    const { layout } = this.#memory;
    if (lease.layout !== layout) lease.numKnown = 0;
    lease.layout = layout;
    if (lease.numKnown < lease.numPaged) {
      lease.pages.clear();
      lease.numPaged = 0;
    }
    if (lease.slots.length < length) {
      const grown = new Int32Array(Math.max(2 * lease.slots.length, length + 64));
      grown.set(lease.slots);
      lease.slots = grown;
    }
    // From step to step only what has been added: a long context's slots are not gathered anew for each token.
    const known = lease.numKnown;
    const end = length - lease.tail.length;
    for (let { node } = lease, to = end; node.parent && to > known; node = node.parent) {
      to -= node.slots!.length;
      lease.slots.set(node.slots!, to);
    }
    for (let i = Math.max(known, end); i < length; i++) lease.slots[i] = lease.tail[i - end]!;
    lease.numKnown = length;
    return lease.slots.subarray(0, length);
  }

  /**
   * `numTokens` tokens are about to attend to what these leases have computed: brings it, with the `added` slots that come to it,
   * into few pages where that pays. Slots move, also those of `inFlight`, which belong to a batch.
   */
  pack(leases: Iterable<Lease>, added: readonly Int32Array[], numTokens: number, inFlight: readonly Int32Array[]): void {
    const slots = Array.from(leases, (lease) => this.slotsOf(lease));
    this.#memory.pack([...slots, ...added], numTokens, [...this.#tails(), ...inFlight]);
  }

  /** Slots that must be released before `setMaxBytes(maxBytes)`; 0 or less when it can be called. */
  excess(maxBytes: number): number {
    return this.#memory.excess(maxBytes);
  }

  /** Sets the ceiling and keeps it at once: demotes and drops unreferenced runs, shrinks the window. Slots move. */
  setMaxBytes(maxBytes: number): void {
    this.#memory.setMaxBytes(maxBytes, this.#tails());
  }

  /** For moments without work: gives back memory that is not needed. Slots move. */
  shrink(): void {
    this.#memory.shrink(this.#tails());
  }

  /** Keeps the runs of a prefix, those still to come included, until all others are gone. null ends it. */
  pin(key: string, tokenIds: readonly number[] | null): void {
    if (tokenIds) this.#pins.set(key, tokenIds);
    else this.#pins.delete(key);
    for (const node of this.#memory.tree.nodes()) node.pinned = false;
    this.#markPins();
  }

  /** Drops what no sequence references: all but pinned runs, or everything that goes on from this prefix, pinned or not. */
  evict(prefix: readonly number[] = []): void {
    const { tree } = this.#memory;
    const match = tree.match(prefix);
    if (match.numTokens < prefix.length) return;
    const last = match.nodes.at(-1) ?? tree.root;
    const top = match.lastLength < last.tokenIds.length ? this.#memory.split(last, match.lastLength) : last;
    const dropBelow = (node: TreeNode): void => {
      for (const child of [...node.children.values()]) {
        dropBelow(child);
        if (child.refCount === 0 && child.children.size === 0 && (prefix.length > 0 || !child.pinned)) this.#memory.drop(child);
      }
    };
    dropBelow(top);
  }

  /** For quiet moments: codes a block more of what is long out of use; false when there is nothing to be coded. */
  compress(): boolean {
    return this.#memory.compress();
  }

  /** Tokens of a prefix, from `from` on, of which rows could be let go: of exact runs that nobody has used since `before`. */
  prunable(tokenIds: readonly number[], from: number, before: number): number {
    let numTokens = 0;
    for (const [node, length] of lengths(this.#memory.tree.match(tokenIds))) if (mayPrune(node, length, from) && node.lastUse <= before) numTokens += length;
    return numTokens;
  }

  /**
   * Lets rows of a prefix go, from token `from` on: of each run a share `keep` of the tokens stays, those that receive most, in each
   * head its own. `attention` [numLayers * kvHeads, rows]: what each row of the prefix receives; `biased`: see keptTokens. Returns the
   * number of rows that went.
   */
  prune(tokenIds: readonly number[], from: number, attention: Float32Array, options: { keep: number; biased: ReadonlySet<number>; name: string }): number {
    const { tree, window } = this.#memory;
    const { shape } = window;
    const numHeads = shape.numLayers * shape.kvHeads;
    const width = attention.length / numHeads;
    let row = 0;
    let numGone = 0;
    for (const [found, length] of lengths(tree.match(tokenIds))) {
      const node = mayPrune(found, length, from) && length < found.tokenIds.length ? this.#memory.split(found, length) : found;
      const n = numRows(node);
      const first = row;
      row += n;
      if (!mayPrune(node, length, from) || row > width) continue;
      const own = new Float32Array(numHeads * n);
      for (let h = 0; h < numHeads; h++) own.set(attention.subarray(h * width + first, h * width + row), h * n);
      const kept = keptTokens(shape, own, Math.ceil(options.keep * n), options.biased);
      const rows = rowsOf(kept, shape, this.#memory.read(node, 0, n));
      if (this.#memory.prune(node, rows, kept.places.map((place) => node.startIndex + place), options.name)) numGone += n - kept.count;
    }
    return numGone;
  }

  /**
   * Takes blocks over as the rows of tokenIds[startIndex ..] where those are missing and what stands before them is here. Returns
   * the number of tokens gained; 0 also where there is no room. `codec`: the lossy one that they have been through.
   */
  takeStored(tokenIds: readonly number[], startIndex: number, blocks: readonly StoredBlock[], codec: string | null, tag: string): number {
    const { tree, window } = this.#memory;
    const end = startIndex + runOf(blocks).numTokens;
    const match = tree.match(tokenIds, end);
    if (match.numTokens < startIndex || match.numTokens === end) return 0;
    let skipped = match.numTokens - startIndex;
    const rest = blocks.flatMap((block) => {
      const from = Math.min(skipped, block.numTokens);
      skipped -= from;
      if (from === 0) return [block];
      return from === block.numTokens ? [] : [exactBlock(sliceRows(window.shape, block.rows(), from, block.numTokens))];
    });
    const last = match.nodes.at(-1) ?? tree.root;
    const parent = match.lastLength < last.tokenIds.length ? this.#memory.split(last, match.lastLength) : last;
    const node = this.#memory.insertStored(parent, tokenIds.slice(match.numTokens, end), rest);
    if (!node) return 0;
    node.codec = codec;
    node.tag = tag;
    this.#markPins();
    return node.tokenIds.length;
  }

  /** A copy of the rows of tokenIds[from .. to) as they were computed; null where some are missing or have been through a lossy codec. */
  readExact(tokenIds: readonly number[], from: number, to: number): KvRows | null {
    const { nodes, numTokens } = this.#memory.tree.match(tokenIds, to);
    if (numTokens < to || nodes.some(({ codec }) => codec !== null)) return null;
    return joinRows(this.#memory.window.shape, nodes.filter((node) => endIndex(node) > from).map((node) => this.#memory.read(node, Math.max(0, from - node.startIndex), Math.min(to, endIndex(node)) - node.startIndex)));
  }

  /** What requests of this tag have computed and nothing else goes on from: their tokens, and where what is theirs alone, with all rows, begins. */
  *ownRuns(tag: string): Generator<{ of: object; ids: number[]; from: number }> {
    for (const leaf of this.#memory.tree.nodes()) {
      if (leaf.children.size > 0 || leaf.tag !== tag || leaf.pruned) continue;
      let top = leaf;
      while (top.parent?.parent && top.parent.children.size === 1 && top.parent.tag === tag && !top.parent.pruned) top = top.parent;
      yield { of: leaf, ids: pathTo(leaf).flatMap((node) => node.tokenIds), from: top.startIndex };
    }
  }

  /** When what is cached of a prefix was used last; -Infinity where nothing is. */
  lastUse(tokenIds: readonly number[]): number {
    return this.#memory.tree.match(tokenIds).nodes.at(-1)?.lastUse ?? Number.NEGATIVE_INFINITY;
  }

  /** What is cached of a prefix, where most of it is, and the lossy codec that some of it has been through. Changes nothing. */
  describe(tokenIds: readonly number[]): { tokens: number; bytes: number; tier: Tier; codec: string | null } {
    const match = this.#memory.tree.match(tokenIds);
    let inWindow = 0;
    let bytes = 0;
    let codec: string | null = null;
    for (const [node, length] of lengths(match)) {
      if (node.slots) inWindow += length;
      if (node.slots) bytes += Math.round((length / node.tokenIds.length) * node.slots.length) * this.#memory.bytesPerSlot;
      // A part of a run takes its share of the whole.
      if (node.stored) bytes += Math.round((length / node.tokenIds.length) * node.stored.bytes);
      codec ??= node.codec;
    }
    const tokens = match.numTokens;
    return { tokens, bytes, tier: tokens === 0 ? 'none' : 2 * inWindow >= tokens ? 'window' : 'store', codec };
  }

  /** The prefix tree for people: where `blocks` lie in it and what goes on from them. Changes nothing; its cost is bounded. */
  outline(blocks: readonly Block[]): OutlineNode[] {
    return outline(this.#memory.tree, blocks, this.#clock());
  }

  /** Throws at the first broken invariant. `inFlight` are slots that a batch holds. */
  checkIntegrity(inFlight: Iterable<number> = []): void {
    checkCache(this.#memory, this.#leases, inFlight);
  }

  /** Adds a run below the one that the lease ends in: into that one itself where nobody else could tell. What is pinned does not grow. */
  #join({ node: parent, tag }: Lease, tokenIds: number[], slots: Int32Array): TreeNode {
    const { tree } = this.#memory;
    if (parent.parent && parent.refCount === 1 && parent.children.size === 0 && !parent.stored && !parent.pinned && !parent.pruned) {
      tree.extend(parent, tokenIds, slots);
      parent.tag = tag;
      return parent;
    }
    const node = tree.insert(parent, tokenIds, slots);
    node.refCount = 1;
    node.tag = tag;
    return node;
  }

  #touch(node: TreeNode): void {
    const now = this.#clock();
    for (const n of pathTo(node)) n.lastUse = now;
  }

  #markPins(): void {
    for (const tokenIds of this.#pins.values()) for (const node of this.#memory.tree.match(tokenIds).nodes) node.pinned = true;
  }

  *#tails(): Generator<number[]> {
    for (const lease of this.#leases) yield lease.tail;
  }
}

/** Whether rows of a run's first `length` tokens, beyond `from`, may go: all are there, as they were computed, and nobody needs them now. */
function mayPrune({ startIndex, refCount, pinned, codec }: TreeNode, length: number, from: number): boolean {
  return startIndex >= from && refCount === 0 && !pinned && codec === null && length >= LEAST_PRUNED;
}

/** Tokens of a run without rows. */
function prunedTokens(node: TreeNode): number {
  return node.tokenIds.length - numRows(node);
}

/** The nodes of a match with the number of matching tokens in each. */
function* lengths(match: Match): Generator<[TreeNode, number]> {
  for (const [i, node] of match.nodes.entries()) yield [node, i === match.nodes.length - 1 ? match.lastLength : node.tokenIds.length];
}
