/**
 * Runs one engine for a long time with random requests that share and edit their files, aborts, evictions, pins and a
 * changing memory budget that causes constant preemptions. Checks slots and bytes after every step. Keeps nothing of
 * ended requests, so that all memory growth is the engine's.
 */
import { scratchRows } from '../../../engine/model/batch.ts';
import { kvBytesPerToken } from '../../../engine/kv/kvRows.ts';
import { KvPool } from '../../../engine/kv/pool.ts';
import { Engine } from '../../../engine/core/engine.ts';
import { importModel } from '../../../engine/model/import/importModel.ts';
import { kvShape, usualKv } from '../../../engine/model/load/importedModel.ts';
import { NativeRunner } from '../../../engine/model/native/nativeRunner.ts';
import { OnnxRunner } from '../../../engine/model/runtime/runner.ts';
import type { Precision } from '../../../engine/protocol/tasks.ts';
import { FakeRunner, fakeShape, VOCAB_SIZE } from '../engine/fakeRunner.ts';
import { runAlone } from '../engine/oracle.ts';
import { below, driveWorkload, makeWorkload, type Outcome, seededRandom, type WorkItem } from '../engine/workload.ts';
import { chunkNoise } from '../model/chunkNoise.ts';

const MAX_CONTEXT = 260;
/** The memory budget moves between these limits, in slots. The smaller limit still has room for any single request. */
const MIN_SLOTS = 300;
const MAX_SLOTS = 450;
const TOKEN_BUDGET = 32;
/** Most tokens of a prompt in the prefill lane. Some prompts are longer. */
const PREFILL_TOKENS = 90;
/** Number of times that a run reads the memory. */
const SAMPLES = 40;

export interface SoakOptions {
  numRequests: number;
  seed: number;
  /** Without a model the fake runner is used, which checks every row that it reads. */
  model?: {
    modelDir: string;
    cacheDir: string;
    /** In float32 onnxruntime computes, else the native kernels. */
    precision: Precision;
    /** Addon with sanitizers, instead of the one that is checked in. */
    library?: string;
  };
}

export interface SoakResult {
  numRequests: number;
  steps: number;
  finished: number;
  aborted: number;
  failed: number;
  tokensCompared: number;
  /**
   * Largest change of a logit by chunking alone. A token may differ if the oracle's two best logits are closer than
   * this.
   */
  noise: number;
  /** Number of tokens that differ from the oracle's, all within the noise. */
  tokensDiffering: number;
  events: { evictions: number; preemptions: number; promotions: number; demotions: number };
  /** Memory by number of ended requests: of the process, and the part of it in JavaScript's objects and buffers. */
  samples: { ended: number; bytes: number; heapBytes: number }[];
}

/** The answer of a request alone. */
type Expected = Pick<Outcome, 'error' | 'gaps'> & { tokenIds: readonly number[] };
/** Runs a request with an empty cache. */
type Oracle = (item: WorkItem) => Promise<Expected>;

interface Subject {
  engine: Engine;
  pool: KvPool;
  vocabSize: number;
  oracle: Oracle;
  /** The part of the memory budget for the prefill lane. */
  scratchBytes: number;
  /** Frees the resources that only the oracle needs. */
  oracleIsDone(): Promise<void>;
  noise: number;
  dispose(): Promise<void>;
}

/**
 * First computes the answer of each request alone. Compares each answer with it as soon as the request ends. Reads the
 * process memory at regular intervals after a garbage collection. Needs `--expose-gc`.
 * @throws Error at the first wrong token, slot or byte.
 */
