/**
 * The engine as the worker assembles it (importer, runner, pool, Engine), for measurements. Contexts can be filled
 * without computing them, and the time inside the runner is known. Keeps the engine's internals out of the other
 * benchmarks.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { BatchSpan, ModelRunner, Runner } from '../../engine/model/batch.ts';
import { type KvRows, kvBytesPerToken } from '../../engine/kv/kvRows.ts';
import { KvPool } from '../../engine/kv/pool.ts';
import { Engine } from '../../engine/core/engine.ts';
import type { EngineOptions } from '../../engine/core/engineOptions.ts';
import { type ImportedModel, kvShape } from '../../engine/model/load/importedModel.ts';
import { importModel } from '../../engine/model/import/importModel.ts';
import { laneCrossover } from '../../engine/model/calibrate/laneCrossover.ts';
import { nativeFault } from '../../engine/model/native/selfTest.ts';
import { OnnxRunner } from '../../engine/model/runtime/runner.ts';
import { openRunner } from '../../engine/model/calibrate/threadChoice.ts';
import { divideBudget } from '../../engine/core/memoryBudget.ts';
import { planWeights } from '../../engine/model/load/weightPlan.ts';
import type { Priority } from '../../engine/protocol/tasks.ts';
import { type Coefficients, StepCost, TYPICAL_PREFILL } from '../../engine/scheduler/stepCost.ts';
import { prefillRanges } from '../../engine/tasks/preparedRequest.ts';
import type { StepCosts } from '../../engine/scheduler/stepPlanner.ts';
import { Sequence } from '../../engine/sequence/sequence.ts';
import { below, type Random, seededRandom } from '../support/engine/workload.ts';

const SAMPLE_ROWS = 256;
/** Bytes of window and store. Large enough for every case, so that nothing is evicted. */
const MAX_BYTES = 3 * 2 ** 30;

/**
 * Computes, or only pretends to compute. When it pretends, the new slots get rows that the model has computed for other
 * tokens. The time of a step does not depend on the values of the rows that it attends to, so a context of any length
 * costs only a copy.
 */
class BenchRunner implements ModelRunner {
  readonly vocabSize: number;
  pretends = false;
  /** Tokens that the sequences of a step choose from position `startIndex` on, regardless of the model. */
  dictation: { startIndex: number; tokenIds: readonly number[] } | null = null;
  /** Milliseconds of all runs that computed. */
  runMs = 0;
  /** Bytes of the last step's logits, including those of padding rows. */
  logitsBytes = 0;
  /** Called after each step that computed. */
  watch: ((batch: readonly BatchSpan[], ms: number) => void) | null = null;
  readonly #runner: Runner;
  #rows: KvRows | undefined;

  constructor(runner: Runner) {
    this.#runner = runner;
    this.vocabSize = runner.vocabSize;
  }

  get paidColumns(): number {
    return this.#runner.paidColumns;
  }

  get scratchBytes(): number {
    return this.#runner.scratchBytes ?? 0;
  }

  get queries(): Float32Array | null {
    return this.#runner.queries ?? null;
  }

  get copyMs(): number {
    return this.pretends ? 0 : (this.#runner.copyMs ?? 0);
  }

  set separatesShort(separates: boolean) {
    this.#runner.separatesShort = separates;
  }

  releaseScratch(): void {
    this.#runner.releaseScratch();
  }

  async run(batch: readonly BatchSpan[]): Promise<Float32Array> {
    const logits = await this.#compute(batch);
    if (this.dictation) this.#dictate(batch, logits);
    return logits;
  }

  #dictate(batch: readonly BatchSpan[], logits: Float32Array): void {
    const { startIndex, tokenIds } = this.dictation!;
    let row = 0;
    for (const span of batch) {
      for (let i = 0; i < span.numLogits; i++, row++) {
        const next = tokenIds[span.startIndex + span.tokenIds.length - span.numLogits + i + 1 - startIndex];
        if (next !== undefined) logits[row * this.vocabSize + next] = 1e6;
      }
    }
  }

