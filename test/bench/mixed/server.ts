/**
 * Serves the requests of suite `mixed`: the engine under some policies, one by one, or with padded batches as without
 * continuous batching. All run the same steps over the same prefix cache. None uses drafts: output of random weights
 * repeats itself, so drafts would foresee it better than any text of a trained model.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Engine } from '../../../engine/core/engine.ts';
import type { TokenRange } from '../../../engine/kv/laneIds.ts';
import type { Priority } from '../../../engine/protocol/tasks.ts';
import { SchedulingPolicy } from '../../../engine/scheduler/policy.ts';
import { Sequence } from '../../../engine/sequence/sequence.ts';
import { prefillRanges } from '../../../engine/tasks/preparedRequest.ts';
import { below, type Random } from '../../support/engine/workload.ts';

export interface Job {
  id: string;
  priority: Priority;
  promptIds: readonly number[];
  prefill: readonly TokenRange[];
  numTokens: number;
  onToken(): void;
  /** Also called after an abort. */
  onEnd(): void;
}

export interface Server {
  add(job: Job): void;
  /** Ignores unknown and ended requests. */
  abort(id: string): void;
  hasWork(): boolean;
  /** Computed tokens of a request's prompt. 0 if the request is unknown. */
  computed(id: string): number;
  /** Runs one step of the engine or waits shortly for more requests. */
  step(): Promise<void>;
}

export class EngineServer implements Server {
  readonly #engine: Engine;
  readonly #sequences = new Map<string, Sequence>();

  readonly #pauses: boolean;

  /** With `pauses`, a step waits for requests that are about to arrive. */
  constructor(engine: Engine, { pauses = true } = {}) {
    this.#engine = engine;
    this.#pauses = pauses;
  }

  add(job: Job): void {
    const onEnd = (): void => {
      job.onEnd();
      this.#sequences.delete(job.id);
    };
    const sequence = sequenceOf({ ...job, onEnd });
    this.#sequences.set(job.id, sequence);
    this.#engine.add(sequence);
  }

  abort(id: string): void {
    this.#engine.abort(id);
  }

  computed(id: string): number {
    const sequence = this.#sequences.get(id);
    return sequence ? sequence.numReached - sequence.cachedTokens : 0;
  }

  hasWork(): boolean {
    return this.#engine.hasWork();
  }

  async step(): Promise<void> {
    // Messages arrive between steps, as in the worker, and may end the wait.
    const pause = this.#pauses ? this.#engine.pauseMs() : 0;
    if (pause > 0) await sleep(Math.min(1, pause));
    else await this.#engine.step();
  }
}

/** Runs one request at a time from start to end. The most urgent waiting request is next. */
export class OneByOne extends EngineServer {
  readonly #policy = new SchedulingPolicy();
  readonly #queue: { job: Job; priority: Priority; arrivalIndex: number; lastServedAt: number }[] = [];
  #numAdded = 0;
  #isBusy = false;

  override add(job: Job): void {
    const { priority } = job;
    this.#queue.push({ job, priority, arrivalIndex: this.#numAdded++, lastServedAt: performance.now() });
    this.#next();
  }

  override abort(id: string): void {
    const waiting = this.#queue.findIndex(({ job }) => job.id === id);
    if (waiting >= 0) this.#queue.splice(waiting, 1)[0]!.job.onEnd();
    else super.abort(id);
  }

  #next(): void {
    if (this.#isBusy || this.#queue.length === 0) return;
    this.#queue.sort(this.#policy.byService(performance.now(), { givesToken: () => false, served: () => 0 }));
    const { job } = this.#queue.shift()!;
    this.#isBusy = true;
    const onEnd = (): void => {
      this.#isBusy = false;
      job.onEnd();
      this.#next();
    };
    super.add({ ...job, onEnd });
  }
}

export interface Padding {
  /** Maximum number of requests in a batch. */
  size: number;
  /** Maximum wait of the first request for the batch to fill. */
  timeoutMs: number;
  now: () => number;
  sleep: (ms: number) => Promise<void>;
  random: Random;
  vocabSize: number;
}

