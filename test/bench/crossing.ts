/**
 * What it takes to hand a step's feeds to the runtime and to get its outputs back: the same tensors through a graph that computes
 * nothing. The step's own call cannot say it, and profiling makes the crossing slower, too.
 */
import type { InferenceSession, OnnxValue, Tensor } from 'onnxruntime-node';
import { type DataTypeName, OnnxWriter } from '../../engine/model/graph/onnxWriter.ts';
import { median } from './spread.ts';

const CALLS = 200;

/** A call of `run`: what went in, and what came out. */
export interface Call {
  feeds: Readonly<Record<string, OnnxValue>>;
  outputs: Readonly<Record<string, OnnxValue>>;
}

/** Milliseconds, the median of many calls. */
export async function crossingMs({ feeds, outputs }: Call, threads: number): Promise<number> {
  const { InferenceSession } = await import('onnxruntime-node');
  const g = new OnnxWriter();
  for (const [name, value] of Object.entries(feeds)) {
    const { type, dims } = value as Tensor;
    g.input(name, type as DataTypeName, dims);
  }
  for (const [name, value] of Object.entries(outputs)) {
    const { type, dims, data } = value as Tensor;
    // Folded when the session is made: what is left is its copy to the outputs.
    g.node(
      'Identity',
      [g.constant(type as DataTypeName, dims, new Uint8Array((data as Uint8Array).byteLength))],
      [name],
    );
    g.output(name, type as DataTypeName, dims);
  }
  const session: InferenceSession = await InferenceSession.create(g.finish(), {
    intraOpNumThreads: threads,
    logSeverityLevel: 3,
  });
  try {
    const names = Object.keys(outputs);
    const times: number[] = [];
    for (let i = 0; i < CALLS; i++) {
      const start = performance.now();
      await session.run(feeds as Record<string, Tensor>, names);
      times.push(performance.now() - start);
    }
    return median(times);
  } finally {
    await session.release();
  }
}
