/**
 * Leases on contexts that are longer than the pool: their rows are on the disk, and each lease has those blocks in
 * slots of its
 * own that its tokens attend to most, as a sketch of the keys in memory says (SpeCache, arXiv 2503.16163); the first
 * block, to which
 * all attend, and the last ones always. Rows are as they were computed, but computed from a part of what stands before
 * them.
 *
 * Owns which blocks are there. Where runs lie is KvMemory's, when to choose anew is the scheduler's.
 */
import { LostRows, type SpillFile } from '../../disk/spillFile.ts';
import { HeldRuns } from './heldRuns.ts';
import { canSketch, sketchedAttention, type SketchedBlock } from './keySketch.ts';
import type { KvMemory } from '../../kvMemory.ts';
import { type Lack, type Lease, numComputed, type PartialRows } from '../../lease.ts';
import type { LongContexts } from '../approximation.ts';
import { isSketched, sketchedId } from '../../laneIds.ts';
import { endIndex, type Match, pathTo, type RadixTree, type RadixNode } from '../../radixTree.ts';
import { ASKING, chosenBlocks, LAST_PART, queriesByToken, SKETCH, STRIDE } from './sparseChoice.ts';
import { SparseRoom, SPILLED_TOKENS } from './sparseRoom.ts';
import type { StoredBlock } from '../../storedBlocks.ts';

/** Tokens that come and go together. */
const BLOCK = SPILLED_TOKENS;
/** Values of queries times tokens that a choice may take: a third of a second on two slow cores. */
const MAX_PRODUCTS = 5e8;

/** As the tree's, with what was computed from parts of its context: first what was not, then what was. */
export function matchSketched(tree: RadixTree, tokenIds: readonly number[], limit: number, from: RadixNode): Match {
  const whole = isInParts(from) ? null : tree.match(tokenIds, limit, from);
  const last = whole?.nodes.at(-1) ?? from;
  // It goes on behind a run, not in the middle of one.
  if (whole && whole.nodes.length > 0 && whole.lastLength < last.tokenIds.length) return whole;
  if (endIndex(last) >= limit || last.children.size === 0) return whole ?? { nodes: [], lastLength: 0, numTokens: 0 };
  const rest = tree.match(tokenIds.slice(0, limit).map(sketchedId), limit, last);
  if (!whole || rest.numTokens === 0) return whole && rest.numTokens === 0 ? whole : rest;
  return {
    nodes: [...whole.nodes, ...rest.nodes],
    lastLength: rest.lastLength,
    numTokens: whole.numTokens + rest.numTokens,
  };
}

/** Whether a run was computed from a part of its context. */
function isInParts({ tokenIds }: RadixNode): boolean {
  return tokenIds.length > 0 && isSketched(tokenIds[0]!);
}

/** A block of a lease that is in the pool. */
interface ResidentBlock {
  readonly block: StoredBlock;
  readonly slots: number[];
}

/** What a partial lease has instead of a path in the pool. */
interface SparseRows extends PartialRows {
  /** Most slots of chosen blocks. */
  readonly maxChosen: number;
  resident: ResidentBlock[];
  /** The largest share of any attention that each block had at the last choice (see keySketch). */
  attention: ReadonlyMap<StoredBlock, number>;
  /** Queries of tokens since then, each [numLayers * numHeads, headSize]. */
  readonly queries: Float32Array[];
  /** Blocks have to be chosen again before more is computed. */
  isDue: boolean;
  /** The last tokens of the prompt have been computed for their queries. */
  hasAsked: boolean;
  lack: Lack | null;
}

/** Index of the first token of a prompt's last part. */
function lastPart(numPromptTokens: number): number {
  return numPromptTokens - LAST_PART;
}

/** All partial leases are made by `begin`. */
function rowsOf({ partial }: Lease): SparseRows {
  return partial as SparseRows;
}

/** A block of a path, the run that it is of, and the position of its first token. */
interface PlacedBlock {
  readonly block: StoredBlock;
  readonly node: RadixNode;
  readonly startIndex: number;
}

export class SparseLeases implements LongContexts {
  readonly #memory: KvMemory;
  readonly #held: HeldRuns;
  readonly #room: SparseRoom;
  readonly #clock: () => number;
  readonly #ranks: boolean;
  readonly #biased: ReadonlySet<number>;

