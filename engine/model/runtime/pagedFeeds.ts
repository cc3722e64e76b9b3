/**
 * Makes the feeds of the paged lane: pages of the pool without a copy, the mask, and rotations for large key biases.
 * Does not own KV rows.
 */
import type { BatchSpan, ReceivedAttention } from '../batch.ts';
import type { Attention } from '../../kv/pages.ts';
import type { KvPool } from '../../kv/pool.ts';
import type { OnnxRuntime, Tensor } from './onnxSession.ts';
import { PoolRotations } from './poolRotations.ts';
import type { RopeTable } from './rope.ts';
import { FEEDS } from '../graph/feeds.ts';

/** `buffer`, or a new one if it is too small for `length` values, or large and far too large. */
export function fittingBuffer(buffer: Float32Array<ArrayBuffer>, length: number): Float32Array<ArrayBuffer> {
  const isWaste = buffer.byteLength > 4e6 && buffer.length > 4 * length;
  return buffer.length < length || isWaste ? new Float32Array(length) : buffer;
}

const NO_PAGES = new BigInt64Array(0);

export class PagedFeeds {
  /** How the tokens of the last step attended. */
  attention: Attention = { gathered: false, own: [], first: 0, count: 0, columns: 0, paidColumns: 0 };
  readonly #ort: OnnxRuntime;
  readonly #pool: KvPool;
  readonly #rotations: PoolRotations | null;
  /** Tokens of the sliding window. Null if the model has none. */
  readonly #window: number | null;
  readonly #feeds: Record<string, Tensor>;
  /** What the feeds point to: the generation of the pool's arrays, and a range of its pages. */
  #generation = -1;
  #firstPlace = 0;
  #numPlaces = 0;
  #maskBuffer = new Float32Array(0);
  #windowBuffer = new Float32Array(0);

  /** `feeds` gets the tensors. Those of the pool stay in it until the pool changes. */
  constructor(
    ort: OnnxRuntime,
    pool: KvPool,
    { rope, withRotations, window }: { rope: RopeTable; withRotations: boolean; window: number | null },
    feeds: Record<string, Tensor>,
  ) {
    this.#ort = ort;
    this.#pool = pool;
    this.#rotations = withRotations ? new PoolRotations(pool, rope) : null;
    this.#window = window;
    this.#feeds = feeds;
  }

