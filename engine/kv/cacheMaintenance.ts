/**
 * Maintenance of cached nodes outside requests: takes rows for the disk tier and brings them back, compresses nodes
 * that are long
 * unused, prunes rows. Decides which nodes. Does not move rows itself.
 */

import type { KvCodec } from './approx/codecs/kvCodec.ts';
import { type Coding, deepestEnd, placeOf } from './approx/codedPage.ts';
import { type Compression, levelFor } from './approx/compression.ts';
import { isExact } from './approx/lossyRows.ts';
import { nextToCode } from './approx/toCode.ts';
import type { KvMemory } from './kvMemory.ts';
import { joinRows, type KvRows, sliceRows } from './kvRows.ts';
import { endIndex, isUsed, lengths, type RadixNode } from './radixTree.ts';
import { plainBlock, runOf, type StoredBlock } from './storedBlocks.ts';

export class CacheMaintenance {
  readonly #memory: KvMemory;
  readonly #clock: () => number;
  readonly #compression: Compression | null;
  readonly #onInsert: () => void;
  /** Runs to be coded, the next one last: to look for them takes time, and there is more than a block of each. */
  #toCode: RadixNode[] = [];

  /** `onInsert`: runs have come into the tree. */
  constructor(
    memory: KvMemory,
    options: { clock: () => number; compression: Compression | null; onInsert: () => void },
  ) {
    this.#memory = memory;
    this.#clock = options.clock;
    this.#compression = options.compression;
    this.#onInsert = options.onInsert;
  }

  /** What runs are coded with where memory is as short as now; null: with nothing, however old. */
  get coding(): Coding | null {
    const { levels = [], only = null } = this.#compression ?? {};
    const { fullness } = this.#memory;
    if (only !== null || !levels.some((level) => fullness >= level.fullness)) return null;
    const now = this.#clock();
    return (node) => (node.pruned ? null : (levelFor(levels, now - node.lastUse, fullness)?.codec ?? null));
  }

  /**
   * Codes a block more of the store, of what has been out of use longest, with what its age and the fullness of the
   * budget call for
   * (see compression.ts); false when there is nothing to be coded.
   */
  compress(): boolean {
    if (this.#codeNext()) return true;
    this.#toCode = this.#findToCode();
    return this.#codeNext();
  }

  /** What a run of the store is coded with now, as far as nobody uses it; null: with nothing. */
  #codecFor(node: RadixNode): KvCodec | null {
    const { levels = [], only = null } = this.#compression ?? {};
    if (isUsed(node) || node.slots || !node.stored || (node.pruned !== null) !== (only === 'kept')) return null;
    return levelFor(levels, this.#clock() - node.lastUse, this.#memory.fullness)?.codec ?? null;
  }

  /** Runs of which a block may be coded, those that go first last. */
  #findToCode(): RadixNode[] {
    const { tree, pool } = this.#memory;
    const { fullness } = this.#memory;
    if (!this.#compression?.levels.some((level) => fullness >= level.fullness)) return [];
    const nodes = [...tree.nodes()];
    // Parents come before their children: backwards each asks only its own for theirs.
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
   * Codes a block of the first of those that were found; they may have been used since, or be gone. False where there
   * is none.
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

  /**
   * Takes blocks over as the rows of tokenIds[startIndex ..] where those are missing and what stands before them is
   * here. Returns
   * the number of tokens gained; 0 also where there is no room, or those before them are lost. The blocks are not
   * coded: rows as they were computed.
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
    this.#onInsert();
    return node.tokenIds.length;
  }

  /**
   * A copy of the rows of tokenIds[from .. to) as they were computed; null where some are missing or lost, or not all
   * of tokenIds[0 .. to) are: later rows may have been computed from those.
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
}
