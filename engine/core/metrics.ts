/** Counters and histograms of what the engine has done, by priority class. `idle` work does not count as a request. */
import { build, type Histogram } from 'hdr-histogram-js';
import type { ClassTimes, Quantiles } from '../protocol/stats.ts';
import type { Priority } from '../protocol/tasks.ts';

const RECENT_MS = 10_000;

interface Step {
  startedAt: number;
  endedAt: number;
  ms: number;
  numGenerated: number;
}

/** What is recorded of a step. Times are milliseconds of the engine's clock. */
export interface StepFacts {
  startedAt: number;
  /** When its tokens had been computed. */
  endedAt: number;
  numTokens: number;
  numGenerated: number;
  /** The class of each of its sequences. */
  priorities: readonly Priority[];
}

/** Tokens that steps have computed, by kind. */
export type TokenCounts = Record<
  'prompt' | 'promptComputed' | 'promptCached' | 'idleComputed' | 'generated' | 'drafted' | 'accepted',
  number
>;

export class Metrics {
  readonly requests = { done: 0, failed: 0, aborted: 0 };
  readonly tokens: TokenCounts = {
    prompt: 0,
    promptComputed: 0,
    promptCached: 0,
    idleComputed: 0,
    generated: 0,
    drafted: 0,
    accepted: 0,
  };
  steps = 0;
  busyMs = 0;
  #batchTokens = 0;
  #batchSequences = 0;
  readonly #stepTimes = new Durations();
  readonly #firstTokens = new Durations();
  readonly #classes = {
    completion: new ClassDurations(),
    chat: new ClassDurations(),
    summary: new ClassDurations(),
    idle: new ClassDurations(),
  };
  readonly #since: number;
  /** Steps in the order of their ends. The first `#numOld` ended too long ago to count. */
  #recent: Step[] = [];
  #numOld = 0;

  /** `now`: start of the engine. */
  constructor(now = 0) {
    this.#since = now;
  }

  recordStep({ startedAt, endedAt, numTokens, numGenerated, priorities }: StepFacts): void {
    const ms = endedAt - startedAt;
    this.steps++;
    this.busyMs += ms;
    this.#batchTokens += numTokens;
    this.#batchSequences += priorities.length;
    this.tokens.generated += numGenerated;
    this.#stepTimes.add(ms);
    for (const priority of new Set(priorities)) this.#classes[priority].step.add(ms);
    this.#recent.push({ startedAt, endedAt, ms, numGenerated });
    this.#forget(endedAt);
  }

  /** Generated tokens per second of step time in the last 10 s; 0 without a step. */
  tokensPerSecond(now: number): number {
    this.#forget(now);
    let ms = 0;
    let numGenerated = 0;
    for (let i = this.#numOld; i < this.#recent.length; i++) {
      ms += this.#recent[i]!.ms;
      numGenerated += this.#recent[i]!.numGenerated;
    }
    return ms > 0 ? (numGenerated * 1000) / ms : 0;
  }

  /** Share of the last 10 s, or of the time since the start if shorter, in which a step ran; 0..1. */
  utilisation(now: number): number {
    this.#forget(now);
    const from = Math.max(this.#since, now - RECENT_MS);
    let ms = 0;
    for (let i = this.#numOld; i < this.#recent.length; i++)
      ms += this.#recent[i]!.endedAt - Math.max(this.#recent[i]!.startedAt, from);
    return now > from ? Math.min(1, ms / (now - from)) : 0;
  }

  recordFirstToken(priority: Priority, ttftMs: number): void {
    this.#firstTokens.add(ttftMs);
    this.#classes[priority].firstToken.add(ttftMs);
  }

  /**
   * A request has ended. `queueMs`: time to its first step, or to its end without one. `tpotMs`: null if it had no
   * token after the first.
   */
  recordEnd(priority: Priority, queueMs: number, tpotMs: number | null): void {
    this.#classes[priority].queue.add(queueMs);
    if (tpotMs !== null) this.#classes[priority].perToken.add(tpotMs);
  }

  /** Milliseconds, over all steps. */
  stepMs(): Quantiles {
    return this.#stepTimes.quantiles();
  }

  /** Milliseconds from arrival, over all requests. */
  ttftMs(): Quantiles {
    return this.#firstTokens.quantiles();
  }

  /** Milliseconds, over the requests of each class. */
  classes(): Record<Priority, ClassTimes> {
    const { completion, chat, summary, idle } = this.#classes;
    return { completion: completion.times(), chat: chat.times(), summary: summary.times(), idle: idle.times() };
  }

  meanBatchSequences(): number {
    return this.steps === 0 ? 0 : this.#batchSequences / this.steps;
  }

  meanBatchTokens(): number {
    return this.steps === 0 ? 0 : this.#batchTokens / this.steps;
  }

  /** Copies the list only when half of it is old, because a small model runs a thousand steps per second. */
  #forget(now: number): void {
    while (this.#numOld < this.#recent.length && this.#recent[this.#numOld]!.endedAt < now - RECENT_MS) this.#numOld++;
    if (2 * this.#numOld <= this.#recent.length) return;
    this.#recent = this.#recent.slice(this.#numOld);
    this.#numOld = 0;
  }
}

/** Durations in constant memory: percentiles with two digits, exact count and sum. */
class Durations {
  /** Microseconds. */
  readonly #histogram: Histogram = build({ bitBucketSize: 32, autoResize: true, numberOfSignificantValueDigits: 2 });
  #sum = 0;

  add(ms: number): void {
    this.#histogram.recordValue(Math.max(0, Math.round(ms * 1000)));
    this.#sum += ms;
  }

  quantiles(): Quantiles {
    const count = this.#histogram.totalCount;
    const at = (percentile: number): number =>
      count === 0 ? 0 : this.#histogram.getValueAtPercentile(percentile) / 1000;
    return { p50: at(50), p95: at(95), p99: at(99), count, sum: this.#sum };
  }
}

class ClassDurations {
  readonly queue = new Durations();
  readonly firstToken = new Durations();
  readonly perToken = new Durations();
  readonly step = new Durations();

  times(): ClassTimes {
    return {
      queueMs: this.queue.quantiles(),
      ttftMs: this.firstToken.quantiles(),
      tpotMs: this.perToken.quantiles(),
      stepMs: this.step.quantiles(),
    };
  }
}
