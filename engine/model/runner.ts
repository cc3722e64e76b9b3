/**
 * Runs batches on onnxruntime. Owns the session, the feeds and the write of new K/V rows into the window; knows slots and
 * positions, but neither sequences nor queues.
 */
import path from 'node:path';
import type * as Ort from 'onnxruntime-node';
import { type BatchSpan, type ModelRunner, prefillRows, SHORT_ROWS } from '../batch.ts';
import type { KvRows, KvWindow } from '../cache/window.ts';
import { RequestError } from '../errors.ts';
import { type ImportedModel, graphFile, readKeyBiases } from './importModel.ts';
import { rotateBias } from './keyBias.ts';
import { isNarrow, loadOnnxruntime, numRowsTogether, type OnnxRuntime, openSession } from './onnxSession.ts';
import { PrefillScratch, scratchBytesPerToken } from './prefillScratch.ts';
import { RopeTable } from './rope.ts';
import { shiftKeys } from './shiftKeys.ts';
import { FEEDS, FETCHES, usesTurns } from './stepGraph.ts';
import { chooseThreads } from './threadChoice.ts';
import { rowsInMultiples } from './weightPlan.ts';

export interface RunnerOptions {
  /** Threads of one step; 0: what measuring says is best here (threadChoice). */
  readonly threads: number;
  /** Forces the 7-bit form, for tests; found out by a probe when left out. */
  readonly narrow?: boolean;
}

/** `buffer` or one in its place that holds `length` values: a large one is not kept for steps that need far less. */
export function fittingBuffer(buffer: Float32Array<ArrayBuffer>, length: number): Float32Array<ArrayBuffer> {
  const isWaste = buffer.byteLength > 4e6 && buffer.length > 4 * length;
  return buffer.length < length || isWaste ? new Float32Array(length) : buffer;
}

export class OnnxRunner implements ModelRunner {
  readonly vocabSize: number;
  readonly window: KvWindow;
  /** Of one step. */
  readonly threads: number;
  private readonly model: ImportedModel;
  private readonly ort: OnnxRuntime;
  private readonly session: Ort.InferenceSession;
  private readonly rope: RopeTable;
  private readonly withTurns: boolean;
  /** See numRowsTogether. */
  private readonly rowMultiple: number;
  columns = 0;
  /** Of the step that runs; what is of the window or a scratch stays until that changes. */
  private readonly feeds: Record<string, Ort.Tensor> = {};
  /** What the feeds are of: the window's arrays, and which of its places. */
  private generation = -1;
  private firstPlace = 0;
  private numPlaces = 0;
  /** [numPages, headSize, L], by place, and the positions that its columns were made for. */
  private windowTurns = new Float32Array(0);
  private turnedPositions = new Int32Array(0);
  private maskBuffer = new Float32Array(0);
  /** Of the prefill lane, which an int8 window's graph has: for short prompts and for long ones. */
  readonly scratches: readonly PrefillScratch[];
  /** Of the scratch; 0 where the graph has no prefill lane. */
  readonly prefillBytesPerToken: number;
  private readonly biases: ReadonlyMap<number, Float32Array>;
  copyMs = 0;
  separatesShort = false;
  /** What is wanted back: new arrays (null), or the scratch's, in place. */
  private readonly fetches: Record<string, Ort.Tensor | null>;
  /** What the feeds are of: a scratch, and the arrays that it had. */
  private bound: { scratch: PrefillScratch | null; generation: number } | null = null;

  private constructor(model: ImportedModel, window: KvWindow, ort: OnnxRuntime, session: Ort.InferenceSession, threads: number, rowMultiple: number, biases: ReadonlyMap<number, Float32Array>) {
    this.model = model;
    this.window = window;
    this.ort = ort;
    this.session = session;
    this.vocabSize = model.config.vocabSize;
    this.rope = new RopeTable(model.config.rope, model.config.headSize);
    this.withTurns = usesTurns(model.config, window.shape.kv);
    this.threads = threads;
    this.rowMultiple = rowMultiple;
    this.biases = biases;
    const quantised = window.shape.kv === 'int8';
    this.prefillBytesPerToken = quantised ? scratchBytesPerToken(window.shape) : 0;
    this.scratches = quantised ? [new PrefillScratch(window, this.rope, biases), new PrefillScratch(window, this.rope, biases)] : [];
    this.fetches = Object.fromEntries(Object.values(FETCHES).filter((name) => quantised || !name.endsWith('Scales')).map((name) => [name, null]));
  }

