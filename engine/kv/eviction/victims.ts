/**
 * Nodes that leave the store while room is made, one by one. Each is the first to leave at that moment, without looking
 * at all others
 * again: only leaves of the tree are candidates, and nodes of one kind keep their order (see Eviction), so only the
 * first of each kind
 * is compared.
 */
import type { RadixNode, RadixTree } from '../radixTree.ts';
import { type EvictionOrder, youngestBelow } from './eviction.ts';

export class Victims {
  readonly #order: EvictionOrder;
  readonly #may: (node: RadixNode) => boolean;
  /** Order of traversal: it decides between equals. */
  readonly #ranks: Map<RadixNode, number>;
  readonly #youngest: Map<RadixNode, number>;
  /** Leaves that may leave, by kind; the first to leave is last in its list. */
  readonly #kinds = new Map<unknown, RadixNode[]>();

  /** The tree must be as it was for `order`, and `gone` must be told of every change. */
  constructor(tree: RadixTree, order: EvictionOrder, may: (node: RadixNode) => boolean) {
    this.#order = order;
    this.#may = may;
    const nodes = [...tree.nodes()];
    this.#ranks = new Map(nodes.map((node, i) => [node, i]));
    this.#youngest = youngestBelow(nodes);
    for (const node of nodes) if (node.children.size === 0 && may(node)) this.#ofKind(node).push(node);
    for (const runs of this.#kinds.values()) runs.sort((a, b) => this.#compare(b, a));
  }

  /**
   * The first node that may leave. The caller drops it, or its end, and calls `gone`. Null where there is none, or it
   * does not leave before `other`.
   */
  next(other: RadixNode | null): RadixNode | null {
    let first: RadixNode[] | null = null;
    for (const [kind, runs] of this.#kinds) {
      const run = runs.at(-1);
      if (!run) {
        this.#kinds.delete(kind);
        continue;
      }
      this.#reckon(run);
      if (!first || this.#compare(run, first.at(-1)!) < 0) first = runs;
    }
    if (!first || (other && !this.#goesBefore(first.at(-1)!, other))) return null;
    return first.pop()!;
  }

  /** The node has been dropped, or its end; then the rest is its parent. */
  gone(node: RadixNode): void {
    const parent = node.parent!;
    if (parent.children.size > 0) {
      this.#youngestGone(node);
      return;
    }
    if (!parent.parent) return;
    if (!this.#ranks.has(parent)) this.#ranks.set(parent, this.#ranks.get(node)!);
    if (this.#may(parent)) this.#insert(parent);
  }

  /** If it was the youngest of its siblings, the next youngest change their kind. */
  #youngestGone({ parent, lastUse }: RadixNode): void {
    if (lastUse < this.#youngest.get(parent!)!) return;
    let youngest = Number.NEGATIVE_INFINITY;
    for (const child of parent!.children.values()) {
      youngest = Math.max(youngest, child.lastUse);
      if (youngest === lastUse) return;
    }
    const others: RadixNode[] = [];
    for (const child of parent!.children.values()) {
      if (child.lastUse !== youngest) continue;
      const runs = this.#ofKind(child);
      const at = runs.indexOf(child);
      if (at >= 0) others.push(...runs.splice(at, 1));
    }
    this.#youngest.set(parent!, youngest);
    for (const child of others) this.#insert(child);
  }

  #insert(node: RadixNode): void {
    const runs = this.#ofKind(node);
    this.#reckon(node);
    let [low, high] = [0, runs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      this.#reckon(runs[middle]!);
      if (this.#compare(runs[middle]!, node) > 0) low = middle + 1;
      else high = middle;
    }
    runs.splice(low, 0, node);
  }

  /** A node is worth as much as the most valuable node below it. */
  #goesBefore(node: RadixNode, other: RadixNode): boolean {
    this.#reckon(other);
    if (this.#order(node, other) < 0) return true;
    other.worth = this.#most(other);
    return this.#order(node, other) < 0;
  }

  #most(node: RadixNode): number {
    this.#reckon(node);
    let { worth } = node;
    for (const child of node.children.values()) worth = Math.max(worth, this.#most(child));
    return worth;
  }

  #reckon(node: RadixNode): void {
    const { by } = this.#order;
    if (by) node.worth = by.eviction.worth(node, by.now, this.#youngest.get(node.parent!)!);
  }

  #ofKind(node: RadixNode): RadixNode[] {
    const { by } = this.#order;
    const kind = by ? (by.eviction.kind?.(node, by.now, this.#youngest.get(node.parent!)!) ?? node) : null;
    let runs = this.#kinds.get(kind);
    if (!runs) {
      runs = [];
      this.#kinds.set(kind, runs);
    }
    return runs;
  }

  #compare(a: RadixNode, b: RadixNode): number {
    return this.#order(a, b) || this.#ranks.get(a)! - this.#ranks.get(b)!;
  }
}
