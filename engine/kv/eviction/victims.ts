/**
 * The runs that go while room is made, one by one: each is the first to go as things are then, found without looking at all others
 * again. What goes on from a run goes before it, so only ends of the tree are looked at, and runs of one kind keep their order (see
 * Eviction), so of each kind only the first is.
 */
import type { RadixTree, RadixNode } from '../radixTree.ts';
import { type EvictionOrder, youngestBelow } from './eviction.ts';

export class Victims {
  readonly #order: EvictionOrder;
  readonly #may: (node: RadixNode) => boolean;
  /** Places in the tree's own order: that decides between equals. */
  readonly #ranks: Map<RadixNode, number>;
  readonly #youngest: Map<RadixNode, number>;
  /** Those that nothing goes on from and that may go, of each kind; the first to go is the last. */
  readonly #kinds = new Map<unknown, RadixNode[]>();

  /** The tree is as it was for `order`, and changes only as `gone` is told. */
  constructor(tree: RadixTree, order: EvictionOrder, may: (node: RadixNode) => boolean) {
    this.#order = order;
    this.#may = may;
    const nodes = [...tree.nodes()];
    this.#ranks = new Map(nodes.map((node, i) => [node, i]));
    this.#youngest = youngestBelow(nodes);
    for (const node of nodes) if (node.children.size === 0 && may(node)) this.#ofKind(node).push(node);
    for (const runs of this.#kinds.values()) runs.sort((a, b) => this.#compare(b, a));
  }

  /** The first that may go, for the caller to drop, its end or all of it, and to call `gone`. Null where it does not go before `other`, or there is none. */
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

  /** This one has gone, or its end; then what is left of it is its parent. */
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

  /** Of those beside it the youngest are of another kind, if it was younger. */
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

  /** Another is worth as much as any that goes on from it. */
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