  /** Loads onnxruntime and the model. The window's KV precision chooses the graph. */
  static async create(model: ImportedModel, window: KvWindow, options: RunnerOptions): Promise<OnnxRunner> {
    const ort = await loadOnnxruntime();
    const narrow = options.narrow ?? (await isNarrow(ort));
    const file = path.join(model.dir, graphFile(model.precision, window.shape.kv, narrow));
    const threads = options.threads || (await chooseThreads(ort, path.dirname(model.dir)));
    const session = await openSession(ort, file, threads);
    const biases = window.shape.kv === 'int8' ? await readKeyBiases(model) : new Map();
    const rowMultiple = rowsInMultiples(model.precision).head ? await numRowsTogether(ort) : 1;
    return new OnnxRunner(model, window, ort, session, threads, rowMultiple, biases);
  }

  releaseScratch(): void {
    for (const scratch of this.scratches) scratch.release();
    if (this.scratches.length > 0) this.bindScratch(null);
  }

  shiftKeys(rows: KvRows, by: number): void {
    shiftKeys(rows, this.window.shape, this.rope, by);
  }

  get scratchBytes(): number {
    return this.scratches.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  async dispose(): Promise<void> {
    await this.session.release();
  }

  async run(spans: readonly BatchSpan[]): Promise<Float32Array> {
    const { ort, window, feeds } = this;
    const { numHeads, kvHeads, headSize } = this.model.config;
    const prefill = spans.find(({ lane }) => lane === 'prefill');
    const others = spans.filter((span) => span !== prefill);
    const batch = prefill ? [prefill, ...others] : others;
    const W = others.reduce((sum, span) => sum + span.tokenIds.length, 0);
    const T = W + (prefill?.tokenIds.length ?? 0);
    const numLogits = batch.reduce((sum, span) => sum + span.numLogits, 0);
    const S = this.filled(numLogits);
    this.bindWindow(window.bringTogether(others.map(({ contextSlots }) => contextSlots), W));
    const P = this.columns;
    this.feedTokens(batch, T, W, S);
    feeds[FEEDS.mask] = this.mask(others, W);
    feeds[FEEDS.hasLogits] = new ort.Tensor('bool', [numLogits > 0], []);
    const shape = (...dims: number[]) => new ort.Tensor('int64', BigInt64Array.from(dims, BigInt), [dims.length]);
    feeds[FEEDS.scoresShape] = shape(kvHeads, numHeads / kvHeads, W, P + W);
    feeds[FEEDS.rowsShape] = shape(1, kvHeads, (numHeads / kvHeads) * W, P + W);
    feeds[FEEDS.split] = shape(P, W);
    if (rowsInMultiples(this.model.precision).layers) {
      feeds[FEEDS.fill] = shape(0, 0, this.filled(T) - T, 0);
      feeds[FEEDS.cut] = shape(0, 0, T - this.filled(T), 0);
    }
    feeds[FEEDS.pastShape] = shape(1, kvHeads, (numHeads / kvHeads) * W, P);
    feeds[FEEDS.pages] = shape(kvHeads, -1, this.numPlaces, window.pageSlots);
    let scratch: PrefillScratch | null = null;
    if (this.scratches.length > 0) {
      feeds[FEEDS.hasPrefill] = new ort.Tensor('bool', [prefill !== undefined], []);
      feeds[FEEDS.hasWindow] = new ort.Tensor('bool', [W > 0], []);
      feeds[FEEDS.lanes] = shape(T - W, W);
      const start = performance.now();
      scratch = this.bindPrefill(prefill);
      this.copyMs = performance.now() - start;
    }
    if (this.withTurns) {
      this.updateWindowTurns();
      feeds[FEEDS.windowTurns] = new ort.Tensor('float32', this.windowTurns.subarray(this.firstPlace * headSize * window.pageSlots).subarray(0, headSize * P), [this.numPlaces, headSize, window.pageSlots]);
    }
    const result = await this.session.run(feeds, this.fetches);
    const rows: KvRows = {
      numTokens: T,
      keys: result[FETCHES.keys]!.data as Int8Array | Float32Array,
      values: result[FETCHES.values]!.data as Int8Array | Float32Array,
      keyScales: (result[FETCHES.keyScales]?.data ?? new Float32Array(0)) as Float32Array,
      valueScales: (result[FETCHES.valueScales]?.data ?? new Float32Array(0)) as Float32Array,
    };
    let from = 0;
    for (const span of batch) {
      window.write(span.newSlots, rows, from, span.startIndex);
      from += span.tokenIds.length;
    }
    scratch?.added(prefill!.newSlots);
    return this.inOrder(spans, batch, (result[FETCHES.logits]!.data as Float32Array).subarray(0, numLogits * this.vocabSize));
  }

  /** Rows that the head, or the layers, get for so many. */
  private filled(numRows: number): number {
    return Math.ceil(numRows / this.rowMultiple) * this.rowMultiple;
  }

  /** Logits of `batch`'s rows -> those of `spans`, which differ in where the prefill's span stands. */
  private inOrder(spans: readonly BatchSpan[], batch: readonly BatchSpan[], logits: Float32Array): Float32Array {
    const moved = batch[0]!;
    if (spans[0] === moved || moved.numLogits === 0) return logits;
    const result = new Float32Array(logits.length);
    const rowsBefore = spans.slice(0, spans.indexOf(moved)).reduce((sum, span) => sum + span.numLogits, 0) * this.vocabSize;
    const width = moved.numLogits * this.vocabSize;
    result.set(logits.subarray(width, width + rowsBefore));
    result.set(logits.subarray(0, width), rowsBefore);
    result.set(logits.subarray(width + rowsBefore), width + rowsBefore);
    return result;
  }

  /** Feeds and fetches a scratch's arrays, or else arrays of one row, which nothing looks at. */
  private bindScratch(scratch: PrefillScratch | null): void {
    const { numLayers, kvHeads, headSize } = this.window.shape;
    const generation = scratch?.generation ?? 0;
    if (this.bound?.scratch === scratch && this.bound.generation === generation) return;
    const none = new Float32Array(kvHeads * headSize);
    for (let l = 0; l < numLayers; l++) {
      for (const [side, array] of [['k', scratch?.keys[l]], ['v', scratch?.values[l]]] as const) {
        const tensor = new this.ort.Tensor('float32', array ?? none, [1, kvHeads, scratch?.capacity ?? 1, headSize]);
        this.feeds[`p${side}${l}`] = tensor;
        this.fetches[`n${side}${l}`] = tensor;
      }
    }
    this.bound = { scratch, generation };
  }

  /** Feeds of the prefill lane for its span, if there is one, with its context in a scratch, which is returned. */
  private bindPrefill(span: BatchSpan | undefined): PrefillScratch | null {
    const { ort, rope, feeds } = this;
    const { kvHeads, headSize } = this.window.shape;
    const n = span?.tokenIds.length ?? 0;
    const start = span?.startIndex ?? 0;
    const prefillEnd = span?.prefillEnd ?? start + n;
    const scratch = span ? this.scratches[this.separatesShort && prefillRows(prefillEnd) <= SHORT_ROWS ? 0 : 1]! : null;
    scratch?.prepare(span!.contextSlots, prefillEnd);
    this.bindScratch(scratch);
    feeds[FEEDS.lastRow] = new ort.Tensor('int32', Int32Array.of(start + n), [1]);
    feeds[FEEDS.numRows] = new ort.Tensor('int32', Int32Array.of(start + n + 1), []);
    for (const [l, bias] of this.biases) {
      const turned = new Float32Array(kvHeads * n * headSize);
      for (let h = 0; h < kvHeads; h++) for (let i = 0; i < n; i++) rotateBias(bias, h * headSize, rope, start + i, turned, (h * n + i) * headSize);
      feeds[`kb${l}`] = new ort.Tensor('float32', turned, [1, kvHeads, n, headSize]);
    }
    return scratch;
  }

  /** The rows in some of the window's places as feeds, without a copy: they stay valid until the window replaces its arrays. */
  private bindWindow({ first, count: N }: { first: number; count: number }): void {
    const { ort, window } = this;
    if (this.generation === window.generation && this.firstPlace === first && this.numPlaces === N) return;
    const { numLayers, kvHeads, headSize, kv } = window.shape;
    const L = window.pageSlots;
    const from = first * kvHeads * L;
    const to = from + N * kvHeads * L;
    for (let l = 0; l < numLayers; l++) {
      this.feeds[`k${l}`] = new ort.Tensor(kv, window.keys[l]!.subarray(from * headSize, to * headSize), [N, kvHeads, headSize, L]);
      this.feeds[`v${l}`] = new ort.Tensor(kv, window.values[l]!.subarray(from * headSize, to * headSize), [N, kvHeads, L, headSize]);
      if (kv === 'float32') continue;
      this.feeds[`ks${l}`] = new ort.Tensor('float32', window.keyScales[l]!.subarray(from, to), [N, kvHeads, 1, L]);
      this.feeds[`vs${l}`] = new ort.Tensor('float32', window.valueScales[l]!.subarray(from, to), [N, kvHeads, 1, L]);
    }
    if (this.generation !== window.generation) {
      this.windowTurns = new Float32Array(this.withTurns ? headSize * window.numSlots : 0);
      // No position is -1, so every column counts as changed.
      this.turnedPositions = new Int32Array(window.numSlots).fill(-1);
    }
    this.generation = window.generation;
    this.firstPlace = first;
    this.numPlaces = N;
    this.columns = N * L;
  }

  private feedTokens(batch: readonly BatchSpan[], T: number, W: number, S: number): void {
    const { ort, rope, vocabSize, feeds } = this;
    const { half } = rope;
    const ids = new BigInt64Array(T);
    const cos = new Float32Array(T * half);
    const sin = new Float32Array(T * half);
    const turns = new Float32Array(this.withTurns ? 2 * half * W : 0);
    const selected = new BigInt64Array(S);
    let t = 0;
    let s = 0;
    for (const { tokenIds, startIndex, numLogits } of batch) {
      rope.ensure(startIndex + tokenIds.length);
      for (let i = 0; i < tokenIds.length; i++, t++) {
        const id = tokenIds[i]!;
        if (!(id >= 0 && id < vocabSize)) throw new RequestError('badRequest', `Token id ${id} is not below the model's vocabulary size ${vocabSize}.`);
        ids[t] = BigInt(id);
        const from = (startIndex + i) * half;
        for (let d = 0; d < half; d++) {
          cos[t * half + d] = rope.cos[from + d]!;
          sin[t * half + d] = rope.sin[from + d]!;
        }
        const w = t - (T - W);
        if (this.withTurns && w >= 0) {
          for (let d = 0; d < half; d++) {
            turns[d * W + w] = rope.cos[from + d]!;
            turns[(half + d) * W + w] = rope.sin[from + d]!;
          }
        }
        if (i >= tokenIds.length - numLogits) selected[s++] = BigInt(t);
      }
    }
    feeds[FEEDS.ids] = new ort.Tensor('int64', ids, [T]);
    feeds[FEEDS.cos] = new ort.Tensor('float32', cos, [T, half]);
    feeds[FEEDS.sin] = new ort.Tensor('float32', sin, [T, half]);
    feeds[FEEDS.sel] = new ort.Tensor('int64', selected, [S]);
    if (this.withTurns) feeds[FEEDS.newTurns] = new ort.Tensor('float32', turns, [2 * half, W]);
  }

  /** [W, P + W], the window lane's: a token sees its sequence's slots, itself and the tokens of its span before it. */
  private mask(batch: readonly BatchSpan[], W: number): Ort.Tensor {
    const P = this.columns;
    const { places, pageSlots } = this.window;
    const width = P + W;
    this.maskBuffer = fittingBuffer(this.maskBuffer, W * width);
    const mask = this.maskBuffer.subarray(0, W * width);
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
            mask[row + slot + (places[page]! - page - this.firstPlace) * pageSlots] = 0;
          }
        } else mask.copyWithin(row, first * width, first * width + P);
        mask.fill(0, row + P + first, row + P + t + 1);
      }
    }
    return new this.ort.Tensor('float32', mask, [W, width]);
  }

  /** Columns whose token has another position than at the last step. */
  private updateWindowTurns(): void {
    const { rope, windowTurns, turnedPositions } = this;
    const { positions, places, pageSlots: L } = this.window;
    const { half } = rope;
    for (const [page, place] of places.entries()) {
      if (place < this.firstPlace || place >= this.firstPlace + this.numPlaces) continue;
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

/**
 * Feeds a text in chunks and hands out the logits at every position, for references and evaluations. Uses slots
 * 0 .. numTokens-1 of the runner's window, which nothing else may hold. @param onRow gets a view valid during the call.
 */
export async function forEachLogits(runner: OnnxRunner, tokenIds: readonly number[], onRow: (position: number, logits: Float32Array) => void, chunk = 32): Promise<void> {
  const { window, vocabSize } = runner;
  if (window.numSlots < tokenIds.length) window.resize(tokenIds.length);
  const slots = Int32Array.from(tokenIds, (_, i) => i);
  for (let start = 0; start < tokenIds.length; start += chunk) {
    const ids = tokenIds.slice(start, start + chunk);
    const logits = await runner.run([{ tokenIds: ids, startIndex: start, contextSlots: slots.subarray(0, start), newSlots: slots.subarray(start, start + ids.length), numLogits: ids.length }]);
    for (let i = 0; i < ids.length; i++) onRow(start + i, logits.subarray(i * vocabSize, (i + 1) * vocabSize));
  }
}
