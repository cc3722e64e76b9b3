/**
 * Compresses long unused rows of the store, block by block, in idle maintenance. Decides which nodes, and by which
 * codec. Does not demote nodes from the pool; that is up to IdleDemotion, which uses `coding`.
 */
import type { KvMemory } from '../kvMemory.ts';
import { isUsed, type RadixNode } from '../radixTree.ts';
import { type Coding, deepestEnd, placeOf } from './codedPage.ts';
import type { KvCodec } from './codecs/kvCodec.ts';
import { type Compression, levelFor, nextToCode } from './compression.ts';

export class StoreCompression {
  readonly #memory: KvMemory;
  readonly #compression: Compression | null;
  /** Nodes to be compressed, the next one last. Kept, because finding them takes time and most have several blocks. */
  #toCode: RadixNode[] = [];

  /** `compression` null: nothing is compressed. */
  constructor(memory: KvMemory, compression: Compression | null) {
    this.#memory = memory;
    this.#compression = compression;
  }

  /** The codec of each node at the present fullness of the budget. Null: no node is compressed, however old. */
  get coding(): Coding | null {
    const { levels = [], only = null } = this.#compression ?? {};
    const { fullness } = this.#memory;
    if (only !== null || !levels.some((level) => fullness >= level.fullness)) return null;
    const now = this.#memory.nodes.now;
    return (node) => (node.pruned ? null : (levelFor(levels, now - node.lastUse, fullness)?.codec ?? null));
  }

  /**
   * Compresses one more block of the store, of the node that is evicted first, by the codec for its age and the
   * fullness of the budget (see compression.ts). Returns false when there is nothing to compress.
   */
  compress(): boolean {
    if (this.#codeNext()) return true;
    this.#toCode = this.#findToCode();
    return this.#codeNext();
  }

  /** The codec for a stored node now. Null: none, or the node is in use. */
  #codecFor(node: RadixNode): KvCodec | null {
    const { levels = [], only = null } = this.#compression ?? {};
    if (isUsed(node) || node.slots || !node.stored || (node.pruned !== null) !== (only === 'kept')) return null;
    return levelFor(levels, this.#memory.nodes.now - node.lastUse, this.#memory.fullness)?.codec ?? null;
  }

  /** Nodes with a block that can be compressed, the first to be evicted last. */
  #findToCode(): RadixNode[] {
    const { tree, pool } = this.#memory;
    const { fullness } = this.#memory;
    if (!this.#compression?.levels.some((level) => fullness >= level.fullness)) return [];
    const nodes = [...tree.nodes()];
    // Backwards, because parents come first: so the ends of all children are known.
    const ends = new Map<RadixNode, number>();
    for (const node of nodes.toReversed())
      ends.set(
        node,
        deepestEnd(node, (child) => ends.get(child)),
      );
    const order = this.#memory.nodes.order();
    const mayBeCoded = (node: RadixNode): boolean => {
      const codec = this.#codecFor(node);
      return (
        codec !== null &&
        nextToCode(
          pool.shape,
          node.stored!,
          codec,
          { startIndex: node.startIndex, contextEnd: ends.get(node)! },
          node.lossy,
        ) !== null
      );
    };
    return nodes.filter(mayBeCoded).sort((a, b) => order(b, a));
  }

  /**
   * Compresses a block of the next of the nodes that were found; some may have been used or dropped since. Returns
   * false when none is left.
   */
  #codeNext(): boolean {
    for (let node = this.#toCode.at(-1); node; node = this.#toCode.at(-1)) {
      const codec = this.#codecFor(node);
      const coded = codec && this.#memory.store.compress(node.stored!, codec, placeOf(node), node.lossy);
      if (coded) {
        node.stored = coded.run;
        node.lossy = coded.lossy;
        return true;
      }
      this.#toCode.pop();
    }
    return false;
  }
}
