/**
 * Which run goes first: of the runs that may go the one that it is worth least to keep, pinned ones after all others, and never
 * one before another that goes on from it. What a run is worth is a policy's.
 */
import type { RadixTree, RadixNode } from '../radixTree.ts';

export interface Eviction {
  /** What keeping a run is worth by itself; only compared. `youngest`: the latest use of those that go on from the same place, it among them. */
  worth(node: RadixNode, now: number, youngest: number): number;
  /** Runs of one kind go in the same order among each other whatever is found or goes; left out: no two are of one. */
  kind?(node: RadixNode, now: number, youngest: number): number;
  /** A request has found it, so long after its last use. */
  hit(node: RadixNode, idleMs: number): void;
  /** It goes, so long after its last use. */
  gone(node: RadixNode, idleMs: number): void;
}

/** Negative when `a` goes before `b`; as the tree was then. */
export interface EvictionOrder {
  (a: RadixNode, b: RadixNode): number;
  /** What worths were reckoned by; left out: it is not an order by worth. */
  readonly by?: { readonly eviction: Eviction; readonly now: number };
}

export function evictionOrder(tree: RadixTree, eviction: Eviction, now: number): EvictionOrder {
  const nodes = [...tree.nodes()];
  const youngest = youngestBelow(nodes);
  for (const node of nodes) node.worth = eviction.worth(node, now, youngest.get(node.parent!)!);
  // Parents come before their children: backwards each has heard of all below it.
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
