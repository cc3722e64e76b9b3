/**
 * Which blocks of a sparse lease are in the pool: chooses them by the attention that their sketched keys receive, and
 * copies their rows in. Does not decide when blocks are chosen; that is up to SparseLeases.
 */
import { LostRows } from '../../disk/spillFile.ts';
import type { KvMemory } from '../../kvMemory.ts';
import type { Lack, Lease, PartialRows } from '../../lease.ts';
import { endIndex, pathTo, type RadixNode } from '../../radixTree.ts';
import type { StoredBlock } from '../../storedBlocks.ts';
import { sketchedAttention, type SketchedBlock } from './keySketch.ts';

/**
 * Largest share of the chosen tokens, without the first block, that is reserved for the last blocks of the context
 * (measured: docs/decisions/0013-sparse-contexts.md). In a context of few blocks attention chooses more of them.
 */
const RECENT_SHARE = 0.5;
/** Multiplications of query and key values that one choice may take: a third of a second on two slow cores. */
const MAX_PRODUCTS = 5e8;

/** A block of a context. */
export interface Choosable {
  readonly numTokens: number;
  /** What the block receives of the queries' attention; 0 before the first choice. */
  readonly attention: number;
}

/** A block of a lease that is in the pool. */
interface ResidentBlock {
  readonly block: StoredBlock;
  readonly slots: number[];
}

/** What a sparse lease has instead of a path in the pool. */
export interface SparseRows extends PartialRows {
  /** Most slots of chosen blocks. */
  readonly maxChosen: number;
  resident: ResidentBlock[];
  /** The largest share of any query's attention that each block had at the last choice (see keySketch). */
  attention: ReadonlyMap<StoredBlock, number>;
  /** Queries of tokens since then, each [numLayers * numHeads, headSize]. */
  readonly queries: Float32Array[];
  /** Blocks have to be chosen again before more is computed. */
  isDue: boolean;
  /** The last tokens of the prompt have been computed for their queries. */
  hasAsked: boolean;
  lack: Lack | null;
}

/** A block of a path, its node, and the position of its first token. */
interface PlacedBlock {
  readonly block: StoredBlock;
  readonly node: RadixNode;
  readonly startIndex: number;
}

/** The rows of a sparse lease. SparseLeases makes all partial leases. */
export function rowsOf({ partial }: Lease): SparseRows {
  return partial as SparseRows;
}

export class ResidentBlocks {
  readonly #memory: KvMemory;
  readonly #biased: ReadonlySet<number>;

  /** `biased`: layers that are ignored (see SparseOptions). */
  constructor(memory: KvMemory, biased: ReadonlySet<number>) {
    this.#memory = memory;
    this.#biased = biased;
  }

