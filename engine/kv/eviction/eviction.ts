/**
 * The order of eviction: the node with the least worth leaves first, pinned nodes last, and no node before its
 * children. Does not say what a node is worth; that is up to the policy.
 */
import type { RadixNode, RadixTree } from '../radixTree.ts';

export interface Eviction {
  /**
   * Worth of keeping a node, without those below it. Only compared. `youngest`: the latest use among it and its
   * siblings.
   */
  worth(node: RadixNode, now: number, youngest: number): number;
  /** Nodes of the same kind keep their order, whatever the policy learns. Left out: each node is a kind of its own. */
  kind?(node: RadixNode, now: number, youngest: number): number;
  /** A request has reused the node, so long after its last use. */
  hit(node: RadixNode, idleMs: number): void;
  /** The node is dropped, so long after its last use. */
  gone(node: RadixNode, idleMs: number): void;
}

/** Negative when `a` leaves before `b`, as of the time when the order was made. */
export interface EvictionOrder {
  (a: RadixNode, b: RadixNode): number;
  /** How worths were computed. Left out: the order is not by worth. */
  readonly by?: { readonly eviction: Eviction; readonly now: number };
}

export function evictionOrder(tree: RadixTree, eviction: Eviction, now: number): EvictionOrder {
  const nodes = [...tree.nodes()];
  const youngest = youngestBelow(nodes);
  for (const node of nodes) node.worth = eviction.worth(node, now, youngest.get(node.parent!)!);
  // Backwards, because parents come first: so each node has been raised by all nodes below it.
  for (const node of nodes.reverse()) if (node.parent && node.worth > node.parent.worth) node.parent.worth = node.worth;
  const order = (a: RadixNode, b: RadixNode): number =>
    Number(a.pinned) - Number(b.pinned) || a.worth - b.worth || b.startIndex - a.startIndex;
  return Object.assign(order, { by: { eviction, now } });
}

/** The latest use of its children, for each node that has any. */
export function youngestBelow(nodes: readonly RadixNode[]): Map<RadixNode, number> {
  const youngest = new Map<RadixNode, number>();
  for (const { parent, lastUse } of nodes) {
    const latest = youngest.get(parent!);
    if (latest === undefined || lastUse > latest) youngest.set(parent!, lastUse);
  }
  return youngest;
}

/** The first node to leave among those that `may`. */
export function firstToGo(
  nodes: Iterable<RadixNode>,
  order: EvictionOrder,
  may: (node: RadixNode) => boolean,
): RadixNode | null {
  let first: RadixNode | null = null;
  for (const node of nodes) if ((!first || order(node, first) < 0) && may(node)) first = node;
  return first;
}

/** Unreferenced nodes of the pool in eviction order. The order is computed once, because there may be thousands. */
export class EvictionQueue {
  readonly order: EvictionOrder;
  readonly #nodes: readonly RadixNode[];
  readonly #known: ReadonlySet<RadixNode>;
  /** Number of the first nodes that have left completely. */
  #numGone = 0;

  constructor(tree: RadixTree, order: EvictionOrder) {
    this.order = order;
    this.#nodes = Array.from(tree.nodes()).filter(isFree).sort(order);
    this.#known = new Set(this.#nodes);
  }

  /** The first node that has not left and that `may` leave. Null: there is none. */
  first(may: (node: RadixNode) => boolean = () => true): RadixNode | null {
    for (let i = this.#numGone; i < this.#nodes.length; i++) {
      const left = this.#leftOf(this.#nodes[i]!);
      if (left && may(left)) return left;
      if (!left && i === this.#numGone) this.#numGone++;
    }
    return null;
  }

  /** The first nodes with so many tokens in total, or all nodes. Call it before any node has left. */
  firstOf(numTokens: number): RadixNode[] {
    let [length, numNodes] = [0, 0];
    while (length < numTokens && numNodes < this.#nodes.length) length += this.#nodes[numNodes++]!.slots!.length;
    return this.#nodes.slice(0, numNodes);
  }

  /** The node, or what is left of it when its end has left: its new parent, in the same place of the order. */
  #leftOf(node: RadixNode): RadixNode | null {
    if (isFree(node)) return node;
    const { parent } = node;
    return parent && !this.#known.has(parent) ? this.#leftOf(parent) : null;
  }
}

/** Whether a node is in the pool and unreferenced. */
function isFree({ refCount, slots }: RadixNode): boolean {
  return refCount === 0 && slots !== null;
}
