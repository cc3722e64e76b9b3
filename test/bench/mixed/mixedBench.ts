/**
 * Suite `mixed`: runs the recorded session's requests against the engine in this process, in the scenes of `only`. The
 * ways of a scene take turns in changing order, each with an engine that holds only the file blocks. The unchanged
 * engine runs before and after each other way, because the machine's speed drifts by more than most policies matter.
 */
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { policyOptions, type PolicySwitches } from '../../support/engine/policies.ts';
import { seededRandom } from '../../support/engine/workload.ts';
import { EngineUnderTest } from '../engineUnderTest.ts';
import { readSession } from '../../support/session/session.ts';
import { SHAPES, type ShapeName } from '../shapes.ts';
import { shapeFolder } from '../writeShape.ts';
import { type Record, type Replay, replay } from './replay.ts';
import { type MixedWorkload, mixedWorkload, seen } from './requests.ts';
import { EngineServer, OneByOne, PaddedBatches, type Server } from './server.ts';
import { type StepKind, StepKinds } from './stepKinds.ts';

/** `starter` is the built-in model. */
export const MODELS = [...(Object.keys(SHAPES) as ShapeName[]), 'starter'] as const;
type ModelName = (typeof MODELS)[number];

export const SCENES = ['rush', 'policies', 'live'] as const;
type Scene = (typeof SCENES)[number];

const BATCH_SIZE = 8;
const BATCH_TIMEOUT_MS = 100;

export interface MixedBenchOptions {
  model?: ModelName;
  /** 0 lets the engine choose. */
  threads?: number;
  /**
   * `rush`: compresses the session in time until the engine is saturated, without aborts. Compares the throughput of
   * continuous batching, one request at a time over the same prefix cache, padded batches, and single policies switched
   * off.
   * `live`: sends the completions while somebody types, alone and with a chat and a summary always running.
   * `policies`: repeats both scenes with each policy of SHOWN switched off.
   */
  only?: readonly Scene[];
  /** Rounds of `rush` and of `live`. `policies` has one round. */
  rounds?: number;
  /** Speed relative to the recording: of `rush`, and of `live`. */
  rush?: number;
  speed?: number;
  /** Context length of the prompts. Default: 8,192, or the model's limit if lower. */
  contextTokens?: number;
  /** Sends only requests before this time of the session. */
  untilMs?: number;
  seed?: number;
  cache?: string;
  onProgress?: (line: string) => void;
}

export interface Run {
  scene: 'rush' | 'live';
  /** "continuous", "one by one", "padded batches", "without ageing"; "alone", "with chat and summaries". */
  way: string;
  round: number;
  makespanMs: number;
  /** Time spent in steps. */
  busyMs: number;
  records: Record[];
  /** Milliseconds of steps with a completion. Absent in results before 2026-11-23. */
  completionSteps?: { p50: number; p95: number };
  /** See Replay. */
  background?: Replay['background'];
  /** Contents of the steps. Absent in results before 2026-11-25. */
  steps?: StepKind[];
}

export interface MixedBench {
  model: ModelName;
  threads: number;
  parameters: number;
  contextTokens: number;
  seed: number;
  rush: number;
  speed: number;
  batchSize: number;
  batchTimeoutMs: number;
  /** Requests of `rush`, by class. */
  counts: { [priority: string]: number };
  promptTokens: number;
  runs: Run[];
}

interface Way {
  scene: Run['scene'];
  name: string;
  policies: PolicySwitches;
  /** Runs one request at a time. */
  oneByOne?: boolean;
  /** Does not wait for requests that are about to arrive. */
  unpaused?: boolean;
  padded?: boolean;
  loaded?: boolean;
}

