/** What a running sequence holds of the cache. */
import type { LostRows } from './disk/spillFile.ts';
import type { Lack } from './heldRuns.ts';
import { endIndex, lengths, type Match, type TreeNode } from './prefixTree.ts';
import type { StoredBlock } from './storedBlocks.ts';

/** A block of a sparse lease that is in the window. */
interface ResidentBlock {
  readonly block: StoredBlock;
  readonly slots: number[];
}

/** What a lease has instead of a path in the window. */
export interface SparseRows {
  /** Slots of the blocks, at most, when they have been chosen. */
  readonly mostChosen: number;
  /** Blocks of the path that its tokens attend to, in order. */
  resident: ResidentBlock[];
  /** The largest share of any attention that each block had when that was last reckoned (see keySketch). */
  attention: ReadonlyMap<StoredBlock, number>;
  /** Queries of tokens since then, of each [numLayers * numHeads, headSize]. */
  readonly queries: Float32Array[];
  /** Blocks are to be chosen anew before more is computed. */
  isDue: boolean;
  /** The last tokens of the prompt have asked for what they attend to. */
  hasAsked: boolean;
  /** Why computed tokens have not left the window when they were to last; null: they have. */
  lack: Lack | null;
}

/** The path that ends in `node`, all of it in the window unless sparse, and slots after it. */
export interface Lease {
  node: TreeNode;
  /** Slots of computed tokens that are not in the tree yet. */
  readonly tail: number[];
  /** Of a context that is longer than the window, of which it attends to parts (see SparseLeases). */
  readonly sparse: SparseRows | null;
  /** Tokens of the path that have no rows any more (see keptRows), or that are not among those of a sparse lease. */
  numPruned: number;
  /** Window slots of the computed rows, in order, as far as they are known: the first `numKnown`, as slots were laid out then. */
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

/** Window slots that these leases hold, and those of a path that any lease holds; of common runs once. */
export function numHeld(leases: Iterable<Lease>, path: Match): number {
  const runs = new Set<TreeNode>();
  let numSlots = 0;
  for (const lease of leases) {
    for (const slots of ownSlots(lease)) numSlots += slots.length;
    // Of its path one that attends to parts of it holds what it has chosen.
    if (lease.sparse) continue;
    for (let node: TreeNode | null = lease.node; node && !runs.has(node); node = node.parent) {
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
export function* ownSlots({ tail, sparse }: Lease): Generator<number[]> {
  yield tail;
  for (const { slots } of sparse?.resident ?? []) yield slots;
}
