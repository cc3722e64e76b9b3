/**
 * Runs batches on onnxruntime: owns the session, makes the feeds of a step, and writes new KV rows into the pool. Knows
 * slots and positions. Does not know sequences or queues.
 */
import path from 'node:path';
import type * as Ort from 'onnxruntime-node';
import type { BatchSpan, ReceivedAttention, Runner } from '../batch.ts';
import type { KvRows } from '../../kv/kvRows.ts';
import type { KvPool } from '../../kv/pool.ts';
import { RequestError } from '../../protocol/errors.ts';
import { type ImportedModel, graphFile, readKeyBiases } from '../load/importedModel.ts';
import { usesRotations } from '../load/keyBias.ts';
import { loadOnnxruntime, blockRowMultiple, type OnnxRuntime, openSession } from './onnxSession.ts';
import { PrefillFeeds, type PrefillScratch, scratchBytesPerToken } from './prefillFeeds.ts';
import { RopeTable, shiftKeys } from './rope.ts';
import { FEEDS, FETCHES, QUERIES, RECEIVED } from '../graph/feeds.ts';
import { paddedProducts } from '../load/quantise.ts';
import { PagedFeeds } from './pagedFeeds.ts';
import { inTiles } from '../graph/pagedTiles.ts';

/** The operator of the prefill lane takes only heads of such sizes. */
const PREFILL_HEAD_MULTIPLE = 8;

export interface RunnerOptions {
  /** Threads of one step, at least 1. */
  readonly threads: number;
}

export class OnnxRunner implements Runner {
  readonly vocabSize: number;
  readonly numHeads: number;
  readonly pool: KvPool;
  /** Threads of one step. */
  readonly threads: number;
  private readonly model: ImportedModel;
  private readonly ort: OnnxRuntime;
  private readonly session: Ort.InferenceSession;
  private readonly rope: RopeTable;
  private readonly withRotations: boolean;
  /** See blockRowMultiple. */
  private readonly rowMultiple: number;
  /** Whether the logits of a token have the same bits with any other tokens in the step. */
  readonly isExact: boolean;
  /** Feeds of the current step. Those of the pool and of a scratch are kept until these change. */
  private readonly feeds: Record<string, Ort.Tensor> = {};
  private readonly pagedFeeds: PagedFeeds;
  /** Null with a float32 pool, whose graph has no prefill lane. */
  private readonly prefillFeeds: PrefillFeeds | null;
  /** Bytes of the scratch per token. 0 if the prefill lane cannot be used. */
  readonly prefillBytesPerToken: number;
  copyMs = 0;
  received: ReceivedAttention | null = null;
  queries: Float32Array | null = null;
  private readonly fetches: readonly string[];

  private constructor(
    model: ImportedModel,
    pool: KvPool,
    ort: OnnxRuntime,
    session: Ort.InferenceSession,
    threads: number,
    rowMultiple: number | null,
    biases: ReadonlyMap<number, Float32Array>,
  ) {
    this.model = model;
    this.pool = pool;
    this.ort = ort;
    this.session = session;
    this.vocabSize = model.config.vocabSize;
    this.numHeads = model.config.numHeads;
    this.rope = RopeTable.of(model.config);
    this.withRotations = usesRotations(model.biased, pool.shape.kv);
    this.threads = threads;
    this.rowMultiple = rowMultiple ?? 1;
    this.isExact = rowMultiple !== null;
    const quantised = pool.shape.kv === 'int8';
    this.prefillBytesPerToken =
      quantised && pool.shape.headSize % PREFILL_HEAD_MULTIPLE === 0 ? scratchBytesPerToken(pool.shape) : 0;
    this.fetches = Object.values(FETCHES).filter((name) => quantised || !name.endsWith('Scales'));
    const window = model.config.sliding?.tokens ?? null;
    this.pagedFeeds = new PagedFeeds(
      ort,
      pool,
      { rope: this.rope, withRotations: this.withRotations, window },
      this.feeds,
    );
    this.prefillFeeds = quantised ? new PrefillFeeds(ort, pool, this.rope, biases, this.feeds) : null;
  }

  /** Loads onnxruntime and the model. The KV precision of the pool selects the graph. */
  static async create(model: ImportedModel, pool: KvPool, options: RunnerOptions): Promise<OnnxRunner> {
    const ort = await loadOnnxruntime();
    const file = path.join(model.dir, graphFile(pool.shape.kv));
    const { threads } = options;
    const session = await openSession(ort, file, threads);
    const biases = pool.shape.kv === 'int8' ? await readKeyBiases(model) : new Map();
    const { layers, head } = paddedProducts(model);
    return new OnnxRunner(model, pool, ort, session, threads, layers || head ? await blockRowMultiple(ort) : 1, biases);
  }