  /** Makes the feeds of a step whose paged lane has W tokens, those of `spans`. */
  bind(spans: readonly BatchSpan[], W: number): void {
    const { pageSlots, shape } = this.#pool;
    const { headSize, kvHeads } = shape;
    this.attention = this.#pool.attend(
      spans.map(({ contextSlots }) => contextSlots),
      W,
    );
    const { gathered, columns } = this.attention;
    this.#bindPlaces(this.attention);
    const int64 = (...values: number[]) =>
      new this.#ort.Tensor('int64', BigInt64Array.from(values, BigInt), [values.length]);
    this.#feedMasks(spans, W);
    if (shape.kv === 'int8') {
      const Q = gathered ? columns / pageSlots : 0;
      this.#feeds[FEEDS.tokenPages] = new this.#ort.Tensor('int64', this.#tokenPages(spans, W, Q), [W, Q]);
      this.#feeds[FEEDS.ownShape] = int64(W, 1, 1, 1);
    }
    this.#feeds[FEEDS.pagesShape] = gathered
      ? int64(W, kvHeads, -1, columns / pageSlots, pageSlots)
      : int64(kvHeads, -1, columns / pageSlots, pageSlots);
    if (!this.#rotations) return;
    const [first, end] = [this.#firstPlace, this.#firstPlace + this.#numPlaces];
    const { places } = this.#pool;
    const rotations = this.#rotations.update(
      [...places.keys()].filter((page) => places[page]! >= first && places[page]! < end),
    );
    const from = this.#firstPlace * headSize * pageSlots;
    this.#feeds[FEEDS.poolRotations] = new this.#ort.Tensor(
      'float32',
      rotations.subarray(from, from + headSize * this.#numPlaces * pageSlots),
      [this.#numPlaces, headSize, pageSlots],
    );
  }

  /** The attention that a step of this span alone has measured (see RECEIVED), by row instead of by column. */
  received({ contextSlots, tokenIds }: BatchSpan, ofColumns: Float32Array): ReceivedAttention {
    const { places, pageSlots, shape } = this.#pool;
    const { columns: P } = this.attention;
    const [n, width, { kvHeads, numLayers }] = [contextSlots.length + tokenIds.length, P + tokenIds.length, shape];
    const columns = Int32Array.from({ length: n }, (_, i) => {
      const slot = contextSlots[i];
      return slot === undefined
        ? P + i - contextSlots.length
        : (places[Math.floor(slot / pageSlots)]! - this.#firstPlace) * pageSlots + (slot % pageSlots);
    });
    const [most, sum] = [0, 1].map((which) => {
      const rows = new Float32Array(numLayers * kvHeads * n);
      for (let l = 0; l < numLayers; l++) {
        for (let h = 0; h < kvHeads; h++) {
          const from = ((2 * l + which) * kvHeads + h) * width;
          const to = (l * kvHeads + h) * n;
          for (let i = 0; i < n; i++) rows[to + i] = ofColumns[from + columns[i]!]!;
        }
      }
      return rows;
    });
    return { most: most!, sum: sum! };
  }

  /** Feeds the rows of a range of pages without a copy. Valid until the pool replaces its arrays. */
  #bindPlaces({ first, count: N }: { first: number; count: number }): void {
    const ort = this.#ort;
    const pool = this.#pool;
    if (this.#generation === pool.generation && this.#firstPlace === first && this.#numPlaces === N) return;
    const { numLayers, kvHeads, headSize, kv } = pool.shape;
    const L = pool.pageSlots;
    const from = first * kvHeads * L;
    const to = from + N * kvHeads * L;
    for (let l = 0; l < numLayers; l++) {
      this.#feeds[`k${l}`] = new ort.Tensor(kv, pool.keys[l]!.subarray(from * headSize, to * headSize), [
        N,
        kvHeads,
        headSize,
        L,
      ]);
      this.#feeds[`v${l}`] = new ort.Tensor(kv, pool.values[l]!.subarray(from * headSize, to * headSize), [
        N,
        kvHeads,
        L,
        headSize,
      ]);
      if (kv === 'float32') continue;
      this.#feeds[`ks${l}`] = new ort.Tensor('float32', pool.keyScales[l]!.subarray(from, to), [N, kvHeads, 1, L]);
      this.#feeds[`vs${l}`] = new ort.Tensor('float32', pool.valueScales[l]!.subarray(from, to), [N, kvHeads, 1, L]);
    }
    this.#generation = pool.generation;
    this.#firstPlace = first;
    this.#numPlaces = N;
  }

  /** [W, Q]: the pages of each token. The list of a token with fewer pages is filled with the first place. */
  #tokenPages(spans: readonly BatchSpan[], W: number, Q: number): BigInt64Array {
    if (Q === 0) return NO_PAGES;
    const places = new BigInt64Array(W * Q);
    let at = 0;
    for (const [i, { tokenIds }] of spans.entries()) {
      const own = Array.from(this.attention.own[i]!, (page) => BigInt(this.#pool.places[page]! - this.#firstPlace));
      for (let t = 0; t < tokenIds.length; t++, at += Q) places.set(own, at);
    }
    return places;
  }

  /**
   * [W, P + W]: a token sees the slots of its sequence, itself, and the tokens of its span before it; in layers with a
   * window, those of them that are not too far away.
   */
  #feedMasks(batch: readonly BatchSpan[], W: number): void {
    const { gathered, columns: P } = this.attention;
    const width = P + W;
    const dims = gathered ? [W, 1, 1, width] : [1, 1, W, width];
    this.#maskBuffer = fittingBuffer(this.#maskBuffer, W * width);
    const mask = this.#maskBuffer.subarray(0, W * width);
    mask.fill(Number.NEGATIVE_INFINITY);
    this.#feeds[FEEDS.mask] = new this.#ort.Tensor('float32', mask, dims);
    const window = this.#window;
    if (window !== null) this.#windowBuffer = fittingBuffer(this.#windowBuffer, W * width);
    const near = this.#windowBuffer.subarray(0, window === null ? 0 : W * width);
    let first = 0;
    for (const span of batch) {
      const columns = this.#columnsOf(span.contextSlots);
      const end = first + span.tokenIds.length;
      for (let t = first; t < end; t++) {
        const row = t * width;
        if (t === first) for (const column of columns) mask[row + column] = 0;
        else mask.copyWithin(row, first * width, first * width + P);
        mask.fill(0, row + P + first, row + P + t + 1);
      }
      if (window !== null) {
        near.set(mask.subarray(first * width, end * width), first * width);
        this.#hideFar(near, span, columns, window, first, width);
      }
      first = end;
    }
    if (window !== null) this.#feeds[FEEDS.windowMask] = new this.#ort.Tensor('float32', near, dims);
  }

  /** Hides from each token of a span, of which the first has row `first`, what is not in its window. */
  #hideFar(
    mask: Float32Array,
    { tokenIds, contextSlots, startIndex }: BatchSpan,
    columns: Int32Array,
    window: number,
    first: number,
    width: number,
  ): void {
    const { positions } = this.#pool;
    const P = this.attention.columns;
    // Slots are in the order of their positions, so what one token does not see, later ones do not see.
    let hidden = 0;
    for (let i = 0; i < tokenIds.length; i++) {
      const row = (first + i) * width;
      const from = startIndex + i - window + 1;
      while (hidden < columns.length && positions[contextSlots[hidden]!]! < from) hidden++;
      for (let c = 0; c < hidden; c++) mask[row + columns[c]!] = Number.NEGATIVE_INFINITY;
      const ownHidden = Math.max(0, from - startIndex);
      mask.fill(Number.NEGATIVE_INFINITY, row + P + first, row + P + first + ownHidden);
    }
  }

  /** The columns of the pool that hold these slots. Gathered attention has the pages in the order of the context. */
  #columnsOf(slots: Int32Array): Int32Array {
    const { places, pageSlots } = this.#pool;
    const starts = new Map<number, number>();
    const columns = new Int32Array(slots.length);
    let last = -1;
    let start = 0;
    for (let i = 0; i < slots.length; i++) {
      const page = Math.floor(slots[i]! / pageSlots);
      if (page !== last) {
        start =
          starts.get(page) ?? (this.attention.gathered ? starts.size : places[page]! - this.#firstPlace) * pageSlots;
        starts.set(page, start);
        last = page;
      }
      columns[i] = start + slots[i]! - page * pageSlots;
    }
    return columns;
  }
}
