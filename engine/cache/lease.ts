/** What a running sequence holds of the cache. */
import { endIndex, type TreeNode } from './prefixTree.ts';

/** The path that ends in `node`, all of it in the window, and slots after it. */
export interface Lease {
  node: TreeNode;
  /** Slots of computed tokens that are not in the tree yet. */
  readonly tail: number[];
  /** Window slots of the computed tokens, in order, as far as they are known: the first `numKnown`, as slots were laid out then. */
  slots: Int32Array;
  numKnown: number;
  /** Pages of the first `numPaged` of them. */
  readonly pages: Set<number>;
  numPaged: number;
  layout: number;
  /** What the monitor calls the runs that this lease adds. */
  readonly tag: string;
}

/** Where its last computed token is; -1 before the first. */
export function lastSlot({ tail, node }: Lease): number {
  return tail.at(-1) ?? node.slots?.at(-1) ?? -1;
}

/** Computed tokens of a lease. */
export function numComputed(lease: Lease): number {
  return endIndex(lease.node) + lease.tail.length;
}
