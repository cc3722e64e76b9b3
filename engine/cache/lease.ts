/** What a running sequence holds of the cache. */
import { endIndex, type TreeNode } from './prefixTree.ts';

/** The path that ends in `node`, all of it in the window, and slots after it. */
export interface Lease {
  node: TreeNode;
  /** Slots of computed tokens that are not in the tree yet. */
  readonly tail: number[];
  /** Tokens of the path that have no rows any more (see keptRows). */
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

/** Computed tokens of a lease. */
export function numComputed(lease: Lease): number {
  return endIndex(lease.node) + lease.tail.length;
}
