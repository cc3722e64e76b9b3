/** PURE: which run goes first. Least recently used, pinned ones after all others, the deeper of two before its parent. */
import type { TreeNode } from './prefixTree.ts';

/** Negative when `a` goes before `b`. Since using a run uses its parents, a child always goes before its parent. */
export function evictionOrder(a: TreeNode, b: TreeNode): number {
  return Number(a.pinned) - Number(b.pinned) || a.lastUse - b.lastUse || b.startIndex - a.startIndex;
}

/** The first to go among those that `may` go. */
export function firstToGo(nodes: Iterable<TreeNode>, may: (node: TreeNode) => boolean): TreeNode | null {
  let first: TreeNode | null = null;
  for (const node of nodes) if (may(node) && (!first || evictionOrder(node, first) < 0)) first = node;
  return first;
}
