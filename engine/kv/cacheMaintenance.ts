/**
 * Maintenance of cached nodes outside requests: takes rows for the disk tier and brings them back, compresses nodes
 * that are long
 * unused, prunes rows. Decides which nodes. Does not move rows itself.
 */

import type { KvCodec } from './approx/codecs/kvCodec.ts';
import { type Coding, deepestEnd, placeOf } from './approx/codedPage.ts';
import { type Compression, levelFor } from './approx/compression.ts';
import { isExact } from './approx/lossyRows.ts';
import { keptTokens, type PruningName, pieceLengths, rowsOf } from './approx/pruned/keptRows.ts';
import { nextToCode } from './approx/toCode.ts';
import type { KvMemory } from './kvMemory.ts';
import { joinRows, type KvRows, sliceRows } from './kvRows.ts';
import { endIndex, isUsed, lengths, numRows, pathTo, type RadixNode } from './radixTree.ts';
import { plainBlock, runOf, type StoredBlock } from './storedBlocks.ts';

/** Shorter runs keep their rows. */
const MIN_PRUNED = 64;

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

  /** Share that is taken of what runs may take. */
  get fullness(): number {
    return this.#memory.bytes / Math.max(1, this.#memory.budget.limit);
  }

  /** What runs are coded with where memory is as short as now; null: with nothing, however old. */
  get coding(): Coding | null {
    const { levels = [], only = null } = this.#compression ?? {};
    const { fullness } = this;
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
    return levelFor(levels, this.#clock() - node.lastUse, this.fullness)?.codec ?? null;
  }

  /** Runs of which a block may be coded, those that go first last. */
  #findToCode(): RadixNode[] {
    const { tree, pool } = this.#memory;
    const { fullness } = this;
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
   * Of a prefix, from token `from` on: how many tokens could lose rows, being in exact runs that nobody has used since
   * `before`, and which is the first.
   */
  prunable(tokenIds: readonly number[], from: number, before: number): { numTokens: number; first: number } {
    let [numTokens, first] = [0, Number.POSITIVE_INFINITY];
    for (const [node, length] of lengths(this.#memory.tree.match(tokenIds))) {
      if (!mayPrune(node, length, from) || node.lastUse > before) continue;
      const start = Math.max(from, node.startIndex);
      numTokens += node.startIndex + length - start;
      first = Math.min(first, start);
    }
    return { numTokens, first };
  }

  /** Slots that a prefix would take in the pool beyond those that it has, as far as it is cached. */
  numOutside(tokenIds: readonly number[]): number {
    return this.#memory.tree.match(tokenIds).nodes.reduce((sum, node) => sum + (node.slots ? 0 : numRows(node)), 0);
  }

  /**
   * Lets rows of a prefix go, from token `from` on: of each run a share `keep` of the tokens stays, those that
   * keptTokens
   * says of these layers. `attention` [numLayers * kvHeads, rows]: what each row of the prefix receives.
   */
  prune(
    tokenIds: readonly number[],
    from: number,
    attention: Float32Array,
    options: { keep: number; layers: ReadonlySet<number>; name: PruningName },
  ): void {
    const { shape } = this.#memory.pool;
    const numHeads = shape.numLayers * shape.kvHeads;
    const width = attention.length / numHeads;
    let row = 0;
    for (const [node, mayGo] of this.#pieces(tokenIds, from)) {
      const n = numRows(node);
      const first = row;
      row += n;
      if (!mayGo || row > width) continue;
      const own = new Float32Array(numHeads * n);
      for (let h = 0; h < numHeads; h++) own.set(attention.subarray(h * width + first, h * width + row), h * n);
      const kept = keptTokens(shape, own, Math.ceil(options.keep * n), options.layers, node.startIndex);
      const all = this.#memory.read(node, 0, n);
      // What goes on from it has gone with it.
      if (!all) return;
      const rows = rowsOf(kept, shape, all);
      this.#memory.nodes.prune(
        node,
        rows,
        kept.map((token) => node.startIndex + token),
        options.name,
      );
    }
  }

  /**
   * The runs of a prefix, and whether rows of them may go; those are cut into pieces, for what is pruned is of use only
   * as a whole.
   */
  *#pieces(tokenIds: readonly number[], from: number): Generator<[RadixNode, boolean]> {
    for (const [found, length] of lengths(this.#memory.tree.match(tokenIds))) {
      if (!mayPrune(found, length, from)) {
        yield [found, false];
        continue;
      }
      const whole = this.#memory.nodes.beginning(found, length);
      // What is left of it after each cut keeps its identity.
      if (whole.startIndex < from) yield [this.#memory.nodes.beginning(whole, from - whole.startIndex), false];
      for (const size of pieceLengths(whole.tokenIds.length)) yield [this.#memory.nodes.beginning(whole, size), true];
    }
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

  /**
   * What requests of this tag have computed and nothing else goes on from: their tokens, and where what is theirs
   * alone, with all rows, begins.
   */
  *ownRuns(tag: string): Generator<{ of: object; ids: number[]; from: number }> {
    for (const leaf of this.#memory.tree.nodes()) {
      if (leaf.children.size > 0 || leaf.tag !== tag || leaf.pruned) continue;
      let top = leaf;
      while (top.parent?.parent && top.parent.children.size === 1 && top.parent.tag === tag && !top.parent.pruned)
        top = top.parent;
      yield { of: leaf, ids: pathTo(leaf).flatMap((node) => node.tokenIds), from: top.startIndex };
    }
  }
}

/**
 * Whether rows of a run's first `length` tokens, beyond `from`, may go: all are there, as they were computed, and
 * nobody needs them now.
 */
function mayPrune(node: RadixNode, length: number, from: number): boolean {
  const { startIndex, pinned, pruned, lossy } = node;
  const first = Math.max(from - startIndex, 0);
  return !isUsed(node) && !pinned && !pruned && length - first >= MIN_PRUNED && isExact(lossy, first, length);
}
