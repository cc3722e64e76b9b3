/**
 * Evicts from the store: first copies of nodes that are in the pool too, then nodes in eviction order, from their ends
 * and no more than necessary. Does not decide how many bytes the store gets.
 */
import type { CachedNodes } from '../cachedNodes.ts';
import { isUsed, type RadixNode, type RadixTree } from '../radixTree.ts';
import type { KvStore } from '../store.ts';
import type { StoredRun } from '../storedBlocks.ts';
import { type EvictionOrder, youngestBelow } from './eviction.ts';

/** Fewest tokens of a node that leave the store at once. A shorter node leaves as a whole. */
const MIN_DROPPED_TOKENS = 128;

export class StoreEviction {
  readonly #nodes: CachedNodes;
  readonly #tree: RadixTree;
  readonly #store: KvStore;

  constructor(nodes: CachedNodes) {
    this.#nodes = nodes;
    this.#tree = nodes.tree;
    this.#store = nodes.store;
  }

  /**
   * Brings the store down to `limit` bytes by dropping copies, then nodes that leave before `before` (null: any node).
   * Returns false, and drops nothing, when that is not enough. `known`: an order that was computed before; it stays
   * about right for the nodes that are left.
   */
  make(limit: number, before: RadixNode | null, known?: EvictionOrder): boolean {
    if (this.#store.bytes <= limit) return true;
    if (limit < 0) return false;
    const order = known ?? this.#nodes.order();
    const mayGo = (node: RadixNode): boolean => isCopy(node) || (mayDrop(node) && (!before || order(node, before) < 0));
    const going: StoredRun[] = [];
    for (const node of this.#tree.nodes()) if (node.stored && mayGo(node)) going.push(node.stored);
    if (this.#store.bytes - this.#store.bytesOf(going) > limit) return false;

    this.#dropCopies(limit);
    if (this.#store.bytes <= limit) return true;
    const victims = new Victims(this.#tree, order, mayDrop);
    while (this.#store.bytes > limit) {
      const victim = victims.next(before);
      if (!victim) return false;
      this.cut(
        victim,
        Math.max(Math.ceil((this.#store.bytes - limit) / this.#store.bytesPerToken), MIN_DROPPED_TOKENS),
      );
      this.#nodes.drop(victim);
      victims.gone(victim);
    }
    return true;
  }

  /**
   * Brings the store, with what will be added to it, down to `limit` bytes. Drops copies, then nodes of pool and store
   * in eviction order. The order is computed once, while `make` looks at all nodes for each addition. `coming`:
   * unreferenced nodes that will add so many bytes.
   */
  makeSpaceForAll(limit: number, coming: ReadonlySet<RadixNode>, bytes: number, order: EvictionOrder): void {
    this.#dropCopies(limit - bytes, coming);
    let over = this.#store.bytes + bytes - limit;
    if (over <= 0) return;
    const leaving = new Set(coming);
    const victims = new Victims(this.#tree, order, (node) => mayDrop(node) || (leaving.has(node) && !isUsed(node)));
    while (over > 0) {
      const victim = victims.next(null);
      if (!victim) return;
      const rest = this.cut(victim, Math.ceil(over / this.#store.bytesPerToken));
      // In a compressed block so many tokens have fewer bytes, so more of the node may have to leave.
      if (rest && leaving.has(victim)) leaving.add(rest);
      const before = this.#store.bytes;
      if (!victim.stored) over -= this.bytesFor(victim);
      this.#nodes.drop(victim);
      over -= before - this.#store.bytes;
      victims.gone(victim);
    }
  }

  /** Drops copies until the store has at most `limit` bytes, except those of nodes in `stay`. */
  #dropCopies(limit: number, stay: ReadonlySet<RadixNode> = new Set()): void {
    // Exact copies first. Rows of a compressed copy would take more bytes when they leave the pool again, because lossy
    // rows are not compressed again.
    for (const isCoded of [false, true]) {
      for (const node of this.#tree.nodes()) {
        if (this.#store.bytes <= limit) return;
        if (!isCopy(node) || node.lossy.length > 0 !== isCoded || stay.has(node)) continue;
        this.#store.drop(node.stored!);
        node.stored = null;
      }
    }
  }

  /** Bytes in the store of a node of the pool, or of so many rows of it. */
  bytesFor(node: RadixNode, numRows = node.slots!.length): number {
    return numRows * (node.pruned ? this.#store.bytesPerKeptRow : this.#store.bytesPerToken);
  }

  /**
   * Splits a node so that it keeps at most its last `length` tokens, because eviction needs no more. Returns the upper
   * part, if there is one.
   */
  cut(node: RadixNode, length: number): RadixNode | null {
    const at = node.tokenIds.length - length;
    if (at <= 0 || node.pruned) return null;
    // Only whole blocks are split off, because a part of a block might free nothing.
    const whole = node.stored ? this.#store.wholeBlocks(node.stored, at) : at;
    return whole > 0 ? this.#nodes.split(node, whole) : null;
  }
}

/** Whether a node is in the pool too and no lease needs its stored rows. */
function isCopy({ slots, stored, storedRefs }: RadixNode): boolean {
  return slots !== null && stored !== null && storedRefs === 0;
}

/** Whether a node is only in the store and no lease uses it. */
function mayDrop(node: RadixNode): boolean {
  return node.stored !== null && node.slots === null && !isUsed(node);
}

/**
 * Nodes that leave the store one by one. Finds the first to leave without looking at all nodes each time: only leaves
 * of the tree are candidates, and nodes of one kind keep their order (see Eviction), so only the first of each kind is
 * compared.
 */
class Victims {
  readonly #order: EvictionOrder;
  readonly #may: (node: RadixNode) => boolean;
  /** Order of traversal; it decides between equals. */
  readonly #ranks: Map<RadixNode, number>;
  readonly #youngest: Map<RadixNode, number>;
  /** Leaves of the tree that may leave, by kind. The first to leave is last in its list. */
  readonly #kinds = new Map<unknown, RadixNode[]>();

  /** The tree must be the one that `order` was made for. Call `gone` after every change. */
  constructor(tree: RadixTree, order: EvictionOrder, may: (node: RadixNode) => boolean) {
    this.#order = order;
    this.#may = may;
    const nodes = [...tree.nodes()];
    this.#ranks = new Map(nodes.map((node, i) => [node, i]));
    this.#youngest = youngestBelow(nodes);
    for (const node of nodes) if (node.children.size === 0 && may(node)) this.#ofKind(node).push(node);
    for (const ofKind of this.#kinds.values()) ofKind.sort((a, b) => this.#compare(b, a));
  }

  /**
   * The first node that may leave. The caller drops it, or its end, and calls `gone`. Null when there is none, or when
   * it does not leave before `other`.
   */
  next(other: RadixNode | null): RadixNode | null {
    let first: RadixNode[] | null = null;
    for (const [kind, ofKind] of this.#kinds) {
      const node = ofKind.at(-1);
      if (!node) {
        this.#kinds.delete(kind);
        continue;
      }
      this.#updateWorth(node);
      if (!first || this.#compare(node, first.at(-1)!) < 0) first = ofKind;
    }
    if (!first || (other && !this.#goesBefore(first.at(-1)!, other))) return null;
    return first.pop()!;
  }

  /** The node, or its end, has been dropped. In the second case its parent is what is left. */
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

  /** When the youngest of its siblings is gone, the next youngest ones change their kind. */
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
      const ofKind = this.#ofKind(child);
      const at = ofKind.indexOf(child);
      if (at >= 0) others.push(...ofKind.splice(at, 1));
    }
    this.#youngest.set(parent!, youngest);
    for (const child of others) this.#insert(child);
  }

  #insert(node: RadixNode): void {
    const ofKind = this.#ofKind(node);
    this.#updateWorth(node);
    let [low, high] = [0, ofKind.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      this.#updateWorth(ofKind[middle]!);
      if (this.#compare(ofKind[middle]!, node) > 0) low = middle + 1;
      else high = middle;
    }
    ofKind.splice(low, 0, node);
  }

  /** A node is worth as much as the most valuable node below it. */
  #goesBefore(node: RadixNode, other: RadixNode): boolean {
    this.#updateWorth(other);
    if (this.#order(node, other) < 0) return true;
    other.worth = this.#most(other);
    return this.#order(node, other) < 0;
  }

  #most(node: RadixNode): number {
    this.#updateWorth(node);
    let { worth } = node;
    for (const child of node.children.values()) worth = Math.max(worth, this.#most(child));
    return worth;
  }

  #updateWorth(node: RadixNode): void {
    const { by } = this.#order;
    if (by) node.worth = by.eviction.worth(node, by.now, this.#youngest.get(node.parent!)!);
  }

  #ofKind(node: RadixNode): RadixNode[] {
    const { by } = this.#order;
    const kind = by ? (by.eviction.kind?.(node, by.now, this.#youngest.get(node.parent!)!) ?? node) : null;
    let ofKind = this.#kinds.get(kind);
    if (!ofKind) {
      ofKind = [];
      this.#kinds.set(kind, ofKind);
    }
    return ofKind;
  }

  #compare(a: RadixNode, b: RadixNode): number {
    return this.#order(a, b) || this.#ranks.get(a)! - this.#ranks.get(b)!;
  }
}
