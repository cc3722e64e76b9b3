/**
 * How large steps are: learns what they cost and gives each one its budget of tokens, by who is there and whether someone
 * is typing. Which sequences get the tokens is the scheduler's.
 */
import type { Policies } from './policies/policies.ts';
import { StepCost } from './policies/stepCost.ts';
import { stepTarget } from './policies/stepTarget.ts';
import { type Columns, FIXED_TOKENS, fixedBudget, learntBudget, type TokenBudget } from './policies/tokenBudget.ts';
import type { Sequence } from './sequence.ts';

export class StepPlanner {
  readonly cost = new StepCost();
  readonly #clock: () => number;
  readonly #fixedBudget: number | undefined;
  #typedAt = Number.NEGATIVE_INFINITY;

  /** `fixedBudget`: tokens of every step, whatever is learnt. */
  constructor(policies: Policies, clock: () => number, fixedBudget: number | undefined) {
    this.#clock = clock;
    this.#fixedBudget = fixedBudget ?? (policies.stepTarget ? undefined : FIXED_TOKENS);
  }

  typed(): void {
    this.#typedAt = this.#clock();
  }

  /** For a step with `numDecodes` that serves some of `sequences`. */
  budget(sequences: Iterable<Sequence>, columns: Columns, numDecodes: number): TokenBudget {
    if (this.#fixedBudget !== undefined) return fixedBudget(this.#fixedBudget, numDecodes);
    const all = [...sequences];
    const target = stepTarget({
      completion: all.some((s) => s.priority === 'completion'),
      reading: all.some((s) => s.priority === 'chat' && s.numGenerated > 0),
      idleOnly: all.every((s) => s.priority === 'idle'),
      msSinceTyping: this.#clock() - this.#typedAt,
    });
    return learntBudget(this.cost, target, columns, numDecodes);
  }

  /** A step of `numTokens` over a window of `columns` took `ms`, all else left out. */
  learn(numTokens: number, columns: number, ms: number): void {
    this.cost.observe(numTokens, columns + numTokens, ms);
  }
}
