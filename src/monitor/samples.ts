/** Data of the charts: a ring buffer with the samples of the last minutes, kept while the extension runs. Pure. */
import type { EngineStats } from '../../engine/protocol/stats.ts';

/** One moment. Values without activity since the previous sample are null, which leaves a gap in the chart. */
export interface Sample {
  /** Milliseconds since 1970. */
  at: number;
  /** Of the cache, against its limit. */
  usedBytes: number;
  /** Cached share of the prompt tokens of the requests that ended since the previous sample, 0..1. */
  reused: number | null;
  tokensPerSecond: number;
  /** Sequences per step since the previous sample. */
  batch: number | null;
  /** Milliseconds, over all requests so far. */
  firstTokenP95: number | null;
}

export const KEPT_MS = 10 * 60_000;

export class Samples {
  readonly #samples: Sample[] = [];
  #before: EngineStats | null = null;

  /** Adds the engine's statistics at a time and returns the new sample. */
  add(stats: EngineStats, at: number): Sample {
    // Counters that decreased belong to a new engine.
    const before =
      this.#before &&
      this.#before.events.steps <= stats.events.steps &&
      this.#before.tokens.prompt <= stats.tokens.prompt
        ? this.#before
        : null;
    this.#before = stats;
    const numSteps = stats.events.steps - (before?.events.steps ?? 0);
    const prompt = stats.tokens.prompt - (before?.tokens.prompt ?? 0);
    const cached = stats.tokens.promptCached - (before?.tokens.promptCached ?? 0);
    const sample: Sample = {
      at,
      usedBytes: usedBytes(stats),
      reused: prompt > 0 ? cached / prompt : null,
      tokensPerSecond: stats.tokensPerSecond,
      batch: numSteps > 0 ? (numSequences(stats) - (before ? numSequences(before) : 0)) / numSteps : null,
      firstTokenP95: stats.ttftMs.p95 > 0 ? stats.ttftMs.p95 : null,
    };
    this.#samples.push(sample);
    const old = this.#samples.findIndex((each) => each.at > at - KEPT_MS);
    if (old > 0) this.#samples.splice(0, old);
    return sample;
  }

  /** Oldest first. */
  get all(): readonly Sample[] {
    return this.#samples;
  }
}

/** Everything that counts against the memory budget. */
export function usedBytes({
  poolBytes,
  storeBytes,
  scratchBytes,
  bufferBytes,
}: Pick<EngineStats, 'poolBytes' | 'storeBytes' | 'scratchBytes' | 'bufferBytes'>): number {
  return poolBytes + storeBytes + scratchBytes + bufferBytes;
}

/** Over all steps so far. */
function numSequences({ batchSequences, events }: EngineStats): number {
  return batchSequences * events.steps;
}
