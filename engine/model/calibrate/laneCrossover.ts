/**
 * From how many tokens on a text is read faster in the prefill lane than in the paged lane: that depends on the processor and on
 * the model, so it is measured once for each model on a machine, and kept beside the imported one, unless the model is small.
 */
import { cpus } from 'node:os';
import { MIN_PREFILL } from '../batch.ts';
import { PAGE_SLOTS } from '../../kv/pool.ts';
import { measuredOnce } from './measuredOnce.ts';
import type { OnnxRunner } from '../runtime/runner.ts';

/** Tokens of texts that are read in both lanes, ascending. */
const LENGTHS = [16, 32, 64, 128];
/** Tokens before them: a short text is behind a file as a rule, whose rows the prefill lane has to be given first. */
const BEHIND = 2 * PAGE_SLOTS;
/** The prefill lane must be faster by so much. */
const WORTH = 0.05;
/** A smaller model reads a short text in some milliseconds either way. */
const MIN_PARAMETERS = 1e8;
const RUNS = 3;
/** Of the file; raised when measuring changes. */
const FORMAT = 2;

export interface LaneTimes {
  readonly tokens: number;
  /** ms. */
  readonly paged: number;
  readonly prefill: number;
}

/** The shortest of the lengths, ascending, from which on the prefill lane reads all faster; twice the longest where that is not faster. */
export function crossoverOf(times: readonly LaneTimes[]): number {
  const slower = times.findLastIndex(({ paged, prefill }) => prefill >= (1 - WORTH) * paged);
  return times[slower + 1]?.tokens ?? 2 * times.at(-1)!.tokens;
}

/** Reads texts of each length in both lanes. The runner's pool and scratch are used and given back empty; nothing else may hold slots. */
async function measureLanes(runner: OnnxRunner, onProgress: (fraction: number) => void): Promise<LaneTimes[]> {
  const { pool } = runner;
  // How long a step takes does not depend on what the rows before it are.
  pool.resize(2 * BEHIND + 2 * PAGE_SLOTS);
  const slots = (from: number, count: number): Int32Array => Int32Array.from({ length: count }, (_, i) => from + i);
  const numRuns = { paged: 0, prefill: 0 };
  const once = async (tokens: number, lane: 'paged' | 'prefill'): Promise<number> => {
    // Behind another text than that lane's run before, so that its rows are to be given as in use.
    const contextSlots = slots((numRuns[lane]++ % 2) * BEHIND, BEHIND);
    const start = performance.now();
    await runner.run([
      {
        tokenIds: Array.from({ length: tokens }, (_, i) => i % runner.vocabSize),
        startIndex: BEHIND,
        contextSlots,
        newSlots: slots(2 * BEHIND, tokens),
        lane,
        ...(lane === 'prefill' ? { prefillEnd: BEHIND + tokens } : {}),
        numLogits: 0,
      },
    ]);
    return performance.now() - start;
  };
  const both = async (tokens: number): Promise<LaneTimes> => {
    const least = { paged: Number.POSITIVE_INFINITY, prefill: Number.POSITIVE_INFINITY };
    // In turns; others on the machine can only make a run slower.
    for (let run = 0; run < RUNS; run++)
      for (const lane of ['paged', 'prefill'] as const) least[lane] = Math.min(least[lane], await once(tokens, lane));
    return { tokens, ...least };
  };
  try {
    // The first runs warm up.
    await both(LENGTHS[0]!);
    const times: LaneTimes[] = [];
    for (const [i, tokens] of LENGTHS.entries()) {
      onProgress(i / LENGTHS.length);
      times.push(await both(tokens));
    }
    // That the longest is not worth it would be kept for as long as the machine is the same one: not on the word of a single moment.
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
  } finally {
    runner.releaseScratch();
    pool.resize(0);
  }
}

/** @param dir of the imported model. @param onProgress 0 .. 1, before each length; not called where nothing is measured. */
export async function laneCrossover(
  dir: string,
  runner: OnnxRunner,
  { parameters, contextTokens }: { parameters: number; contextTokens: number },
  onProgress: (fraction: number) => void = () => {},
): Promise<number> {
  if (runner.prefillBytesPerToken === 0 || parameters < MIN_PARAMETERS || contextTokens < BEHIND + LENGTHS.at(-1)!)
    return MIN_PREFILL;
  const key = { format: FORMAT, cpu: cpus()[0]?.model ?? '', threads: runner.threads };
  const measured = await measuredOnce(dir, 'crossover.json', key, async () => {
    const times = await measureLanes(runner, onProgress);
    return { fewest: crossoverOf(times), times };
  });
  return measured!.fewest;
}
