/**
 * Leases on contexts that are longer than the window: their rows are on the disk, and each lease has those blocks in slots of its
 * own that its tokens attend to most, as a sketch of the keys in memory says (SpeCache, arXiv 2503.16163); the first block, to which
 * all attend, and the last ones always. Rows are as they were computed, but computed from a part of what stands before them.
 *
 * Owns which blocks are there. Where runs lie is KvMemory's, when to choose anew is the scheduler's.
 */
import type { SpillFile } from './disk/spillFile.ts';
import { HeldRuns, SPILLED_TOKENS } from './heldRuns.ts';
import { sketchBytes, sketchedAttention, type SketchedBlock } from './keySketch.ts';
import type { KvMemory } from './kvMemory.ts';
import { type Lease, numComputed, type SparseRows } from './lease.ts';
import { sketchedId } from '../laneIds.ts';
import { endIndex, type Match, pathTo, type PrefixTree, type TreeNode } from './prefixTree.ts';
import type { StoredBlock } from './store.ts';

/** What it is called where codecs are named: rows that were computed from a part of their context. */
const SKETCH = 'sketch';
/** Tokens that come and go together. */
const BLOCK = SPILLED_TOKENS;
/** Of what the ceiling allows as a window, what chosen blocks take at least. The rest is for sketches, for what is computed, and for others. */
const LEAST_SHARE = 0.2;
/** Of the chosen ones, the last of the context. */
const RECENT_SHARE = 0.5;
/** Tokens of a prompt between two choices, at most; an eighth of that window. */
const PART = 512;
/** The last tokens of a prompt, the question's end as a rule, are computed twice: the first time they ask for what they see the second time. */
const LAST_PART = 16;
/** Tokens of an answer between two choices. */
const STRIDE = 16;
/**
 * The last tokens before a choice, whose queries make it: of a prompt's end, of a stride. While a prompt is read the newest blocks
 * are there: to ask for others at the end of each part gained nothing that shows (docs/long-contexts.md).
 */
const ASKING = { last: 8, stride: 1 };
/** Values of queries times tokens that a choice may take: a third of a second on two slow cores. */
const MOST_PRODUCTS = 5e8;

/** As the tree's, with what was computed from parts of its context: first what was not, then what was. */
export function matchSketched(tree: PrefixTree, tokenIds: readonly number[], limit: number, from: TreeNode): Match {
  const whole = isSketched(from) ? null : tree.match(tokenIds, limit, from);
  const last = whole?.nodes.at(-1) ?? from;
  // It goes on behind a run, not in the middle of one.
  if (whole && whole.nodes.length > 0 && whole.lastLength < last.tokenIds.length) return whole;
  if (endIndex(last) >= limit || last.children.size === 0) return whole ?? { nodes: [], lastLength: 0, numTokens: 0 };
  const rest = tree.match(tokenIds.slice(0, limit).map(sketchedId), limit, last);
  if (!whole || rest.numTokens === 0) return whole && rest.numTokens === 0 ? whole : rest;
  return { nodes: [...whole.nodes, ...rest.nodes], lastLength: rest.lastLength, numTokens: whole.numTokens + rest.numTokens };
}

function isSketched({ codec }: TreeNode): boolean {
  return codec === SKETCH;
}

/** A block of a path and the position of its first token. */
interface PlacedBlock {
  readonly block: StoredBlock;
  readonly startIndex: number;
}

export class SparseLeases {
  readonly #memory: KvMemory;
  readonly #held: HeldRuns;
  readonly #spillFile: SpillFile | null;
  /** Rows that the prefill lane has room for; 0: there is none. */
  prefillTokens = 0;
  readonly #clock: () => number;
  readonly #ranks: boolean;
  readonly #biased: ReadonlySet<number>;

