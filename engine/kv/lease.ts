/** A lease: what a running sequence holds of the cache. Does not change the tree; see KvCache. */
import type { LostRows, SpillFailure } from './disk/spillFile.ts';
import type { KvMemory } from './kvMemory.ts';
import { type Match, type RadixNode, endIndex, lengths } from './radixTree.ts';

/** Why computed rows could not leave the pool: no memory, or no space on the disk. */
export type Lack = 'memory' | SpillFailure;

/** What a partial lease has in the pool instead of its whole path. */
export interface PartialRows {
  /** Parts of the path that its tokens attend to, in order. */
  readonly resident: readonly { readonly slots: number[] }[];
  /** Why computed rows could not leave the pool at the last attempt. Null: they could. */
  readonly lack: Lack | null;
}

/**
 * The path that ends in `node`, and slots of tokens after it. All nodes of the path are in the pool, unless the lease
 * is partial.
 */
export interface Lease {
  node: RadixNode;
  /** Slots of computed tokens that are not in the tree yet. */
  readonly tail: number[];
  /** Rows of a context that is longer than the pool (see LongContexts). Null: the whole path is in the pool. */
  readonly partial: PartialRows | null;
  /** Tokens of the path without rows in the pool: their rows were pruned, or are not resident in a partial lease. */
  numPruned: number;
  /** Cache of `slotsOf`: pool slots of the computed rows, in order. The first `numKnown` are valid for `layout`. */
  slots: Int32Array;
  numKnown: number;
  /** Cache of `addPages`: the pages of the first `numPaged` slots. */
  readonly pages: Set<number>;
  numPaged: number;
  layout: number;
  /** The lease belongs to no request: using nodes through it does not count as a use. */
  readonly quiet: boolean;
  /** Set when rows that the lease needs are lost. */
  failure: LostRows | null;
  /** The kind of request. The monitor shows it at the nodes that this lease adds. */
  readonly tag: string;
}

/** An empty lease at `root`. */
export function newLease(root: RadixNode, given: Pick<Lease, 'partial' | 'quiet' | 'tag'>): Lease {
  return {
    node: root,
    tail: [],
    numPruned: 0,
    slots: new Int32Array(0),
    numKnown: 0,
    pages: new Set(),
    numPaged: 0,
    layout: 0,
    failure: null,
    ...given,
  };
}

/** Slot of the last computed token; -1 before the first. */
export function lastSlot({ tail, node }: Lease): number {
  return tail.at(-1) ?? node.slots?.at(-1) ?? -1;
}

/** Number of a lease's rows in the pool: its computed tokens without those that have no row there. */
export function numLeased(lease: Lease): number {
  return numComputed(lease) - lease.numPruned;
}

/** Pool slots that these leases hold, and referenced slots of `path`. Slots of shared nodes count once. */
export function numHeld(leases: Iterable<Lease>, path: Match): number {
  const runs = new Set<RadixNode>();
  let numSlots = 0;
  for (const lease of leases) {
    for (const slots of ownSlots(lease)) numSlots += slots.length;
    // A partial lease holds only its resident blocks, which are among its own slots.
    if (lease.partial) continue;
    for (let node: RadixNode | null = lease.node; node && !runs.has(node); node = node.parent) {
      runs.add(node);
      numSlots += node.slots?.length ?? 0;
    }
  }
  for (const [node, length] of lengths(path))
    if (node.refCount > 0 && !runs.has(node)) numSlots += Math.min(length, node.slots?.length ?? 0);
  return numSlots;
}

/** Computed tokens of a lease. */
export function numComputed(lease: Lease): number {
  return endIndex(lease.node) + lease.tail.length;
}

/** The slots that belong to this lease alone, in lists that are rewritten when slots move. */
export function* ownSlots({ tail, partial }: Lease): Generator<number[]> {
  yield tail;
  for (const { slots } of partial?.resident ?? []) yield slots;
}

/**
 * The pool slots of a lease's rows, in order. Valid until the lease changes or slots move (see PageTable). Adds to the
 * slots known from the last step only what is new.
 */
export function slotsOf({ nodes }: KvMemory, lease: Lease): Int32Array {
  const length = numLeased(lease);
  const { layout } = nodes.pageTable;
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
  const known = lease.numKnown;
  const end = length - lease.tail.length;
  if (lease.partial) lease.slots.set(lease.partial.resident.flatMap(({ slots }) => slots));
  for (let { node } = lease, to = lease.partial ? 0 : end; node.parent && to > known; node = node.parent) {
    to -= node.slots!.length;
    lease.slots.set(node.slots!, to);
  }
  for (let i = Math.max(known, end); i < length; i++) lease.slots[i] = lease.tail[i - end]!;
  lease.numKnown = length;
  return lease.slots.subarray(0, length);
}

/** Adds the pages with the lease's computed tokens to `pages`. Returns how many pages the lease has. */
export function addPages(memory: KvMemory, lease: Lease, pages: Set<number>): number {
  const slots = slotsOf(memory, lease);
  memory.pool.addPages(slots.subarray(lease.numPaged), lease.pages);
  lease.numPaged = slots.length;
  for (const page of lease.pages) pages.add(page);
  return lease.pages.size;
}
