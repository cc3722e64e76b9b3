/**
 * Sparse contexts: leases on contexts that are longer than the pool. Spills their rows and says when blocks are chosen
 * again. Does not choose blocks; that is up to ResidentBlocks.
 */
import type { SpillFile } from '../../disk/spillFile.ts';
import type { KvMemory } from '../../kvMemory.ts';
import { sketchedId } from '../../laneIds.ts';
import { type Lease, numComputed, type PartialRows } from '../../lease.ts';
import { endIndex, type Match, pathTo, type RadixNode, type RadixTree } from '../../radixTree.ts';
import type { LongContexts } from '../interfaces.ts';
import { queriesByToken, ResidentBlocks, rowsOf, type SparseRows } from './residentBlocks.ts';
import { SparseBudget, SPILLED_TOKENS } from './sparseBudget.ts';
import { isInParts, matchSketched, SpilledNodes } from './spilledNodes.ts';

/** Name of these rows where codecs are named. */
export const SKETCH = 'sketch';
/** Tokens that are spilled and read together. */
const BLOCK = SPILLED_TOKENS;
/**
 * The last tokens of a prompt, usually the end of the question, are computed twice: first for their queries, which
 * choose the blocks, then with these blocks.
 */
export const LAST_PART = 16;
/** Tokens of an answer between two choices. */
const STRIDE = 16;
/**
 * How many of the last tokens before a choice return their queries: at the end of a prompt, at the end of a stride. In
 * the rest of a prompt the newest blocks are resident: choosing others at the end of each part gained nothing
 * measurable (docs/decisions/0013-sparse-contexts.md).
 */
export const ASKING = { last: 8, stride: 1 };

export interface SparseOptions {
  /** Null: there are no sparse contexts. */
  spillFile?: SpillFile | null;
  /** Whether blocks are chosen by attention; otherwise the newest. True when left out. */
  readonly ranks?: boolean;
  /**
   * Layers whose keys are coded without their bias; none when left out. A sketch ignores positions, but what such a key
   * receives depends mostly on its position.
   */
  readonly biased?: ReadonlySet<number>;
}

/**
 * All rows are in a file. The blocks that tokens attend to most are in pool slots of the lease, and the first and the
 * last blocks always. A sketch of the keys, in memory, tells which blocks those are (SpeCache, arXiv 2503.16163). So
 * rows are computed from a part of what precedes them.
 */
export class SparseLeases implements LongContexts {
  readonly #memory: KvMemory;
  readonly #spilled: SpilledNodes;
  readonly #budget: SparseBudget;
  readonly #resident: ResidentBlocks;
  readonly #ranks: boolean;

