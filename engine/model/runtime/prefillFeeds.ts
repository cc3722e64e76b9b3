/**
 * The scratch of the prefill lane (KV rows of one prompt, dequantised to float32) and the feeds of that lane. Does not
 * decide which tokens use the prefill lane.
 */
import { prefillRows, type BatchSpan, SHORT_ROWS } from '../batch.ts';
import type { KvPool } from '../../kv/pool.ts';
import { rotateBias, type RopeTable } from './rope.ts';
import type { OnnxRuntime, Tensor } from './onnxSession.ts';
import { FEEDS } from '../graph/feeds.ts';

/**
 * The operator allocates as many rows as it is given. So a step gets the rows that it needs, rounded up to STRIDE_STEP.
 * A prompt with more chunks gets STRIDE_SLACK times as many, because all rows move when the stride grows.
 */
const STRIDE_STEP = 128;
const STRIDE_SLACK = 1.25;

/** Tokens whose keys are transposed at a time. */
const TOKENS_AT_ONCE = 32;

/** Bytes of one row over all layers. */
export function scratchBytesPerToken(shape: {
  readonly numLayers: number;
  readonly kvHeads: number;
  readonly headSize: number;
}): number {
  return shape.numLayers * shape.kvHeads * 2 * shape.headSize * 4;
}

/**
 * The rows of one prompt. Copies missing rows from the pool: those of the last chunk if the prompt continues, otherwise
 * all from the first row that differs.
 */
export class PrefillScratch {
  /** Per layer, [kvHeads, stride, headSize]. The rest of the array is free. */
  readonly #keys: Float32Array<ArrayBuffer>[] = [];
  readonly #values: Float32Array<ArrayBuffer>[] = [];
  /** Rows that fit in the arrays. */
  capacity = 0;
  /** Rows per head that a step gets. */
  stride = 0;
  /** Changes when the arrays are replaced or rows move in them. */
  generation = 0;
  readonly #pool: KvPool;
  readonly #rope: RopeTable;
  /** By layer, the large key bias, which the keys of the pool do not contain: [kvHeads * headSize]. */
  readonly #biases: ReadonlyMap<number, Float32Array>;
  /** The pool slot of each row, and the stamp of that slot when the row was copied. */
  #slots = new Int32Array(0);
  #stamps = new Uint32Array(0);
  #numRows = 0;

  constructor(pool: KvPool, rope: RopeTable, biases: ReadonlyMap<number, Float32Array>) {
    this.#pool = pool;
    this.#rope = rope;
    this.#biases = biases;
  }

  get bytes(): number {
    return this.capacity * scratchBytesPerToken(this.#pool.shape);
  }

  /** The keys of a layer: [kvHeads, stride, headSize]. */
  keys(layer: number): Float32Array<ArrayBuffer> {
    return this.#rowsOf(this.#keys[layer]!);
  }

  values(layer: number): Float32Array<ArrayBuffer> {
    return this.#rowsOf(this.#values[layer]!);
  }

  #rowsOf(array: Float32Array<ArrayBuffer>): Float32Array<ArrayBuffer> {
    const { kvHeads, headSize } = this.#pool.shape;
    return array.subarray(0, kvHeads * this.stride * headSize);
  }

