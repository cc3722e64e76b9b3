/**
 * Which form of 8-bit weights this processor multiplies a few rows by the fastest, as a step's head does: measured once per machine,
 * because no flag tells it. Blocks win where their kernel keeps up with memory (0.8 of the time on an EPYC with VNNI), rows where it does not
 * (0.6 to 0.8 of the time on a Xeon with AMX, where a whole token of the 0.5B shape takes 28.0 ms so and 29.7 in blocks, four 38.0 and 41.9). The result is
 * kept in a file beside the imported models.
 */
import { availableParallelism, cpus } from 'node:os';
import { BLOCK } from '../load/quantise.ts';
import { MS } from '../graph/graphOps.ts';
import { measuredOnce } from './measuredOnce.ts';
import { isNarrow, blockRowMultiple, type OnnxRuntime, openSession } from '../runtime/onnxSession.ts';
import { OnnxWriter } from '../graph/onnxWriter.ts';
import { chooseThreads } from './threadChoice.ts';
import type { ProductForm } from '../load/weightForms.ts';

/** Weights of the measurement: larger than most laptops' caches. */
const WIDTH = 1024;
const OUTPUTS = 65_536;
/** Of a token, and of a few sequences or a draft. */
const ROWS = [1, 4];
const RUNS = 8;
/** Of the file; raised when measuring or the runtime changes. */
const FORMAT = 1;

/** A smaller head takes less than half a millisecond of a token, and measuring takes one second. */
const WORTH_BYTES = 8e6;

/** ms for each of ROWS. */
export type Times = readonly number[];

/** Whichever takes less, all numbers of rows counting alike. */
export function faster(rows: Times, blocks: Times): ProductForm {
  return rows.reduce((sum, ms, i) => sum + blocks[i]! / ms, 0) < rows.length ? 'blocks' : 'rows';
}

/** A graph with one product, x [T, WIDTH] -> y [T, OUTPUTS]; what weights and scales are makes no difference to its time. */
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

/** @param multiple what the number of rows is filled up to. */
async function timesOf(ort: OnnxRuntime, form: 'rows' | 'blocks', threads: number, multiple: number): Promise<Times> {
  const session = await openSession(ort, graphOf(form), threads);
  try {
    const result: number[] = [];
    for (const rows of ROWS) {
      const filled = Math.ceil(rows / multiple) * multiple;
      const x = new ort.Tensor(
        'float32',
        Float32Array.from({ length: filled * WIDTH }, (_, i) => Math.sin(i)),
        [filled, WIDTH],
      );
      const times: number[] = [];
      for (let run = 0; run <= RUNS; run++) {
        const start = performance.now();
        await session.run({ x });
        times.push(performance.now() - start);
      }
      // The first run warms up; others on the machine can only make a run slower.
      result.push(Math.min(...times.slice(1)));
    }
    return result;
  } finally {
    await session.release();
  }
}

async function measure(ort: OnnxRuntime, folder: string, multiple: number): Promise<ProductForm> {
  const machine = `${process.platform}-${process.arch}|${cpus()[0]?.model ?? ''}|${availableParallelism()}`;
  const measured = await measuredOnce(folder, 'products.json', { format: FORMAT, machine }, async () => {
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

/** What `folder` says of this machine, or else what measuring says, which is written there; found out once in a process. 'rows' where measuring fails. @param headBytes of the model's head in 8 bits */
export async function productForm(ort: OnnxRuntime, folder: string, headBytes: number): Promise<ProductForm> {
  if (await isNarrow(ort)) return 'narrow';
  // Elsewhere the runtime has no kernel of its own for blocks of 8 bits: it would make floats of the whole head in each step.
  const multiple = process.arch === 'x64' ? await blockRowMultiple(ort) : null;
  if (multiple === null) return 'rows';
  if (headBytes < WORTH_BYTES) return 'blocks';
  measuredHere ??= measure(ort, folder, multiple).catch((): ProductForm => {
    // No model is to fail for want of a figure; the next import measures again.
    measuredHere = null;
    return 'rows';
  });
  return measuredHere;
}