export async function soak(options: SoakOptions): Promise<SoakResult> {
  const { numRequests, seed } = options;
  const subject = options.model ? await realSubject(options.model) : fakeSubject();
  const { engine, pool, noise } = subject;
  try {
    const random = seededRandom(seed + 1);
    const items = makeWorkload({
      seed,
      numRequests,
      numTokens: subject.vocabSize,
      numFiles: 5,
      fileTokens: 45,
      tailTokens: 12,
      maxTokens: 32,
      arrivalsPerStep: 0.25,
      aborts: 0.15,
      sampled: noise > 0 ? 0 : 0.3,
      tooLong: 0.01,
    });
    if (options.model) for (const item of items) item.sampling.topLogprobs = 2;
    const result: SoakResult = {
      numRequests,
      steps: 0,
      finished: 0,
      aborted: 0,
      failed: 0,
      tokensCompared: 0,
      noise,
      tokensDiffering: 0,
      events: engine.stats().events,
      samples: [],
    };
    const expected: Expected[] = [];
    for (const item of items) {
      const { tokenIds, error, gaps } = await subject.oracle(item);
      expected.push({ tokenIds, error, gaps });
    }
    await subject.oracleIsDone();
    const ended: { item: WorkItem; outcome: Outcome }[] = [];
    let ceiling = MIN_SLOTS;
    let nextSample = 0;
    let numEnded = 0;

    const disturb = (): void => {
      if (random() < 0.02) {
        ceiling = MIN_SLOTS + below(random, MAX_SLOTS - MIN_SLOTS + 1);
        engine.setMaxBytes(ceiling * kvBytesPerToken(pool.shape) + subject.scratchBytes);
      }
      if (random() < 0.01)
        engine.blocks.pin(
          `pin ${below(random, 2)}`,
          random() < 0.5 ? null : items[below(random, items.length)]!.promptIds.slice(0, 20),
        );
      if (random() < 0.02)
        engine.blocks.evict(random() < 0.3 ? undefined : items[below(random, items.length)]!.promptIds.slice(0, 5));
    };
    const account = (): void => {
      engine.checkIntegrity();
      const { poolSlots, poolBytes, storeBytes } = engine.stats();
      if (poolSlots.free + poolSlots.held !== poolSlots.total)
        throw new Error(`${poolSlots.free} free and ${poolSlots.held} held slots are not ${poolSlots.total}.`);
      if (poolBytes + storeBytes > ceiling * kvBytesPerToken(pool.shape))
        throw new Error(`${poolBytes + storeBytes} bytes are more than ${ceiling} slots have.`);
    };
    await driveWorkload(engine, items, {
      detokenizer: () => ({ push: () => '', flush: () => '' }),
      beforeStep: disturb,
      onEnd: (item, outcome) => ended.push({ item, outcome }),
      afterStep: () => {
        result.steps++;
        account();
        for (const { item, outcome } of ended.splice(0)) {
          numEnded++;
          if (outcome.finishReason === 'abort') result.aborted++;
          else if (outcome.error) result.failed++;
          else result.finished++;
          const { compared, differing } = compare(item, outcome, expected[Number(item.id.slice(1))]!, noise);
          result.tokensCompared += compared;
          result.tokensDiffering += differing;
        }
        if (numEnded < nextSample) return;
        nextSample += numRequests / SAMPLES;
        result.samples.push({ ended: numEnded, ...memory() });
      },
    });
    result.events = engine.stats().events;
    return result;
  } finally {
    await subject.dispose();
  }
}

/** Slope of the least-squares line through the last half of the samples, in bytes per request. */
export function slope(samples: SoakResult['samples'], of: 'bytes' | 'heapBytes' = 'bytes'): number {
  const last = samples.slice(samples.length >> 1);
  const mean = (value: (sample: SoakResult['samples'][number]) => number): number =>
    last.reduce((sum, sample) => sum + value(sample), 0) / last.length;
  const [x, y] = [mean(({ ended }) => ended), mean((sample) => sample[of])];
  return mean((sample) => (sample.ended - x) * (sample[of] - y)) / mean((sample) => (sample.ended - x) ** 2);
}

