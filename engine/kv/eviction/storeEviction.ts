/**
 * Makes room in the store: drops copies of nodes that are in the pool too, then nodes in eviction order, from their
 * ends and no more
 * of them than necessary. Does not decide how much room the store gets.
 */
import type { CachedNodes } from '../cachedNodes.ts';
import { isUsed, type RadixNode, type RadixTree } from '../radixTree.ts';
import type { KvStore } from '../store.ts';
import type { StoredRun } from '../storedBlocks.ts';
import type { EvictionOrder } from './eviction.ts';
import { Victims } from './victims.ts';

/** Tokens of a node that leave the store at once, at least; a shorter node leaves whole. */
const STORE_DROP_TOKENS = 128;

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
   * Brings the store down to `limit` bytes by dropping copies, then runs that go before `before` (null: any run).
   * False, and nothing is dropped, when that is not enough. `known`: the order, where it has been reckoned; of what is
   * left afterwards it says about the same.
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
      this.cut(victim, Math.max(Math.ceil((this.#store.bytes - limit) / this.#store.bytesPerToken), STORE_DROP_TOKENS));
      this.#nodes.drop(victim);
      victims.gone(victim);
    }
    return true;
  }

  /**
   * Brings the store and what is to come into it down to `limit` bytes. Copies go, then of all that those that go
   * first,
   * out of the pool or the store, reckoned once for all of them: `make` looks at all runs for each that comes.
   * `coming`: runs that
   * nobody references, of which so many bytes are to come.
   */
  makeRoomForAll(limit: number, coming: ReadonlySet<RadixNode>, bytes: number, order: EvictionOrder): void {
    this.#dropCopies(limit - bytes, coming);
    let over = this.#store.bytes + bytes - limit;
    if (over <= 0) return;
    const leaving = new Set(coming);
    const victims = new Victims(this.#tree, order, (node) => mayDrop(node) || (leaving.has(node) && !isUsed(node)));
    while (over > 0) {
      const victim = victims.next(null);
      if (!victim) return;
      const rest = this.cut(victim, Math.ceil(over / this.#store.bytesPerToken));
      // In a compressed copy so many tokens are fewer bytes, so more of it may have to leave.
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
    // Exact ones first. A compressed copy would take more bytes if it came back from the pool, because it is not
    // compressed again.
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
   * Splits a node so that it keeps at most its last `length` tokens, because an eviction needs no more. Returns the
   * rest, if there is any.
   */
  cut(node: RadixNode, length: number): RadixNode | null {
    const at = node.tokenIds.length - length;
    if (at <= 0 || node.pruned) return null;
    // Stored blocks leave as a whole: a part of one might free nothing.
    const whole = node.stored ? this.#store.wholeBlocks(node.stored, at) : at;
    return whole > 0 ? this.#nodes.split(node, whole) : null;
  }
}

/** Whether its rows are in the pool too, and nobody needs those in the store. */
function isCopy({ slots, stored, storedRefs }: RadixNode): boolean {
  return slots !== null && stored !== null && storedRefs === 0;
}

/** Whether its rows are only in the store, and nobody needs them. */
function mayDrop(node: RadixNode): boolean {
  return node.stored !== null && node.slots === null && !isUsed(node);
}