  constructor(memory: KvMemory, { spillFile = null, ranks = true, biased = new Set() }: SparseOptions) {
    this.#memory = memory;
    this.#spilled = new SpilledNodes(memory);
    this.#resident = new ResidentBlocks(memory, biased);
    this.#budget = new SparseBudget({
      budget: memory.budget,
      shape: memory.pool.shape,
      storeBytesPerToken: memory.store.bytesPerToken,
      diskBytes: spillFile?.maxBytes ?? 0,
    });
    this.#ranks = ranks;
  }

  get capacity(): number {
    return this.#budget.capacity;
  }

  get diskBound(): number | null {
    return this.#budget.diskBound;
  }

  get prefillTokens(): number {
    return this.#budget.prefillTokens;
  }

  set prefillTokens(numTokens: number) {
    this.#budget.prefillTokens = numTokens;
  }

  match(tree: RadixTree, tokenIds: readonly number[], limit: number, from: RadixNode): Match {
    return matchSketched(tree, tokenIds, limit, from);
  }

  slotsFor(numTokens: number): number {
    return this.#budget.slotsFor(numTokens);
  }

  storeBytes(numTokens: number): number {
    return this.#budget.storeBytes(numTokens);
  }

  maxSlots(rows: PartialRows): number {
    return this.#budget.slotsWith((rows as SparseRows).maxChosen);
  }

  fitsTail({ partial, tail }: Lease, count: number): boolean {
    return !partial || tail.length + count <= this.#budget.slotsWith(0);
  }

  begin(numTokens: number): SparseRows {
    return {
      maxChosen: this.#budget.chosenFor(numTokens),
      resident: [],
      attention: new Map(),
      queries: [],
      isDue: false,
      hasAsked: false,
      lack: null,
    };
  }

  /**
   * Extends a lease by the cached tokens of tokenIds[.. limit). Returns the number of tokens gained. The caller frees
   * the tail, if there is one.
   */
  advance(lease: Lease, tokenIds: readonly number[], limit: number): number {
    const match = matchSketched(this.#memory.tree, tokenIds, limit, lease.node);
    if (match.numTokens === 0) return 0;
    const before = endIndex(lease.node);
    const nodes = this.#memory.nodes.matchedNodes(match);
    // Making space for one node must not evict another one of the path.
    this.#memory.nodes.withReferences(nodes, () => {
      for (const node of nodes) {
        if (!this.#spilled.hold(node)) break;
        this.#memory.nodes.eviction.hit(node, this.#memory.nodes.now - node.lastUse);
        lease.node = node;
      }
    });
    this.#resident.bringIn(lease);
    this.#touch(lease);
    return endIndex(lease.node) - before;
  }

  /**
   * Moves whole blocks of a lease's tail into the tree. Where the tree has the same tokens already, the lease uses that
   * node.
   */
  commit(lease: Lease, tokenIds: readonly number[]): void {
    const { pool, tree } = this.#memory;
    while (lease.tail.length >= BLOCK) {
      rowsOf(lease).lack = null;
      const start = endIndex(lease.node);
      const slots = Int32Array.from(lease.tail.slice(0, BLOCK));
      if (matchSketched(tree, tokenIds, start + BLOCK, lease.node).numTokens > 0) {
        const known = this.advance(lease, tokenIds, start + BLOCK);
        if (known === 0) {
          rowsOf(lease).lack = this.#spilled.lack;
          break;
        }
        this.#memory.nodes.slots.give(lease.tail.splice(0, known));
        continue;
      }
      const ids = tokenIds.slice(start, start + BLOCK);
      const isWhole = lease.numPruned === 0 && !isInParts(lease.node);
      const node = this.#spilled.add(
        lease.node,
        isWhole ? ids : ids.map(sketchedId),
        pool.read(slots),
        isWhole ? [] : [{ from: 0, to: BLOCK, codec: SKETCH }],
      );
      if (!node) {
        rowsOf(lease).lack = this.#spilled.lack;
        break;
      }
      node.tag = lease.tag;
      lease.node = node;
      rowsOf(lease).resident.push({ block: node.stored!.blocks.at(-1)!, slots: lease.tail.splice(0, BLOCK) });
    }
    this.#resident.recount(lease);
    this.#touch(lease);
  }

  /** Frees what a lease has beside its tail. */
  release(lease: Lease): void {
    for (const { slots } of rowsOf(lease).resident) this.#memory.nodes.slots.give(slots);
    for (const node of pathTo(lease.node).reverse()) this.#spilled.letGo(node);
  }

  reusable({ partial }: Lease, numPromptTokens: number): number {
    // The last part must return queries, even if it is cached.
    return partial ? lastPart(numPromptTokens) : Number.POSITIVE_INFINITY;
  }

  partEnd({ partial }: Lease, at: number, numPromptTokens: number): number {
    return partial ? this.#partEnd(at, numPromptTokens) : Number.POSITIVE_INFINITY;
  }

  /** End of the part that token `at` of a prompt or an answer is in. Blocks are chosen again there. */
  #partEnd(at: number, numPromptTokens: number): number {
    if (at >= numPromptTokens) return (Math.floor(at / STRIDE) + 1) * STRIDE;
    const end = (Math.floor(at / this.#budget.part) + 1) * this.#budget.part;
    const last = lastPart(numPromptTokens);
    return at < last ? Math.min(end, last) : numPromptTokens;
  }

  asks({ partial }: Lease, at: number, numPromptTokens: number): boolean {
    return partial !== null && this.#ranks && !(partial as SparseRows).hasAsked && at >= lastPart(numPromptTokens);
  }

  numAsking(lease: Lease, at: number, count: number, numPromptTokens: number): number {
    if (!lease.partial || !this.#ranks) return 0;
    if (this.asks(lease, at, numPromptTokens)) return Math.min(ASKING.last, count);
    if (at < numPromptTokens) return 0;
    return Math.max(0, at + count - Math.max(at, this.#partEnd(at, numPromptTokens) - ASKING.stride));
  }

  saw(lease: Lease, queries: Float32Array, n: number): void {
    rowsOf(lease).queries.push(...queriesByToken(queries, n, this.#memory.pool.shape.headSize));
  }

  reached(lease: Lease, numPromptTokens: number): void {
    if (!lease.partial) return;
    const at = numComputed(lease);
    if (at > 0 && this.#partEnd(at - 1, numPromptTokens) === at) rowsOf(lease).isDue = true;
  }

  asked(lease: Lease): void {
    rowsOf(lease).hasAsked = true;
    rowsOf(lease).isDue = true;
  }

  choose(lease: Lease): void {
    if (!lease.partial || !rowsOf(lease).isDue) return;
    rowsOf(lease).isDue = false;
    this.#resident.choose(lease);
  }

  #touch({ node }: Lease): void {
    const { now } = this.#memory.nodes;
    for (const each of pathTo(node)) each.lastUse = now;
  }
}

/** Index of the first token of a prompt's last part. */
function lastPart(numPromptTokens: number): number {
  return numPromptTokens - LAST_PART;
}
