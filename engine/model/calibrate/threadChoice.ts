/**
 * Measures how many threads a step should use, once per machine, because no rule tells. A few threads read memory at
 * full speed, arithmetic wants all physical cores, slow cores of a mixed processor hold back the fast ones, and every
 * thread more is heat. Opens runners with that number.
 */
import { readFile, rename, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus } from 'node:os';
import path from 'node:path';
import type { KvPool } from '../../kv/pool.ts';
import { OnnxWriter } from '../graph/onnxWriter.ts';
import type { ImportedModel } from '../load/importedModel.ts';
import { loadOnnxruntime, type OnnxRuntime, openSession, type Tensor } from '../runtime/onnxSession.ts';
import { OnnxRunner, type RunnerOptions } from '../runtime/runner.ts';

/** Milliseconds of one step: as a decode, which reads all weights for one token, and as a chunk of a prompt. */
export interface Speed {
  readonly decodeMs: number;
  readonly promptMs: number;
}

/** A gain below this is not worth another thread. */
const WORTH = 0.04;
/** Size of the measured weights: larger than the caches of most laptops. */
const LAYERS = 8;
const INNER = 1024;
const COLUMNS = 6144;
const ROWS = { decode: 1, prompt: 48 };
const RUNS = { decode: 12, prompt: 4 };
/** Version of the file. Raise it when the measurement or the runtime changes. */
const FORMAT = 1;

/**
 * Numbers of threads to measure on a machine with `n` logical processors, ascending: at most five, up to all
 * processors.
 */
export function candidates(n: number): number[] {
  const shares = n <= 4 ? Array.from({ length: n }, (_, i) => i + 1) : [n / 4, (3 * n) / 8, n / 2, (3 * n) / 4, n];
  return [...new Set(shares.map((share) => Math.max(1, Math.floor(share))))].filter(
    (threads) => threads > 1 || n === 1,
  );
}

/** The smallest number of threads within a few percent of the best. Decoding and reading prompts count alike. */
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

/** Times products of the shape of a model layer. */
export async function measureSpeed(ort: OnnxRuntime, threads: number): Promise<Speed> {
  const g = new OnnxWriter();
  const weights = new Int8Array(INNER * COLUMNS);
  for (const kind of ['decode', 'prompt'] as const) {
    g.input(kind, 'uint8', [ROWS[kind], INNER]);
    const sums: string[] = [];
    for (let l = 0; l < LAYERS; l++) {
      // Equal constants would be written once.
      weights.fill(l + 1);
      const [product] = g.node('MatMulInteger', [kind, g.constant('int8', [INNER, COLUMNS], weights)], 1);
      sums.push(...g.node('ReduceMax', [product!, g.ints(1)], 1, { keepdims: 0 }));
    }
    g.node('Max', sums, [`${kind}Result`]);
    g.output(`${kind}Result`, 'int32', [ROWS[kind]]);
  }
  const session = await openSession(ort, g.finish(), threads);
  try {
    const time = async (kind: 'decode' | 'prompt'): Promise<number> => {
      const feeds: Record<string, Tensor> = {};
      for (const each of ['decode', 'prompt'] as const)
        feeds[each] = new ort.Tensor('uint8', new Uint8Array(ROWS[each] * INNER).fill(3), [ROWS[each], INNER]);
      const times: number[] = [];
      for (let run = 0; run <= RUNS[kind]; run++) {
        const start = performance.now();
        await session.run(feeds, [`${kind}Result`]);
        times.push(performance.now() - start);
      }
      // The first run warms up. Other programs can only make a run slower.
      return Math.min(...times.slice(1));
    };
    return { decodeMs: await time('decode'), promptMs: await time('prompt') };
  } finally {
    await session.release();
  }
}

/**
 * The number recorded for this machine in `folder`, or a new measurement, which is recorded there. If the file cannot
 * be read or written, it is measured again.
 */
export async function chooseThreads(
  ort: OnnxRuntime,
  folder: string,
  measure = measureSpeed,
  n = availableParallelism(),
): Promise<number> {
  // On two processors the second one always helps.
  if (n <= 2) return n;
  const machine = `${FORMAT}|${process.platform}-${process.arch}|${cpus()[0]?.model ?? ''}|${n}`;
  const file = path.join(folder, 'threads.json');
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
  const speeds = new Map<number, Speed>();
  for (const threads of candidates(n)) speeds.set(threads, await measure(ort, threads));
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

/** Opens a runner. `threads` of one step; 0 means the number that is fastest on this machine. */
export async function openRunner(model: ImportedModel, pool: KvPool, options: RunnerOptions): Promise<OnnxRunner> {
  const threads = options.threads || (await chooseThreads(await loadOnnxruntime(), path.dirname(model.dir)));
  return OnnxRunner.create(model, pool, { threads });
}
