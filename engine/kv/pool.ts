/**
 * The KV pool: the resident K/V rows that steps attend to. Owns the arrays and their layout. Does not know who holds
 * which slot.
 */
import { arraysOf, copyRows, type KvRows, type KvShape, kvBytesPerToken, newKvRows, type Rows } from './kvRows.ts';
import { type Attended, attendedPages, type Attention, densestStart } from './pages.ts';
import { copyIn, copyOut, copyWithin, growable, holds, runPairs, slotRuns } from './pages.ts';

/** Slots of a page, where the pool's size is a multiple of it. Any other pool is a single page. */
export const PAGE_SLOTS = 256;
/**
 * Price of exchanging two pages, in tokens that attend to one page in vain. Measured with the shape of Qwen2.5-0.5B: an
 * exchange takes 1 ms, a page in vain 0.34 ms per token.
 */
const EXCHANGE_TOKENS = 3;

export class KvPool {
  readonly shape: KvShape;
  /** P. */
  numSlots = 0;
  /** Slots of each page, L; numSlots / L pages. */
  pageSlots = PAGE_SLOTS;
  /** Per layer, [numPages, kvHeads, headSize, L]. Replaced by `resize`. */
  keys: Rows[] = [];
  /** Per layer, [numPages, kvHeads, L, headSize]. */
  values: Rows[] = [];
  /** Per layer, [numPages, kvHeads, L]; empty arrays in float32. */
  keyScales: Float32Array[] = [];
  valueScales: Float32Array[] = [];
  /** Position in its sequence of the token in each slot, [P]. Layers with large key biases need it. */
  positions: Int32Array = new Int32Array(0);
  /** Number of the write that wrote each slot last, [P]. Tells whether a slot still has the same token. */
  stamps: Uint32Array = new Uint32Array(0);
  /** The place of each page in the arrays, [numPages]. */
  places: Int32Array = new Int32Array(0);
  /** Changes whenever the arrays are replaced. */
  generation = 0;
  /** Whether a token attends to the pages of its own sequence only, in place. The native kernels do. */
  attendsInPlace = false;
  /** Per layer: keys, values and their scales. */
  readonly #buffers: ArrayBuffer[][] = [];
  #numWrites = 0;
  /** Tokens times pages attended to in vain since pages were last exchanged. */
  #inVain = 0;

  constructor(shape: KvShape, numSlots: number) {
    this.shape = shape;
    this.resize(numSlots);
  }

  get bytes(): number {
    return this.numSlots * kvBytesPerToken(this.shape);
  }

  /**
   * Changes P. `mostSlots`: the largest P to expect. Rows of slots below min(old P, new P) stay in their slots, the
   * others are lost.
   */
  resize(numSlots: number, mostSlots = numSlots): void {
    const { numLayers, kvHeads, headSize, kv } = this.shape;
    const pageSlots = numSlots % PAGE_SLOTS === 0 ? PAGE_SLOTS : numSlots;
    const size = kv === 'int8' ? 1 : 4;
    // Bytes of a slot in each of a layer's arrays.
    const bytesOf = [
      kvHeads * headSize * size,
      kvHeads * headSize * size,
      ...(kv === 'int8' ? [4 * kvHeads, 4 * kvHeads] : [0, 0]),
    ];
    const inPlace =
      pageSlots === this.pageSlots &&
      this.#buffers.length > 0 &&
      this.#buffers[0]!.every((buffer, i) => holds(buffer, bytesOf[i]! * numSlots));
    if (inPlace) this.#clear(numSlots / pageSlots);
    const runs = inPlace
      ? []
      : slotRuns(
          Int32Array.from({ length: Math.min(this.numSlots, numSlots) }, (_, slot) => slot),
          this.pageSlots,
          this.places,
          pageSlots,
        );
    for (let l = 0; l < numLayers; l++) {
      const old = this.#layer(l);
      if (inPlace)
        for (const [i, buffer] of this.#buffers[l]!.entries())
          if (buffer.resizable) buffer.resize(bytesOf[i]! * numSlots);
      if (!inPlace) this.#buffers[l] = bytesOf.map((bytes) => growable(bytes * numSlots, bytes * mostSlots));
      const [keys, values, keyScales, valueScales] = this.#buffers[l]!.map((buffer, i) =>
        i < 2 && kv === 'int8'
          ? new Int8Array(buffer, 0, bytesOf[i]! * numSlots)
          : new Float32Array(buffer, 0, (bytesOf[i]! * numSlots) / 4),
      ) as [Rows, Rows, Float32Array<ArrayBuffer>, Float32Array<ArrayBuffer>];
      this.keys[l] = keys;
      this.values[l] = values;
      this.keyScales[l] = keyScales;
      this.valueScales[l] = valueScales;
      const fresh = { keys, values, keyScales, valueScales, numTokens: pageSlots };
      for (const { index, place, at, length } of runs) {
        const page = Math.floor(index / pageSlots);
        for (let h = 0; h < kvHeads; h++)
          copyRows(
            old!,
            place * kvHeads + h,
            at,
            fresh,
            page * kvHeads + h,
            index - page * pageSlots,
            length,
            headSize,
          );
      }
    }
    const positions = new Int32Array(numSlots);
    positions.set(this.positions.subarray(0, numSlots));
    this.positions = positions;
    const stamps = new Uint32Array(numSlots);
    stamps.set(this.stamps.subarray(0, numSlots));
    this.stamps = stamps;
    const { places } = this;
    this.places = Int32Array.from({ length: numSlots / pageSlots || 0 }, (_, page) =>
      inPlace ? (places[page] ?? page) : page,
    );
    this.pageSlots = pageSlots;
    this.numSlots = numSlots;
    this.generation++;
    this.#inVain = 0;
  }

