/**
 * Who answers the requests of the suite `mixed`: the engine under some policies, or the engine fed with padded batches as
 * a server without continuous batching runs them. All of them run the same steps over the same prefix cache, without drafts:
 * what random weights say goes round in circles, which drafts would foresee as no text of a trained model is foreseen.
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
  /** Also when it is aborted. */
  onEnd(): void;
}

export interface Server {
  add(job: Job): void;
  /** Unknown and ended ones are ignored. */
  abort(id: string): void;
  hasWork(): boolean;
  /** Tokens of a request's prompt that have been computed for it; 0 of one that is not known any more. */
  computed(id: string): number;
  /** One step of the engine, or a short wait for more requests. */
  step(): Promise<void>;
}

export class EngineServer implements Server {
  readonly #engine: Engine;
  readonly #sequences = new Map<string, Sequence>();

  readonly #pauses: boolean;

  /** `pauses`: a step waits for requests that are about to arrive. */
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
    // Messages come in between, as in the worker; one of them may end the wait.
    const pause = this.#pauses ? this.#engine.pauseMs() : 0;
    if (pause > 0) await sleep(Math.min(1, pause));
    else await this.#engine.step();
  }
}

/** One request at a time, from beginning to end: the most urgent of those that wait goes next. */
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
  /** Requests in a batch at most. */
  size: number;
  /** How long the first waits for the batch to fill. */
  timeoutMs: number;
  now: () => number;
  sleep: (ms: number) => Promise<void>;
  random: Random;
  vocabSize: number;
}

/**
 * Static batches in order of arrival: wait until one is full or its first request has waited long enough, pad every
 * prompt to the longest, run until the longest answer ends, only then take the next. Pad tokens are computed as
 * sequences of their own, which nobody else can share; who has ended goes on decoding for nothing until the last has. Kinder than most such servers: what
 * the prefix cache holds is not computed again, so only what is left of the prompts is padded.
 */
export class PaddedBatches implements Server {
  readonly #engine: Engine;
  readonly #padding: Padding;
  readonly #queue: { job: Job; since: number }[] = [];
  /** Of the batch that runs: those that have not ended. */
  readonly #live = new Map<string, Job>();
  /** Pads and those that go on for nothing. */
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
