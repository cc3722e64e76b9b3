/**
 * Runs steps of the engine under onnxruntime's profiler. Turns the profiler on from outside, so the engine needs no
 * switch for it.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { InferenceSession } from 'onnxruntime-node';
import type { Workload } from './engineCases.ts';
import { type Call, crossingMs } from './crossing.ts';
import { EngineUnderTest } from './engineUnderTest.ts';
import { type GraphNode, partsOf, readGraph } from './graphParts.ts';
import { oneToken, type ProfileEvent, profileOf, type StepProfile, tokensTogether } from './profileTable.ts';

interface Profiled {
  session: InferenceSession;
  graph: GraphNode[];
  /** Milliseconds of every call of `run`. */
  calls: number[];
  last: Call | null;
}

/**
 * Profiles every graph file that `open` loads.
 * @param prefix prefix of the profile's file name.
 */
async function openProfiled<T>(prefix: string, open: () => Promise<T>): Promise<{ opened: T; profiled: Profiled }> {
  const { InferenceSession } = await import('onnxruntime-node');
  const create = InferenceSession.create;
  let profiled: Profiled | undefined;
  const creating = async (model: unknown, options: InferenceSession.SessionOptions): Promise<InferenceSession> => {
    // Graphs in memory are probes and are not profiled.
    if (typeof model !== 'string') return create.call(InferenceSession, model as Uint8Array, options);
    const session = await create.call(InferenceSession, model as unknown as Uint8Array, {
      ...options,
      enableProfiling: true,
      profileFilePrefix: prefix,
    });
    const calls: number[] = [];
    const run = session.run.bind(session) as (...args: unknown[]) => Promise<InferenceSession.OnnxValueMapType>;
    session.run = async (...args: unknown[]) => {
      const start = performance.now();
      const outputs = await run(...args);
      calls.push(performance.now() - start);
      profiled!.last = { feeds: args[0] as Call['feeds'], outputs };
      return outputs;
    };
    profiled = { session, graph: readGraph(readFileSync(model)), calls, last: null };
    return session;
  };
  InferenceSession.create = creating as typeof create;
  try {
    const opened = await open();
    if (!profiled) throw new Error('No session was made from a graph file.');
    return { opened, profiled };
  } finally {
    InferenceSession.create = create;
  }
}

/** Ends the profile and reads it. */
function stop(session: InferenceSession, folder: string): ProfileEvent[] {
  // The runtime has this function; its types do not declare it.
  (session as InferenceSession & { endProfiling(): void }).endProfiling();
  const file = readdirSync(folder).find((name) => name.endsWith('.json'));
  if (!file) throw new Error(`onnxruntime wrote no profile into ${folder}.`);
  return JSON.parse(readFileSync(path.join(folder, file), 'utf8')) as ProfileEvent[];
}

export interface ProfileOptions {
  modelDir: string;
  cacheDir: string;
  threads: number;
  seed: number;
  /** Folder in which profiles are written and removed. */
  scratch: string;
  workload: Workload;
  /** Current GB/s of the fastest way to read memory; undefined if it is not measured. */
  bandwidth(): Promise<number | undefined>;
}

const DECODE_STEPS = 8;
/** The same number of sequences as in the benchmark of peers. */
const TOGETHER = 4;

/**
 * Profiles one token at each context, then four sequences at the shortest context, then the largest chunk at each
 * context. The profiler covers a whole session, so each profile has its own session.
 */
export async function profiles(options: ProfileOptions): Promise<StepProfile[]> {
  const { contexts, chunkContexts, chunks } = options.workload;
  const chunk = Math.max(...chunks);
  const decode = (context: number, count: number) => async (bench: EngineUnderTest) => {
    bench.renew({ tokenBudget: 1 << 16 });
    // The first sequences write while the prompts of the last ones are read.
    const answers = Array.from({ length: count }, () => bench.add(bench.tokens(context), DECODE_STEPS + 4 + 2 * count));
    await bench.pretend(() => answers.every(({ sequence }) => sequence.numGenerated > 0));
    for (let i = 0; i < DECODE_STEPS + 2; i++) await bench.step();
    return DECODE_STEPS;
  };
  const shortest = Math.min(...contexts);
  const work: { name: string; run(bench: EngineUnderTest): Promise<number> }[] = [
    ...contexts.map((context) => ({ name: oneToken(context), run: decode(context, 1) })),
    { name: tokensTogether(shortest, TOGETHER), run: decode(shortest, TOGETHER) },
    ...chunkContexts.map((context) => ({
      name: `chunk of ${chunk}, context ${context}`,
      run: async (bench: EngineUnderTest) => {
        // Runs twice. The first run is a warm-up.
        for (let i = 0; i < 2; i++) {
          bench.renew({ tokenBudget: chunk });
          const { sequence } = bench.add(bench.tokens(context + chunk), 0);
          await bench.pretend(() => sequence.numReached >= context);
          await bench.step();
        }
        return 1;
      },
    })),
  ];
  const results: StepProfile[] = [];
  for (const { name, run } of work) {
    rmSync(options.scratch, { recursive: true, force: true });
    mkdirSync(options.scratch, { recursive: true });
    const { opened: bench, profiled } = await openProfiled(path.join(options.scratch, 'profile'), () =>
      EngineUnderTest.open(options),
    );
    try {
      const before = await options.bandwidth();
      const steps = await run(bench);
      const after = await options.bandwidth();
      const profile = {
        ...profileOf(
          name,
          stop(profiled.session, options.scratch),
          profiled.calls.slice(-steps),
          partsOf(profiled.graph),
        ),
        crossingMs: await crossingMs(profiled.last!, bench.threads),
      };
      results.push(
        before !== undefined && after !== undefined ? { ...profile, bandwidth: (before + after) / 2 } : profile,
      );
    } finally {
      await bench.dispose();
    }
  }
  rmSync(options.scratch, { recursive: true, force: true });
  return results;
}
