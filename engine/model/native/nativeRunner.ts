/**
 * Runs batches in the native kernels: opens the weights, and makes the arrays of a step. Knows slots and positions.
 * Does not know sequences or queues.
 */
import { t } from '@vscode/l10n';
import { accessSync, constants } from 'node:fs';
import path from 'node:path';
import type { BatchSpan, ReceivedAttention, Runner } from '../batch.ts';
import type { KvRows } from '../../kv/kvRows.ts';
import type { KvPool } from '../../kv/pool.ts';
import type { Precision } from '../../protocol/tasks.ts';
import { reasonOf, RequestError } from '../../protocol/errors.ts';
import { type ImportedModel, WEIGHT_FILE } from '../load/importedModel.ts';
import type { ModelConfig } from '../load/hfConfig.ts';
import { usesRotations } from '../load/keyBias.ts';
import { GROUP } from '../load/packedWeights.ts';
import { formsOf } from '../load/quantise.ts';
import { planWeights, type WeightPlan } from '../load/weightPlan.ts';
import { PoolRotations } from '../runtime/poolRotations.ts';
import { RopeTable, shiftKeys } from '../runtime/rope.ts';
import { type Addon, loadAddon, type NativeEngine } from './addon.ts';

/**
 * Tensors of a layer, in the order of engine.c. Many layers have only some of them. In a layer with a router, gate, up
 * and down are those of all experts.
 */
const LAYER_TENSORS =
  'norm1 norm1Bias qkv qkv.scales qkvBias keyBias qkNorm qNorm kNorm o o.scales oBias norm1After norm2 norm2Bias ' +
  'router router.scales gate gate.scales gateBias up up.scales upBias down down.scales downBias norm2After';
const MODEL_TENSORS = 'embedding embedding.scales norm normBias head head.scales';

/** Offsets and lengths of all tensors in the weight file; -1 for one that the model does not have. */
function tensorPlaces(plan: WeightPlan, numLayers: number): Float64Array {
  const places: number[] = [];
  const add = (name: string): void => {
    const stored = plan.stored.get(name);
    places.push(stored?.offset ?? -1, stored?.length ?? 0);
  };
  for (let l = 0; l < numLayers; l++)
    // A large key bias is added to the scores, not to the keys.
    for (const name of LAYER_TENSORS.split(' '))
      add(`l${l}.${name === 'qkvBias' && plan.biased.includes(l) ? 'qvBias' : name}`);
  for (const name of MODEL_TENSORS.split(' ')) add(name);
  return Float64Array.from(places);
}

/** Which rope a layer has, and whether a window, as in step.h and engine.h. */
const [NO_ROPE, MAIN_ROPE, LOCAL_ROPE, HAS_WINDOW] = [0, 1, 2, 4];

function kindOf({ rope, sliding }: ModelConfig, l: number): number {
  const hasWindow = sliding?.layers.includes(l) === true;
  const turns = rope.unrotated?.includes(l) ? NO_ROPE : hasWindow && sliding.rope ? LOCAL_ROPE : MAIN_ROPE;
  return turns + (hasWindow ? HAS_WINDOW : 0);
}

/** The numbers of the shape, in the order of engine.h. */
function shapeOf(config: ModelConfig, precision: Precision): Int32Array {
  const { numLayers, hiddenSize, numHeads, kvHeads, headSize, ffnSize, vocabSize, gate, isGpt, sliding } = config;
  const forms = formsOf(precision, 'native');
  const bits = [forms.attention, forms.feedForward, forms.head].map((form) => (form === 'packed4' ? 4 : 8));
  const kinds = Array.from({ length: numLayers }, (_, l) => kindOf(config, l));
  const isGelu = gate === 'gelu' || isGpt ? 1 : 0;
  const sizes = [numLayers, hiddenSize, numHeads, kvHeads, headSize, ffnSize, vocabSize];
  const { count, used, size, isNormed } = config.experts ?? { count: 0, used: 0, size: 0, isNormed: false };
  const experts = [count, used, size, isNormed ? 1 : 0];
  return Int32Array.of(...sizes, ...bits, isGelu, sliding?.tokens ?? 0, ...experts, ...kinds);
}

