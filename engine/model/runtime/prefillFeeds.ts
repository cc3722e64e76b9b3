/**
 * Feeds the prefill lane of a step: the rows of a scratch. There is one scratch for short prompts and one for long
 * ones, so that a completion between two parts of a long prompt does not evict its rows.
 */
import { type BatchSpan, prefillRows, SHORT_ROWS } from '../batch.ts';
import type { KvPool } from '../../kv/pool.ts';
import type { OnnxRuntime, Tensor } from './onnxSession.ts';
import { PrefillScratch } from './prefillScratch.ts';
import { rotateBias } from './keyRotation.ts';
import type { RopeTable } from './rope.ts';
import { FEEDS } from '../graph/feeds.ts';

export class PrefillFeeds {
  /** One for short prompts, one for long ones. */
  readonly scratches: readonly [PrefillScratch, PrefillScratch];
  /** Whether short prompts have their own scratch. */
  separatesShort = false;
  readonly #ort: OnnxRuntime;
  readonly #pool: KvPool;
  readonly #rope: RopeTable;
  readonly #biases: ReadonlyMap<number, Float32Array>;
  readonly #feeds: Record<string, Tensor>;
  /** What the feeds point to: a scratch, and the generation of its arrays. */
  #bound: { scratch: PrefillScratch | null; generation: number } | null = null;

  /** `feeds` receives the tensors. Those of a scratch stay in it until that changes. */
  constructor(
    ort: OnnxRuntime,
    pool: KvPool,
    rope: RopeTable,
    biases: ReadonlyMap<number, Float32Array>,
    feeds: Record<string, Tensor>,
  ) {
    this.scratches = [new PrefillScratch(pool, rope, biases), new PrefillScratch(pool, rope, biases)];
    this.#ort = ort;
    this.#pool = pool;
    this.#rope = rope;
    this.#biases = biases;
    this.#feeds = feeds;
  }

  get bytes(): number {
    return this.scratches.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  release(): void {
    for (const scratch of this.scratches) scratch.release();
    this.#bindScratch(null);
  }

  /** Makes the feeds for the span of the prefill lane, if there is one, with its context in a scratch. */
  bind(span: BatchSpan | undefined): void {
    const [ort, rope, feeds] = [this.#ort, this.#rope, this.#feeds];
    const { kvHeads, headSize } = this.#pool.shape;
    const n = span?.tokenIds.length ?? 0;
    // Rows before the span. Fewer than tokens after pruning (see keptRows).
    const numRows = span?.contextSlots.length ?? 0;
    const start = span?.startIndex ?? 0;
    const prefillEnd = span?.prefillEnd ?? start + n;
    const scratch = span ? this.scratches[this.separatesShort && prefillRows(prefillEnd) <= SHORT_ROWS ? 0 : 1]! : null;
    scratch?.prepare(span!.contextSlots, prefillEnd);
    this.#bindScratch(scratch);
    feeds[FEEDS.lastRow] = new ort.Tensor('int32', Int32Array.of(numRows + n), [1]);
    feeds[FEEDS.numRows] = new ort.Tensor('int32', Int32Array.of(numRows + n + 1), []);
    for (const [l, bias] of this.#biases) {
      const turned = new Float32Array(kvHeads * n * headSize);
      for (let h = 0; h < kvHeads; h++)
        for (let i = 0; i < n; i++) rotateBias(bias, h * headSize, rope, start + i, turned, (h * n + i) * headSize);
      feeds[`kb${l}`] = new ort.Tensor('float32', turned, [1, kvHeads, n, headSize]);
    }
  }

  /** Feeds the arrays of a scratch. Without one, arrays of one row that are never read. */
  #bindScratch(scratch: PrefillScratch | null): void {
    const { numLayers, kvHeads, headSize } = this.#pool.shape;
    const generation = scratch?.generation ?? 0;
    if (this.#bound?.scratch === scratch && this.#bound.generation === generation) return;
    const none = new Float32Array(kvHeads * headSize);
    for (let l = 0; l < numLayers; l++) {
      for (const [side, array] of [
        ['k', scratch?.keys(l)],
        ['v', scratch?.values(l)],
      ] as const) {
        this.#feeds[`p${side}${l}`] = new this.#ort.Tensor('float32', array ?? none, [
          1,
          kvHeads,
          scratch?.stride ?? 1,
          headSize,
        ]);
      }
    }
    this.#bound = { scratch, generation };
  }
}
