/**
 * Plans the size of steps: learns what they cost, gives each a token budget, and says when a step waits for requests.
 * Does not decide which sequences get the tokens: see Scheduler.
 */
import { numLeased } from '../kv/lease.ts';
import type { Sequence } from '../sequence/sequence.ts';
import { numTokensOf, type Scheduled } from './stepBatch.ts';
import type { StepCost } from './stepCost.ts';
import {
  type StepTarget,
  type TokenBudget,
  besideWeights,
  fixedBudget,
  learntBudget,
  stepTarget,
} from './tokenBudget.ts';

/** Columns that the tokens of waiting sequences are assumed to attend to, when their time is predicted. */
const BACKLOG_COLUMNS = 512;

/** Largest share of a step's time in the paged lane at which the rest is the prefill lane's time. */
const MAX_BESIDE = 0.25;

/** The learnt costs of both lanes: of steps without the prefill lane, and of the prefill lane alone. */
export interface StepCosts {
  readonly pool: StepCost;
  readonly prefill: StepCost;
}

export class StepPlanner {
  readonly cost: StepCost;
  readonly #prefillCost: StepCost;
  readonly #clock: () => number;
  readonly #fixedBudget: number | undefined;
  readonly #numHeads: number;
  #typedAt = Number.NEGATIVE_INFINITY;
  #arrivals = NO_ARRIVALS;

  /** `fixedBudget`: tokens of every step; learnt when undefined. `numHeads`: query heads of the model. */
  constructor(clock: () => number, costs: StepCosts, fixedBudget: number | undefined, numHeads = 1) {
    this.cost = costs.pool;
    this.#prefillCost = costs.prefill;
    this.#clock = clock;
    this.#numHeads = numHeads;
    this.#fixedBudget = fixedBudget;
  }

  /** The user is typing now. */
  typed(): void {
    this.#typedAt = this.#clock();
  }

  /**
   * A request has arrived. `wasIdle`: there was nothing to do. A completion means that the user types. It is not put
   * off for a burst and does not belong to one.
   */
  arrived(sequence: Sequence, wasIdle: boolean): void {
    if (sequence.priority === 'completion') this.typed();
    else if (sequence.priority !== 'idle') this.#arrivals = arrived(this.#arrivals, this.#clock(), wasIdle);
  }

  /**
   * ms that the next step should wait for requests that are about to arrive. `missing`: tokens that a sequence still
   * has to compute.
   */
  pauseMs(sequences: Iterable<Sequence>, missing: (sequence: Sequence) => number): number {
    if (!this.cost.known) return 0;
    const requests = [...sequences].filter((s) => s.priority !== 'idle');
    if (requests.length === 0) return 0;
    const numTokens = requests.reduce((sum, sequence) => sum + missing(sequence), 0);
    return waitMs(this.#arrivals, this.#clock(), {
      completion: requests.some((s) => s.priority === 'completion'),
      started: requests.some((s) => s.status === 'running'),
      stepMs: Math.min(this.#target(requests, 0).ms, this.cost.predict(numTokens, BACKLOG_COLUMNS)),
    });
  }

