/**
 * Measures what this processor computes fastest: how many threads a step should use, and which form of 8-bit weights.
 * Measures once per machine. Opens runners with that number of threads.
 */
import { readFile, rename, writeFile } from 'node:fs/promises';
import { availableParallelism, cpus } from 'node:os';
import path from 'node:path';
import type { KvPool } from '../../kv/pool.ts';
import { OnnxWriter } from '../graph/onnxWriter.ts';
import type { ImportedModel } from '../load/importedModel.ts';
import {
  loadOnnxruntime,
  type OnnxRuntime,
  openSession,
  type Tensor,
  isNarrow,
  blockRowMultiple,
} from '../runtime/onnxSession.ts';
import type { Runner } from '../batch.ts';
import { NativeRunner } from '../native/nativeRunner.ts';
import { OnnxRunner, type RunnerOptions } from '../runtime/runner.ts';
import { BLOCK, type ProductForm } from '../load/quantise.ts';
import { MS } from '../graph/graphOps.ts';
import { measuredOnce } from './measurement.ts';

// --- threads ---------------------------------------------------------------------

export interface Speed {
  /** Milliseconds of a decode step, which reads all weights for one token. */
  readonly decodeMs: number;
  /** Milliseconds of a chunk of a prompt. */
  readonly promptMs: number;
}

/** A gain below this is not worth another thread. */
const WORTH = 0.04;
/** Shape of the measured weights, which are larger than the caches of most laptops. */
const LAYERS = 8;
const INNER = 1024;
const COLUMNS = 6144;
const STEP_ROWS = { decode: 1, prompt: 48 };
const STEP_RUNS = { decode: 12, prompt: 4 };
/** Version of the file. Raise it when the measurement or the runtime changes. */
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