  /** Fills rows 0 .. slots.length-1 with the rows of these pool slots. `prefillEnd`: tokens of the whole prompt. */
  prepare(slots: Int32Array, prefillEnd: number): void {
    this.#reserve(prefillRows(prefillEnd));
    // At least one row, because the operator takes no empty past.
    this.#spread(Math.max(1, slots.length), prefillRows(prefillEnd));
    const { stamps } = this.#pool;
    let same = 0;
    const known = Math.min(this.#numRows, slots.length);
    while (same < known && this.#slots[same] === slots[same] && this.#stamps[same] === stamps[slots[same]!]) same++;
    this.#copy(slots, same);
    for (let i = same; i < slots.length; i++) {
      this.#slots[i] = slots[i]!;
      this.#stamps[i] = stamps[slots[i]!]!;
    }
    this.#numRows = slots.length;
  }

  /** Frees the memory. */
  release(): void {
    this.#keys.length = 0;
    this.#values.length = 0;
    this.stride = 0;
    this.#slots = new Int32Array(0);
    this.#stamps = new Uint32Array(0);
    this.#numRows = 0;
    this.capacity = 0;
    this.generation++;
  }

  #reserve(capacity: number): void {
    if (capacity <= this.capacity) return;
    const { numLayers, kvHeads, headSize } = this.#pool.shape;
    const grown = (old: Float32Array | undefined): Float32Array<ArrayBuffer> => {
      const fresh = new Float32Array(kvHeads * capacity * headSize);
      if (old) fresh.set(this.#rowsOf(old as Float32Array<ArrayBuffer>));
      return fresh;
    };
    for (let l = 0; l < numLayers; l++) {
      this.#keys[l] = grown(this.#keys[l]);
      this.#values[l] = grown(this.#values[l]);
    }
    const slots = new Int32Array(capacity);
    const stamps = new Uint32Array(capacity);
    slots.set(this.#slots);
    stamps.set(this.#stamps);
    this.#slots = slots;
    this.#stamps = stamps;
    this.capacity = capacity;
    this.generation++;
  }

  /** Sets the stride to at least `numRows` with some slack, but the slack ends at `maxRows`. */
  #spread(numRows: number, maxRows: number): void {
    const minStride = Math.ceil(numRows / STRIDE_STEP) * STRIDE_STEP;
    const slack = Math.min(maxRows, Math.ceil((STRIDE_SLACK * numRows) / STRIDE_STEP) * STRIDE_STEP);
    if (this.stride >= minStride && this.stride <= Math.max(minStride, slack)) return;
    const { kvHeads, headSize } = this.#pool.shape;
    const [before, after] = [this.stride * headSize, Math.max(minStride, slack) * headSize];
    const length = Math.min(this.#numRows * headSize, after);
    // If the stride grows, the last head moves first, otherwise the first one.
    const heads = Array.from({ length: kvHeads }, (_, h) => (after > before ? kvHeads - 1 - h : h));
    for (const array of [...this.#keys, ...this.#values])
      for (const h of heads) array.copyWithin(h * after, h * before, h * before + length);
    this.#numRows = length / headSize;
    this.stride = after / headSize;
    this.generation++;
  }

  /** Copies the rows from `from` on. Dequantises as the graph does: code * scale as float32, plus the rotated bias. */
  #copy(slots: Int32Array, from: number): void {
    const count = slots.length - from;
    if (count <= 0) return;
    const { numLayers, kvHeads, headSize } = this.#pool.shape;
    const { places, pageSlots: L } = this.#pool;
    // For each token the place of its page, and its slot within the page.
    const placeOf = Int32Array.from(slots, (slot) => places[Math.floor(slot / L)]!);
    const within = Int32Array.from(slots, (slot) => slot % L);
    const turned = new Float32Array(headSize);
    // For the key of each token in the layer, the offset of its first code, and its scale.
    const firstCode = new Int32Array(slots.length);
    const scales = new Float32Array(slots.length);
    const { positions } = this.#pool;
    if (this.#biases.size > 0) for (let i = from; i < slots.length; i++) this.#rope.ensure(positions[slots[i]!]! + 1);
    for (let l = 0; l < numLayers; l++) {
      const keyCodes = this.#pool.keys[l]!;
      const valueCodes = this.#pool.values[l]!;
      const keyScales = this.#pool.keyScales[l]!;
      const valueScales = this.#pool.valueScales[l]!;
      const keys = this.#keys[l]!;
      const values = this.#values[l]!;
      const bias = this.#biases.get(l);
      for (let h = 0; h < kvHeads; h++) {
        for (let i = from; i < slots.length; i++) {
          const head = placeOf[i]! * kvHeads + h;
          firstCode[i] = head * headSize * L + within[i]!;
          scales[i] = keyScales[head * L + within[i]!]!;
        }
        // Keys are stored transposed. Copies a few tokens at a time, so that reads and writes stay in the CPU cache.
        for (let first = from; first < slots.length; first += TOKENS_AT_ONCE) {
          const end = Math.min(slots.length, first + TOKENS_AT_ONCE);
          for (let d = 0; d < headSize; d++) {
            let target = (h * this.stride + first) * headSize + d;
            for (let i = first; i < end; i++, target += headSize)
              keys[target] = keyCodes[firstCode[i]! + d * L]! * scales[i]!;
          }
        }
        for (let i = from; i < slots.length; i++) {
          const token = (placeOf[i]! * kvHeads + h) * L + within[i]!;
          const source = token * headSize;
          const target = (h * this.stride + i) * headSize;
          const scale = valueScales[token]!;
          for (let d = 0; d < headSize; d++) values[target + d] = valueCodes[source + d]! * scale;
          if (!bias) continue;
          rotateBias(bias, h * headSize, this.#rope, positions[slots[i]!]!, turned, 0);
          for (let d = 0; d < headSize; d++) keys[target + d]! += turned[d]!;
        }
      }
    }
  }
}

export class PrefillFeeds {
  /**
   * One for short prompts and one for long ones, so that a completion between two chunks of a long prompt does not
   * evict its rows.
   */
  readonly scratches: readonly [PrefillScratch, PrefillScratch];
  /** Whether short prompts have their own scratch. */
  separatesShort = false;
  readonly #ort: OnnxRuntime;
  readonly #pool: KvPool;
  readonly #rope: RopeTable;
  readonly #biases: ReadonlyMap<number, Float32Array>;
  readonly #feeds: Record<string, Tensor>;
  /** What the feeds point to: a scratch and the generation of its arrays. */
  #bound: { scratch: PrefillScratch | null; generation: number } | null = null;

  /** `feeds` gets the tensors. Those of a scratch stay in it until the scratch changes. */
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

  /** Makes the feeds for the span of the prefill lane, if there is one, and copies its context into a scratch. */
  bind(span: BatchSpan | undefined): void {
    const [ort, rope, feeds] = [this.#ort, this.#rope, this.#feeds];
    const { kvHeads, headSize } = this.#pool.shape;
    const n = span?.tokenIds.length ?? 0;
    // Rows before the span. After pruning there are fewer rows than tokens (see keptRows.ts).
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

  /** Feeds the arrays of a scratch. Without a scratch it feeds arrays of one row, which are never read. */
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
