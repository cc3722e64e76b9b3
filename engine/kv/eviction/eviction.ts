/**
 * The order of eviction: the node that is worth least leaves first, pinned nodes last, and no node before its children.
 * Does not
 * say what a node is worth; that is the policy's.
 */
import type { RadixNode, RadixTree } from '../radixTree.ts';

export interface Eviction {
  /** The worth of keeping a node by itself; only compared. `youngest`: the latest use among it and its siblings. */
  worth(node: RadixNode, now: number, youngest: number): number;
  /** Nodes of one kind keep their order, whatever is learnt. Left out: no two nodes are of one kind. */
  kind?(node: RadixNode, now: number, youngest: number): number;
  /** A request has reused it, so long after its last use. */
  hit(node: RadixNode, idleMs: number): void;
  /** It is dropped, so long after its last use. */
  gone(node: RadixNode, idleMs: number): void;
}

/** Negative when `a` leaves before `b`, as of when the order was made. */
export interface EvictionOrder {
  (a: RadixNode, b: RadixNode): number;
  /** How worths were computed; left out: it is not an order by worth. */
  readonly by?: { readonly eviction: Eviction; readonly now: number };
}

export function evictionOrder(tree: RadixTree, eviction: Eviction, now: number): EvictionOrder {
  const nodes = [...tree.nodes()];
  const youngest = youngestBelow(nodes);
  for (const node of nodes) node.worth = eviction.worth(node, now, youngest.get(node.parent!)!);
  // Parents come before their children, so backwards every node has been raised by all nodes below it.
  for (const node of nodes.reverse()) if (node.parent && node.worth > node.parent.worth) node.parent.worth = node.worth;
  const order = (a: RadixNode, b: RadixNode): number =>
    Number(a.pinned) - Number(b.pinned) || a.worth - b.worth || b.startIndex - a.startIndex;
  return Object.assign(order, { by: { eviction, now } });
}

/** Of each that has any: the latest use of its children. */
export function youngestBelow(nodes: readonly RadixNode[]): Map<RadixNode, number> {
  const youngest = new Map<RadixNode, number>();
  for (const { parent, lastUse } of nodes) {
    const latest = youngest.get(parent!);
    if (latest === undefined || lastUse > latest) youngest.set(parent!, lastUse);
  }
  return youngest;
}

/** The first to go among those that `may` go. */
export function firstToGo(
  nodes: Iterable<RadixNode>,
  order: EvictionOrder,
  may: (node: RadixNode) => boolean,
): RadixNode | null {
  let first: RadixNode | null = null;
  for (const node of nodes) if ((!first || order(node, first) < 0) && may(node)) first = node;
  return first;
}
