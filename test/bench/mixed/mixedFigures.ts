/** Calculates figures of suite `mixed`: throughput, times by class, longest wait. Pure. */
import { median, quantile } from '../spread.ts';
import type { MixedBench, Run } from './mixedBench.ts';
import type { Record } from './replay.ts';

export const CLASSES = ['completion', 'chat', 'summary'] as const;
export type Class = (typeof CLASSES)[number];

/** Milliseconds. NaN without values. */
export interface Spread {
  count: number;
  p50: number;
  p95: number;
  p99: number;
  most: number;
}

export interface ClassFigures {
  /** Time from when the request was due to its first token, and to its last. */
  ttft: Spread;
  total: Spread;
  /** Mean time per token after the first, of each request. */
  tpot: Spread;
}

export interface WayFigures {
  scene: Run['scene'];
  way: string;
  rounds: number;
  /**
   * Generated tokens per second over all rounds: of the time from the first request to the last end, and of the time in
   * steps.
   */
  perSecond: number;
  perBusySecond: number;
  makespanMs: number;
  /**
   * Throughput relative to the neighbouring runs of `continuous`. NaN if there are none, and for `continuous` itself.
   */
  overBeside: number;
  /** Milliseconds of steps with a completion. Median over the rounds. */
  completionSteps?: { p50: number; p95: number };
  /** Completions that nobody would have seen. The figures by class leave them out. */
  unseen: number;
  classes: { [priority in Class]: ClassFigures };
  /**
   * Background requests by class: prompt tokens per second, answer tokens per second, number of completed requests.
   * The first is absent in results before 2026-11-23.
   */
  background: { [priority: string]: { promptPerSecond?: number; perSecond: number; ended: number } };
}

export interface Targets {
  /** Throughput of `continuous` over that of `one by one`. */
  throughput?: number;
  /**
   * P95 of completions with chat and summaries running over P95 of completions alone: to the first token, and in total.
   */
  ttft?: number;
  total?: number;
}

/** Figures by way, in the order of first measurement. Combines all rounds of a way. */
export function figuresOf({ runs }: Pick<MixedBench, 'runs'>): WayFigures[] {
  const ways = new Map<string, Run[]>();
  for (const run of runs) {
    const key = `${run.scene} ${run.way}`;
    ways.set(key, [...(ways.get(key) ?? []), run]);
  }
  return [...ways.values()].map((ofWay) => {
    const { scene, way } = ofWay[0]!;
    const records = ofWay.flatMap((run) => run.records);
    const numTokens = records.reduce((sum, { tokens }) => sum + tokens.length, 0);
    const sum = (of: (run: Run) => number): number => ofWay.reduce((total, run) => total + of(run), 0);
    return {
      scene,
      way,
      rounds: ofWay.length,
      perSecond: (1000 * numTokens) / sum(({ makespanMs }) => makespanMs),
      perBusySecond: (1000 * numTokens) / sum(({ busyMs }) => busyMs),
      makespanMs: sum(({ makespanMs }) => makespanMs) / ofWay.length,
      overBeside: overBeside(runs, ofWay),
      ...(ofWay.every(({ completionSteps }) => completionSteps) && {
        completionSteps: {
          p50: median(ofWay.map((run) => run.completionSteps!.p50)),
          p95: median(ofWay.map((run) => run.completionSteps!.p95)),
        },
      }),
      unseen: records.filter(({ unseen }) => unseen).length,
      classes: Object.fromEntries(
        CLASSES.map((priority) => [
          priority,
          classFigures(records.filter((record) => record.priority === priority && !record.unseen)),
        ]),
      ) as WayFigures['classes'],
      background: Object.fromEntries(
        [...new Set(ofWay.flatMap((run) => Object.keys(run.background ?? {})))].map((priority) => {
          const had = ofWay.map((run) => run.background?.[priority] ?? { tokens: 0, ended: 0 });
          const perSecond = (tokens: readonly number[]): number =>
            (1000 * tokens.reduce((total, of) => total + of, 0)) / sum(({ makespanMs }) => makespanMs);
          const prompts = had.flatMap(({ promptTokens }) => promptTokens ?? []);
          return [
            priority,
            {
              ...(prompts.length && { promptPerSecond: perSecond(prompts) }),
              perSecond: perSecond(had.map(({ tokens }) => tokens)),
              ended: had.reduce((total, { ended }) => total + ended, 0),
            },
          ];
        }),
      ),
    };
  });
}

/** Mean of the neighbouring `continuous` runs' time over this way's time for the same requests. */
function overBeside(runs: readonly Run[], ofWay: readonly Run[]): number {
  if (ofWay[0]!.scene !== 'rush' || ofWay[0]!.way === 'continuous') return Number.NaN;
  const ratios = ofWay.flatMap((run) => {
    const at = runs.indexOf(run);
    const beside = [runs[at - 1], runs[at + 1]]
      .filter((other) => other?.scene === 'rush' && other.way === 'continuous')
      .map((other) => other!.makespanMs);
    return beside.length ? [beside.reduce((sum, ms) => sum + ms, 0) / beside.length / run.makespanMs] : [];
  });
  return ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length;
}

export function targetsOf(figures: readonly WayFigures[]): Targets {
  const find = (scene: Run['scene'], way: string): WayFigures | undefined =>
    figures.find((one) => one.scene === scene && one.way === way);
  const [single, alone, loaded] = [
    find('rush', 'one by one'),
    find('live', 'alone'),
    find('live', 'with chat and summaries'),
  ];
  return {
    ...(single && !Number.isNaN(single.overBeside) && { throughput: 1 / single.overBeside }),
    ...(alone &&
      loaded && {
        ttft: loaded.classes.completion.ttft.p95 / alone.classes.completion.ttft.p95,
        total: loaded.classes.completion.total.p95 / alone.classes.completion.total.p95,
      }),
  };
}

function classFigures(records: readonly Record[]): ClassFigures {
  return {
    // A request that ended without a token counts as an infinite wait.
    ttft: spread(records.map(({ due, tokens }) => (tokens[0] ?? Number.POSITIVE_INFINITY) - due)),
    total: spread(records.map(({ due, tokens }) => (tokens.at(-1) ?? Number.POSITIVE_INFINITY) - due)),
    tpot: spread(
      records
        .filter(({ tokens }) => tokens.length > 1)
        .map(({ tokens }) => (tokens.at(-1)! - tokens[0]!) / (tokens.length - 1)),
    ),
  };
}

function spread(values: readonly number[]): Spread {
  return {
    count: values.length,
    p50: quantile(values, 0.5),
    p95: quantile(values, 0.95),
    p99: quantile(values, 0.99),
    most: quantile(values, 1),
  };
}
