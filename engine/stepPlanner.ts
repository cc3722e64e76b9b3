/**
 * How large steps are: learns what they cost and gives each one its budget of tokens, by who is there and whether someone
 * is typing; when a step waits for more requests. Which sequences get the tokens is the scheduler's.
 */
import { arrived, NO_ARRIVALS, waitMs } from './policies/microBatch.ts';
import type { Policies } from './policies/policies.ts';
import type { StepCost } from './policies/stepCost.ts';
import { type StepTarget, stepTarget } from './policies/stepTarget.ts';
import { besideWeights, FIXED_TOKENS, fixedBudget, learntBudget, type TokenBudget } from './policies/tokenBudget.ts';
import type { Sequence } from './sequence.ts';

/** Columns that a completion's tokens are taken to attend to where it is reckoned how long they will take. */
const BACKLOG_COLUMNS = 512;

/** Of a step's time what the window lane may have had where all that is left of it is the prefill lane's. */
const MOST_BESIDE = 0.25;

/** What has been learnt, by lane: of steps without the prefill lane, and of the prefill lane by itself. */
export interface StepCosts {
  readonly window: StepCost;
  readonly prefill: StepCost;
}

export class StepPlanner {
  readonly cost: StepCost;
  readonly #prefillCost: StepCost;
  readonly #clock: () => number;
  readonly #fixedBudget: number | undefined;
  readonly #microBatch: boolean;
  readonly #numHeads: number;
  #typedAt = Number.NEGATIVE_INFINITY;
  #arrivals = NO_ARRIVALS;

  /** `fixedBudget`: tokens of every step, whatever is learnt. `numHeads`: query heads of the model. */
  constructor(
    policies: Policies,
    clock: () => number,
    costs: StepCosts,
    fixedBudget: number | undefined,
    numHeads = 1,
  ) {
    this.cost = costs.window;
    this.#prefillCost = costs.prefill;
    this.#clock = clock;
    this.#microBatch = policies.microBatch;
    this.#numHeads = numHeads;
    this.#fixedBudget = fixedBudget ?? (policies.stepTarget ? undefined : FIXED_TOKENS);
  }

  typed(): void {
    this.#typedAt = this.#clock();
  }

  /** A request has come; `wasIdle`: there was nothing to do. A completion comes of typing; it waits for nobody and is no burst. */
  arrived(sequence: Sequence, wasIdle: boolean): void {
    if (sequence.priority === 'completion') this.typed();
    else if (sequence.priority !== 'idle') this.#arrivals = arrived(this.#arrivals, this.#clock(), wasIdle);
  }

  /** ms that the next step should wait for requests that are about to arrive. `missing`: tokens of a sequence that are still to compute. */
  pauseMs(sequences: Iterable<Sequence>, missing: (sequence: Sequence) => number): number {
    if (!this.#microBatch || !this.cost.known) return 0;
    const requests = [...sequences].filter((s) => s.priority !== 'idle');
    if (requests.length === 0) return 0;
    const numTokens = requests.reduce((sum, sequence) => sum + missing(sequence), 0);
    return waitMs(this.#arrivals, this.#clock(), {
      completion: requests.some((s) => s.priority === 'completion'),
      started: requests.some((s) => s.status === 'running'),
      stepMs: Math.min(this.#target(requests, 0).ms, this.cost.predict(numTokens, BACKLOG_COLUMNS)),
    });
  }

  /** For a step that serves some of `sequences`, whose completions have `backlog` tokens to compute before they generate. */
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

  /** A step took `ms`, all else left out: `numTokens` over a window of `columns`, and a prompt's next tokens in the prefill lane. */
  learn(
    numTokens: number,
    columns: number,
    prefill: { /** In rows. */ startIndex: number; count: number } | null,
    ms: number,
  ): void {
    if (!prefill) return this.cost.observe(numTokens, columns + numTokens, ms);
    const cost = this.#prefillCost;
    const { count, startIndex } = prefill;
    const window = besideWeights(this.cost, numTokens, columns + numTokens);
    // How much longer than reckoned the step took. Beside a large part of the other lane, and where a lane is unknown yet, both
    // have that in common: otherwise the whole error of the large part would be taken for what the prompt costs.
    const share = ms / (window + cost.predict(count, startIndex + count));
    cost.observe(count, startIndex + count, ms - (cost.known && window < MOST_BESIDE * ms ? 1 : share) * window);
    if (!this.cost.known && numTokens > 0)
      this.cost.observe(numTokens, columns + numTokens, share * (window + this.cost.coefficients.a));
  }
}
