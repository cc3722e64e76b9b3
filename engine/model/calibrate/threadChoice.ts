/**
 * Chooses how many threads a step uses: measures it once per machine, for onnxruntime and for the native kernels, and
 * opens runners with that number.
 */
import { readFile, rename, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus } from 'node:os';
import path from 'node:path';
import { KvPool } from '../../kv/pool.ts';
import type { Runner } from '../batch.ts';
import { OnnxWriter } from '../graph/onnxWriter.ts';
import type { ModelConfig } from '../load/hfConfig.ts';
import { type ImportedModel, kvShape } from '../load/importedModel.ts';
import { NativeRunner } from '../native/nativeRunner.ts';
import { PLAIN_CONFIG, syntheticModel } from '../native/syntheticModel.ts';
import { loadOnnxruntime, type OnnxRuntime, openSession, type Tensor } from '../runtime/onnxSession.ts';
import { OnnxRunner, type RunnerOptions } from '../runtime/runner.ts';
import { slotRange } from './measurement.ts';

export interface Speed {
  /** Milliseconds of a decode step, which reads all weights for one token. */
  readonly decodeMs: number;
  /** Milliseconds of a chunk of a prompt. */
  readonly promptMs: number;
}

/** A gain below this is not worth another thread. */
const WORTH = 0.04;
/** Shape of the weights that onnxruntime multiplies by, which are larger than the caches of most laptops. */
const LAYERS = 8;
const INNER = 1024;
const COLUMNS = 6144;
const STEP_ROWS = { decode: 1, prompt: 48 };
const STEP_RUNS = { decode: 12, prompt: 4 };
/** Version of the files. Raise it when a measurement or the runtime changes. */
const THREADS_FORMAT = 1;

/** At most five numbers of threads to measure on a machine with `n` logical processors, ascending, up to `n`. */
export function candidates(n: number): number[] {
  const shares = n <= 4 ? Array.from({ length: n }, (_, i) => i + 1) : [n / 4, (3 * n) / 8, n / 2, (3 * n) / 4, n];
  return [...new Set(shares.map((share) => Math.max(1, Math.floor(share))))].filter(
    (threads) => threads > 1 || n === 1,
  );
}

/** The smallest number of threads within a few percent of the best one. Decode and prefill count alike. */
export function bestOf(speeds: ReadonlyMap<number, Speed>): number {
  const all = [...speeds.values()];
  const least = {
    decodeMs: Math.min(...all.map((s) => s.decodeMs)),
    promptMs: Math.min(...all.map((s) => s.promptMs)),
  };
  const slowness = (s: Speed): number => s.decodeMs / least.decodeMs + s.promptMs / least.promptMs;
  const best = Math.min(...all.map(slowness));
  return Math.min(
    ...[...speeds].filter(([, speed]) => slowness(speed) <= best * (1 + WORTH)).map(([threads]) => threads),
  );
}

/** The model that the native kernels run, with weights of about the same size. */
const NATIVE_CONFIG: ModelConfig = {
  ...PLAIN_CONFIG,
  numLayers: 4,
  hiddenSize: INNER,
  ffnSize: 3 * INNER,
  numHeads: 16,
  kvHeads: 4,
  vocabSize: 64,
};
/** Tokens before the measured ones. */
const NATIVE_CONTEXT = 128;

/** The least time of some calls. The first one warms up. Other programs can only make one slower. */
async function leastTime(numRuns: number, run: () => Promise<unknown>): Promise<number> {
  await run();
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < numRuns; i++) {
    const start = performance.now();
    await run();
    least = Math.min(least, performance.now() - start);
  }
  return least;
}

