/**
 * Loads onnxruntime, only when a model is loaded, and opens sessions on it: how they use threads and memory, and whether
 * this processor's 8-bit products can be trusted. The only file that imports it.
 */
import { t } from '@vscode/l10n';
import type * as Ort from 'onnxruntime-node';
import { RequestError } from '../errors.ts';
import { OnnxWriter } from './onnxWriter.ts';

export type OnnxRuntime = typeof Ort;
export type Tensor = Ort.Tensor;

function sessionOptions(threads: number): Ort.InferenceSession.SessionOptions {
  return {
    executionProviders: ['cpu'],
    intraOpNumThreads: threads,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    // Steps differ in every dimension, so patterns of earlier ones would only cost memory.
    enableMemPattern: false,
    logSeverityLevel: 3,
    // Within a step a thread that sleeps costs 50 us to wake, two thousand times; an idle engine must cost no processor time.
    extra: { session: { intra_op: { allow_spinning: '1', spin_duration_us: '500' }, inter_op: { allow_spinning: '0' } } },
  };
}

/**
 * Whether products of 8-bit codes saturate here: multiplies rows of 255 by columns of 127, as one row and as several,
 * because the runtime has a kernel for each. The exact sum is numInner * 255 * 127.
 */
async function saturates(ort: OnnxRuntime): Promise<boolean> {
  const inner = 64;
  const columns = 32;
  const g = new OnnxWriter();
  const right = g.constant('int8', [inner, columns], new Int8Array(inner * columns).fill(127));
  const feeds: Record<string, Ort.Tensor> = {};
  for (const rows of [1, 8]) {
    g.input(`a${rows}`, 'uint8', [rows, inner]);
    g.node('MatMulInteger', [`a${rows}`, right], [`y${rows}`]);
    g.output(`y${rows}`, 'int32', [rows, columns]);
    feeds[`a${rows}`] = new ort.Tensor('uint8', new Uint8Array(rows * inner).fill(255), [rows, inner]);
  }
  const session = await ort.InferenceSession.create(g.finish(), sessionOptions(1));
  try {
    const result = await session.run(feeds);
    return Object.values(result).some((t) => (t.data as Int32Array).some((v) => v !== inner * 255 * 127));
  } finally {
    await session.release();
  }
}

/** @throws RequestError engineFailed: a package made for another platform, or a damaged one. */
export async function loadOnnxruntime(): Promise<OnnxRuntime> {
  try {
    // It would otherwise count its sessions under an id that it keeps in the home folder, and send that to its maker.
    process.env.ORT_DISABLE_TELEMETRY = '1';
    return await import('onnxruntime-node');
  } catch (error) {
    const reason = String(error instanceof Error ? error.message : error).split('\n', 1)[0]?.replace(/\.$/, '').slice(0, 300);
    throw new RequestError('engineFailed', `${t('onnxruntime, which computes for Kvasir, could not be loaded on {0}-{1}: {2}. Install the package of Kvasir that is made for this platform.', process.platform, process.arch, String(reason))}${process.platform === 'win32' ? ` ${t('It also needs the Visual C++ Redistributable.')}` : ''}`);
  }
}

let narrowHere: Promise<boolean> | null = null;

/** Whether 8-bit products saturate on this processor, found out once. */
export function isNarrow(ort: OnnxRuntime): Promise<boolean> {
  narrowHere ??= saturates(ort);
  return narrowHere;
}

/** @param graph a file, or its bytes. @param threads of one step. */
export function openSession(ort: OnnxRuntime, graph: string | Uint8Array, threads: number): Promise<Ort.InferenceSession> {
  return typeof graph === 'string' ? ort.InferenceSession.create(graph, sessionOptions(threads)) : ort.InferenceSession.create(graph, sessionOptions(threads));
}