  async #compute(batch: readonly BatchSpan[]): Promise<Float32Array> {
    if (!this.pretends) {
      const start = performance.now();
      const logits = await this.#runner.run(batch);
      const ms = performance.now() - start;
      this.runMs += ms;
      this.watch?.(batch, ms);
      this.logitsBytes = logits.buffer.byteLength;
      return logits;
    }
    const rows = this.#rows!;
    let numLogits = 0;
    for (const span of batch) {
      for (let i = 0; i < span.newSlots.length; i += rows.numTokens)
        this.#runner.pool.write(span.newSlots.subarray(i, i + rows.numTokens), rows, 0, span.startIndex + i);
      numLogits += span.numLogits;
    }
    return new Float32Array(numLogits * this.vocabSize);
  }

  shiftKeys(rows: KvRows, by: number): void {
    this.#runner.shiftKeys(rows, by);
  }

  /** Computes the rows to pretend with. */
  async takeSample(tokenIds: number[]): Promise<void> {
    const { pool } = this.#runner;
    pool.resize(tokenIds.length);
    const slots = Int32Array.from(tokenIds, (_, i) => i);
    await this.#runner.run([
      { tokenIds, startIndex: 0, contextSlots: new Int32Array(0), newSlots: slots, numLogits: 0 },
    ]);
    this.#rows = pool.read(slots);
  }
}

/** Learns the cost of steps only from steps that compute. */
class BenchCost extends StepCost {
  readonly #runner: BenchRunner;

  constructor(runner: BenchRunner, typical?: Coefficients) {
    super(typical);
    this.#runner = runner;
  }

  override observe(...step: Parameters<StepCost['observe']>): void {
    if (!this.#runner.pretends) super.observe(...step);
  }
}

export interface Watched {
  readonly sequence: Sequence;
  finished: boolean;
}

export class EngineUnderTest {
  readonly model: ImportedModel;
  readonly threads: number;
  /**
   * Bytes of weights that a step of any size reads once: all but the embedding. A step reads only single rows of the
   * embedding.
   */
  readonly weightBytesPerStep: number;
  readonly random: Random;
  /** A text with fewer tokens does not go through the prefill lane. Measured for this model on this machine. */
  readonly fewestPrefill: number;
  readonly #model: Runner;
  readonly #runner: BenchRunner;
  readonly #costs: StepCosts;
  readonly #maxContext: number;
  #engine: Engine;
  #numAdded = 0;

  private constructor(
    model: ImportedModel,
    threads: number,
    opened: Runner,
    runner: BenchRunner,
    random: Random,
    fewestPrefill: number,
  ) {
    this.model = model;
    this.threads = threads;
    this.random = random;
    this.fewestPrefill = fewestPrefill;
    this.#model = opened;
    this.#runner = runner;
    this.#costs = { pool: new BenchCost(runner), prefill: new BenchCost(runner, TYPICAL_PREFILL) };
    this.#maxContext = model.config.contextTokens;
    const { stored, bytes } = planWeights(model.config, model.precision, model.tied, model.products);
    this.weightBytesPerStep = ['embedding', 'embedding.scales'].reduce(
      (left, name) => left - (stored.get(name)?.length ?? 0),
      bytes,
    );
    this.#engine = this.#newEngine();
  }

  static async open(options: {
    modelDir: string;
    cacheDir: string;
    threads: number;
    seed: number;
    precision?: 'int8' | 'int4';
    /** False: onnxruntime computes. */
    native?: boolean;
  }): Promise<EngineUnderTest> {
    const model = await importModel({
      modelDir: options.modelDir,
      cacheDir: options.cacheDir,
      precision: options.precision ?? 'int8',
      ...(options.native !== false && (await nativeFault()) === null ? { products: 'native' } : {}),
    });
    const pool = new KvPool(kvShape(model.config, 'int8', model.biased), 0);
    const opened = await openRunner(model, pool, { threads: options.threads });
    const fewestPrefill = await laneCrossover(model.dir, opened, {
      parameters: model.parameters,
      contextTokens: model.config.contextTokens,
    });
    const runner = new BenchRunner(opened);
    const random = seededRandom(options.seed);
    await runner.takeSample(tokens(random, SAMPLE_ROWS, runner.vocabSize));
    return new EngineUnderTest(model, opened.threads, opened, runner, random, fewestPrefill);
  }

  dispose(): Promise<void> {
    return this.#model.dispose();
  }

  get engine(): Engine {
    return this.#engine;
  }

  get runMs(): number {
    return this.#runner.runMs;
  }

  /** Bytes of the last step's logits, including those of padding rows. */
  get logitsBytes(): number {
    return this.#runner.logitsBytes;
  }

  /** Whether the last step attended in tiles of the pool. */
  get tiled(): boolean {
    return this.#model instanceof OnnxRunner && this.#model.tiled;
  }

