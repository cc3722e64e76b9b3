/** What a running sequence holds of the cache. */
import type { LostRows, SpillFailure } from './disk/spillFile.ts';
import type { KvMemory } from './kvMemory.ts';
import { type Match, type RadixNode, endIndex, lengths } from './radixTree.ts';

/** Why computed rows could not leave the pool: no memory, or no room on the disk. */
export type Lack = 'memory' | SpillFailure;

/** What a partial lease has in the pool instead of its whole path. */
export interface PartialRows {
  /** Parts of the path that its tokens attend to, in order. */
  readonly resident: readonly { readonly slots: number[] }[];
  /** Null: computed rows have left the pool when they had to. */
  readonly lack: Lack | null;
}

/** The path that ends in `node`, all of it in the pool unless the lease is partial, and slots after it. */
export interface Lease {
  node: RadixNode;
  /** Slots of computed tokens that are not in the tree yet. */
  readonly tail: number[];
  /** Of a context that is longer than the pool (see LongContexts). Null: the whole path is in the pool. */
  readonly partial: PartialRows | null;
  /** Tokens of the path that have no rows in the pool: rows were dropped, or are not among those of a partial lease. */
  numPruned: number;
  /**
   * Pool slots of the computed rows, in order, as far as they are known: the first `numKnown`, as slots were laid out
   * then.
   */
  slots: Int32Array;
  numKnown: number;
  /** Pages of the first `numPaged` of them. */
  readonly pages: Set<number>;
  numPaged: number;
  layout: number;
  /** It is not a request's: what it looks at is as long out of use as before. */
  readonly quiet: boolean;
  /** Rows that it cannot go on without are lost. */
  failure: LostRows | null;
  /** What the monitor calls the runs that this lease adds. */
  readonly tag: string;
}

/** Where its last computed token is; -1 before the first. */
export function lastSlot({ tail, node }: Lease): number {
  return tail.at(-1) ?? node.slots?.at(-1) ?? -1;
}

/** Rows of a lease: as its tokens, but for those that were let go. */
export function numLeased(lease: Lease): number {
  return numComputed(lease) - lease.numPruned;
}

/** Pool slots that these leases hold, and those of a path that any lease holds; of common runs once. */
export function numHeld(leases: Iterable<Lease>, path: Match): number {
  const runs = new Set<RadixNode>();
  let numSlots = 0;
  for (const lease of leases) {
    for (const slots of ownSlots(lease)) numSlots += slots.length;
    // Of its path a partial lease holds the chosen blocks only, which are its own slots.
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

/** Slots that are the lease's alone; rewritten where they move. */
export function* ownSlots({ tail, partial }: Lease): Generator<number[]> {
  yield tail;
  for (const { slots } of partial?.resident ?? []) yield slots;
}

/**
 * The pool slots of a lease's rows, in order, and the pages that they are in: from step to step only what has been
 * added is gathered.
 */

/** Valid until the lease changes or slots move (see PageTable). */
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

/** Adds the pages of the pool that a lease's computed tokens lie in; returns how many those are. */
export function addPages(memory: KvMemory, lease: Lease, pages: Set<number>): number {
  const slots = slotsOf(memory, lease);
  memory.pool.addPages(slots.subarray(lease.numPaged), lease.pages);
  lease.numPaged = slots.length;
  for (const page of lease.pages) pages.add(page);
  return lease.pages.size;
}
