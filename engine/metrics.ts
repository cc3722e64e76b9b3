/** What the engine has done, in counters and histograms. Owns no policy; `idle` work is counted apart from requests. */
import { build, type Histogram } from 'hdr-histogram-js';
import type { EngineStats } from './protocol.ts';

const RECENT_MS = 10_000;

interface Step {
  endedAt: number;
  ms: number;
  numGenerated: number;
}

export class Metrics {
  readonly requests = { done: 0, failed: 0, aborted: 0 };
  readonly tokens: EngineStats['tokens'] = { prompt: 0, promptComputed: 0, promptCached: 0, idleComputed: 0, generated: 0 };
  steps = 0;
  preemptions = 0;
  #batchTokens = 0;
  #batchSequences = 0;
  /** Microseconds. */
  readonly #stepTimes: Histogram = build({ bitBucketSize: 32, autoResize: true, numberOfSignificantValueDigits: 2 });
  readonly #firstTokens: Histogram = build({ bitBucketSize: 32, autoResize: true, numberOfSignificantValueDigits: 2 });
  #recent: Step[] = [];

  recordStep(endedAt: number, ms: number, numTokens: number, numGenerated: number, numSequences: number): void {
    this.steps++;
    this.#batchTokens += numTokens;
    this.#batchSequences += numSequences;
    this.tokens.generated += numGenerated;
    this.#stepTimes.recordValue(Math.max(1, Math.round(ms * 1000)));
    this.#recent.push({ endedAt, ms, numGenerated });
    if (this.#recent.length > 64 && this.#recent[0]!.endedAt < endedAt - RECENT_MS) this.#forget(endedAt);
  }

  /** Generated tokens per second of step time, over the last 10 s; 0 when there was no step. */
  tokensPerSecond(now: number): number {
    this.#forget(now);
    let ms = 0;
    let numGenerated = 0;
    for (const step of this.#recent) {
      ms += step.ms;
      numGenerated += step.numGenerated;
    }
    return ms > 0 ? (numGenerated * 1000) / ms : 0;
  }

  recordFirstToken(ttftMs: number): void {
    this.#firstTokens.recordValue(Math.max(1, Math.round(ttftMs * 1000)));
  }

  /** Milliseconds, over all steps. */
  stepMs(): EngineStats['stepMs'] {
    return percentiles(this.#stepTimes);
  }

  /** Milliseconds from arrival, over all requests. */
  ttftMs(): EngineStats['ttftMs'] {
    return percentiles(this.#firstTokens);
  }

  meanBatchSequences(): number {
    return this.steps === 0 ? 0 : this.#batchSequences / this.steps;
  }

  meanBatchTokens(): number {
    return this.steps === 0 ? 0 : this.#batchTokens / this.steps;
  }

  #forget(now: number): void {
    this.#recent = this.#recent.filter((step) => step.endedAt >= now - RECENT_MS);
  }
}

/** Milliseconds of a histogram of microseconds; 0 while it is empty. */
function percentiles(histogram: Histogram): EngineStats['stepMs'] {
  const at = (percentile: number): number => (histogram.totalCount === 0 ? 0 : histogram.getValueAtPercentile(percentile) / 1000);
  return { p50: at(50), p95: at(95), p99: at(99) };
}