  /** What each token of a step pays for, in pages (see attendedPages). */
  attended(numTokens: number, most: number, all: number): Attended {
    const { kvHeads, headSize, kv, runnerBytes = 0 } = this.shape;
    // Steps over a float32 pool always use shared attention. The runner's own rows are copied twice: gathered, then
    // joined with the rows of the step.
    if (kv === 'float32') return { gathered: false, pages: Math.max(1, all) };
    if (this.attendsInPlace) return { gathered: true, pages: Math.max(1, most) };
    return attendedPages(numTokens, most, all, this.pageSlots * (2 * kvHeads * (headSize + 4) + 2 * runnerBytes));
  }

  /**
   * Call it before `numTokens` tokens attend to these lists of slots, one list per sequence. For shared attention it
   * brings the needed pages into adjacent places, where that is worth the copies.
   */
  attend(lists: readonly ArrayLike<number>[], numTokens: number): Attention {
    const own = lists.map((list) => this.addPages(list, new Set()));
    const needed = new Set(own.flatMap((pages) => [...pages]));
    const most = own.reduce((most, { size }) => Math.max(most, size), 1);
    const { gathered, pages: paid } = this.attended(numTokens, most, needed.size);
    const places = this.#places(needed, gathered ? null : numTokens);
    const pages = gathered ? most : places.count;
    return {
      gathered,
      own,
      ...places,
      columns: pages * this.pageSlots,
      paidColumns: (gathered ? paid : pages) * this.pageSlots,
    };
  }

  /**
   * The range of places that holds these pages. `numTokens` attend to the whole range; null: only to the needed pages.
   */
  #places(needed: ReadonlySet<number>, numTokens: number | null): { first: number; count: number } {
    const { places } = this;
    if (needed.size === 0) return { first: 0, count: Math.min(1, places.length) };
    const count = needed.size;
    const at = [...needed].map((page) => places[page]!).sort((a, b) => a - b);
    const extent = at.at(-1)! + 1 - at[0]!;
    if (numTokens === null) return { first: at[0]!, count: extent };
    this.#inVain += numTokens * (extent - count);
    const first = densestStart(at, places.length);
    const outside = [...needed].filter((page) => places[page]! < first || places[page]! >= first + count);
    if (outside.length === 0 || this.#inVain < EXCHANGE_TOKENS * outside.length)
      return { first: at[0]!, count: extent };
    const inTheWay = [...places.keys()].filter(
      (page) => !needed.has(page) && places[page]! >= first && places[page]! < first + count,
    );
    for (const [i, page] of outside.entries()) this.#exchange(page, inTheWay[i]!);
    this.#inVain = 0;
    return { first, count };
  }

  /** Adds the pages of these slots, in order of first appearance. */
  addPages(slots: ArrayLike<number>, pages: Set<number>): Set<number> {
    const { pageSlots } = this;
    for (let i = 0; i < slots.length; ) {
      const page = Math.floor(slots[i]! / pageSlots);
      pages.add(page);
      const end = (page + 1) * pageSlots;
      while (i < slots.length && slots[i]! < end && slots[i]! >= end - pageSlots) i++;
    }
    return pages;
  }

