/**
 * Records what the engine has done: counters, times, and the last steps in detail. Decides nothing.
 */
import type { KvCache } from '../kv/kvCache.ts';
import { RequestError } from '../protocol/errors.ts';
import { Metrics, type TokenCounts } from './metrics.ts';
import type { EngineStats } from '../protocol/stats.ts';
import type { FinishReason } from '../protocol/tasks.ts';
import { numTokensOf, type Scheduled } from '../scheduler/stepBatch.ts';
import type { Scheduler } from '../scheduler/scheduler.ts';
import type { Sequence } from '../sequence/sequence.ts';
import { StepTrace, type TracedSpan, type TracedStep } from './trace.ts';
import type { Approximations } from '../kv/approx/approximations.ts';
import type { Snapshots } from '../kv/snapshots.ts';

/** Times of a step in ms of the engine's clock, in order. */
export interface StepTimes {
  readonly start: number;
  readonly scheduled: number;
  readonly run: number;
  readonly end: number;
}

/** The part of EngineStats that the journal knows. */
type JournalFields =
  | 'requests'
  | 'events'
  | 'tokensPerSecond'
  | 'utilisation'
  | 'busyMs'
  | 'stepMs'
  | 'batchTokens'
  | 'batchSequences'
  | 'ttftMs'
  | 'classes';

export class Journal {
  readonly #cache: KvCache;
  readonly #scheduler: Scheduler;
  readonly #metrics: Metrics;
  readonly #trace = new StepTrace();

  /** `now`: start of the engine. */
  constructor(cache: KvCache, scheduler: Scheduler, now: number) {
    this.#cache = cache;
    this.#scheduler = scheduler;
    this.#metrics = new Metrics(now);
  }

  /** The last steps, oldest first. */
  trace(): TracedStep[] {
    return this.#trace.steps();
  }

  /** Begins the record of a step, before its sequences get their tokens. `finish` completes it. */
  begin(batch: readonly Scheduled[]): { finish(numGenerated: number, times: StepTimes): void } {
    const { tokens } = this.#metrics;
    for (const { sequence, startIndex, count } of batch) {
      const ofPrompt = Math.max(0, Math.min(count, sequence.numPromptTokens - startIndex));
      tokens[sequence.priority === 'idle' ? 'idleComputed' : 'promptComputed'] += ofPrompt;
    }
    const spans = batch.map(tracedSpan);
    return {
      finish: (numGenerated, times) => {
        this.#metrics.recordStep({
          startedAt: times.start,
          endedAt: times.end,
          numTokens: numTokensOf(batch),
          numGenerated,
          priorities: spans.map(({ priority }) => priority),
        });
        const { pool, store, nodes } = this.#cache.memory;
        const { numPreemptions: preemptions } = this.#scheduler;
        this.#trace.add({
          ...times,
          spans,
          events: { ...nodes.events, preemptions },
          poolBytes: pool.bytes,
          storeBytes: store.bytes,
          waiting: this.#scheduler.counts().waiting,
        });
      },
    };
  }

  firstToken(sequence: Sequence): void {
    this.#metrics.recordFirstToken(sequence.priority, sequence.timings().ttftMs);
  }

  drafted(numTokens: number, numAccepted: number): void {
    this.#metrics.tokens.drafted += numTokens;
    this.#metrics.tokens.accepted += numAccepted;
  }

  ended(sequence: Sequence, outcome: FinishReason | RequestError, now: number): void {
    const { tokens, requests } = this.#metrics;
    const isError = outcome instanceof RequestError;
    if (sequence.priority !== 'idle') {
      // Nothing was looked up for the rest of a prompt that was aborted.
      tokens.prompt += isError || outcome === 'abort' ? sequence.numReached : sequence.numPromptTokens;
      tokens.promptCached += sequence.cachedTokens;
      requests[isError ? 'failed' : outcome === 'abort' ? 'aborted' : 'done']++;
    }
    if (isError) return;
    // A sequence that never ran counts as well. Without it, starvation would not show.
    const queueMs = (Number.isNaN(sequence.startedAt) ? now : sequence.startedAt) - sequence.arrivedAt;
    this.#metrics.recordEnd(sequence.priority, queueMs, sequence.numAfterFirst > 0 ? sequence.timings().tpotMs : null);
  }

  stats(now: number): Pick<EngineStats, JournalFields> & { tokens: TokenCounts } {
    const metrics = this.#metrics;
    return {
      requests: { ...this.#scheduler.counts(), ...metrics.requests },
      tokens: { ...metrics.tokens },
      events: { ...this.#cache.memory.nodes.events, preemptions: this.#scheduler.numPreemptions, steps: metrics.steps },
      tokensPerSecond: metrics.tokensPerSecond(now),
      utilisation: metrics.utilisation(now),
      busyMs: metrics.busyMs,
      stepMs: metrics.stepMs(),
      batchTokens: metrics.meanBatchTokens(),
      batchSequences: metrics.meanBatchSequences(),
      ttftMs: metrics.ttftMs(),
      classes: metrics.classes(),
    };
  }
}

function tracedSpan({ sequence, startIndex, count, draft, prefill, lane }: Scheduled): TracedSpan {
  const { arrivalIndex, priority, arrivedAt, startedAt } = sequence;
  return {
    arrivalIndex,
    priority,
    arrivedAt,
    startedAt,
    startIndex,
    tokens: count + draft.length,
    lane,
    phase: prefill ? 'prefill' : 'decode',
  };
}

export type CoreStats = Omit<EngineStats, 'model' | 'files' | 'memory' | 'tree'>;

interface Sources {
  readonly journal: ReturnType<Journal['stats']>;
  /** Requests that wait for the disk. */
  readonly numFetching: number;
  readonly cache: KvCache;
  readonly approximations: Approximations;
  readonly disk: Snapshots | null;
  /** Why the last write to the disk failed. */
  readonly diskFault: string | null;
  readonly maxBytes: number;
  readonly scratchBytes: number;
  readonly bufferBytes: number;
}

/** The engine's part of the statistics. */
export function coreStats({
  journal,
  numFetching,
  cache,
  approximations,
  disk,
  diskFault,
  ...bytes
}: Sources): CoreStats {
  return {
    ...journal,
    requests: { ...journal.requests, waiting: journal.requests.waiting + numFetching },
    tokens: { ...journal.tokens, ...approximations.stats(), promptFromDisk: disk?.numFetched ?? 0 },
    ...bytes,
    poolBytes: cache.memory.pool.bytes,
    storeBytes: cache.memory.store.bytes,
    diskBytes: disk?.disk.bytes ?? 0,
    diskMaxBytes: disk?.disk.maxBytes ?? 0,
    ...(diskFault ? { diskFault } : {}),
    kvBytesPerToken: cache.memory.budget.bytesPerSlot,
    poolSlots: cache.memory.poolSlots,
  };
}
