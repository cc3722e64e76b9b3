/**
 * What the prefill lane of a step is fed, and what it gives back in place: the rows of a scratch, of which there are two, for
 * short prompts and for long ones, so that a completion between two parts of a long one does not drive that one's rows out.
 */
import { type BatchSpan, prefillRows, SHORT_ROWS } from '../batch.ts';
import type { KvWindow } from '../cache/window.ts';
import { rotateBias } from './keyBias.ts';
import type { OnnxRuntime, Tensor } from './onnxSession.ts';
import { PrefillScratch } from './prefillScratch.ts';
import type { RopeTable } from './rope.ts';
import { FEEDS } from './stepGraph.ts';

export class PrefillFeeds {
  /** For short prompts and for long ones. */
  readonly scratches: readonly [PrefillScratch, PrefillScratch];
  /** Whether short prompts have a scratch of their own. */
  separatesShort = false;
  readonly #ort: OnnxRuntime;
  readonly #window: KvWindow;
  readonly #rope: RopeTable;
  readonly #biases: ReadonlyMap<number, Float32Array>;
  readonly #feeds: Record<string, Tensor>;
  readonly #fetches: Record<string, Tensor | null>;
  /** What the feeds are of: a scratch, and the arrays that it had. */
  #bound: { scratch: PrefillScratch | null; generation: number } | null = null;

  /** @param feeds, fetches get them; what is of a scratch stays in them until that changes */
  constructor(ort: OnnxRuntime, window: KvWindow, rope: RopeTable, biases: ReadonlyMap<number, Float32Array>, feeds: Record<string, Tensor>, fetches: Record<string, Tensor | null>) {
    this.scratches = [new PrefillScratch(window, rope, biases), new PrefillScratch(window, rope, biases)];
    this.#ort = ort;
    this.#window = window;
    this.#rope = rope;
    this.#biases = biases;
    this.#feeds = feeds;
    this.#fetches = fetches;
  }

  get bytes(): number {
    return this.scratches.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  release(): void {
    for (const scratch of this.scratches) scratch.release();
    this.#bindScratch(null);
  }

  /** Feeds of the prefill lane for its span, if there is one, with its context in a scratch, which is returned. */
  bind(span: BatchSpan | undefined): PrefillScratch | null {
    const [ort, rope, feeds] = [this.#ort, this.#rope, this.#feeds];
    const { kvHeads, headSize } = this.#window.shape;
    const n = span?.tokenIds.length ?? 0;
    const start = span?.startIndex ?? 0;
    const prefillEnd = span?.prefillEnd ?? start + n;
    const scratch = span ? this.scratches[this.separatesShort && prefillRows(prefillEnd) <= SHORT_ROWS ? 0 : 1]! : null;
    scratch?.prepare(span!.contextSlots, n, prefillEnd);
    this.#bindScratch(scratch);
    feeds[FEEDS.lastRow] = new ort.Tensor('int32', Int32Array.of(start + n), [1]);
    feeds[FEEDS.numRows] = new ort.Tensor('int32', Int32Array.of(start + n + 1), []);
    for (const [l, bias] of this.#biases) {
      const turned = new Float32Array(kvHeads * n * headSize);
      for (let h = 0; h < kvHeads; h++) for (let i = 0; i < n; i++) rotateBias(bias, h * headSize, rope, start + i, turned, (h * n + i) * headSize);
      feeds[`kb${l}`] = new ort.Tensor('float32', turned, [1, kvHeads, n, headSize]);
    }
    return scratch;
  }

  /** Feeds and fetches a scratch's arrays, or else arrays of one row, which nothing looks at. */
  #bindScratch(scratch: PrefillScratch | null): void {
    const { numLayers, kvHeads, headSize } = this.#window.shape;
    const generation = scratch?.generation ?? 0;
    if (this.#bound?.scratch === scratch && this.#bound.generation === generation) return;
    const none = new Float32Array(kvHeads * headSize);
    for (let l = 0; l < numLayers; l++) {
      for (const [side, array] of [['k', scratch?.keys(l)], ['v', scratch?.values(l)]] as const) {
        const tensor = new this.#ort.Tensor('float32', array ?? none, [1, kvHeads, scratch?.stride ?? 1, headSize]);
        this.#feeds[`p${side}${l}`] = tensor;
        this.#fetches[`n${side}${l}`] = tensor;
      }
    }
    this.#bound = { scratch, generation };
  }
}