/**
 * Runs static batches in order of arrival. A batch starts when it is full or its first request has waited long enough.
 * Every prompt is padded to the longest. The next batch starts when the longest answer has ended.
 * Pads are sequences of their own that no other request shares. An ended request keeps decoding without use until the
 * last one has ended.
 * Better than most such servers: cached tokens are not computed again, so only the remaining part of the prompts is
 * padded.
 */
export class PaddedBatches implements Server {
  readonly #engine: Engine;
  readonly #padding: Padding;
  readonly #queue: { job: Job; since: number }[] = [];
  /** Requests of the running batch that have not ended. */
  readonly #live = new Map<string, Job>();
  /** Pads and ended requests that keep decoding. */
  readonly #ghosts = new Set<string>();
  #numGhosts = 0;

  constructor(engine: Engine, padding: Padding) {
    this.#engine = engine;
    this.#padding = padding;
  }

  add(job: Job): void {
    this.#queue.push({ job, since: this.#padding.now() });
  }

  abort(id: string): void {
    const waiting = this.#queue.findIndex(({ job }) => job.id === id);
    if (waiting >= 0) this.#queue.splice(waiting, 1)[0]!.job.onEnd();
    else if (this.#live.has(id)) this.#engine.abort(id);
  }

  hasWork(): boolean {
    return this.#queue.length > 0 || this.#engine.hasWork();
  }

  computed(): number {
    return 0;
  }

  async step(): Promise<void> {
    if (!this.#engine.hasWork()) {
      const { size, timeoutMs, now, sleep } = this.#padding;
      const waited = now() - this.#queue[0]!.since;
      if (this.#queue.length < size && waited < timeoutMs) return sleep(Math.min(5, timeoutMs - waited));
      this.#begin(this.#queue.splice(0, size).map(({ job }) => job));
    }
    await this.#engine.step();
    if (this.#live.size === 0) for (const id of this.#ghosts) this.#engine.abort(id);
  }

  #begin(jobs: readonly Job[]): void {
    const missing = jobs.map(
      ({ promptIds, prefill }) => promptIds.length - this.#engine.blocks.describe(promptIds, prefill).tokens,
    );
    const longest = Math.max(...missing);
    const numTokens = Math.max(...jobs.map((job) => job.numTokens));
    for (const [i, job] of jobs.entries()) {
      this.#live.set(job.id, job);
      let numGenerated = 0;
      const sequence = sequenceOf({
        ...job,
        onToken: () => {
          numGenerated++;
          job.onToken();
        },
        onEnd: () => {
          this.#live.delete(job.id);
          job.onEnd();
          if (this.#live.size > 0 && numGenerated < numTokens)
            this.#ghost(job, sequence.tokenIds, numTokens - numGenerated);
        },
      });
      this.#engine.add(sequence);
      const pad = longest - missing[i]!;
      if (pad > 0)
        this.#ghost(
          { ...job, prefill: prefillRanges(0, [[0, pad]]) },
          Array.from({ length: pad }, () => below(this.#padding.random, this.#padding.vocabSize)),
          0,
        );
    }
  }

  #ghost({ priority, prefill }: Job, promptIds: readonly number[], numTokens: number): void {
    const id = `ghost ${this.#numGhosts++}`;
    this.#ghosts.add(id);
    this.#engine.add(
      sequenceOf({
        id,
        priority,
        promptIds,
        prefill,
        numTokens,
        onToken: () => {},
        onEnd: () => this.#ghosts.delete(id),
      }),
    );
  }
}

function sequenceOf({ id, priority, promptIds, prefill, numTokens, onToken, onEnd }: Job): Sequence {
  return new Sequence({
    id,
    priority,
    promptIds,
    prefill,
    sampling: { maxTokens: numTokens, ignoreEos: true, seed: 1 },
    eosIds: [],
    detokenizer: { push: () => '', flush: () => '' },
    draftSources: null,
    onToken,
    onFinish: onEnd,
    onError: (error) => {
      throw error;
    },
  });
}
