/**
 * Measures how long the runtime takes to accept a step's feeds and return its outputs. Runs the same tensors through a
 * graph that computes nothing. The step's own call does not show this time, and the profiler makes the transfer slower.
 */
import type { InferenceSession, OnnxValue, Tensor } from 'onnxruntime-node';
import { type DataTypeName, OnnxWriter } from '../../engine/model/graph/onnxWriter.ts';
import { median } from './spread.ts';

const CALLS = 200;

/** One call of `run` with its feeds and outputs. */
export interface Call {
  feeds: Readonly<Record<string, OnnxValue>>;
  outputs: Readonly<Record<string, OnnxValue>>;
}

/** Median milliseconds of many calls. */
export async function crossingMs({ feeds, outputs }: Call, threads: number): Promise<number> {
  const { InferenceSession } = await import('onnxruntime-node');
  const g = new OnnxWriter();
  for (const [name, value] of Object.entries(feeds)) {
    const { type, dims } = value as Tensor;
    g.input(name, type as DataTypeName, dims);
  }
  for (const [name, value] of Object.entries(outputs)) {
    const { type, dims, data } = value as Tensor;
    // The runtime folds this node when it makes the session. Only the copy to the outputs is left.
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