  /** See ModelRunner. */
  get paidColumns(): number {
    return this.pagedFeeds.attention.paidColumns;
  }

  /** Whether the last step had gathered attention (see pagedLane). */
  get gathered(): boolean {
    return this.pagedFeeds.attention.gathered;
  }

  /** Whether the last step attended in tiles of the pool (see pagedTiles). */
  tiled = false;
  /** Switched off only to measure what tiles gain. */
  mayTile = true;

  /** One for short prompts and one for long ones. */
  get scratches(): readonly PrefillScratch[] {
    return this.prefillFeeds?.scratches ?? [];
  }

  get scratchBytes(): number {
    return this.prefillFeeds?.bytes ?? 0;
  }

  releaseScratch(): void {
    this.prefillFeeds?.release();
  }

  /** See ModelRunner. */
  set separatesShort(separates: boolean) {
    if (this.prefillFeeds) this.prefillFeeds.separatesShort = separates;
  }

  shiftKeys(rows: KvRows, by: number): void {
    shiftKeys(rows, this.pool.shape, this.rope, by);
  }

  async dispose(): Promise<void> {
    await this.session.release();
  }

  async run(spans: readonly BatchSpan[]): Promise<Float32Array> {
    const { ort, pool, feeds } = this;
    const { numHeads, kvHeads } = this.model.config;
    const prefill = spans.find(({ lane }) => lane === 'prefill');
    const others = spans.filter((span) => span !== prefill);
    const batch = prefill ? [prefill, ...others] : others;
    const W = others.reduce((sum, span) => sum + span.tokenIds.length, 0);
    const measures = spans[0]?.measures === true;
    const T = W + (prefill?.tokenIds.length ?? 0);
    const numLogits = batch.reduce((sum, span) => sum + span.numLogits, 0);
    const S = this.filled(numLogits);
    this.pagedFeeds.bind(others, W);
    const { columns: P, gathered } = this.pagedFeeds.attention;
    this.feedTokens(batch, T, W, S);
    feeds[FEEDS.hasLogits] = new ort.Tensor('bool', [numLogits > 0], []);
    const shape = (...dims: number[]) => new ort.Tensor('int64', BigInt64Array.from(dims, BigInt), [dims.length]);
    feeds[FEEDS.scoresShape] = shape(kvHeads, numHeads / kvHeads, W, -1);
    feeds[FEEDS.rowsShape] = shape(1, kvHeads, (numHeads / kvHeads) * W, -1);
    feeds[FEEDS.split] = shape(P, W);
    if (paddedProducts(this.model).layers) {
      feeds[FEEDS.pad] = shape(0, 0, this.filled(T) - T, 0);
      feeds[FEEDS.crop] = shape(0, 0, T - this.filled(T), 0);
    }
    feeds[FEEDS.pastShape] = gathered ? shape(0, 0, 0, P) : shape(1, kvHeads, (numHeads / kvHeads) * W, P);
    if (this.prefillFeeds) {
      const shared = !prefill && !gathered && !measures;
      this.tiled = this.mayTile && shared && inTiles(numHeads, W, P, pool.pageSlots);
      const flags = {
        shared: shared && !this.tiled,
        tiles: this.tiled,
        measures,
        gathered,
        hasPrefill: prefill !== undefined,
        hasPaged: W > 0,
      };
      for (const [name, flag] of Object.entries(flags))
        feeds[FEEDS[name as keyof typeof flags]] = new ort.Tensor('bool', [flag], []);
      feeds[FEEDS.lanes] = shape(T - W, W);
      feeds[FEEDS.queryRows] = shape(...this.queryRows(spans, batch));
      const start = performance.now();
      this.prefillFeeds.bind(prefill);
      this.copyMs = performance.now() - start;
    }
    const hasQueries = this.prefillFeeds !== null && spans.some(({ numQueries = 0 }) => numQueries > 0);
    const result = await this.session.run(feeds, [
      ...this.fetches,
      ...(measures ? [RECEIVED] : []),
      ...(hasQueries ? [QUERIES] : []),
    ]);
    this.queries = hasQueries ? (result[QUERIES]!.data as Float32Array) : null;
    this.received = measures ? this.pagedFeeds.received(spans[0]!, result[RECEIVED]!.data as Float32Array) : null;
    const rows: KvRows = {
      numTokens: T,
      keys: result[FETCHES.keys]!.data as Int8Array | Float32Array,
      values: result[FETCHES.values]!.data as Int8Array | Float32Array,
      keyScales: (result[FETCHES.keyScales]?.data ?? new Float32Array(0)) as Float32Array,
      valueScales: (result[FETCHES.valueScales]?.data ?? new Float32Array(0)) as Float32Array,
    };
    let from = 0;
    for (const span of batch) {
      pool.write(span.newSlots, rows, from, span.startIndex);
      from += span.tokenIds.length;
    }
    return this.inOrder(
      spans,
      batch,
      (result[FETCHES.logits]!.data as Float32Array).subarray(0, numLogits * this.vocabSize),
    );
  }

