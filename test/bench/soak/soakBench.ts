/**
 * Suite `soak`: sends 10,000 random requests, edits, aborts and evictions through the scheduler and the cache with the
 * fake runner, and as many through real models. Each run has its own process. A wrong token, slot or byte stops it.
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { short, table } from '../spread.ts';
import { type BarChart, barChart } from '../svgPlot.ts';
import { MAX_GROWTH_BYTES, soakProcess } from '../../support/soak/startSoak.ts';
import { slope, type SoakOptions, type SoakResult } from '../../support/soak/soakRun.ts';

/**
 * A tiny model with the shape of a real one. The test needs the sharing between requests, not the quality of the text.
 */
const MODEL = 'test/fixtures/models/qwen3-tied-sharded';

export interface SoakBench {
  seed: number;
  runs: { name: string; result: SoakResult; growthPer1000: number; seconds: number }[];
}

export interface SoakArguments {
  /** Number of requests in each run. Default: 10,000. */
  requests?: string;
  /** Default: 1. */
  seed?: string;
  /** Only native kernels, those that are compiled with sanitizers. */
  sanitized?: boolean;
}

/** The addon that `npm run native -- --sanitize` leaves. */
const SANITIZED = path.resolve(`.cache/native-sanitized/${process.platform}-${process.arch}.node`);

export async function soakSuite({
  requests = '10000',
  seed: start = '1',
  sanitized = false,
}: SoakArguments): Promise<{ result: SoakBench; report: string; charts: { [file: string]: string } }> {
  const numRequests = Number(requests);
  if (!(Number.isInteger(numRequests) && numRequests >= 100))
    throw new Error(`--requests ${requests}: it must be a whole number of at least 100`);
  if (sanitized && !existsSync(SANITIZED)) throw new Error('--sanitized: first `npm run native -- --sanitize`');
  const seed = Number(start);
  const model = { modelDir: MODEL, cacheDir: path.resolve('.cache/bench/imported') };
  const library = sanitized ? { library: SANITIZED } : {};
  const ways: [string, SoakOptions][] = [
    ['native kernels, int8', { numRequests, seed, model: { ...model, ...library, precision: 'int8' } }],
    ['native kernels, int4', { numRequests, seed, model: { ...model, ...library, precision: 'int4' } }],
  ];
  if (!sanitized)
    ways.push(
      ['onnxruntime, float32', { numRequests, seed, model: { ...model, precision: 'float32' } }],
      ['fake runner', { numRequests, seed }],
    );
  const result: SoakBench = { seed, runs: [] };
  for (const [name, options] of ways) {
    console.error(`${name}: ${numRequests} requests`);
    const started = performance.now();
    const run = await soakProcess(options);
    result.runs.push({
      name,
      result: run,
      growthPer1000: 1000 * slope(run.samples),
      seconds: (performance.now() - started) / 1000,
    });
  }
  return { result, report: soakReport(result), charts: soakCharts(result) };
}

export function soakReport({ seed, runs }: SoakBench): string {
  const rows = runs.map(({ name, result, growthPer1000, seconds }) => [
    name,
    result.numRequests,
    result.aborted,
    result.failed,
    result.steps,
    result.tokensCompared,
    result.tokensDiffering,
    result.events.evictions,
    result.events.preemptions,
    short(result.samples.at(-1)!.bytes / 1e6),
    short(growthPer1000 / 1e6),
    short(seconds),
  ]);
  return [
    `## Soak: random requests against the request alone, seed ${seed}`,
    'Slots (free + held = total), bytes and the integrity of the cache are checked after every step; a token that differs beyond rounding ends the run.',
    table(
      [
        'runner',
        'requests',
        'aborted',
        'refused',
        'steps',
        'tokens compared',
        'differing within rounding',
        'evictions',
        'preemptions',
        'resident at the end, MB',
        'growth over the last half, MB per 1,000 requests',
        'seconds',
      ],
      rows,
    ),
    `Target: growth below ${MAX_GROWTH_BYTES / 1e6} MB per 1,000 requests.`,
  ].join('\n\n');
}

/** SVG texts by file name. */
export function soakCharts(bench: SoakBench): { [file: string]: string } {
  return { 'soak-memory.svg': barChart(memoryChart(bench)) };
}

function memoryChart({ runs }: SoakBench): BarChart {
  const shares = [0, 0.25, 0.5, 0.75, 1];
  const at = ({ samples }: SoakResult, share: number): number =>
    samples[Math.round(share * (samples.length - 1))]!.bytes / 1e6;
  return {
    title: 'Resident memory over a run',
    unit: 'MB',
    groups: shares.map((share) => `${100 * share}% of the requests`),
    series: runs.map(({ name, result }) => ({ name, bars: shares.map((share) => ({ value: at(result, share) })) })),
  };
}
