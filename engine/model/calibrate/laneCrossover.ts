/**
 * Measures from which length the prefill lane reads a text faster than the paged lane. Measures once per model and
 * machine. Does not measure small models.
 */
import { cpus } from 'node:os';
import { MIN_PREFILL } from '../batch.ts';
import { PAGE_SLOTS } from '../../kv/pool.ts';
import { measuredOnce, releasing } from './measurement.ts';
import type { Runner } from '../batch.ts';

/** Lengths, in tokens, of the texts that are read in both lanes, ascending. */
const LENGTHS = [16, 32, 64, 128];
/**
 * Tokens before the text. A short text usually follows a file, and the prefill lane must copy the rows of that file.
 */
const CONTEXT_TOKENS = 2 * PAGE_SLOTS;
/** The prefill lane is used if it is faster by at least this share. */
const MIN_GAIN = 0.05;
/** A smaller model reads a short text in a few milliseconds in either lane. */
const MIN_PARAMETERS = 1e8;
const RUNS = 3;
/** Version of the file. Raise it when the measurement changes. */
const FORMAT = 2;

export interface LaneTimes {
  readonly tokens: number;
  /** Milliseconds in each lane. */
  readonly paged: number;
  readonly prefill: number;
}

/** The shortest length from which the prefill lane is always faster. Twice the longest length if there is none. */
export function crossoverOf(times: readonly LaneTimes[]): number {
  const slower = times.findLastIndex(({ paged, prefill }) => prefill >= (1 - MIN_GAIN) * paged);
  return times[slower + 1]?.tokens ?? 2 * times.at(-1)!.tokens;
}

/**
 * Reads texts of each length in both lanes. Uses the pool and the scratch of the runner and leaves them empty, so
 * nothing else may hold slots.
 */
async function measureLanes(runner: Runner, onProgress: (fraction: number) => void): Promise<LaneTimes[]> {
  const { pool } = runner;
  // The duration of a step does not depend on the content of the rows before it.
  pool.resize(2 * CONTEXT_TOKENS + 2 * PAGE_SLOTS);
  const slots = (from: number, count: number): Int32Array => Int32Array.from({ length: count }, (_, i) => from + i);
  const numRuns = { paged: 0, prefill: 0 };
  const once = async (tokens: number, lane: 'paged' | 'prefill'): Promise<number> => {
    // Follows another text than the previous run of that lane, so that the rows must be copied as in real use.
    const contextSlots = slots((numRuns[lane]++ % 2) * CONTEXT_TOKENS, CONTEXT_TOKENS);
    const start = performance.now();
    await runner.run([
      {
        tokenIds: Array.from({ length: tokens }, (_, i) => i % runner.vocabSize),
        startIndex: CONTEXT_TOKENS,
        contextSlots,
        newSlots: slots(2 * CONTEXT_TOKENS, tokens),
        lane,
        ...(lane === 'prefill' ? { prefillEnd: CONTEXT_TOKENS + tokens } : {}),
        numLogits: 0,
      },
    ]);
    return performance.now() - start;
  };
  const both = async (tokens: number): Promise<LaneTimes> => {
    const least = { paged: Number.POSITIVE_INFINITY, prefill: Number.POSITIVE_INFINITY };
    // The lanes take turns. The shortest time counts, because other programs can only make a run slower.
    for (let run = 0; run < RUNS; run++)
      for (const lane of ['paged', 'prefill'] as const) least[lane] = Math.min(least[lane], await once(tokens, lane));
    return { tokens, ...least };
  };
  return releasing(runner, async () => {
    // The first runs warm up.
    await both(LENGTHS[0]!);
    const times: LaneTimes[] = [];
    for (const [i, tokens] of LENGTHS.entries()) {
      onProgress(i / LENGTHS.length);
      times.push(await both(tokens));
    }
    // The result "never faster" is kept as long as the machine is the same. So it must be confirmed once.
    const last = times.at(-1)!;
    if (crossoverOf(times) <= last.tokens) return times;
    const again = await both(last.tokens);
    return [
      ...times.slice(0, -1),
      {
        tokens: last.tokens,
        paged: Math.min(last.paged, again.paged),
        prefill: Math.min(last.prefill, again.prefill),
      },
    ];
  });
}

/**
 * The shortest text, in tokens, that should use the prefill lane; infinite without one. `dir`: folder of the imported model. `onProgress`
 * gets 0 .. 1 before each length, and is not called when nothing is measured.
 */
export async function laneCrossover(
  dir: string,
  runner: Runner,
  { parameters, contextTokens }: { parameters: number; contextTokens: number },
  onProgress: (fraction: number) => void = () => {},
): Promise<number> {
  if (runner.prefillBytesPerToken === 0) return Number.POSITIVE_INFINITY;
  if (parameters < MIN_PARAMETERS || contextTokens < CONTEXT_TOKENS + LENGTHS.at(-1)!) return MIN_PREFILL;
  const key = { format: FORMAT, cpu: cpus()[0]?.model ?? '', threads: runner.threads };
  const measured = await measuredOnce(dir, 'crossover.json', key, async () => {
    const times = await measureLanes(runner, onProgress);
    return { fewest: crossoverOf(times), times };
  });
  return measured!.fewest;
}
