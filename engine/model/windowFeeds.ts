/**
 * What the window lane of a step is fed: rows of some of the window's pages as they lie there, who sees which column, and the
 * angles by which a model's large key biases are turned. Owns the feeds' tensors, no rows.
 */
import type { BatchSpan } from '../batch.ts';
import type { KvWindow } from '../cache/window.ts';
import type { OnnxRuntime, Tensor } from './onnxSession.ts';
import type { RopeTable } from './rope.ts';
import { FEEDS } from './stepGraph.ts';

/** `buffer` or one in its place that holds `length` values: a large one is not kept for steps that need far less. */
export function fittingBuffer(buffer: Float32Array<ArrayBuffer>, length: number): Float32Array<ArrayBuffer> {
  const isWaste = buffer.byteLength > 4e6 && buffer.length > 4 * length;
  return buffer.length < length || isWaste ? new Float32Array(length) : buffer;
}

export class WindowFeeds {
  columns = 0;
  readonly #ort: OnnxRuntime;
  readonly #window: KvWindow;
  readonly #rope: RopeTable;
  readonly #withTurns: boolean;
  readonly #feeds: Record<string, Tensor>;
  /** What the feeds are of: the window's arrays, and which of its places. */
  #generation = -1;
  #firstPlace = 0;
  #numPlaces = 0;
  /** [numPages, headSize, L], by place, and the positions that its columns were made for. */
  #windowTurns = new Float32Array(0);
  #turnedPositions = new Int32Array(0);
  #maskBuffer = new Float32Array(0);

  /** @param feeds gets them; what is of the window stays in it until that changes */
  constructor(ort: OnnxRuntime, window: KvWindow, rope: RopeTable, withTurns: boolean, feeds: Record<string, Tensor>) {
    this.#ort = ort;
    this.#window = window;
    this.#rope = rope;
    this.#withTurns = withTurns;
    this.#feeds = feeds;
  }

  /** For a step with W tokens of these spans. */
  bind(spans: readonly BatchSpan[], W: number): void {
    const { headSize, kvHeads } = this.#window.shape;
    const { pageSlots } = this.#window;
    this.#bindPlaces(this.#window.bringTogether(spans.map(({ contextSlots }) => contextSlots), W));
    this.#feeds[FEEDS.mask] = this.#mask(spans, W);
    this.#feeds[FEEDS.pages] = new this.#ort.Tensor('int64', BigInt64Array.of(BigInt(kvHeads), -1n, BigInt(this.#numPlaces), BigInt(pageSlots)), [4]);
    if (!this.#withTurns) return;
    this.#updateTurns();
    const from = this.#firstPlace * headSize * pageSlots;
    this.#feeds[FEEDS.windowTurns] = new this.#ort.Tensor('float32', this.#windowTurns.subarray(from, from + headSize * this.columns), [this.#numPlaces, headSize, pageSlots]);
  }

  /** The rows in some of the window's places as feeds, without a copy: they stay valid until the window replaces its arrays. */
  #bindPlaces({ first, count: N }: { first: number; count: number }): void {
    const ort = this.#ort;
    const window = this.#window;
    if (this.#generation === window.generation && this.#firstPlace === first && this.#numPlaces === N) return;
    const { numLayers, kvHeads, headSize, kv } = window.shape;
    const L = window.pageSlots;
    const from = first * kvHeads * L;
    const to = from + N * kvHeads * L;
    for (let l = 0; l < numLayers; l++) {
      this.#feeds[`k${l}`] = new ort.Tensor(kv, window.keys[l]!.subarray(from * headSize, to * headSize), [N, kvHeads, headSize, L]);
      this.#feeds[`v${l}`] = new ort.Tensor(kv, window.values[l]!.subarray(from * headSize, to * headSize), [N, kvHeads, L, headSize]);
      if (kv === 'float32') continue;
      this.#feeds[`ks${l}`] = new ort.Tensor('float32', window.keyScales[l]!.subarray(from, to), [N, kvHeads, 1, L]);
      this.#feeds[`vs${l}`] = new ort.Tensor('float32', window.valueScales[l]!.subarray(from, to), [N, kvHeads, 1, L]);
    }
    if (this.#generation !== window.generation) {
      this.#windowTurns = new Float32Array(this.#withTurns ? headSize * window.numSlots : 0);
      // No position is -1, so every column counts as changed.
      this.#turnedPositions = new Int32Array(window.numSlots).fill(-1);
    }
    this.#generation = window.generation;
    this.#firstPlace = first;
    this.#numPlaces = N;
    this.columns = N * L;
  }

  /** [W, P + W], the window lane's: a token sees its sequence's slots, itself and the tokens of its span before it. */
  #mask(batch: readonly BatchSpan[], W: number): Tensor {
    const P = this.columns;
    const { places, pageSlots } = this.#window;
    const width = P + W;
    this.#maskBuffer = fittingBuffer(this.#maskBuffer, W * width);
    const mask = this.#maskBuffer.subarray(0, W * width);
    mask.fill(Number.NEGATIVE_INFINITY);
    let t = 0;
    for (const { tokenIds, contextSlots } of batch) {
      const first = t;
      for (; t < first + tokenIds.length; t++) {
        const row = t * width;
        if (t === first) {
          for (let i = 0; i < contextSlots.length; i++) {
            const slot = contextSlots[i]!;
            const page = Math.floor(slot / pageSlots);
            mask[row + slot + (places[page]! - page - this.#firstPlace) * pageSlots] = 0;
          }
        } else mask.copyWithin(row, first * width, first * width + P);
        mask.fill(0, row + P + first, row + P + t + 1);
      }
    }
    return new this.#ort.Tensor('float32', mask, [W, width]);
  }

  /** Columns whose token has another position than at the last step. */
  #updateTurns(): void {
    const [rope, windowTurns, turnedPositions] = [this.#rope, this.#windowTurns, this.#turnedPositions];
    const { positions, places, pageSlots: L } = this.#window;
    const { half } = rope;
    for (const [page, place] of places.entries()) {
      if (place < this.#firstPlace || place >= this.#firstPlace + this.#numPlaces) continue;
      for (let i = 0; i < L; i++) {
        const position = positions[page * L + i]!;
        if (turnedPositions[place * L + i] === position) continue;
        rope.ensure(position + 1);
        let at = place * 2 * half * L + i;
        for (let d = 0; d < half; d++, at += L) {
          windowTurns[at] = rope.cos[position * half + d]!;
          windowTurns[at + half * L] = rope.sin[position * half + d]!;
        }
        turnedPositions[place * L + i] = position;
      }
    }
  }
}
