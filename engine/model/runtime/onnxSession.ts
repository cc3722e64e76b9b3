/**
 * Loads onnxruntime on first use, opens sessions, and tests the 8-bit products of this processor. The only file that
 * imports onnxruntime. Does not know the step graph.
 */
import { t } from '@vscode/l10n';
import type * as Ort from 'onnxruntime-node';
import { RequestError } from '../../protocol/errors.ts';
import { BLOCK } from '../load/quantise.ts';
import { MS } from '../graph/graphOps.ts';
import { OnnxWriter } from '../graph/onnxWriter.ts';

export type OnnxRuntime = typeof Ort;
export type Tensor = Ort.Tensor;

function sessionOptions(threads: number): Ort.InferenceSession.SessionOptions {
  return {
    executionProviders: ['cpu'],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    // Steps differ in every dimension, so memory patterns of earlier steps would only cost memory.
    enableMemPattern: false,
    logSeverityLevel: 3,
    // Waking a sleeping thread costs 50 us, 2,000 times per step. But an idle engine must use no processor time.
    extra: {
      session: { intra_op: { allow_spinning: '1', spin_duration_us: '500' }, inter_op: { allow_spinning: '0' } },
    },
  };
}

/**
 * Whether products of 8-bit codes saturate on this processor. Multiplies the largest codes, rows of 255 by columns of
 * 127. In blocks the weights are unsigned: rows of 1, which get the code 127, by columns of 255, which stands for 127.
 * Tests one row and several rows, because the runtime has a kernel for each.
 */
async function saturates(ort: OnnxRuntime): Promise<boolean> {
  const inner = BLOCK;
  const columns = 32;
  const g = new OnnxWriter();
  const right = g.constant('int8', [inner, columns], new Int8Array(inner * columns).fill(127));
  const codes = g.constant('uint8', [columns, 1, inner], new Uint8Array(columns * inner).fill(255));
  const scales = g.constant('float32', [columns], new Float32Array(columns).fill(1));
  const feeds: Record<string, Ort.Tensor> = {};
  for (const rows of [1, 8]) {
    g.input(`a${rows}`, 'uint8', [rows, inner]);
    g.node('MatMulInteger', [`a${rows}`, right], [`y${rows}`]);
    g.output(`y${rows}`, 'int32', [rows, columns]);
    feeds[`a${rows}`] = new ort.Tensor('uint8', new Uint8Array(rows * inner).fill(255), [rows, inner]);
    g.input(`b${rows}`, 'float32', [rows, inner]);
    g.node(
      'MatMulNBits',
      [`b${rows}`, codes, scales],
      [`z${rows}`],
      { K: inner, N: columns, bits: 8, block_size: BLOCK, accuracy_level: 4 },
      MS,
    );
    g.output(`z${rows}`, 'float32', [rows, columns]);
    feeds[`b${rows}`] = new ort.Tensor('float32', new Float32Array(rows * inner).fill(1), [rows, inner]);
  }
  const session = await ort.InferenceSession.create(g.finish(), sessionOptions(1));
  try {
    const result = await session.run(feeds);
    return Object.entries(result).some(([name, { data }]) =>
      (data as Int32Array | Float32Array).some((v) =>
        name.startsWith('y') ? v !== inner * 255 * 127 : Math.abs(v - inner * 127) > 1,
      ),
    );
  } finally {
    await session.release();
  }
}

/** @throws RequestError `engineFailed` if the package is for another platform or damaged */
export async function loadOnnxruntime(): Promise<OnnxRuntime> {
  try {
    // Without this, the library stores an id in the home folder and sends usage data to its maker.
    process.env.ORT_DISABLE_TELEMETRY = '1';
    return await import('onnxruntime-node');
  } catch (error) {
    const reason = String(error instanceof Error ? error.message : error)
      .split('\n', 1)[0]
      ?.replace(/\.$/, '')
      .slice(0, 300);
    const message = t(
      'onnxruntime could not be loaded on {0}-{1}: {2}. Install the Kvasir package for this platform.',
      process.platform,
      process.arch,
      String(reason),
    );
    const more = process.platform === 'win32' ? ` ${t('It also needs the Visual C++ Redistributable.')}` : '';
    throw new RequestError('engineFailed', message + more);
  }
}

