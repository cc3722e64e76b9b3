/**
 * The prefix tree: a radix tree of token runs at token granularity, split where two sequences part. Says which tokens
 * have K/V rows and where they are; does not move rows and decides nothing about eviction. Two invariants hold
 * between calls: a run is referenced at least as often as each of its children, and was used at least as recently.
 * The root is empty and stands for the loaded model.
 */
import type { KvStore, StoredRun } from './store.ts';

export interface TreeNode {
  /** The run's tokens; empty only at the root. */
  tokenIds: number[];
  parent: TreeNode | null;
  /** By first token. */
  readonly children: Map<number, TreeNode>;
  /** Position of the run's first token. */
  startIndex: number;
  /** Leases whose path runs through this node. */
  refCount: number;
  /** Clock time in ms. */
  lastUse: number;
  /** Evicted last. */
  pinned: boolean;
  /** What keeping it was worth when that was last reckoned (see eviction). */
  worth: number;
  /** Which kind of request computed the run, or the last of it: for the monitor. */
  tag: string;
  /** Window slots, one per token, or null: not in the window. */
  slots: Int32Array | null;
  /** Rows in the store, or null. A run may be in both: then leaving the window costs no copy. */
  stored: StoredRun | null;
  /** The lossy codec that some of its rows have been through, or null: they are as they were computed. */
  codec: string | null;
}

export interface Match {
  /** Nodes that match from their first token, top down; the last one maybe only in part. */
  readonly nodes: readonly TreeNode[];
  /** Matching tokens of the last node. */
  readonly lastLength: number;
  /** Matching tokens of all nodes. */
  readonly numTokens: number;
}

export function endIndex(node: TreeNode): number {
  return node.startIndex + node.tokenIds.length;
}

function newNode(parent: TreeNode | null, tokenIds: number[], startIndex: number): TreeNode {
  return { tokenIds, parent, children: new Map(), startIndex, refCount: 0, lastUse: 0, pinned: false, worth: 0, tag: '', slots: null, stored: null, codec: null };
}

export class PrefixTree {
  readonly root: TreeNode = newNode(null, [], 0);
  /** Of all runs. */
  numTokens = 0;
  numRuns = 0;
  readonly #store: KvStore;

  constructor(store: KvStore) {
    this.#store = store;
  }

  /** Longest run of tokenIds[endIndex(from) .. limit) below `from`. Changes nothing; valid until the tree changes. */
  match(tokenIds: readonly number[], limit = tokenIds.length, from = this.root): Match {
    const nodes: TreeNode[] = [];
    const start = endIndex(from);
    let at = start;
    let lastLength = 0;
    for (let node = from; at < limit; ) {
      const child = node.children.get(tokenIds[at]!);
      if (!child) break;
      const most = Math.min(child.tokenIds.length, limit - at);
      let length = 1;
      while (length < most && child.tokenIds[length] === tokenIds[at + length]) length++;
      nodes.push(child);
      lastLength = length;
      at += length;
      if (length < child.tokenIds.length) break;
      node = child;
    }
    return { nodes, lastLength, numTokens: at - start };
  }

  /** Cuts a run after `at` tokens. Returns the new upper part; `node` stays the lower one, so paths that end in it stay right. */
  split(node: TreeNode, at: number): TreeNode {
    const parent = node.parent!;
    const upper = newNode(parent, node.tokenIds.slice(0, at), node.startIndex);
    upper.refCount = node.refCount;
    upper.lastUse = node.lastUse;
    upper.pinned = node.pinned;
    upper.tag = node.tag;
    upper.codec = node.codec;
    if (node.slots) {
      upper.slots = node.slots.slice(0, at);
      node.slots = node.slots.slice(at);
    }
    if (node.stored) [upper.stored, node.stored] = this.#store.split(node.stored, at);
    node.tokenIds = node.tokenIds.slice(at);
    node.startIndex += at;
    node.parent = upper;
    upper.children.set(node.tokenIds[0]!, node);
    parent.children.set(upper.tokenIds[0]!, upper);
    this.numRuns++;
    return upper;
  }

  /** Adds a run in the window below `parent`. */
  insert(parent: TreeNode, tokenIds: number[], slots: Int32Array): TreeNode {
    const node = this.#add(parent, tokenIds);
    node.slots = slots;
    return node;
  }

  /** Adds a run in the store below `parent`. */
  insertStored(parent: TreeNode, tokenIds: number[], stored: StoredRun): TreeNode {
    const node = this.#add(parent, tokenIds);
    node.stored = stored;
    return node;
  }

  /** Lengthens a leaf that is in the window and not in the store. */
  extend(leaf: TreeNode, tokenIds: number[], slots: Int32Array): void {
    for (const tokenId of tokenIds) leaf.tokenIds.push(tokenId);
    this.numTokens += tokenIds.length;
    const all = new Int32Array(leaf.slots!.length + slots.length);
    all.set(leaf.slots!);
    all.set(slots, leaf.slots!.length);
    leaf.slots = all;
  }

  /** Takes a leaf out of the tree. */
  remove(leaf: TreeNode): void {
    if (leaf.children.size > 0 || leaf.refCount > 0) throw new Error('Only an unreferenced leaf can be removed from the prefix tree.');
    leaf.parent!.children.delete(leaf.tokenIds[0]!);
    this.numRuns--;
    this.numTokens -= leaf.tokenIds.length;
  }

  #add(parent: TreeNode, tokenIds: number[]): TreeNode {
    const node = newNode(parent, tokenIds, endIndex(parent));
    parent.children.set(tokenIds[0]!, node);
    this.numRuns++;
    this.numTokens += tokenIds.length;
    return node;
  }

  /** All runs but the root, parents before children. */
  *nodes(): Generator<TreeNode> {
    const stack = [...this.root.children.values()];
    for (let node = stack.pop(); node; node = stack.pop()) {
      yield node;
      stack.push(...node.children.values());
    }
  }
}

/** The runs from the root's child down to `node`. */
export function pathTo(node: TreeNode): TreeNode[] {
  const path: TreeNode[] = [];
  for (let n: TreeNode | null = node; n?.parent; n = n.parent) path.push(n);
  return path.reverse();
}