  /** Chooses blocks by the queries since the last choice, and brings them into the pool. */
  choose(lease: Lease): void {
    const sparse = rowsOf(lease);
    const { queries } = sparse;
    if (queries.length > 0) {
      const sketched = this.#blocks(lease).flatMap(({ block }) =>
        block.sketch ? [{ block, sketch: block.sketch, from: block.part?.from ?? 0, numTokens: block.numRows }] : [],
      );
      const attention = this.#attention(sketched, queries);
      sparse.attention = new Map(sketched.map(({ block }, i) => [block, attention[i]!]));
      queries.length = 0;
    }
    this.bringIn(lease);
  }

  /** Brings the chosen blocks into the pool and frees the others. A block whose rows are lost fails the lease. */
  bringIn(lease: Lease): void {
    const sparse = rowsOf(lease);
    const placed = this.#blocks(lease);
    const choosable = placed.map(({ block }) => ({
      block,
      numTokens: block.numRows,
      attention: sparse.attention.get(block) ?? 0,
    }));
    const wanted = new Set(Array.from(chosenBlocks(choosable, sparse.maxChosen), ({ block }) => block));
    const resident = new Map(sparse.resident.map((each) => [each.block, each]));
    for (const each of sparse.resident) {
      if (wanted.has(each.block)) continue;
      this.#memory.nodes.slots.give(each.slots);
      resident.delete(each.block);
    }
    for (const placedBlock of placed) {
      const { block } = placedBlock;
      if (!wanted.has(block) || resident.has(block)) continue;
      const slots = this.#copyIn(lease, placedBlock);
      if (slots) resident.set(block, { block, slots: [...slots] });
    }
    sparse.resident = placed.flatMap(({ block }) => resident.get(block) ?? []);
    this.recount(lease);
  }

  /** Call it when the path or the resident blocks of a lease have changed. */
  recount(lease: Lease): void {
    lease.numPruned = endIndex(lease.node) - rowsOf(lease).resident.reduce((sum, { slots }) => sum + slots.length, 0);
    lease.numKnown = 0;
    lease.numPaged = 0;
    lease.pages.clear();
  }

  /** Null when the pool has no free slots for the block, or its rows are lost. */
  #copyIn(lease: Lease, { block, node, startIndex }: PlacedBlock): Int32Array | null {
    const slots = this.#memory.allocate(block.numRows);
    if (!slots) return null;
    try {
      this.#memory.pool.write(slots, block.rows(), 0, block.positions ?? startIndex);
    } catch (error) {
      if (!(error instanceof LostRows)) throw error;
      this.#memory.free(slots);
      this.#memory.nodes.lose(node, error);
      lease.failure = error;
      return null;
    }
    this.#memory.nodes.events.promotions++;
    return slots;
  }

  /**
   * What each block receives. Uses only so many of the last queries, and only every second, third, ... layer, that it
   * takes no longer than a step.
   */
  #attention(blocks: readonly SketchedBlock[], queries: readonly Float32Array[]): Float32Array {
    const { shape } = this.#memory.pool;
    const perQuery = blocks.reduce((sum, { numTokens }) => sum + numTokens, 0) * queries[0]!.length;
    const asking = queries.slice(-Math.max(1, Math.floor(MAX_PRODUCTS / perQuery)));
    const every = Math.ceil(perQuery / MAX_PRODUCTS);
    const without = new Set(this.#biased);
    for (let l = 0; l < shape.numLayers; l++) if ((shape.numLayers - 1 - l) % every !== 0) without.add(l);
    return sketchedAttention(shape, blocks, asking, without);
  }

  /** All blocks of a lease's path, in order. */
  #blocks(lease: Lease): PlacedBlock[] {
    const placed: PlacedBlock[] = [];
    for (const node of pathTo(lease.node)) {
      let { startIndex } = node;
      for (const block of node.stored!.blocks) {
        placed.push({ block, node, startIndex });
        startIndex += block.numTokens;
      }
    }
    return placed;
  }
}

/**
 * Pure: the blocks of a context that should be in the pool, at most `mostTokens` tokens: the first block, the last
 * ones, and those that receive most attention. `blocks` are in order.
 */
export function chosenBlocks<T extends Choosable>(blocks: readonly T[], mostTokens: number): Set<T> {
  const chosen = new Set<T>();
  let left = mostTokens;
  const take = (block: T): void => {
    if (chosen.has(block) || block.numTokens > left) return;
    left -= block.numTokens;
    chosen.add(block);
  };
  if (blocks.length > 0) take(blocks[0]!);
  const others = left - Math.floor(RECENT_SHARE * left);
  for (let i = blocks.length - 1; i >= 0 && left - blocks[i]!.numTokens >= others; i--) take(blocks[i]!);
  // Of blocks with equal attention the newest comes first.
  for (const { block } of blocks
    .map((block, i) => ({ block, i }))
    .sort((a, b) => b.block.attention - a.block.attention || b.i - a.i))
    take(block);
  return chosen;
}

/** Queries [numHeads, n, headSize] of all layers' heads, by token: n arrays [numHeads, headSize]. */
export function queriesByToken(queries: Float32Array, n: number, headSize: number): Float32Array[] {
  const numHeads = queries.length / (n * headSize);
  return Array.from({ length: n }, (_, i) => {
    const token = new Float32Array(numHeads * headSize);
    for (let h = 0; h < numHeads; h++)
      token.set(queries.subarray((h * n + i) * headSize, (h * n + i + 1) * headSize), h * headSize);
    return token;
  });
}