/** Measures products of onnxruntime in the shape of a model layer. */
export async function measureOnnx(ort: OnnxRuntime, threads: number): Promise<Speed> {
  const g = new OnnxWriter();
  const weights = new Int8Array(INNER * COLUMNS);
  for (const kind of ['decode', 'prompt'] as const) {
    g.input(kind, 'uint8', [STEP_ROWS[kind], INNER]);
    const sums: string[] = [];
    for (let l = 0; l < LAYERS; l++) {
      // Equal constants would be written once.
      weights.fill(l + 1);
      const [product] = g.node('MatMulInteger', [kind, g.constant('int8', [INNER, COLUMNS], weights)], 1);
      sums.push(...g.node('ReduceMax', [product!, g.ints(1)], 1, { keepdims: 0 }));
    }
    g.node('Max', sums, [`${kind}Result`]);
    g.output(`${kind}Result`, 'int32', [STEP_ROWS[kind]]);
  }
  const session = await openSession(ort, g.finish(), threads);
  try {
    const time = (kind: 'decode' | 'prompt'): Promise<number> => {
      const feeds: Record<string, Tensor> = {};
      for (const each of ['decode', 'prompt'] as const)
        feeds[each] = new ort.Tensor('uint8', new Uint8Array(STEP_ROWS[each] * INNER).fill(3), [
          STEP_ROWS[each],
          INNER,
        ]);
      return leastTime(STEP_RUNS[kind], () => session.run(feeds, [`${kind}Result`]));
    };
    return { decodeMs: await time('decode'), promptMs: await time('prompt') };
  } finally {
    await session.release();
  }
}

/** Measures steps of the native kernels. */
export function nativeSpeeds(): (threads: number) => Promise<Speed> {
  const { model, weights } = syntheticModel(NATIVE_CONFIG, 'int8', []);
  return async (threads) => {
    const pool = new KvPool(kvShape(NATIVE_CONFIG, 'int8', []), 256);
    const runner = NativeRunner.create(model, pool, { threads, weights });
    try {
      const step = (from: number, to: number) => () =>
        runner.run([
          {
            tokenIds: Array.from({ length: to - from }, (_, i) => i),
            startIndex: from,
            contextSlots: slotRange(0, from),
            newSlots: slotRange(from, to),
            numLogits: 1,
          },
        ]);
      for (let at = 0; at < NATIVE_CONTEXT; at += STEP_ROWS.prompt)
        await step(at, Math.min(NATIVE_CONTEXT, at + STEP_ROWS.prompt))();
      const time = (kind: 'decode' | 'prompt'): Promise<number> =>
        leastTime(STEP_RUNS[kind], step(NATIVE_CONTEXT, NATIVE_CONTEXT + STEP_ROWS[kind]));
      return { decodeMs: await time('decode'), promptMs: await time('prompt') };
    } finally {
      await runner.dispose();
    }
  };
}

/**
 * The number of threads that is recorded for this machine in `file`. Measures and records it if there is none. No rule
 * gives this number: a few threads read memory at full speed, arithmetic needs all physical cores, and the slow cores of
 * a mixed processor delay the fast ones.
 */
export async function chooseThreads(
  file: string,
  prepare: () => (threads: number) => Promise<Speed>,
  n = availableParallelism(),
): Promise<number> {
  // On two processors the second one always helps.
  if (n <= 2) return n;
  const machine = `${THREADS_FORMAT}|${process.platform}-${process.arch}|${cpus()[0]?.model ?? ''}|${n}`;
  try {
    const known = JSON.parse(await readFile(file, 'utf8')) as { machine?: unknown; threads?: unknown };
    if (
      known.machine === machine &&
      Number.isInteger(known.threads) &&
      Number(known.threads) >= 1 &&
      Number(known.threads) <= n
    )
      return Number(known.threads);
  } catch {
    // Not measured yet, or not our file.
  }
  const measure = prepare();
  const speeds = new Map<number, Speed>();
  for (const threads of candidates(n)) speeds.set(threads, await measure(threads));
  const threads = bestOf(speeds);
  try {
    const draft = `${file}.${process.pid}`;
    await writeFile(draft, `${JSON.stringify({ machine, threads, speeds: Object.fromEntries(speeds) })}\n`);
    await rename(draft, file);
  } catch {
    // Measured again at the next start.
  }
  return threads;
}

/** The number of threads for onnxruntime, recorded in `folder`. */
export function onnxThreads(ort: OnnxRuntime, folder: string): Promise<number> {
  return chooseThreads(path.join(folder, 'threads.json'), () => (threads) => measureOnnx(ort, threads));
}

/** Opens a runner. 0 threads means the number that is fastest on this machine. */
export async function openRunner(model: ImportedModel, pool: KvPool, options: RunnerOptions): Promise<Runner> {
  const folder = path.dirname(model.dir);
  if (model.products === 'native') {
    const threads = options.threads || (await chooseThreads(path.join(folder, 'threads-native.json'), nativeSpeeds));
    return NativeRunner.create(model, pool, { threads });
  }
  return OnnxRunner.create(model, pool, {
    threads: options.threads || (await onnxThreads(await loadOnnxruntime(), folder)),
  });
}