  /** The rows whose queries are wanted. Row numbers follow `batch`, and the list follows `spans`. */
  private queryRows(spans: readonly BatchSpan[], batch: readonly BatchSpan[]): number[] {
    const ends = new Map<BatchSpan, number>();
    let end = 0;
    for (const span of batch) {
      end += span.tokenIds.length;
      ends.set(span, end);
    }
    return spans.flatMap((span) =>
      Array.from({ length: span.numQueries ?? 0 }, (_, i) => ends.get(span)! - span.numQueries! + i),
    );
  }

  /** The number of rows after padding to the multiple. */
  private filled(numRows: number): number {
    return Math.ceil(numRows / this.rowMultiple) * this.rowMultiple;
  }

  /** Reorders logits from the order of `batch`, in which the prefill span is first, to the order of `spans`. */
  private inOrder(spans: readonly BatchSpan[], batch: readonly BatchSpan[], logits: Float32Array): Float32Array {
    const moved = batch[0]!;
    if (spans[0] === moved || moved.numLogits === 0) return logits;
    const result = new Float32Array(logits.length);
    const rowsBefore =
      spans.slice(0, spans.indexOf(moved)).reduce((sum, span) => sum + span.numLogits, 0) * this.vocabSize;
    const width = moved.numLogits * this.vocabSize;
    result.set(logits.subarray(width, width + rowsBefore));
    result.set(logits.subarray(0, width), rowsBefore);
    result.set(logits.subarray(width + rowsBefore), width + rowsBefore);
    return result;
  }

  private feedTokens(batch: readonly BatchSpan[], T: number, W: number, S: number): void {
    const { ort, rope, vocabSize, feeds } = this;
    const { half } = rope;
    const ids = new BigInt64Array(T);
    const cos = new Float32Array(T * half);
    const sin = new Float32Array(T * half);
    const rotations = new Float32Array(this.withRotations ? 2 * half * W : 0);
    const selected = new BigInt64Array(S);
    let t = 0;
    let s = 0;
    for (const { tokenIds, startIndex, numLogits } of batch) {
      rope.ensure(startIndex + tokenIds.length);
      for (let i = 0; i < tokenIds.length; i++, t++) {
        const id = tokenIds[i]!;
        if (!(id >= 0 && id < vocabSize))
          throw new RequestError('badRequest', `Token id ${id} is not below the model's vocabulary size ${vocabSize}.`);
        ids[t] = BigInt(id);
        const from = (startIndex + i) * half;
        for (let d = 0; d < half; d++) {
          cos[t * half + d] = rope.cos[from + d]!;
          sin[t * half + d] = rope.sin[from + d]!;
        }
        const w = t - (T - W);
        if (this.withRotations && w >= 0) {
          for (let d = 0; d < half; d++) {
            rotations[d * W + w] = rope.cos[from + d]!;
            rotations[(half + d) * W + w] = rope.sin[from + d]!;
          }
        }
        if (i >= tokenIds.length - numLogits) selected[s++] = BigInt(t);
      }
    }
    if (rope.local) this.feedLocalAngles(batch, T, rope.local.table);
    feeds[FEEDS.ids] = new ort.Tensor('int64', ids, [T]);
    feeds[FEEDS.cos] = new ort.Tensor('float32', cos, [T, half]);
    feeds[FEEDS.sin] = new ort.Tensor('float32', sin, [T, half]);
    feeds[FEEDS.logitRows] = new ort.Tensor('int64', selected, [S]);
    if (this.withRotations) feeds[FEEDS.newRotations] = new ort.Tensor('float32', rotations, [2 * half, W]);
  }

  /** Cosines and sines of the layers with their own rope. */
  private feedLocalAngles(batch: readonly BatchSpan[], T: number, { cos, sin, half }: RopeTable): void {
    for (const [name, table] of [
      [FEEDS.localCos, cos],
      [FEEDS.localSin, sin],
    ] as const) {
      const angles = new Float32Array(T * half);
      let t = 0;
      for (const { tokenIds, startIndex } of batch) {
        angles.set(table.subarray(startIndex * half, (startIndex + tokenIds.length) * half), t * half);
        t += tokenIds.length;
      }
      this.feeds[name] = new this.ort.Tensor('float32', angles, [T, half]);
    }
  }
}
