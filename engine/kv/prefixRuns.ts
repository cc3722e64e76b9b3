/** What is cached of a prefix: describes it, evicts it, pins it. */
import type { Tier } from '../protocol/stats.ts';
import { codecsOf, lossyWithin } from './approx/lossyRows.ts';
import { matchSketched } from './approx/sparse/sparseLeases.ts';
import type { KvMemory } from './kvMemory.ts';
import { commonLength, isUsed, lengths, type RadixTree, type RadixNode } from './radixTree.ts';

/**
 * What is cached of a prefix, where most of it is, whether most of it is in the store besides the pool, and what parts
 * of it have been through: rules by which rows were let go of, lossy codecs. Changes nothing.
 */
export function describePrefix(
  { tree, budget }: KvMemory,
  tokenIds: readonly number[],
): { tokens: number; bytes: number; tier: Tier; twice?: true; codecs: string[] } {
  const match = matchSketched(tree, tokenIds, tokenIds.length, tree.root);
  let inPool = 0;
  let inBoth = 0;
  let bytes = 0;
  const codecs = new Set<string>();
  for (const [node, length] of lengths(match)) {
    if (node.slots) inPool += length;
    if (node.slots && node.stored) inBoth += length;
    if (node.slots) bytes += Math.round((length / node.tokenIds.length) * node.slots.length) * budget.bytesPerSlot;
    // A part of a run takes its share of the whole.
    if (node.stored) bytes += Math.round((length / node.tokenIds.length) * node.stored.bytes);
    if (node.pruned) codecs.add(node.pruned);
    for (const codec of codecsOf(node.pruned ? node.lossy : lossyWithin(node.lossy, 0, length))) codecs.add(codec);
  }
  const tokens = match.numTokens;
  return {
    tokens,
    bytes,
    tier: tokens === 0 ? 'none' : 2 * inPool >= tokens ? 'pool' : 'store',
    ...(tokens > 0 && 2 * inBoth >= tokens ? { twice: true } : {}),
    codecs: [...codecs],
  };
}

/** Drops what no sequence references and goes on from this prefix; `pinned`: pinned runs, too. */
export function evictPrefix(memory: KvMemory, prefix: readonly number[], pinned: boolean): void {
  const dropBelow = (node: RadixNode): void => {
    for (const child of [...node.children.values()]) {
      dropBelow(child);
      dropLeaf(child);
    }
  };
  const dropLeaf = (node: RadixNode): void => {
    if (!isUsed(node) && node.children.size === 0 && (pinned || !node.pinned)) memory.nodes.drop(node);
  };
  /** `at`: tokens of the prefix that lead to the node. */
  const follow = (node: RadixNode, at: number): void => {
    if (at === prefix.length) return dropBelow(node);
    for (const child of [...node.children.values()]) {
      const length = commonLength(child, prefix, at, prefix.length);
      if (length === child.tokenIds.length) follow(child, at + length);
      else if (at + length < prefix.length) continue;
      else if (!child.pruned) dropBelow(memory.nodes.split(child, length));
      else {
        // It cannot be cut: what the prefix has of it goes, too.
        dropBelow(child);
        dropLeaf(child);
      }
    }
  };
  follow(memory.tree.root, 0);
}

/** Prefixes whose runs stay until all others are gone, those still to come included. */

export class Pins {
  readonly #tree: RadixTree;
  /** Token prefixes by key. */
  readonly #pinned = new Map<string, readonly number[]>();

  constructor(tree: RadixTree) {
    this.#tree = tree;
  }

  /** null ends it. */
  pin(key: string, tokenIds: readonly number[] | null): void {
    if (tokenIds) this.#pinned.set(key, tokenIds);
    else this.#pinned.delete(key);
    for (const node of this.#tree.nodes()) node.pinned = false;
    this.mark();
  }

  /** Runs have come into the tree. */
  mark(): void {
    for (const tokenIds of this.#pinned.values())
      for (const node of this.#tree.match(tokenIds).nodes) node.pinned = true;
  }
}