  /** The budget of a step for these sequences. `backlog`: tokens to compute before all completions generate. */
  budget(sequences: Iterable<Sequence>, backlog: number): TokenBudget {
    if (this.#fixedBudget !== undefined) return fixedBudget(this.#fixedBudget);
    return learntBudget(this.cost, this.#prefillCost, this.#target([...sequences], backlog), this.#numHeads);
  }

  #target(sequences: readonly Sequence[], backlog: number): StepTarget {
    return stepTarget({
      completion: sequences.some((s) => s.priority === 'completion'),
      reading: sequences.some((s) => s.priority === 'chat' && s.numGenerated > 0),
      idleOnly: sequences.every((s) => s.priority === 'idle'),
      msSinceTyping: this.#clock() - this.#typedAt,
      backlogMs: this.cost.known ? this.cost.predict(backlog, BACKLOG_COLUMNS) : 0,
      weightsMs: this.cost.known ? this.cost.coefficients.a : 0,
    });
  }

  /** A step with this batch over `columns` of the pool took `ms`, copies of rows not included. */
  learnFrom(batch: readonly Scheduled[], columns: number, ms: number): void {
    const prefill = batch.find(({ lane }) => lane === 'prefill') ?? null;
    this.learn(
      numTokensOf(batch) - (prefill?.count ?? 0),
      columns,
      prefill && { count: prefill.count, startIndex: numLeased(prefill.lease) },
      ms,
    );
  }

  /** A step of `numTokens` over `columns` of the pool, and a prompt's next tokens in the prefill lane, took `ms`. */
  learn(
    numTokens: number,
    columns: number,
    prefill: { /** In rows. */ startIndex: number; count: number } | null,
    ms: number,
  ): void {
    if (!prefill) return this.cost.observe(numTokens, columns + numTokens, ms);
    const cost = this.#prefillCost;
    const { count, startIndex } = prefill;
    const pool = besideWeights(this.cost, numTokens, columns + numTokens);
    // Measured over predicted time. Beside a large part of the paged lane, or while a lane is unknown, both lanes share
    // this factor. Otherwise the whole error of the large part would be taken for the cost of the prompt.
    const share = ms / (pool + cost.predict(count, startIndex + count));
    cost.observe(count, startIndex + count, ms - (cost.known && pool < MAX_BESIDE * ms ? 1 : share) * pool);
    if (!this.cost.known && numTokens > 0)
      this.cost.observe(numTokens, columns + numTokens, share * (pool + this.cost.coefficients.a));
  }
}

/**
 * Arrivals further apart than this are not a burst; no step waits longer. Requests of a burst (the files of a folder,
 * an answer and its title) arrive within milliseconds. One that arrives just after a step has begun waits for all of
 * it, and its own step reads the weights once more. So, when nothing else runs, a step waits for the next request of a
 * burst, if bursts have been seen lately and the step is long enough. It never waits while there is a completion.
 */
export const MAX_WAIT_MS = 8;
/** Number of bursts or single requests that are remembered. */
const REMEMBERED = 8;
/** Bursts that must have been seen before a step waits. */
const MIN_BURSTS = 2;
/** Smallest ratio of the time that waiting saves to the time that it costs. */
const WORTH = 4;

/** The last arrivals at an idle engine, and how soon the next request followed each. */
export interface Arrivals {
  /** ms from the first to the second arrival; infinite if none came in time. Oldest first. */
  readonly gaps: readonly number[];
  readonly lastAt: number;
  /** First arrival of the burst that may be under way. */
  readonly firstAt: number;
}

export const NO_ARRIVALS: Arrivals = { gaps: [], lastAt: Number.NEGATIVE_INFINITY, firstAt: Number.NEGATIVE_INFINITY };

/** Adds an arrival. `wasIdle`: the engine had nothing to do. */
export function arrived(arrivals: Arrivals, now: number, wasIdle: boolean): Arrivals {
  const { gaps, firstAt } = arrivals;
  if (now - firstAt <= MAX_WAIT_MS) {
    const isSecond = gaps.at(-1) === Number.POSITIVE_INFINITY;
    return { gaps: isSecond ? [...gaps.slice(0, -1), now - firstAt] : gaps, lastAt: now, firstAt };
  }
  if (!wasIdle) return { ...arrivals, lastAt: now };
  return { gaps: [...gaps, Number.POSITIVE_INFINITY].slice(-REMEMBERED), lastAt: now, firstAt: now };
}

export interface Pending {
  /** A completion waits or runs. */
  readonly completion: boolean;
  /** Some request is running already. */
  readonly started: boolean;
  /** Predicted duration of the step. */
  readonly stepMs: number;
}

/** ms that the step should wait from `now` on; 0: begin. Ask again after an arrival. */
export function waitMs(
  { gaps, lastAt, firstAt }: Arrivals,
  now: number,
  { completion, started, stepMs }: Pending,
): number {
  if (completion || started) return 0;
  // The burst that may be under way is not complete.
  const known = gaps.slice(0, -1);
  const followed = known.filter((gap) => gap <= MAX_WAIT_MS);
  if (followed.length < MIN_BURSTS || followed.length * 2 <= known.length) return 0;
  const patience = Math.min(MAX_WAIT_MS, 1.5 * Math.max(...followed));
  // A request that misses the step waits half a step on average.
  if ((followed.length / known.length) * (stepMs / 2) < WORTH * patience) return 0;
  return Math.max(0, Math.min(lastAt + patience, firstAt + MAX_WAIT_MS) - now);
}