  /**
   * @param spillFile null: there are none of these leases. `ranks`: otherwise the newest blocks are chosen. `biased`: layers whose keys
   * are coded without their bias: what such a key receives depends on its place first of all, and a sketch does not know of that.
   */
  constructor(memory: KvMemory, { spillFile, clock, ranks, biased }: { spillFile: SpillFile | null; clock: () => number; ranks: boolean; biased: ReadonlySet<number> }) {
    this.#memory = memory;
    this.#held = new HeldRuns(memory);
    const { kv, headSize } = memory.window.shape;
    // A sketch has four values to a byte.
    this.#spillFile = kv === 'int8' && headSize % 4 === 0 ? spillFile : null;
    this.#clock = clock;
    this.#ranks = ranks;
    this.#biased = biased;
  }

  /** Slots that a lease on so many tokens needs: of chosen blocks, a part of the prompt, and what is not yet a block. */
  slotsFor(numTokens: number): number {
    return this.#chosenFor(numTokens) + this.#part + BLOCK;
  }

  /** The same of one that there is. */
  slotsOf({ mostChosen }: SparseRows): number {
    return mostChosen + this.#part + BLOCK;
  }

  /** Slots of chosen blocks: all that sketches leave, but for what is computed, and as much for others; no more than the prefill lane has room for. */
  #chosenFor(numTokens: number): number {
    return Math.min(Math.max(this.#leastChosen, this.#memory.ceiling.slotsBeside(this.storeBytes(numTokens)) - 2 * this.#part - BLOCK), this.#mostChosen);
  }

  get #leastChosen(): number {
    return Math.min(this.#mostChosen, Math.floor(LEAST_SHARE * this.#memory.ceiling.maxSlots));
  }

  get #mostChosen(): number {
    return this.prefillTokens > 0 ? Math.max(4 * BLOCK, this.prefillTokens - this.#part - BLOCK) : this.#memory.ceiling.maxSlots;
  }

  get #part(): number {
    return Math.max(BLOCK, Math.min(PART, Math.floor(this.#memory.ceiling.maxSlots / 8 / BLOCK) * BLOCK));
  }

  /** Bytes of memory that so many tokens take outside the window. */
  storeBytes(numTokens: number): number {
    const { window, store } = this.#memory;
    // One block is on its way out.
    return Math.ceil(numTokens / BLOCK) * sketchBytes(window.shape, BLOCK) + BLOCK * store.bytesPerToken;
  }

  /** The most tokens that fit, with nothing else in the cache. */
  get capacity(): number {
    if (!this.#spillFile) return 0;
    const { store, window } = this.#memory;
    const inMemory = (this.#memory.ceiling.bytesBeside(this.#leastChosen + 2 * this.#part + BLOCK) - this.storeBytes(0)) / sketchBytes(window.shape, BLOCK);
    return BLOCK * Math.max(0, Math.floor(Math.min(inMemory, this.#spillFile.maxBytes / (BLOCK * store.bytesPerToken))));
  }

  /** For so many tokens. */
  begin(numTokens: number): SparseRows {
    return { mostChosen: this.#chosenFor(numTokens), resident: [], attention: new Map(), queries: [], isDue: false, hasAsked: false };
  }

  /** Moves a lease on to what the tree holds of tokenIds[.. limit); returns the number of tokens gained. Its tail, if any, is the caller's to let go. */
  advance(lease: Lease, tokenIds: readonly number[], limit: number): number {
    const match = matchSketched(this.#memory.tree, tokenIds, limit, lease.node);
    if (match.numTokens === 0) return 0;
    const before = endIndex(lease.node);
    const nodes = this.#memory.runsOf(match);
    // Room for one must not cost another.
    for (const node of nodes) this.#memory.reference(node);
    for (const node of nodes) {
      if (!this.#held.hold(node)) break;
      this.#memory.eviction.hit(node, this.#clock() - node.lastUse);
      lease.node = node;
    }
    for (const node of nodes) this.#memory.unreference(node);
    this.choose(lease);
    this.#touch(lease);
    return endIndex(lease.node) - before;
  }

  /** Puts whole blocks of a lease's tail into the tree. What another one has computed of the same tokens is gone on with instead. */
  commit(lease: Lease, tokenIds: readonly number[]): void {
    const { window, tree } = this.#memory;
    while (lease.tail.length >= BLOCK) {
      const start = endIndex(lease.node);
      const slots = Int32Array.from(lease.tail.slice(0, BLOCK));
      if (matchSketched(tree, tokenIds, start + BLOCK, lease.node).numTokens > 0) {
        const known = this.advance(lease, tokenIds, start + BLOCK);
        if (known === 0) break;
        this.#memory.free(lease.tail.splice(0, known));
        continue;
      }
      const ids = tokenIds.slice(start, start + BLOCK);
      const isWhole = lease.numPruned === 0 && !isSketched(lease.node);
      const node = this.#held.add(lease.node, isWhole ? ids : ids.map(sketchedId), window.read(slots), isWhole ? null : SKETCH);
      if (!node) break;
      node.tag = lease.tag;
      lease.node = node;
      lease.sparse!.resident.push({ block: node.stored!.blocks.at(-1)!, slots: lease.tail.splice(0, BLOCK) });
    }
    this.#reckon(lease);
    this.#touch(lease);
  }

  /** Gives back what a lease has beside its tail. */
  release(lease: Lease): void {
    for (const { slots } of lease.sparse!.resident) this.#memory.free(slots);
    for (const node of pathTo(lease.node)) this.#held.letGo(node);
  }

  /** Where the part ends that begins at token `at` of a prompt, or of an answer behind it: then it is chosen anew. */
  partEnd(at: number, numPromptTokens: number): number {
    if (at >= numPromptTokens) return (Math.floor(at / STRIDE) + 1) * STRIDE;
    const end = (Math.floor(at / this.#part) + 1) * this.#part;
    const last = this.lastPart(numPromptTokens);
    return at < last ? Math.min(end, last) : numPromptTokens;
  }

  /** Where a prompt's last part begins. */
  lastPart(numPromptTokens: number): number {
    return numPromptTokens - LAST_PART;
  }

  /** Whether the tokens from `at` on, up to the part's end, are only to ask, and are computed again afterwards. */
  asks({ sparse }: Lease, at: number, numPromptTokens: number): boolean {
    return sparse !== null && this.#ranks && !sparse.hasAsked && at >= this.lastPart(numPromptTokens);
  }

  /** How many of the last of `count` tokens from `at` on are asked for their queries. */
  numAsking(lease: Lease, at: number, count: number, numPromptTokens: number): number {
    if (!lease.sparse || !this.#ranks) return 0;
    if (this.asks(lease, at, numPromptTokens)) return Math.min(ASKING.last, count);
    if (at < numPromptTokens) return 0;
    return Math.max(0, at + count - Math.max(at, this.partEnd(at, numPromptTokens) - ASKING.stride));
  }

  /** Queries of n tokens of a lease: [numLayers, numHeads, n, headSize]. */
  saw({ sparse }: Lease, queries: Float32Array, n: number): void {
    const { headSize } = this.#memory.window.shape;
    const numHeads = queries.length / (n * headSize);
    for (let i = 0; i < n; i++) {
      const token = new Float32Array(numHeads * headSize);
      for (let h = 0; h < numHeads; h++) token.set(queries.subarray((h * n + i) * headSize, (h * n + i + 1) * headSize), h * headSize);
      sparse!.queries.push(token);
    }
  }

  /** Tokens have been computed up to the lease's end: is it chosen anew before the next ones? */
  reached(lease: Lease, numPromptTokens: number): void {
    const at = numComputed(lease);
    if (at > 0 && this.partEnd(at - 1, numPromptTokens) === at) lease.sparse!.isDue = true;
  }

  /** What only asked has been computed. */
  asked({ sparse }: Lease): void {
    sparse!.hasAsked = true;
    sparse!.isDue = true;
  }

  /** Chooses, where that is due, the blocks that the tokens asked last attend to most; as before where none were asked. */
  rank(lease: Lease): void {
    const { isDue, queries } = lease.sparse!;
    if (!isDue) return;
    lease.sparse!.isDue = false;
    if (queries.length > 0) {
      const sketched = this.#blocks(lease).flatMap(({ block }) => (block.sketch ? [{ block, sketch: block.sketch, numTokens: block.numRows }] : []));
      const attention = this.#attention(sketched, queries);
      lease.sparse!.attention = new Map(sketched.map(({ block }, i) => [block, attention[i]!]));
      queries.length = 0;
    }
    this.choose(lease);
  }

  /** Of so many queries, and so many layers, that it takes no longer than a step: the last ones, every second one, and so on. */
  #attention(blocks: readonly SketchedBlock[], queries: readonly Float32Array[]): Float32Array {
    const { shape } = this.#memory.window;
    const perQuery = blocks.reduce((sum, { numTokens }) => sum + numTokens, 0) * queries[0]!.length;
    const asking = queries.slice(-Math.max(1, Math.floor(MOST_PRODUCTS / perQuery)));
    const every = Math.ceil(perQuery / MOST_PRODUCTS);
    const without = new Set(this.#biased);
    for (let l = 0; l < shape.numLayers; l++) if ((shape.numLayers - 1 - l) % every !== 0) without.add(l);
    return sketchedAttention(shape, blocks, asking, without);
  }

  /** Brings the blocks into the window that should be there, and lets the others go. */
  choose(lease: Lease): void {
    const sparse = lease.sparse!;
    const placed = this.#blocks(lease);
    const wanted = this.#wanted(placed, sparse);
    const resident = new Map(sparse.resident.map((each) => [each.block, each]));
    for (const each of sparse.resident) {
      if (wanted.has(each.block)) continue;
      this.#memory.free(each.slots);
      resident.delete(each.block);
    }
    for (const { block, startIndex } of placed) {
      if (!wanted.has(block) || resident.has(block)) continue;
      const slots = this.#memory.allocate(block.numRows);
      if (!slots) continue;
      this.#memory.window.write(slots, block.rows(), 0, block.positions ?? startIndex);
      resident.set(block, { block, slots: [...slots] });
      this.#memory.events.promotions++;
    }
    sparse.resident = placed.flatMap(({ block }) => resident.get(block) ?? []);
    this.#reckon(lease);
  }

  #wanted(placed: readonly PlacedBlock[], { mostChosen, attention }: SparseRows): Set<StoredBlock> {
    const wanted = new Set<StoredBlock>();
    let left = mostChosen;
    const take = (block: StoredBlock): boolean => {
      if (wanted.has(block)) return true;
      if (block.numRows > left) return false;
      left -= block.numRows;
      wanted.add(block);
      return true;
    };
    if (placed.length > 0) take(placed[0]!.block);
    const others = left - Math.floor(RECENT_SHARE * mostChosen);
    for (let i = placed.length - 1; i >= 0 && left > others; i--) if (!take(placed[i]!.block)) break;
    const received = ({ block }: PlacedBlock): number => attention.get(block) ?? 0;
    // What nobody has asked for goes by age.
    for (const { block } of [...placed].sort((a, b) => received(b) - received(a) || b.startIndex - a.startIndex)) take(block);
    return wanted;
  }

  /** Of its path, in order. */
  #blocks(lease: Lease): PlacedBlock[] {
    const placed: PlacedBlock[] = [];
    for (const node of pathTo(lease.node)) {
      let { startIndex } = node;
      for (const block of node.stored!.blocks) {
        placed.push({ block, startIndex });
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
    lease.numPruned = endIndex(lease.node) - lease.sparse!.resident.reduce((sum, { slots }) => sum + slots.length, 0);
    lease.numKnown = 0;
    lease.numPaged = 0;
    lease.pages.clear();
  }
}