interface NativeOptions {
  readonly threads: number;
  /** Default: the fastest. */
  readonly kernels?: string;
  /** Path of the weight file, or its bytes. Default: the file of the model. */
  readonly weights?: string | Uint8Array;
}

/** The addon says only what has failed. onnxruntime would be no way out: it needs more memory. */
function openingError(model: ImportedModel, weights: string | Uint8Array, error: unknown): unknown {
  if (typeof weights === 'string')
    try {
      accessSync(weights, constants.R_OK);
    } catch (fault) {
      return new RequestError(
        'engineFailed',
        t('The converted weights {0} cannot be read: {1}.', weights, reasonOf(fault)),
      );
    }
  if (!/memory/.test(String(error))) return error;
  const megabytes = Math.ceil(model.weightsBytes / 1e6);
  return new RequestError(
    'engineFailed',
    t(
      'The model needs {0} MB for its weights, but too little memory is left. Close other programs, or choose a smaller model.',
      megabytes,
    ),
  );
}

export class NativeRunner implements Runner {
  readonly vocabSize: number;
  readonly pool: KvPool;
  readonly threads: number;
  /** Name of the kernels. */
  readonly kernels: string;
  readonly isExact = true;
  readonly hasOneLane = true;
  /** There is no prefill lane. */
  readonly prefillBytesPerToken = 0;
  paidColumns = 0;
  received: ReceivedAttention | null = null;
  queries: Float32Array | null = null;
  readonly #addon: Addon;
  readonly #engine: NativeEngine;
  readonly #model: ImportedModel;
  readonly #rope: RopeTable;
  readonly #rotations: PoolRotations | null;
  #generation = -1;
  #logits = new Float32Array(0);

  private constructor(model: ImportedModel, pool: KvPool, addon: Addon, options: Required<NativeOptions>) {
    const { config, precision, products, tied, biased } = model;
    const plan = planWeights(config, precision, tied, products, biased);
    const { numLayers, vocabSize, rmsEps, softcaps } = config;
    this.#addon = addon;
    this.#engine = addon.open(
      options.weights,
      options.kernels,
      shapeOf(config, precision),
      Float64Array.of(rmsEps, softcaps.scores ?? 0, softcaps.logits ?? 0),
      tensorPlaces(plan, numLayers),
      options.threads,
    );
    this.#model = model;
    this.kernels = options.kernels;
    this.pool = pool;
    pool.attendsInPlace = true;
    this.threads = addon.threads(this.#engine);
    this.vocabSize = vocabSize;
    this.#rope = RopeTable.of(config);
    this.#rotations = usesRotations(biased, 'int8') ? new PoolRotations(pool, this.#rope) : null;
  }

  /**
   * `model` must have the product form `native`, and the pool 8 bits.
   * @throws Error if there is no addon for this platform
   * @throws RequestError `engineFailed` if the weights cannot be read or do not fit into memory
   */
  static create(model: ImportedModel, pool: KvPool, options: NativeOptions): NativeRunner {
    const addon = loadAddon();
    const weights = options.weights ?? path.join(model.dir, WEIGHT_FILE);
    try {
      const kernels = options.kernels ?? addon.kernels()[0]!;
      return new NativeRunner(model, pool, addon, { threads: options.threads, kernels, weights });
    } catch (error) {
      throw openingError(model, weights, error);
    }
  }

  releaseScratch(): void {}

