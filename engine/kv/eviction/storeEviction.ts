/**
 * Room in the store: what goes for it, and in which order. First copies of runs that the pool has, too, then runs in the order of
 * eviction, from their ends and no more of them than has to go. How much room there is to be is KvMemory's.
 */
import type { CachedNodes } from '../cachedNodes.ts';
import { isUsed, type RadixTree, type RadixNode } from '../radixTree.ts';
import type { KvStore } from '../store.ts';
import type { StoredRun } from '../storedBlocks.ts';
import type { EvictionOrder } from './eviction.ts';
import { Victims } from './victims.ts';

/** Least number of tokens of a run that leave the store at once; a shorter one goes whole. */
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
   * False, and nothing is dropped, when that is not enough. `known`: the order, where it has been reckoned; of what is left afterwards it says about the same.
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
   * Brings the store and what is to come into it down to `limit` bytes. Copies go, then of all that those that go first,
   * out of the pool or the store, reckoned once for all of them: `make` looks at all runs for each that comes. `coming`: runs that
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
      // Of a coded copy so many tokens are fewer bytes: more of it may have to go.
      if (rest && leaving.has(victim)) leaving.add(rest);
      const before = this.#store.bytes;
      if (!victim.stored) over -= this.bytesFor(victim);
      this.#nodes.drop(victim);
      over -= before - this.#store.bytes;
      victims.gone(victim);
    }
  }

  /** Copies go until the store has no more than so many bytes, but for those of runs that `stay`. */
  #dropCopies(limit: number, stay: ReadonlySet<RadixNode> = new Set()): void {
    // Exact ones first: what has been coded takes more when it comes back from the pool, and is not coded again.
    for (const isCoded of [false, true]) {
      for (const node of this.#tree.nodes()) {
        if (this.#store.bytes <= limit) return;
        if (!isCopy(node) || node.lossy.length > 0 !== isCoded || stay.has(node)) continue;
        this.#store.drop(node.stored!);
        node.stored = null;
      }
    }
  }

  /** That a run of the pool takes here, or so many rows of it. */
  bytesFor(node: RadixNode, numRows = node.slots!.length): number {
    return numRows * (node.pruned ? this.#store.bytesPerKeptRow : this.#store.bytesPerToken);
  }

  /** Leaves `node` with its last tokens only, at most `length`, for an eviction that needs no more; returns the rest, if there is any. */
  cut(node: RadixNode, length: number): RadixNode | null {
    const at = node.tokenIds.length - length;
    if (at <= 0 || node.pruned) return null;
    // A stored block goes as a whole: a part of it might free nothing.
    const whole = node.stored ? this.#store.wholeBlocks(node.stored, at) : at;
    return whole > 0 ? this.#nodes.split(node, whole) : null;
  }
}

/** Whether the pool has its rows, too, and nobody needs those in the store. */
function isCopy({ slots, stored, storedRefs }: RadixNode): boolean {
  return slots !== null && stored !== null && storedRefs === 0;
}

/** Whether only the store has its rows, and nobody needs them. */
function mayDrop(node: RadixNode): boolean {
  return node.stored !== null && node.slots === null && !isUsed(node);
}
