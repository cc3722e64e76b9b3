/**
 * How large steps are: learns what they cost and gives each one its budget of tokens, by who is there and whether
 * someone
 * is typing; when a step waits for more requests. Which sequences get the tokens is the scheduler's.
 */
import { numLeased } from '../kv/lease.ts';
import type { Sequence } from '../sequence/sequence.ts';
import { numTokensOf, type Scheduled } from './schedule.ts';
import type { StepCost } from './stepCost.ts';
import {
  type StepTarget,
  type TokenBudget,
  besideWeights,
  fixedBudget,
  learntBudget,
  stepTarget,
} from './tokenBudget.ts';

/** Columns that a completion's tokens are taken to attend to where it is reckoned how long they will take. */
const BACKLOG_COLUMNS = 512;

/** Of a step's time what the paged lane may have had where all that is left of it is the prefill lane's. */
const MAX_BESIDE = 0.25;

/** What has been learnt, by lane: of steps without the prefill lane, and of the prefill lane by itself. */
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

  /** `fixedBudget`: tokens of every step, whatever is learnt. `numHeads`: query heads of the model. */
  constructor(clock: () => number, costs: StepCosts, fixedBudget: number | undefined, numHeads = 1) {
    this.cost = costs.pool;
    this.#prefillCost = costs.prefill;
    this.#clock = clock;
    this.#numHeads = numHeads;
    this.#fixedBudget = fixedBudget;
  }

  typed(): void {
    this.#typedAt = this.#clock();
  }

  /**
   * A request has come; `wasIdle`: there was nothing to do. A completion comes of typing; it waits for nobody and is no
   * burst.
   */
  arrived(sequence: Sequence, wasIdle: boolean): void {
    if (sequence.priority === 'completion') this.typed();
    else if (sequence.priority !== 'idle') this.#arrivals = arrived(this.#arrivals, this.#clock(), wasIdle);
  }

  /**
   * ms that the next step should wait for requests that are about to arrive. `missing`: tokens of a sequence that are
   * still to compute.
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

  /**
   * For a step that serves some of `sequences`, whose completions have `backlog` tokens to compute before they
   * generate.
   */
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
    // How much longer than reckoned the step took. Beside a large part of the other lane, and where a lane is unknown
    // yet, both
    // have that in common: otherwise the whole error of the large part would be taken for what the prompt costs.
    const share = ms / (pool + cost.predict(count, startIndex + count));
    cost.observe(count, startIndex + count, ms - (cost.known && pool < MAX_BESIDE * ms ? 1 : share) * pool);
    if (!this.cost.known && numTokens > 0)
      this.cost.observe(numTokens, columns + numTokens, share * (pool + this.cost.coefficients.a));
  }
}

/**
 * PURE: whether a step waits for requests that are about to arrive. One that comes just after a step has begun waits
 * for
 * all of it, and reads the weights once more; requests of a burst (the files of a folder, an answer and its title) come
 * within milliseconds. So when nothing else is running, a step waits for the next of a burst, if bursts are what has
 * been
 * seen lately and the step is long enough to be worth it. Never while there is a completion.
 */

/** Arrivals further apart than this are no burst; no step waits longer. */
export const MAX_WAIT_MS = 8;
/** Beginnings of bursts, or of single requests, that are remembered. */
const REMEMBERED = 8;
/** Bursts that must have been seen. */
const MIN_BURSTS = 2;
/** What waiting must save at least, in proportion to what it costs. */
const WORTH = 4;

/** What followed the last arrivals at an engine without work. */
export interface Arrivals {
  /** ms from the first to the second arrival; infinite when none came in time. Oldest first. */
  readonly gaps: readonly number[];
  readonly lastAt: number;
  /** Of the burst that may be under way. */
  readonly firstAt: number;
}

export const NO_ARRIVALS: Arrivals = { gaps: [], lastAt: Number.NEGATIVE_INFINITY, firstAt: Number.NEGATIVE_INFINITY };

/** `wasIdle`: the engine had nothing to do. */
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
  /** Something has been computed already of what there is to do. */
  readonly started: boolean;
  /** What the step is predicted to take. */
  readonly stepMs: number;
}

/** ms that the step should wait from `now` on; 0: begin. Ask again when something has arrived. */
export function waitMs(
  { gaps, lastAt, firstAt }: Arrivals,
  now: number,
  { completion, started, stepMs }: Pending,
): number {
  if (completion || started) return 0;
  // The burst that may be under way says nothing of itself.
  const known = gaps.slice(0, -1);
  const followed = known.filter((gap) => gap <= MAX_WAIT_MS);
  if (followed.length < MIN_BURSTS || followed.length * 2 <= known.length) return 0;
  const patience = Math.min(MAX_WAIT_MS, 1.5 * Math.max(...followed));
  // Who is spared waits half a step on average.
  if ((followed.length / known.length) * (stepMs / 2) < WORTH * patience) return 0;
  return Math.max(0, Math.min(lastAt + patience, firstAt + MAX_WAIT_MS) - now);
}
