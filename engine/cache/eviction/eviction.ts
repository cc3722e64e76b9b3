/**
 * Which run goes first: of the runs that may go the one that it is worth least to keep, pinned ones after all others, and never
 * one before another that goes on from it. What a run is worth is a policy's.
 */
import type { PrefixTree, TreeNode } from '../prefixTree.ts';

export interface Eviction {
  /** What keeping a run is worth by itself; only compared. */
  worth(node: TreeNode, now: number): number;
  /** A request has found it, so long after its last use. */
  hit(node: TreeNode, idleMs: number): void;
  /** It goes, so long after its last use. */
  gone(node: TreeNode, idleMs: number): void;
}

/** Negative when `a` goes before `b`; as the tree is now. */
export type EvictionOrder = (a: TreeNode, b: TreeNode) => number;

export function evictionOrder(tree: PrefixTree, eviction: Eviction, now: number): EvictionOrder {
  const nodes = [...tree.nodes()];
  for (const node of nodes) node.worth = eviction.worth(node, now);
  // Parents come before their children: backwards each has heard of all below it.
  for (const node of nodes.reverse()) if (node.parent && node.worth > node.parent.worth) node.parent.worth = node.worth;
  return (a, b) => Number(a.pinned) - Number(b.pinned) || a.worth - b.worth || b.startIndex - a.startIndex;
}

/** The first to go among those that `may` go. */
export function firstToGo(nodes: Iterable<TreeNode>, order: EvictionOrder, may: (node: TreeNode) => boolean): TreeNode | null {
  let first: TreeNode | null = null;
  for (const node of nodes) if ((!first || order(node, first) < 0) && may(node)) first = node;
  return first;
}