/**
 * The smallest of 1, 2, 4 and 8 such that a row has the same result in all calls whose number of rows is a multiple of
 * it. Tests up to `maxRows` rows. Null if none works. `products`: results of the first `numRows` rows, row by row.
 */
export async function smallestMultiple(
  maxRows: number,
  products: (numRows: number) => Promise<readonly Float32Array[]>,
): Promise<number | null> {
  const all = await products(maxRows);
  for (const multiple of [1, 2, 4, 8]) {
    let isSame = true;
    for (let numRows = multiple; numRows < maxRows && isSame; numRows += multiple)
      isSame = (await products(numRows)).every((rows, p) => rows.every((v, i) => v === all[p]![i]));
    if (isSame) return multiple;
  }
  return null;
}

/**
 * The multiple of rows with which products of blocks are exact on this processor. It is 2 with AVX512, which sums the
 * last row of an odd number in another order. Null if no multiple is exact. Then the last bits of a row depend on the
 * other rows of the step.
 */
async function findBlockRowMultiple(ort: OnnxRuntime): Promise<number | null> {
  const width = 5 * BLOCK;
  const outputs = 36;
  const maxRows = 24;
  const g = new OnnxWriter();
  // Any values whose sums are rounded.
  const some = (i: number): number => Math.imul(i + 1, 2_654_435_761) >>> 16;
  g.input('x', 'float32', ['T', width]);
  const scales = g.constant(
    'float32',
    [(outputs * width) / BLOCK],
    Float32Array.from({ length: (outputs * width) / BLOCK }, (_, i) => 0.01 + some(i) / 3e6),
  );
  for (const bits of [4, 8]) {
    const bytes = (BLOCK * bits) / 8;
    const codes = g.constant(
      'uint8',
      [outputs, width / BLOCK, bytes],
      Uint8Array.from({ length: (outputs * width * bits) / 8 }, (_, i) => some(i)),
    );
    g.node(
      'MatMulNBits',
      ['x', codes, scales],
      [`y${bits}`],
      { K: width, N: outputs, bits, block_size: BLOCK, accuracy_level: 4 },
      MS,
    );
    g.output(`y${bits}`, 'float32', ['T', outputs]);
  }
  const x = Float32Array.from({ length: maxRows * width }, (_, i) => some(i) / 32_768 - 1);
  const session = await ort.InferenceSession.create(g.finish(), sessionOptions(1));
  try {
    return await smallestMultiple(maxRows, async (numRows) => {
      const { y4, y8 } = await session.run({
        x: new ort.Tensor('float32', x.subarray(0, numRows * width), [numRows, width]),
      });
      return [y4!.data as Float32Array, y8!.data as Float32Array];
    });
  } finally {
    await session.release();
  }
}

let narrowHere: Promise<boolean> | null = null;

/** Whether 8-bit products saturate on this processor. Tests it once. */
export function isNarrow(ort: OnnxRuntime): Promise<boolean> {
  narrowHere ??= saturates(ort).catch((error) => {
    // There may have been too little memory. The next call tests again.
    narrowHere = null;
    throw error;
  });
  return narrowHere;
}

let blockRowMultipleHere: Promise<number | null> | null = null;

/** See findBlockRowMultiple. Tests it once. */
export function blockRowMultiple(ort: OnnxRuntime): Promise<number | null> {
  blockRowMultipleHere ??= findBlockRowMultiple(ort).catch((error) => {
    blockRowMultipleHere = null;
    throw error;
  });
  return blockRowMultipleHere;
}

/** `graph`: path of a file, or its bytes. `threads`: of one step. */
export function openSession(
  ort: OnnxRuntime,
  graph: string | Uint8Array,
  threads: number,
): Promise<Ort.InferenceSession> {
  return typeof graph === 'string'
    ? ort.InferenceSession.create(graph, sessionOptions(threads))
    : ort.InferenceSession.create(graph, sessionOptions(threads));
}