/** @throws Error if the outcome differs from the oracle's. Only an aborted request may have fewer tokens. */
function compare(
  item: WorkItem,
  outcome: Outcome,
  expected: Expected,
  noise: number,
): { compared: number; differing: number } {
  const { tokenIds, finishReason, error } = outcome;
  const wrong = (what: string): Error =>
    new Error(`${item.id}: ${what}; got ${tokenIds.join(' ')}, alone ${expected.tokenIds.join(' ')}`);
  if (error !== expected.error) throw wrong(`error ${error} rather than ${expected.error}`);
  for (const [i, tokenId] of tokenIds.entries()) {
    if (tokenId === expected.tokenIds[i]) continue;
    if (!(expected.gaps[i]! < noise)) throw wrong(`token ${i} differs`);
    // From here on, the texts of the two differ.
    return { compared: i + 1, differing: 1 };
  }
  if (finishReason !== 'abort' && tokenIds.length !== expected.tokenIds.length) throw wrong('it is shorter');
  return { compared: tokenIds.length, differing: 0 };
}

function memory(): { bytes: number; heapBytes: number } {
  if (!globalThis.gc) throw new Error('Run with --expose-gc.');
  // The second collection frees what finalizers release.
  globalThis.gc();
  globalThis.gc();
  const { rss, heapUsed, external } = process.memoryUsage();
  return { bytes: rss, heapBytes: heapUsed + external };
}

function fakeSubject(): Subject {
  const pool = new KvPool(fakeShape(), 0);
  const engine = new Engine({
    runner: new FakeRunner(pool),
    pool,
    maxBytes: MIN_SLOTS * kvBytesPerToken(pool.shape),
    maxContext: MAX_CONTEXT,
    tokenBudget: TOKEN_BUDGET,
  });
  const limits = { maxContext: MAX_CONTEXT, capacity: MIN_SLOTS };
  return {
    engine,
    pool,
    vocabSize: VOCAB_SIZE,
    noise: 0,
    scratchBytes: 0,
    oracle: async (item) => ({ ...runAlone(item.promptIds, item.sampling, limits), gaps: [] }),
    oracleIsDone: async () => {},
    dispose: async () => {},
  };
}

/** The oracle has its own session and its own pool. */
async function realSubject({ modelDir, cacheDir, precision }: NonNullable<SoakOptions['model']>): Promise<Subject> {
  const isNative = precision !== 'float32';
  const imported = await importModel({
    modelDir,
    cacheDir,
    precision,
    ...(isNative ? { products: 'native' as const } : {}),
  });
  const shape = kvShape(imported.config, usualKv(precision), imported.biased);
  const open = async () => {
    const pool = new KvPool(shape, 0);
    const create = isNative ? NativeRunner.create : OnnxRunner.create;
    return { pool, runner: await create(imported, pool, { threads: 2 }) };
  };
  const { pool, runner } = await open();
  const alone = await open();
  const noise = await chunkNoise(alone.runner, alone.pool, imported.config.vocabSize);
  if (isNative && noise !== 0) throw new Error(`Chunks change the native kernels' logits by ${noise}.`);
  const { prefillBytesPerToken } = runner;
  const scratchBytes = scratchRows(PREFILL_TOKENS) * prefillBytesPerToken;
  const limits = (slots: number) => ({
    maxBytes: slots * kvBytesPerToken(shape) + scratchBytes,
    prefillBytesPerToken,
    prefillTokens: PREFILL_TOKENS,
    maxContext: MAX_CONTEXT,
  });
  const engine = new Engine({ runner, pool, ...limits(MIN_SLOTS), tokenBudget: TOKEN_BUDGET });
  const oracle: Oracle = async ({ abortAfter: _, ...item }) => {
    const fresh = new Engine({
      runner: alone.runner,
      pool: alone.pool,
      ...limits(4 * MAX_CONTEXT),
      tokenBudget: 512,
    });
    const outcomes = await driveWorkload(fresh, [{ ...item, arriveStep: 0 }], {
      detokenizer: () => ({ push: () => '', flush: () => '' }),
    });
    return outcomes.get(item.id)!;
  };
  return {
    engine,
    pool,
    vocabSize: imported.config.vocabSize,
    oracle,
    oracleIsDone: () => alone.runner.dispose(),
    noise,
    scratchBytes,
    dispose: () => runner.dispose(),
  };
}
