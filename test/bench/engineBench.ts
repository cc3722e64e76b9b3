/**
 * Suite `engine`: measures the engine alone on this machine. It runs in this process on a model with a published shape
 * and random weights. All cases take turns in seeded random order, round after round, so that a disturbance affects all
 * of them.
 */
import path from 'node:path';
import { seededRandom } from '../support/engine/workload.ts';
import { gigabytesPerSecond, lastLevelCacheBytes, openScans } from './bandwidth.ts';
import { type Case, engineCases, type Group, GROUPS, type Sample, TINY_WORKLOAD, WORKLOAD } from './engineCases.ts';
import { EngineUnderTest } from './engineUnderTest.ts';
import { profiles } from './profiledEngine.ts';
import type { StepProfile } from './profileTable.ts';
import { SHAPES, type ShapeName } from './shapes.ts';
import { samplingCases } from './samplingCases.ts';
import { dictations, speculationCases } from './speculationCases.ts';
import { type Figure, figure } from './spread.ts';
import { shapeFolder } from './writeShape.ts';

const PRECISIONS = ['int8', 'int4'] as const;

export interface EngineBenchOptions {
  shape?: ShapeName;
  /** Precision of the weights. */
  precision?: (typeof PRECISIONS)[number];
  /** With 0, the number is chosen as in the engine. */
  threads?: number;
  rounds?: number;
  /** Number of rounds for cases that take a minute. */
  longRounds?: number;
  only?: readonly Group[];
  profile?: boolean;
  seed?: number;
  /** Size of the buffer that the bandwidth scans read. Default: eight times the last-level cache. */
  scanBytes?: number;
  /** Folder for written and imported models. */
  cache?: string;
  onProgress?: (line: string) => void;
}

export interface CaseResult {
  group: Group;
  key: Case['key'];
  figures: Record<string, Figure>;
}

export interface EngineBench {
  shape: ShapeName;
  precision: string;
  threads: number;
  seed: number;
  parameters: number;
  weightBytesPerStep: number;
  scanBytes: number;
  results: CaseResult[];
  profiles: StepProfile[];
}

/** @throws Error with one sentence that names the wrong option. */
export function engineOptions(values: Record<string, string | boolean | undefined>): EngineBenchOptions {
  const text = (name: string): string | undefined => (typeof values[name] === 'string' ? values[name] : undefined);
  const count = (name: string): number | undefined => {
    const value = text(name);
    if (value !== undefined && !/^\d+$/.test(value)) throw new Error(`--${name} ${value}: it must be a whole number`);
    return value === undefined ? undefined : Number(value);
  };
  const among = <T extends string>(name: string, value: string, allowed: readonly T[]): T => {
    if (!allowed.includes(value as T)) throw new Error(`--${name} ${value}: it must be one of ${allowed.join(', ')}`);
    return value as T;
  };
  const shape = text('shape');
  return {
    shape: shape === undefined ? undefined : among('shape', shape, Object.keys(SHAPES) as ShapeName[]),
    precision: among('precision', text('precision') ?? 'int8', PRECISIONS),
    threads: count('threads'),
    rounds: count('rounds'),
    longRounds: count('long-rounds'),
    only: text('only')
      ?.split(',')
      .map((group) => among('only', group, GROUPS)),
    profile: values.profile === true,
  };
}

export async function engineBench(options: EngineBenchOptions = {}): Promise<EngineBench> {
  const {
    shape = 'qwen2.5-0.5b',
    precision = 'int8',
    threads = 0,
    rounds = 5,
    longRounds = 1,
    only = GROUPS,
    seed = 1,
    cache = path.resolve('.cache/bench'),
    scanBytes = 8 * lastLevelCacheBytes(),
    onProgress = () => {},
  } = options;
  const workload = shape === 'tiny' ? TINY_WORKLOAD : WORKLOAD;
  onProgress(`model ${shape}, ${precision}`);
  const model = {
    modelDir: await shapeFolder(shape, cache),
    cacheDir: path.join(cache, 'imported'),
    threads,
    seed,
    precision,
  };
  const bench = await EngineUnderTest.open(model);
  const facts = {
    threads: bench.threads,
    parameters: bench.model.parameters,
    weightBytesPerStep: bench.weightBytesPerStep,
  };
  const drafting = only.includes('speculation') ? await EngineUnderTest.open(model) : undefined;
  let results: CaseResult[];
  let profiled: StepProfile[] = [];
  const scans = only.includes('bandwidth') ? await openScans(scanBytes, bench.threads, path.join(cache, 'scan')) : [];
  try {
    const bandwidth = scans.map(
      (scan): Case => ({
        group: 'bandwidth',
        key: { way: scan.name },
        measure: async () => ({ gigabytesPerSecond: await gigabytesPerSecond(scan) }),
      }),
    );
    const texts = drafting ? await dictations(drafting, workload.dictatedPrompt, workload.dictatedAnswer) : [];
    const cases = [
      ...bandwidth,
      ...engineCases(bench, workload).filter(({ group }) => only.includes(group)),
      ...(only.includes('sampling') ? samplingCases(bench.model.config.vocabSize, seededRandom(seed)) : []),
      ...(drafting ? speculationCases([bench, drafting], texts) : []),
    ];
    results = await takeTurns(cases, rounds, longRounds, seed, onProgress);
    const best = async (): Promise<number | undefined> => {
      const rates: number[] = [];
      for (const scan of scans) rates.push(await gigabytesPerSecond(scan));
      return rates.length ? Math.max(...rates) : undefined;
    };
    if (options.profile) onProgress('profiles');
    if (options.profile)
      profiled = await profiles({ ...model, workload, scratch: path.join(cache, 'profile'), bandwidth: best });
  } finally {
    for (const scan of scans) await scan.close();
    await bench.dispose();
    await drafting?.dispose();
  }
  return { shape, precision, ...facts, seed, scanBytes, results, profiles: profiled };
}

/** Takes one unmeasured sample of each short case, then measures round after round in changing order. */
export async function takeTurns(
  cases: readonly Case[],
  rounds: number,
  longRounds: number,
  seed: number,
  onProgress: (line: string) => void,
): Promise<CaseResult[]> {
  const random = seededRandom(seed);
  const samples = new Map<Case, Sample[]>(cases.map((one) => [one, []]));
  for (const one of cases) if (!one.long) await one.measure();
  for (let round = 0; round < Math.max(rounds, longRounds); round++) {
    const now = cases.filter(({ long }) => round < (long ? longRounds : rounds));
    for (const one of shuffled(now, random)) {
      const start = performance.now();
      const sample = await one.measure();
      samples.get(one)!.push(sample);
      onProgress(
        `round ${round + 1}: ${one.group} ${Object.values(one.key).join(' ')}: ${Object.entries(sample)
          .map(([name, value]) => `${name} ${value.toFixed(2)}`)
          .join(', ')} (${((performance.now() - start) / 1000).toFixed(1)} s)`,
      );
    }
  }
  return cases.map((one) => {
    const taken = samples.get(one)!;
    return {
      group: one.group,
      key: one.key,
      figures: Object.fromEntries(
        Object.keys(taken[0] ?? {}).map((name) => [name, figure(taken.map((sample) => sample[name]!))]),
      ),
    };
  });
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const result = [...items];
  for (let i = result.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [result[i], result[j]] = [result[j]!, result[i]!];
  }
  return result;
}
