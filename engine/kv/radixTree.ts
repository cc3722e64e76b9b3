/**
 * The radix tree: nodes of consecutive token ids, split where two sequences diverge. Says which tokens have K/V rows
 * and where the rows are. Does not move rows and does not decide about eviction.
 */
import { joinLossy, type Lossy, lossyWithin, type StoredRun } from './storedBlocks.ts';
import type { KvStore } from './store.ts';

export interface RadixNode {
  /** Empty only at the root. */
  tokenIds: number[];
  parent: RadixNode | null;
  /** By first token. Pruned nodes have unique negative keys, because several of them may begin with the same token. */
  readonly children: Map<number, RadixNode>;
  /** The pruned ones among the children. */
  readonly prunedChildren: Set<RadixNode>;
  /** Position of the node's first token. */
  startIndex: number;
  /** Leases whose path runs through this node. */
  refCount: number;
  /**
   * Sparse leases that use this node's rows, which stay in the store. Counted separately, because they need no pool
   * slots.
   */
  storedRefs: number;
  /** Clock time in ms. */
  lastUse: number;
  /** Evicted last. */
  pinned: boolean;
  /** Worth of keeping it when that was last computed (see Eviction). */
  worth: number;
  /** The kind of request that computed the node, or its last tokens. Shown by the monitor. */
  tag: string;
  /** Pool slots, one per token unless pruned. Null: it is not in the pool. */
  slots: Int32Array | null;
  /** Rows in the store, or null. A node may be in pool and store; then leaving the pool costs no copy. */
  stored: StoredRun | null;
  /** Which rows are lossy, in the pool or in the store. */
  lossy: Lossy;
  /** Name of the rule by which some tokens have lost their rows. Null: all tokens have rows. */
  pruned: string | null;
}

export interface Match {
  /** Matching nodes, top down. The last one may match in part. */
  readonly nodes: readonly RadixNode[];
  /** Matching tokens of the last node. */
  readonly lastLength: number;
  /** Matching tokens of all nodes. */
  readonly numTokens: number;
}

export const NO_MATCH: Match = { nodes: [], lastLength: 0, numTokens: 0 };

export function endIndex(node: RadixNode): number {
  return node.startIndex + node.tokenIds.length;
}

/** Number of a node's rows, in the pool or in the store. */
export function numRows(node: RadixNode): number {
  return node.slots?.length ?? node.stored?.numRows ?? 0;
}

/** Whether a lease uses the node, so that it cannot be evicted. */
export function isUsed({ refCount, storedRefs }: RadixNode): boolean {
  return refCount > 0 || storedRefs > 0;
}

function newNode(parent: RadixNode | null, tokenIds: number[], startIndex: number): RadixNode {
  return {
    tokenIds,
    parent,
    children: new Map(),
    prunedChildren: new Set(),
    startIndex,
    refCount: 0,
    storedRefs: 0,
    lastUse: 0,
    pinned: false,
    worth: 0,
    tag: '',
    slots: null,
    stored: null,
    lossy: [],
    pruned: null,
  };
}

export class RadixTree {
  readonly root: RadixNode = newNode(null, [], 0);
  /** Changes whenever a node's place or tokens change. As long as it is the same, `match` returns the same. */
  version = 0;
  /** Tokens of all nodes. */
  numTokens = 0;
  numNodes = 0;
  readonly #store: KvStore;
  #numPruned = 0;

  constructor(store: KvStore) {
    this.#store = store;
  }

  /**
   * Longest match of tokenIds[endIndex(from) .. limit) below `from`. `withPruned`: also through pruned nodes, where
   * that match is longer. Changes nothing. Valid until the tree changes.
   */
  match(tokenIds: readonly number[], limit = tokenIds.length, from = this.root, withPruned = true): Match {
    const nodes: RadixNode[] = [];
    const start = endIndex(from);
    let at = start;
    let lastLength = 0;
    for (let node = from; at < limit; ) {
      if (withPruned && node.prunedChildren.size > 0) {
        const rest = this.#prunedMatch(node, tokenIds, limit);
        if (rest)
          return {
            nodes: [...nodes, ...rest.nodes],
            lastLength: rest.lastLength,
            numTokens: at - start + rest.numTokens,
          };
      }
      const child = node.children.get(tokenIds[at]!);
      if (!child) break;
      const length = commonLength(child, tokenIds, at, limit);
      nodes.push(child);
      lastLength = length;
      at += length;
      if (length < child.tokenIds.length) break;
      node = child;
    }
    return { nodes, lastLength, numTokens: at - start };
  }

  /**
   * Splits a node after `at` tokens and returns the new upper part. `node` becomes the lower part, so paths that end in
   * it stay valid.
   */
  split(node: RadixNode, at: number): RadixNode {
    if (node.pruned) throw new Error('A pruned node cannot be split.');
    this.version++;
    const parent = node.parent!;
    const halves = node.stored && this.#store.split(node.stored, at);
    const upper = newNode(parent, node.tokenIds.slice(0, at), node.startIndex);
    upper.refCount = node.refCount;
    upper.storedRefs = node.storedRefs;
    upper.lastUse = node.lastUse;
    upper.pinned = node.pinned;
    upper.worth = node.worth;
    upper.tag = node.tag;
    upper.lossy = lossyWithin(node.lossy, 0, at);
    node.lossy = lossyWithin(node.lossy, at);
    if (node.slots) {
      upper.slots = node.slots.slice(0, at);
      node.slots = node.slots.slice(at);
    }
    if (halves) [upper.stored, node.stored] = halves;
    node.tokenIds = node.tokenIds.slice(at);
    node.startIndex += at;
    node.parent = upper;
    upper.children.set(node.tokenIds[0]!, node);
    parent.children.set(upper.tokenIds[0]!, upper);
    this.numNodes++;
    return upper;
  }