/** Measures the time of products in the shape of a model layer. */
export async function measureSpeed(ort: OnnxRuntime, threads: number): Promise<Speed> {
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
    const time = async (kind: 'decode' | 'prompt'): Promise<number> => {
      const feeds: Record<string, Tensor> = {};
      for (const each of ['decode', 'prompt'] as const)
        feeds[each] = new ort.Tensor('uint8', new Uint8Array(STEP_ROWS[each] * INNER).fill(3), [
          STEP_ROWS[each],
          INNER,
        ]);
      const times: number[] = [];
      for (let run = 0; run <= STEP_RUNS[kind]; run++) {
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
 * The number of threads that is recorded for this machine in `folder`. Measures and records it if there is none. No
 * rule gives this number: a few threads read memory at full speed, arithmetic needs all physical cores, and the slow
 * cores of a mixed processor delay the fast ones.
 */
export async function chooseThreads(
  ort: OnnxRuntime,
  folder: string,
  measure = measureSpeed,
  n = availableParallelism(),
): Promise<number> {
  // On two processors the second one always helps.
  if (n <= 2) return n;
  const machine = `${THREADS_FORMAT}|${process.platform}-${process.arch}|${cpus()[0]?.model ?? ''}|${n}`;
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

/** Opens a runner. 0 threads means the number that is fastest on this machine. */
export async function openRunner(model: ImportedModel, pool: KvPool, options: RunnerOptions): Promise<Runner> {
  const measured = async (): Promise<number> =>
    availableParallelism() <= 2
      ? availableParallelism()
      : chooseThreads(await loadOnnxruntime(), path.dirname(model.dir));
  if (model.products !== 'native')
    return OnnxRunner.create(model, pool, { threads: options.threads || (await measured()) });
  // The native kernels run also where onnxruntime, which measures, cannot be loaded.
  const threads = options.threads || (await measured().catch(() => Math.ceil(availableParallelism() / 2)));
  return NativeRunner.create(model, pool, { threads });
}

// --- form of 8-bit weights --------------------------------------------------------

/** Shape of the measured weights, which are larger than the caches of most laptops. */
const WIDTH = 1024;
const OUTPUTS = 65_536;
/** The rows of one token, and of a few sequences or a draft. */
const FORM_ROWS = [1, 4];
const FORM_RUNS = 8;
/** Version of the file. Raise it when the measurement or the runtime changes. */
const FORM_FORMAT = 1;
/** Nothing is measured for a smaller head, because it takes less than 0.5 ms of a token. A measurement takes 1 s. */
const MIN_HEAD_BYTES = 8e6;

/** Milliseconds for each of FORM_ROWS. */
export type Times = readonly number[];

/** The faster form. Every number of rows counts alike. */
export function faster(rows: Times, blocks: Times): ProductForm {
  return rows.reduce((sum, ms, i) => sum + blocks[i]! / ms, 0) < rows.length ? 'blocks' : 'rows';
}

/**
 * A graph with one product, x [T, WIDTH] -> y [T, OUTPUTS]. The values of weights and scales do not change its time.
 */
function graphOf(form: 'rows' | 'blocks'): Uint8Array {
  const g = new OnnxWriter();
  const op = (name: string, inputs: string[], attributes = {}, domain = ''): string =>
    g.node(name, inputs, 1, attributes, domain)[0]!;
  const x = g.input('x', 'float32', ['T', WIDTH]);
  const scales = (count: number): string => g.constant('float32', [count], new Float32Array(count).fill(0.01));
  let y: string;
  if (form === 'blocks') {
    const blocks = WIDTH / BLOCK;
    y = op(
      'MatMulNBits',
      [
        x,
        g.constant('uint8', [OUTPUTS, blocks, BLOCK], new Uint8Array(OUTPUTS * WIDTH).fill(130)),
        scales(OUTPUTS * blocks),
      ],
      { K: WIDTH, N: OUTPUTS, bits: 8, block_size: BLOCK, accuracy_level: 4 },
      MS,
    );
  } else {
    const [step, zero] = [g.float(1 / 127), g.constant('uint8', [], Uint8Array.of(128))];
    const rowMax = op('ReduceMax', [op('Abs', [x]), g.ints(-1)], { keepdims: 1 });
    const codes = op('QuantizeLinear', [op('Div', [x, rowMax]), step, zero]);
    y = op('Mul', [
      op(
        'MatMulIntegerToFloat',
        [
          codes,
          g.constant('int8', [WIDTH, OUTPUTS], new Int8Array(WIDTH * OUTPUTS).fill(2)),
          step,
          scales(OUTPUTS),
          zero,
        ],
        {},
        MS,
      ),
      rowMax,
    ]);
  }
  g.node('Identity', [y], ['y']);
  g.output('y', 'float32', ['T', OUTPUTS]);
  return g.finish();
}

/** `multiple`: the number of rows is padded to a multiple of it. */
async function timesOf(ort: OnnxRuntime, form: 'rows' | 'blocks', threads: number, multiple: number): Promise<Times> {
  const session = await openSession(ort, graphOf(form), threads);
  try {
    const result: number[] = [];
    for (const rows of FORM_ROWS) {
      const filled = Math.ceil(rows / multiple) * multiple;
      const x = new ort.Tensor(
        'float32',
        Float32Array.from({ length: filled * WIDTH }, (_, i) => Math.sin(i)),
        [filled, WIDTH],
      );
      const times: number[] = [];
      for (let run = 0; run <= FORM_RUNS; run++) {
        const start = performance.now();
        await session.run({ x });
        times.push(performance.now() - start);
      }
      // The first run warms up. Other programs can only make a run slower.
      result.push(Math.min(...times.slice(1)));
    }
    return result;
  } finally {
    await session.release();
  }
}

async function measure(ort: OnnxRuntime, folder: string, multiple: number): Promise<ProductForm> {
  const machine = `${process.platform}-${process.arch}|${cpus()[0]?.model ?? ''}|${availableParallelism()}`;
  const measured = await measuredOnce(folder, 'products.json', { format: FORM_FORMAT, machine }, async () => {
    const threads = await chooseThreads(ort, folder);
    const times = {
      rows: await timesOf(ort, 'rows', threads, 1),
      blocks: await timesOf(ort, 'blocks', threads, multiple),
    };
    return { form: faster(times.rows, times.blocks), times };
  });
  return measured?.form ?? 'rows';
}

let measuredHere: Promise<ProductForm> | null = null;

/**
 * The form of 8-bit weights that is fastest for a few rows, as recorded for this machine in `folder`. Measures and
 * records it if there is none, at most once per process. `rows` if the measurement fails. No processor flag gives the
 * answer. Blocks take 0.8 of the time of rows on an EPYC with VNNI. Rows take 0.6 to 0.8 of the time of blocks on a
 * Xeon with AMX: a token of the 0.5B shape takes 28.0 ms with rows and 29.7 ms with blocks, four tokens 38.0 and 41.9.
 * `headBytes`: size of the head of the model in 8 bits.
 */
export async function productForm(ort: OnnxRuntime, folder: string, headBytes: number): Promise<ProductForm> {
  if (await isNarrow(ort)) return 'narrow';
  // On other architectures the runtime has no kernel for blocks of 8 bits. It would convert the whole head to floats
  // in each step.
  const multiple = process.arch === 'x64' ? await blockRowMultiple(ort) : null;
  if (multiple === null) return 'rows';
  if (headBytes < MIN_HEAD_BYTES) return 'blocks';
  measuredHere ??= measure(ort, folder, multiple).catch((): ProductForm => {
    // A failed measurement must not fail the import. The next import measures again.
    measuredHere = null;
    return 'rows';
  });
  return measuredHere;
}
