/**
 * Suite `products`: measures the linear layers of one step in each weight format that the runtime has a kernel for. The
 * shape is qwen2.5-0.5b without its head. Shows what int4 weights could gain on a CPU, and what was tried. Formats take
 * turns.
 */
import { MS } from '../../engine/model/graph/graphOps.ts';
import { isNarrow, loadOnnxruntime, openSession } from '../../engine/model/runtime/onnxSession.ts';
import { OnnxWriter } from '../../engine/model/graph/onnxWriter.ts';
import { type Figure, figure, table, withSpread } from './spread.ts';
import { ROWS, WasmProducts } from './wasmProducts.ts';

const LAYERS = 24;
const HIDDEN = 896;
const INNER = 4864;
const THREADS = 2;
const ROUNDS = 5;
const RUNS = 15;

/** A weight format, with a function that runs all layers. `run` is null if the runtime has no such kernel. */
interface Form {
  name: string;
  run: ((rows: number) => Promise<void>) | null;
  close(): Promise<void>;
  ms: number[][];
}
type Product = (g: OnnxWriter, x: string, width: number, outputs: number) => string;

let numTensors = 0;
/**
 * Returns different bytes at every call. The runtime might keep equal tensors once, and then read them from the CPU
 * cache.
 */
function bytes(count: number): Uint8Array<ArrayBuffer> {
  const start = 7919 * numTensors++;
  return Uint8Array.from({ length: count }, (_, i) => Math.imul(i + start, 2_654_435_761) >>> 24);
}

/** Returns the same bytes at every call, so the runtime keeps them once. */
function equalBytes(count: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: count }, (_, i) => Math.imul(i, 2_654_435_761) >>> 24);
}

/**
 * @param accuracy 0: products of float32 values; 4: products of 8-bit codes.
 * @param zeroPoints whether the codes have zero points. Without them, 2 ** (bits - 1) stands for zero.
 */
function blocks(bits: number, block: number, accuracy: number, zeroPoints = false): Product {
  return (g, x, width, outputs) => {
    const count = outputs * Math.ceil(width / block);
    const codes = g.constant(
      'uint8',
      [outputs, Math.ceil(width / block), (block * bits) / 8],
      bytes((count * block * bits) / 8),
    );
    const scales = g.constant(
      'float32',
      [count],
      new Float32Array(count).fill(1 / (2 ** (bits - 1) * Math.sqrt(width))),
    );
    const zeros = zeroPoints
      ? [
          g.constant(
            'uint8',
            [outputs * Math.ceil((Math.ceil(width / block) * bits) / 8)],
            bytes(outputs * Math.ceil((Math.ceil(width / block) * bits) / 8)),
          ),
        ]
      : [];
    return g.node(
      'MatMulNBits',
      [x, codes, scales, ...zeros],
      1,
      { K: width, N: outputs, bits, block_size: block, accuracy_level: accuracy },
      MS,
    )[0]!;
  };
}

/**
 * The same format as in the step graph: codes by row, and one scale for each output.
 * @param narrow uses 7-bit codes on CPUs where 8-bit codes saturate.
 * @param content makes the weights.
 */
function byRow(narrow: boolean, content = bytes): Product {
  const most = narrow ? 63 : 127;
  return (g, x, width, outputs) => {
    const op = (name: string, inputs: string[], attributes = {}, domain = ''): string =>
      g.node(name, inputs, 1, attributes, domain)[0]!;
    const step = g.float(1 / most);
    const zero = g.constant('uint8', [], Uint8Array.of(most + 1));
    const rowMax = op('ReduceMax', [op('Abs', [x]), g.ints(-1)], { keepdims: 1 });
    const codes = op('QuantizeLinear', [op('Div', [x, rowMax]), step, zero]);
    const weights = g.constant('int8', [width, outputs], new Int8Array(content(width * outputs).buffer));
    const scales = g.constant('float32', [outputs], new Float32Array(outputs).fill(1 / (128 * Math.sqrt(width))));
    return op('Mul', [op('MatMulIntegerToFloat', [codes, weights, step, scales, zero], {}, MS), rowMax]);
  };
}