  /** Adds a node in the pool below `parent`. */
  insert(parent: RadixNode, tokenIds: number[], slots: Int32Array): RadixNode {
    const node = this.#add(parent, tokenIds);
    node.slots = slots;
    return node;
  }

  /** Adds a node in the store below `parent`. */
  insertStored(parent: RadixNode, tokenIds: number[], stored: StoredRun, lossy: Lossy): RadixNode {
    const node = this.#add(parent, tokenIds);
    node.stored = stored;
    node.lossy = lossy;
    return node;
  }

  /** Appends tokens with exact rows to a leaf that is only in the pool. */
  extend(leaf: RadixNode, tokenIds: number[], slots: Int32Array): void {
    this.version++;
    for (const tokenId of tokenIds) leaf.tokenIds.push(tokenId);
    this.numTokens += tokenIds.length;
    const all = new Int32Array(leaf.slots!.length + slots.length);
    all.set(leaf.slots!);
    all.set(slots, leaf.slots!.length);
    leaf.slots = all;
  }

  /** Appends tokens to a leaf that is only in the store. `stored`: all rows of the leaf. `lossy`: of the new rows. */
  extendStored(leaf: RadixNode, tokenIds: number[], stored: StoredRun, lossy: Lossy): void {
    this.version++;
    const at = leaf.tokenIds.length;
    leaf.lossy = joinLossy(
      leaf.lossy,
      lossy.map(({ from, to, codec }) => ({ from: at + from, to: at + to, codec })),
    );
    for (const tokenId of tokenIds) leaf.tokenIds.push(tokenId);
    this.numTokens += tokenIds.length;
    leaf.stored = stored;
  }

  /** Marks a node as pruned: from now on not all its tokens have rows. */
  prune(node: RadixNode, by: string): void {
    this.version++;
    const { children, prunedChildren } = node.parent!;
    children.delete(node.tokenIds[0]!);
    node.pruned = by;
    children.set(-1 - this.#numPruned++, node);
    prunedChildren.add(node);
  }

  /** Removes a leaf from the tree. @throws Error when it is not a leaf or a lease uses it. */
  remove(leaf: RadixNode): void {
    if (leaf.children.size > 0 || isUsed(leaf))
      throw new Error('Only an unreferenced leaf can be removed from the prefix tree.');
    this.version++;
    const { children, prunedChildren } = leaf.parent!;
    // The key of a pruned node is known only to the map.
    for (const [key, child] of leaf.pruned ? children : []) if (child === leaf) children.delete(key);
    if (!prunedChildren.delete(leaf)) children.delete(leaf.tokenIds[0]!);
    this.numNodes--;
    this.numTokens -= leaf.tokenIds.length;
  }

  /** The longest match that begins with a pruned child. Null where a match without it is as long. */
  #prunedMatch(node: RadixNode, tokenIds: readonly number[], limit: number): Match | null {
    const at = endIndex(node);
    let best: Match | null = null;
    for (const child of node.prunedChildren) {
      const length = child.tokenIds.length;
      if (commonLength(child, tokenIds, at, limit) < length) continue;
      const below = this.match(tokenIds, limit, child);
      const found = {
        nodes: [child, ...below.nodes],
        lastLength: below.nodes.length ? below.lastLength : length,
        numTokens: length + below.numTokens,
      };
      if (!best || found.numTokens > best.numTokens) best = found;
    }
    return best && best.numTokens > this.#exactLength(node, tokenIds, limit) ? best : null;
  }

  /** Length of the match that begins with the child that is not pruned. */
  #exactLength(node: RadixNode, tokenIds: readonly number[], limit: number): number {
    const at = endIndex(node);
    const child = node.children.get(tokenIds[at]!);
    const length = child ? commonLength(child, tokenIds, at, limit) : 0;
    return child && length === child.tokenIds.length ? length + this.match(tokenIds, limit, child).numTokens : length;
  }

  #add(parent: RadixNode, tokenIds: number[]): RadixNode {
    this.version++;
    const node = newNode(parent, tokenIds, endIndex(parent));
    parent.children.set(tokenIds[0]!, node);
    this.numNodes++;
    this.numTokens += tokenIds.length;
    return node;
  }

  /** All nodes but the root, parents before children. */
  *nodes(): Generator<RadixNode> {
    const stack = [...this.root.children.values()];
    for (let node = stack.pop(); node; node = stack.pop()) {
      yield node;
      if (node.children.size > 0) stack.push(...node.children.values());
    }
  }
}

/** Length of the common prefix of a node's tokens and tokenIds[at .. limit). */
export function commonLength(
  { tokenIds: own }: RadixNode,
  tokenIds: readonly number[],
  at: number,
  limit: number,
): number {
  const most = Math.min(own.length, limit - at);
  let length = 0;
  while (length < most && own[length] === tokenIds[at + length]) length++;
  return length;
}

/** The nodes of a match, each with its number of matching tokens. */
export function* lengths(match: Match): Generator<[RadixNode, number]> {
  for (const [i, node] of match.nodes.entries())
    yield [node, i === match.nodes.length - 1 ? match.lastLength : node.tokenIds.length];
}

/** The nodes from the root's child down to `node`. */
export function pathTo(node: RadixNode): RadixNode[] {
  const path: RadixNode[] = [];
  for (let n: RadixNode | null = node; n?.parent; n = n.parent) path.push(n);
  return path.reverse();
}
