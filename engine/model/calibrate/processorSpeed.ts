/** Measures in which form onnxruntime multiplies by 8-bit weights fastest on this processor. Measures once per machine. */
import { availableParallelism, cpus } from 'node:os';
import { OnnxWriter } from '../graph/onnxWriter.ts';
import { type OnnxRuntime, openSession, isNarrow, blockRowMultiple } from '../runtime/onnxSession.ts';
import { BLOCK, type ProductForm } from '../load/quantise.ts';
import { MS } from '../graph/graphOps.ts';
import { measuredOnce } from './measurement.ts';
import { onnxThreads } from './threadChoice.ts';

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
    const threads = await onnxThreads(ort, folder);
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