  /**
   * @param spillFile null: there are none of these leases. `ranks`: otherwise the newest blocks are chosen. `biased`:
   * layers whose keys
   * are coded without their bias: what such a key receives depends on its place first of all, and a sketch does not
   * know of that.
   */
  constructor(
    memory: KvMemory,
    {
      spillFile,
      clock,
      ranks,
      biased,
    }: { spillFile: SpillFile | null; clock: () => number; ranks: boolean; biased: ReadonlySet<number> },
  ) {
    this.#memory = memory;
    this.#held = new HeldRuns(memory);
    const { shape } = memory.pool;
    this.#room = new SparseRoom({
      budget: memory.budget,
      shape,
      storeBytesPerToken: memory.store.bytesPerToken,
      diskBytes: canSketch(shape) ? (spillFile?.maxBytes ?? 0) : 0,
    });
    this.#clock = clock;
    this.#ranks = ranks;
    this.#biased = biased;
  }

  get capacity(): number {
    return this.#room.capacity;
  }

  get diskBound(): number | null {
    return this.#room.diskBound;
  }

  get prefillTokens(): number {
    return this.#room.prefillTokens;
  }

  set prefillTokens(numTokens: number) {
    this.#room.prefillTokens = numTokens;
  }

  slotsFor(numTokens: number): number {
    return this.#room.slotsFor(numTokens);
  }

  storeBytes(numTokens: number): number {
    return this.#room.storeBytes(numTokens);
  }

  maxSlots(rows: PartialRows): number {
    return this.#room.slotsWith((rows as SparseRows).maxChosen);
  }

  fitsTail({ partial, tail }: Lease, count: number): boolean {
    return !partial || tail.length + count <= this.#room.slotsWith(0);
  }

  begin(numTokens: number): SparseRows {
    return {
      maxChosen: this.#room.chosenFor(numTokens),
      resident: [],
      attention: new Map(),
      queries: [],
      isDue: false,
      hasAsked: false,
      lack: null,
    };
  }

  /**
   * Moves a lease on to what the tree holds of tokenIds[.. limit); returns the number of tokens gained. Its tail, if
   * any, is the caller's to let go.
   */
  advance(lease: Lease, tokenIds: readonly number[], limit: number): number {
    const match = matchSketched(this.#memory.tree, tokenIds, limit, lease.node);
    if (match.numTokens === 0) return 0;
    const before = endIndex(lease.node);
    const nodes = this.#memory.nodes.matchedNodes(match);
    // Room for one must not cost another.
    this.#memory.nodes.withReferences(nodes, () => {
      for (const node of nodes) {
        if (!this.#held.hold(node)) break;
        this.#memory.nodes.eviction.hit(node, this.#clock() - node.lastUse);
        lease.node = node;
      }
    });
    this.#bringIn(lease);
    this.#touch(lease);
    return endIndex(lease.node) - before;
  }

  /**
   * Puts whole blocks of a lease's tail into the tree. What another one has computed of the same tokens is gone on with
   * instead.
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
          rowsOf(lease).lack = this.#held.lack;
          break;
        }
        this.#memory.nodes.slots.give(lease.tail.splice(0, known));
        continue;
      }
      const ids = tokenIds.slice(start, start + BLOCK);
      const isWhole = lease.numPruned === 0 && !isInParts(lease.node);
      const node = this.#held.add(
        lease.node,
        isWhole ? ids : ids.map(sketchedId),
        pool.read(slots),
        isWhole ? [] : [{ from: 0, to: BLOCK, codec: SKETCH }],
      );
      if (!node) {
        rowsOf(lease).lack = this.#held.lack;
        break;
      }
      node.tag = lease.tag;
      lease.node = node;
      rowsOf(lease).resident.push({ block: node.stored!.blocks.at(-1)!, slots: lease.tail.splice(0, BLOCK) });
    }
    this.#reckon(lease);
    this.#touch(lease);
  }

  /** Gives back what a lease has beside its tail. */
  release(lease: Lease): void {
    for (const { slots } of rowsOf(lease).resident) this.#memory.nodes.slots.give(slots);
    for (const node of pathTo(lease.node).reverse()) this.#held.letGo(node);
  }

  reusable({ partial }: Lease, numPromptTokens: number): number {
    // The last part has to ask, whatever is cached.
    return partial ? lastPart(numPromptTokens) : Number.POSITIVE_INFINITY;
  }

  partEnd({ partial }: Lease, at: number, numPromptTokens: number): number {
    return partial ? this.#partEnd(at, numPromptTokens) : Number.POSITIVE_INFINITY;
  }

  /** End of the part that token `at` of a prompt or an answer is in. Blocks are chosen again there. */
  #partEnd(at: number, numPromptTokens: number): number {
    if (at >= numPromptTokens) return (Math.floor(at / STRIDE) + 1) * STRIDE;
    const end = (Math.floor(at / this.#room.part) + 1) * this.#room.part;
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
    if (!lease.partial) return;
    const sparse = rowsOf(lease);
    const { isDue, queries } = sparse;
    if (!isDue) return;
    sparse.isDue = false;
    if (queries.length > 0) {
      const sketched = this.#blocks(lease).flatMap(({ block }) =>
        block.sketch ? [{ block, sketch: block.sketch, from: block.part?.from ?? 0, numTokens: block.numRows }] : [],
      );
      const attention = this.#attention(sketched, queries);
      sparse.attention = new Map(sketched.map(({ block }, i) => [block, attention[i]!]));
      queries.length = 0;
    }
    this.#bringIn(lease);
  }

  /**
   * Of so many queries, and so many layers, that it takes no longer than a step: the last ones, every second one, and
   * so on.
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

  /** Brings the chosen blocks into the pool and releases the others. A block whose rows are lost fails the lease. */
  #bringIn(lease: Lease): void {
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
    for (const { block, node, startIndex } of placed) {
      if (!wanted.has(block) || resident.has(block)) continue;
      const slots = this.#memory.allocate(block.numRows);
      if (!slots) continue;
      try {
        this.#memory.pool.write(slots, block.rows(), 0, block.positions ?? startIndex);
      } catch (error) {
        if (!(error instanceof LostRows)) throw error;
        this.#memory.nodes.slots.give(slots);
        this.#memory.nodes.lose(node, error);
        lease.failure = error;
        continue;
      }
      resident.set(block, { block, slots: [...slots] });
      this.#memory.nodes.events.promotions++;
    }
    sparse.resident = placed.flatMap(({ block }) => resident.get(block) ?? []);
    this.#reckon(lease);
  }

  /** Of its path, in order. */
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

  #touch({ node }: Lease): void {
    const now = this.#clock();
    for (const each of pathTo(node)) each.lastUse = now;
  }

  #reckon(lease: Lease): void {
    lease.numPruned = endIndex(lease.node) - rowsOf(lease).resident.reduce((sum, { slots }) => sum + slots.length, 0);
    lease.numKnown = 0;
    lease.numPaged = 0;
    lease.pages.clear();
  }
}