  /** Whether steps may attend in tiles of the pool. */
  set mayTile(mayTile: boolean) {
    if (this.#model instanceof OnnxRunner) this.#model.mayTile = mayTile;
  }

  /** Window slots that a step attends to, used or not. */
  get poolSlots(): number {
    return this.#engine.stats().poolSlots.total;
  }

  /**
   * The smallest memory budget in which this many slots fit beside the prefill lane's share. It may be too large by a
   * sixteenth of the slots' bytes.
   */
  ceilingWith(numSlots: number): number {
    const slotBytes = kvBytesPerToken(this.#model.pool.shape);
    const perToken = this.#model.prefillBytesPerToken;
    const slotsUnder = (maxBytes: number): number =>
      divideBudget(maxBytes, perToken, this.#maxContext).rowBytes / slotBytes;
    let maxBytes = numSlots * slotBytes;
    while (slotsUnder(maxBytes) < numSlots) maxBytes += (numSlots * slotBytes) / 16;
    return maxBytes;
  }

  tokens(count: number): number[] {
    return tokens(this.random, count, this.#runner.vocabSize);
  }

  /**
   * Continues with an engine that has nothing cached. The learnt cost of steps is kept.
   * @param options options that differ from the defaults.
   */
  renew(options: Partial<EngineOptions> = {}): void {
    this.#engine = this.#newEngine(options);
  }

  /**
   * Adds a request. It has no drafts by default: models with random weights soon repeat themselves, and the cases
   * measure the steps.
   * @param prefill ranges for the prefill lane. Default: those of a raw prompt.
   */
  add(
    promptIds: number[],
    maxTokens: number,
    priority: Priority = 'chat',
    drafts = false,
    prefill = prefillRanges(0, [[0, promptIds.length]], this.fewestPrefill),
  ): Watched {
    const watched = {
      finished: false,
      sequence: new Sequence({
        id: `bench${this.#numAdded++}`,
        priority,
        promptIds,
        prefill,
        sampling: { maxTokens, ignoreEos: true, seed: 1 },
        eosIds: [],
        detokenizer: { push: () => '', flush: () => '' },
        ...(drafts ? {} : { draftSources: null }),
        onToken: () => {},
        onFinish: () => {
          watched.finished = true;
        },
        onError: (error) => {
          throw error;
        },
      }),
    };
    this.#engine.add(watched.sequence);
    return watched;
  }

  /** Runs steps without computing until `until` holds. */
  async pretend(until: () => boolean): Promise<void> {
    this.#runner.pretends = true;
    try {
      while (!until()) await this.step();
    } finally {
      this.#runner.pretends = false;
    }
  }

  /**
   * While `work` runs, the tokens from position `startIndex` on are chosen from `tokenIds`. The steps are still
   * computed.
   */
  async dictate<T>(startIndex: number, tokenIds: readonly number[], work: () => Promise<T>): Promise<T> {
    this.#runner.dictation = { startIndex, tokenIds };
    try {
      return await work();
    } finally {
      this.#runner.dictation = null;
    }
  }

  /**
   * Runs one step, or waits briefly for a read from the disk.
   * @returns milliseconds.
   * @throws Error if there is nothing to do, because the case would otherwise wait forever.
   */
  async step(): Promise<number> {
    if (!this.#engine.hasWork() && this.#engine.isFetching) {
      await nextTurn();
      return 0;
    }
    if (!this.#engine.hasWork()) throw new Error('The engine has nothing to do.');
    const start = performance.now();
    await this.#engine.step();
    return performance.now() - start;
  }

  /** While `work` runs, calls `onStep` after each step that computed, with the runner's milliseconds. */
  async watch<T>(onStep: (batch: readonly BatchSpan[], ms: number) => void, work: () => Promise<T>): Promise<T> {
    this.#runner.watch = onStep;
    try {
      return await work();
    } finally {
      this.#runner.watch = null;
    }
  }

  /**
   * Runs steps until a sequence has ended.
   * @returns milliseconds.
   */
  async finish(watched: Watched): Promise<number> {
    const start = performance.now();
    while (!watched.finished) await this.step();
    return performance.now() - start;
  }

  #newEngine(options: Partial<EngineOptions> = {}): Engine {
    return new Engine({
      runner: this.#runner,
      stepCosts: this.#costs,
      prefillBytesPerToken: this.#model.prefillBytesPerToken,
      pool: this.#model.pool,
      maxBytes: MAX_BYTES,
      maxContext: this.#maxContext,
      ...options,
    });
  }
}

function tokens(random: Random, count: number, vocabSize: number): number[] {
  return Array.from({ length: count }, () => below(random, vocabSize));
}