  shiftKeys(rows: KvRows, by: number): void {
    shiftKeys(rows, this.pool.shape, this.#rope, by);
  }

  dispose(): Promise<void> {
    this.#addon.close(this.#engine);
    return Promise.resolve();
  }

  async run(spans: readonly BatchSpan[]): Promise<Float32Array> {
    const { numLayers, numHeads, kvHeads, headSize } = this.#model.config;
    const { half } = this.#rope;
    const T = spans.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0);
    const numContext = spans.reduce((sum, { contextSlots }) => sum + contextSlots.length, 0);
    const ids = new Int32Array(T);
    const ropes = this.#rope.local ? [this.#rope, this.#rope.local.table] : [this.#rope];
    const [cos, sin] = [new Float32Array(ropes.length * T * half), new Float32Array(ropes.length * T * half)];
    const sizes = new Int32Array(2 * spans.length);
    const context = new Int32Array(numContext);
    const newSlots = new Int32Array(T);
    const [logitRows, queryRows]: [number[], number[]] = [[], []];
    let [t, c, columns] = [0, 0, 0];
    for (const [s, span] of spans.entries()) {
      const { tokenIds, startIndex, contextSlots, numLogits, numQueries = 0 } = span;
      const n = tokenIds.length;
      this.#checkIds(tokenIds);
      this.#rope.ensure(startIndex + n);
      ids.set(tokenIds, t);
      for (const [r, table] of ropes.entries()) {
        cos.set(table.cos.subarray(startIndex * half, (startIndex + n) * half), (r * T + t) * half);
        sin.set(table.sin.subarray(startIndex * half, (startIndex + n) * half), (r * T + t) * half);
      }
      sizes.set([n, contextSlots.length], 2 * s);
      context.set(contextSlots, c);
      newSlots.set(span.newSlots, t);
      for (let i = n - numLogits; i < n; i++) logitRows.push(t + i);
      for (let i = n - numQueries; i < n; i++) queryRows.push(t + i);
      columns += n * contextSlots.length;
      t += n;
      c += contextSlots.length;
    }
    this.paidColumns = columns / T;
    const padded = Math.ceil(this.vocabSize / GROUP) * GROUP;
    if (this.#logits.length < logitRows.length * padded || this.#logits.length > 64 * padded)
      this.#logits = new Float32Array(logitRows.length * padded);
    const queries = new Float32Array(queryRows.length * numLayers * numHeads * headSize);
    const n = numContext + T;
    const received = new Float32Array(spans[0]!.measures ? 2 * numLayers * kvHeads * n : 0);
    // The addon writes the rows, so their positions must be known before.
    for (const span of spans) this.pool.mark(span.newSlots, span.startIndex);
    this.#bind(spans);
    await this.#addon.step(this.#engine, [
      ids,
      cos,
      sin,
      sizes,
      context,
      newSlots,
      this.pool.positions,
      this.pool.places,
      Int32Array.from(logitRows),
      Int32Array.from(queryRows),
      this.#logits,
      queries,
      received,
    ]);
    this.queries = queryRows.length > 0 ? queries : null;
    const middle = received.length / 2;
    this.received = middle > 0 ? { most: received.subarray(0, middle), sum: received.subarray(middle) } : null;
    return this.#logits.subarray(0, logitRows.length * this.vocabSize);
  }

  #checkIds(tokenIds: readonly number[]): void {
    for (const id of tokenIds)
      if (!(id >= 0 && id < this.vocabSize))
        throw new RequestError(
          'badRequest',
          `Token id ${id} is not below the model's vocabulary size ${this.vocabSize}.`,
        );
  }

  /** Gives the arrays of the pool to the addon when the pool has replaced them. */
  #bind(spans: readonly BatchSpan[]): void {
    const { pool } = this;
    const pages = new Set<number>();
    if (this.#rotations)
      for (const { contextSlots, newSlots } of spans)
        for (const slots of [contextSlots, newSlots]) pool.addPages(slots, pages);
    const rotations = this.#rotations?.update(pages) ?? null;
    if (this.#generation === pool.generation) return;
    const arrays = pool.keys.flatMap((keys, l) => [
      keys as Int8Array,
      pool.values[l] as Int8Array,
      pool.keyScales[l]!,
      pool.valueScales[l]!,
    ]);
    this.#addon.bind(this.#engine, pool.pageSlots, rotations ? [...arrays, rotations] : arrays);
    this.#generation = pool.generation;
  }
}