  /** Copies rows[from .. from+slots.length) into `slots`. `positions`: of their tokens, or of the first one. */
  write(slots: Int32Array, rows: KvRows, from: number, positions: Int32Array | number): void {
    const { numLayers, kvHeads } = this.shape;
    this.mark(slots, positions);
    const runs = slotRuns(slots, this.pageSlots, this.places);
    for (let l = 0; l < numLayers; l++) copyIn(this.#layer(l)!, runs, rows, l * kvHeads, from, this.shape);
  }

  /** Positions of the tokens in `slots`, [slots.length]. */
  positionsOf(slots: Int32Array): Int32Array {
    return slots.map((slot) => this.positions[slot]!);
  }

  /** Copies the rows of `slots`, in order. */
  read(slots: Int32Array): KvRows {
    const { numLayers, kvHeads } = this.shape;
    const rows = newKvRows(this.shape, slots.length);
    const runs = slotRuns(slots, this.pageSlots, this.places);
    for (let l = 0; l < numLayers; l++) copyOut(this.#layer(l)!, runs, rows, l * kvHeads, this.shape);
    return rows;
  }

  /** Copies the rows of slot from[i], with their positions, to slot to[i]. No slot may be in both lists. */
  move(from: Int32Array, to: Int32Array): void {
    this.mark(to, this.positionsOf(from));
    const pairs = runPairs(from, to, this.pageSlots, this.places);
    for (let l = 0; l < this.shape.numLayers; l++) copyWithin(this.#layer(l)!, pairs, this.shape);
  }

  /**
   * Exchanges the rows of slot from[i] with those of slot to[i], with their positions. No slot may be in both lists.
   */
  exchange(from: Int32Array, to: Int32Array): void {
    const { shape, pageSlots, places } = this;
    const positions = this.positionsOf(from);
    this.mark(from, this.positionsOf(to));
    this.mark(to, positions);
    // At most a page of one layer, so it is not counted in the budget.
    const kept = newKvRows({ ...shape, numLayers: 1 }, Math.min(from.length, PAGE_SLOTS));
    for (let at = 0; at < from.length; at += PAGE_SLOTS) {
      const [a, b] = [from.subarray(at, at + PAGE_SLOTS), to.subarray(at, at + PAGE_SLOTS)];
      const [ofA, ofB, pairs] = [
        slotRuns(a, pageSlots, places),
        slotRuns(b, pageSlots, places),
        runPairs(b, a, pageSlots, places),
      ];
      for (let l = 0; l < shape.numLayers; l++) {
        const layer = this.#layer(l)!;
        copyOut(layer, ofA, kept, 0, shape);
        copyWithin(layer, pairs, shape);
        copyIn(layer, ofB, kept, 0, 0, shape);
      }
    }
  }

  /** Records a write to these slots. `positions`: of their tokens, or of the first one. */
  mark(slots: Int32Array, positions: Int32Array | number): void {
    this.#numWrites++;
    for (let i = 0; i < slots.length; i++) {
      this.positions[slots[i]!] = typeof positions === 'number' ? positions + i : positions[i]!;
      this.stamps[slots[i]!] = this.#numWrites;
    }
  }

  #layer(l: number): KvRows | null {
    const keys = this.keys[l];
    return keys
      ? {
          keys,
          values: this.values[l]!,
          keyScales: this.keyScales[l]!,
          valueScales: this.valueScales[l]!,
          numTokens: this.pageSlots,
        }
      : null;
  }

  /**
   * Brings the pages below `numPages` into the places below `numPages`, because the other places are about to be
   * removed.
   */
  #clear(numPages: number): void {
    const { places } = this;
    const outside = [...places.keys()].filter((page) => page < numPages && places[page]! >= numPages);
    const inTheWay = [...places.keys()].filter((page) => page >= numPages && places[page]! < numPages);
    for (const [i, page] of outside.entries()) this.#exchange(page, inTheWay[i]!);
  }

  #exchange(page: number, other: number): void {
    const [a, b] = [this.places[page]!, this.places[other]!];
    for (let l = 0; l < this.shape.numLayers; l++) {
      for (const rows of arraysOf(this.#layer(l)!)) {
        const length = rows.length / this.places.length;
        const kept = rows.slice(a * length, (a + 1) * length);
        rows.copyWithin(a * length, b * length, (b + 1) * length);
        rows.set(kept as never, b * length);
      }
    }
    this.places[page] = b;
    this.places[other] = a;
  }
}
