/** Cached prefixes outside requests: describes, evicts and pins them, and exchanges their rows with the disk tier. */
import type { Tier } from '../protocol/stats.ts';
import { codecsOf, isExact, lossyWithin, plainBlock, runOf, type StoredBlock } from './storedBlocks.ts';
import type { LongContexts } from './approx/interfaces.ts';
import type { KvMemory } from './kvMemory.ts';
import { joinRows, type KvRows, sliceRows } from './kvRows.ts';
import { commonLength, endIndex, isUsed, lengths, type RadixNode } from './radixTree.ts';

/** What is cached of a prefix. */
export interface PrefixState {
  /** Cached tokens. */
  tokens: number;
  bytes: number;
  /** Where most of the tokens are. */
  tier: Tier;
  /** Most of the tokens are in the store and in the pool. */
  twice?: true;
  /** What parts of the rows have been through: pruning rules and lossy codecs. */
  codecs: string[];
}

export class CachedPrefixes {
  readonly #memory: KvMemory;
  readonly #longContexts: LongContexts;
  /** Token prefixes by key. */
  readonly #pinned = new Map<string, readonly number[]>();

  constructor(memory: KvMemory, longContexts: LongContexts) {
    this.#memory = memory;
    this.#longContexts = longContexts;
  }

  /** Changes nothing. */
  describe(tokenIds: readonly number[]): PrefixState {
    const { tree, budget } = this.#memory;
    const match = this.#longContexts.match(tree, tokenIds, tokenIds.length, tree.root);
    let inPool = 0;
    let inBoth = 0;
    let bytes = 0;
    const codecs = new Set<string>();
    for (const [node, length] of lengths(match)) {
      if (node.slots) inPool += length;
      if (node.slots && node.stored) inBoth += length;
      if (node.slots) bytes += Math.round((length / node.tokenIds.length) * node.slots.length) * budget.bytesPerSlot;
      // A part of a node counts its share of the whole.
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

  /** Drops unreferenced nodes that continue this prefix. `pinned`: pinned nodes too. */
  evict(prefix: readonly number[] = [], pinned = prefix.length > 0): void {
    const dropBelow = (node: RadixNode): void => {
      for (const child of [...node.children.values()]) {
        dropBelow(child);
        dropLeaf(child);
      }
    };
    const dropLeaf = (node: RadixNode): void => {
      if (!isUsed(node) && node.children.size === 0 && (pinned || !node.pinned)) this.#memory.nodes.drop(node);
    };
    /** `at`: tokens of the prefix that lead to the node. */
    const follow = (node: RadixNode, at: number): void => {
      if (at === prefix.length) return dropBelow(node);
      for (const child of [...node.children.values()]) {
        const length = commonLength(child, prefix, at, prefix.length);
        if (length === child.tokenIds.length) follow(child, at + length);
        else if (at + length < prefix.length) continue;
        else if (!child.pruned) dropBelow(this.#memory.nodes.split(child, length));
        else {
          // A pruned node cannot be split, so its part of the prefix is dropped too.
          dropBelow(child);
          dropLeaf(child);
        }
      }
    };
    follow(this.#memory.tree.root, 0);
  }

  /** Nodes of this prefix are evicted last, those that are added later too. Null ends it. */
  pin(key: string, tokenIds: readonly number[] | null): void {
    if (tokenIds) this.#pinned.set(key, tokenIds);
    else this.#pinned.delete(key);
    for (const node of this.#memory.tree.nodes()) node.pinned = false;
    this.markPinned();
  }

  /**
   * Adds blocks with exact rows as tokenIds[startIndex ..], as far as these tokens are missing and those before them
   * are cached. Returns the number of tokens gained; 0 when there is no space for the blocks.
   */
  takeStored(tokenIds: readonly number[], startIndex: number, blocks: readonly StoredBlock[], tag: string): number {
    const { tree, pool } = this.#memory;
    const end = startIndex + runOf(blocks).numTokens;
    const match = tree.match(tokenIds, end);
    if (match.numTokens < startIndex || match.numTokens === end) return 0;
    let skipped = match.numTokens - startIndex;
    const rest = blocks.flatMap((block) => {
      const from = Math.min(skipped, block.numTokens);
      skipped -= from;
      if (from === 0) return [block];
      return from === block.numTokens ? [] : [plainBlock(sliceRows(pool.shape, block.rows(), from, block.numTokens))];
    });
    const last = match.nodes.at(-1) ?? tree.root;
    const parent = match.nodes.length > 0 ? this.#memory.nodes.beginning(last, match.lastLength) : last;
    const node = this.#memory.insertStored(parent, tokenIds.slice(match.numTokens, end), rest);
    if (!node) return 0;
    node.tag = tag;
    this.markPinned();
    return node.tokenIds.length;
  }

  /**
   * A copy of the exact rows of tokenIds[from .. to). Null where rows of tokenIds[0 .. to) are missing, lost or lossy,
   * because later rows may have been computed from lossy ones.
   */
  readExact(tokenIds: readonly number[], from: number, to: number): KvRows | null {
    const match = this.#memory.tree.match(tokenIds, to);
    const { nodes, numTokens } = match;
    if (numTokens < to) return null;
    for (const [node, length] of lengths(match)) if (node.pruned || !isExact(node.lossy, 0, length)) return null;
    const parts: KvRows[] = [];
    for (const node of nodes.filter((each) => endIndex(each) > from)) {
      const rows = this.#memory.read(
        node,
        Math.max(0, from - node.startIndex),
        Math.min(to, endIndex(node)) - node.startIndex,
      );
      if (!rows) return null;
      parts.push(rows);
    }
    return joinRows(this.#memory.pool.shape, parts);
  }

  /** Call it when nodes were added to the tree. */
  markPinned(): void {
    for (const tokenIds of this.#pinned.values())
      for (const node of this.#memory.tree.match(tokenIds).nodes) node.pinned = true;
  }
}