export async function mixedBench(options: MixedBenchOptions = {}): Promise<MixedBench> {
  const {
    model = 'qwen2.5-0.5b',
    threads = 0,
    only = SCENES,
    rounds = 1,
    rush = 50,
    speed = 2,
    seed = 1,
    cache = path.resolve('.cache/bench'),
    onProgress = () => {},
  } = options;
  onProgress(`model ${model}`);
  const bench = await EngineUnderTest.open({
    modelDir: model === 'starter' ? 'model' : await shapeFolder(model, cache),
    cacheDir: path.join(cache, 'imported'),
    threads,
    seed,
  });
  try {
    const { parameters: numParameters, config } = bench.model;
    const contextTokens = Math.min(config.contextTokens, options.contextTokens ?? 8192);
    const workload = await mixedWorkload(readSession(), {
      contextTokens,
      vocabSize: config.vocabSize,
      numParameters,
      fewestPrefill: bench.fewestPrefill,
      suffixFirst: model === 'starter',
      seed,
      untilMs: options.untilMs,
    });
    const rushed = seen(workload.requests);
    const runs: Run[] = [];
    const most = only.includes('rush') || only.includes('live') ? rounds : 1;
    for (let round = 0; round < most; round++) {
      const groups = waysOf(only, round);
      for (const way of groups.flatMap((_, i) => groups[(i + round) % groups.length]!)) {
        const run = await measure(bench, way, workload, { seed, rush, speed });
        runs.push({ round, ...run });
        const tokens = run.records.reduce((sum, { tokens }) => sum + tokens.length, 0);
        onProgress(
          `round ${round + 1}: ${way.scene}, ${way.name}: ${tokens} tokens in ${(run.makespanMs / 1000).toFixed(1)} s, ${(run.busyMs / 1000).toFixed(1)} s of it in steps`,
        );
      }
    }
    const counts = Object.fromEntries(
      (['completion', 'chat', 'summary'] as const).map((priority) => [
        priority,
        rushed.filter((request) => request.priority === priority).length,
      ]),
    );
    const promptTokens = rushed.reduce((sum, { promptIds }) => sum + promptIds.length, 0);
    return {
      model,
      threads: bench.threads,
      parameters: numParameters,
      contextTokens,
      seed,
      rush,
      speed,
      batchSize: BATCH_SIZE,
      batchTimeoutMs: BATCH_TIMEOUT_MS,
      counts,
      promptTokens,
      runs,
    };
  } finally {
    await bench.dispose();
  }
}

/**
 * Policies that a scene is suited to show: `rush` shows throughput, `live` shows waiting times while somebody types.
 */
const SHOWN: { [scene in Run['scene']]: readonly (keyof PolicySwitches | 'microBatch')[] } = {
  rush: ['firstTokenFirst', 'fairness', 'stepTarget', 'grouping', 'leader', 'microBatch'],
  live: ['classes', 'ageing', 'firstTokenFirst', 'stepTarget', 'grouping', 'preemption'],
};

/** Groups of ways. The groups take turns. The ways of a group keep their order. */
function waysOf(only: readonly Scene[], round: number): Way[][] {
  const continuous: Way = { scene: 'rush', name: 'continuous', policies: {} };
  const loaded: Way = { scene: 'live', name: 'with chat and summaries', policies: {}, loaded: true };
  const compared: Way[] = [];
  const groups: Way[][] = [];
  if (only.includes('rush'))
    compared.push(
      { ...continuous, name: 'one by one', oneByOne: true },
      { ...continuous, name: 'padded batches', padded: true },
    );
  const without = (way: Way): Way[] =>
    only.includes('policies') && round === 0
      ? SHOWN[way.scene].map((name) => ({
          ...way,
          name: `without ${name}`,
          ...(name === 'microBatch' ? { unpaused: true } : { policies: { [name]: false } }),
        }))
      : [];
  compared.push(...without(continuous));
  if (compared.length) groups.push([continuous, ...compared.flatMap((way) => [way, continuous])]);
  if (only.includes('live')) groups.push([{ scene: 'live', name: 'alone', policies: {} }], [loaded]);
  groups.push(without(loaded));
  return groups.filter(({ length }) => length > 0);
}

async function measure(
  bench: EngineUnderTest,
  way: Way,
  { requests, blocks }: MixedWorkload,
  { seed, rush, speed }: { seed: number; rush: number; speed: number },
): Promise<Omit<Run, 'round'>> {
  bench.renew(policyOptions(way.policies));
  for (const block of blocks) {
    const read = bench.add(block, 0, 'idle', false, [[0, block.length]]);
    await bench.pretend(() => read.finished);
  }
  const { engine } = bench;
  const before = engine.stats().busyMs;
  const server: Server = way.padded
    ? new PaddedBatches(engine, {
        size: BATCH_SIZE,
        timeoutMs: BATCH_TIMEOUT_MS,
        now: () => performance.now(),
        sleep: (ms) => sleep(ms),
        random: seededRandom(seed),
        vocabSize: bench.model.config.vocabSize,
      })
    : way.oneByOne
      ? new OneByOne(engine)
      : new EngineServer(engine, { pauses: !way.unpaused });
  const answers = (priority: string) => requests.filter((request) => request.priority === priority);
  const background = way.loaded ? [answers('chat'), answers('summary')] : [];
  const kinds = new StepKinds();
  const {
    records,
    makespanMs,
    background: had,
  } = await bench.watch(
    (batch, ms) => kinds.add(batch, ms),
    () =>
      way.scene === 'rush'
        ? replay(server, seen(requests), { speed: rush })
        : replay(server, answers('completion'), { speed, background }),
  );
  const { busyMs, classes } = engine.stats();
  const { p50, p95 } = classes.completion.stepMs;
  return {
    scene: way.scene,
    way: way.name,
    makespanMs,
    busyMs: busyMs - before,
    records,
    completionSteps: { p50, p95 },
    background: had,
    steps: kinds.all,
  };
}