function stack(product: Product): Uint8Array {
  const g = new OnnxWriter();
  g.input('x', 'float32', ['T', HIDDEN]);
  let x = 'x';
  for (let l = 0; l < LAYERS; l++) {
    // The real matrix of queries, keys and values is a little wider than this one.
    const mixed = product(g, product(g, x, HIDDEN, HIDDEN), HIDDEN, HIDDEN);
    const inner = g.node('Add', [product(g, mixed, HIDDEN, INNER), product(g, mixed, HIDDEN, INNER)], 1)[0]!;
    x = product(g, inner, INNER, HIDDEN);
  }
  g.node('Identity', [x], ['y']);
  g.output('y', 'float32', ['T', HIDDEN]);
  return g.finish();
}

/** Milliseconds of all layers, by format and rows. `ms` is null if the runtime has no such kernel. */
export interface ProductsBench {
  rows: readonly number[];
  forms: { name: string; ms: Figure[] | null }[];
}

export async function productsBench(): Promise<{ result: ProductsBench; report: string }> {
  const ort = await loadOnnxruntime();
  const narrow = await isNarrow(ort);
  const products: [name: string, product: Product][] = [
    [`int8 by row, codes of ${narrow ? 7 : 8} bits (precision int8)`, byRow(narrow)],
    ['int4, blocks of 128, 8-bit codes (precision int4)', blocks(4, 128, 4)],
    ['int4, blocks of 32, 8-bit codes', blocks(4, 32, 4)],
    ['int4, blocks of 64, 8-bit codes', blocks(4, 64, 4)],
    ['int4, blocks of 256, 8-bit codes', blocks(4, 256, 4)],
    ['int4, blocks of 128, zero points, 8-bit codes', blocks(4, 128, 4, true)],
    ['int4, blocks of 128, float32', blocks(4, 128, 0)],
    ['int2, blocks of 128, 8-bit codes', blocks(2, 128, 4)],
    ['int8, blocks of 128, 8-bit codes', blocks(8, 128, 4)],
    // Not a format. It shows the error of a measurement that uses the same weights in every layer: they stay in the CPU
    // cache.
    ['int8 by row, the same weights in every layer', byRow(narrow, equalBytes)],
  ];
  const forms: Form[] = [];
  for (const [name, product] of products) {
    const session = await openSession(ort, stack(product), THREADS).catch((error: Error) => {
      console.error(`${name}: ${error.message.split('\n', 1)[0]}`);
      return null;
    });
    const run = async (rows: number): Promise<void> =>
      void (await session!.run({
        x: new ort.Tensor(
          'float32',
          Float32Array.from({ length: rows * HIDDEN }, (_, i) => Math.sin(i)),
          [rows, HIDDEN],
        ),
      }));
    forms.push({
      name,
      run: session && run,
      close: async () => void (await session?.release()),
      ms: ROWS.map(() => []),
    });
  }
  const layer = [
    [HIDDEN, HIDDEN],
    [HIDDEN, HIDDEN],
    [HIDDEN, INNER],
    [HIDDEN, INNER],
    [INNER, HIDDEN],
  ] as const;
  const outside = await WasmProducts.open(Array.from({ length: LAYERS }, () => layer).flat(), bytes);
  forms.push({
    name: 'int8 by row, WebAssembly, codes of 7 bits (the products alone)',
    run: async (rows) => outside.run(rows),
    close: () => outside.close(),
    ms: ROWS.map(() => []),
  });
  // The first round is a warm-up. The first runs of each turn are also a warm-up.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { run, ms } of forms) {
      for (const [r, count] of ROWS.entries()) {
        for (let n = 0; run && n < RUNS; n++) {
          const start = performance.now();
          await run(count);
          if (round > 0 && n >= RUNS / 3) ms[r]!.push(performance.now() - start);
        }
      }
    }
    console.error(`round ${round} of ${ROUNDS}`);
  }
  for (const { close } of forms) await close();
  const result = { rows: ROWS, forms: forms.map(({ name, run, ms }) => ({ name, ms: run && ms.map(figure) })) };
  return { result, report: productsReport(result) };
}

export function productsReport({ rows, forms }: ProductsBench): string {
  return [
    '## The linear layers of a step, by the form of their weights',
    `${LAYERS} layers in the shape of qwen2.5-0.5b, without the head, ${THREADS} threads; medians (least–most) of ${ROUNDS} rounds in turns, ms.`,
    table(
      ['form of the weights', ...rows.map((count) => `${count} row${count > 1 ? 's' : ''}`)],
      forms.map(({ name, ms }) => [name, ...(ms?.map(withSpread) ?? rows.map(() => '–'))]),
    ),
  ].join('\n\n');
}
