/** PURE: how many tokens a step may have: as many as fit into the time target by what steps have cost so far. */
import { type Joining, shouldJoin } from './grouping.ts';
import type { StepCost } from './stepCost.ts';
import { besideMs, type StepTarget } from './stepTarget.ts';

export interface TokenBudget {
  /** Most tokens of the step, decodes included. */
  readonly tokens: number;
  /** The same where others ride along in a step that serves a completion, which has `ownTokens` itself. */
  beside(ownTokens: number): number;
  /** What a prompt gets in any case when it has waited too long. */
  readonly leastTokens: number;
  /** Whether running a sequence together with others is quicker than one after another. */
  joins(joining: Joining): boolean;
  /** Most tokens of a prompt in the prefill lane, whose first stands at `startIndex`, in a step with `windowTokens` in the other lane. */
  prefill(startIndex: number, windowTokens: number, isUrgent: boolean): number;
}

/** Where nothing is learnt: what servers take. */
export const FIXED_TOKENS = 512;
const MOST_TOKENS = 512;
/** Most products of tokens and columns: attention writes intermediates of that size for each query head. */
const MOST_PRODUCTS = 2 ** 21;
/** Fewest tokens that are worth a step of the prefill lane. */
const LEAST_PREFILL = 16;
/** Of the first step, before anything has been measured. */
const FIRST_TOKENS = 32;

/** The same for every step; prompts get a quarter of it however many sequences decode. */
export function fixedBudget(tokens: number, numDecodes: number): TokenBudget {
  const most = Math.max(tokens, numDecodes + Math.ceil(tokens / 4));
  return { tokens: most, beside: () => most, leastTokens: 1, joins: () => true, prefill: () => tokens };
}

/** `total`: columns of the window that a step attends to. `numDecodes`: tokens that are no prompt's. `prefillCost`: of steps with the prefill lane alone; its columns are the prompt's own. */
export function learntBudget(cost: StepCost, prefillCost: StepCost, target: StepTarget, total: number, numDecodes: number): TokenBudget {
  const most = Math.min(MOST_TOKENS, Math.floor(MOST_PRODUCTS / Math.max(1, total)));
  const within = (ms: number): number => (cost.known ? Math.min(most, cost.tokensWithin(ms, total)) : FIRST_TOKENS);
  const tokens = Math.max(within(target.ms), numDecodes + target.leastTokens);
  return {
    tokens,
    beside: (ownTokens) => Math.min(tokens, within(besideMs(target, cost.predict(ownTokens, total + ownTokens)))),
    leastTokens: target.leastTokens,
    joins: (joining) => !cost.known || shouldJoin(cost.coefficients, joining),
    prefill: (startIndex, windowTokens, isUrgent) => {
      if (!prefillCost.known) return FIRST_TOKENS;
      const ms = isUrgent ? target.ms : besideMs(target, cost.predict(windowTokens, total + windowTokens));
      const tokens = Math.min(MOST_TOKENS, prefillCost.tokensWithin(ms - besideWeights(cost, windowTokens, total + windowTokens), startIndex));
      // A few tokens cost nearly as much as many here: rather none, until waiting makes the prompt urgent.
      return tokens >= LEAST_PREFILL ? tokens : isUrgent || windowTokens === 0 ? LEAST_PREFILL : 0;
    },
  };
}

/** What `tokens` of the window lane add to a step that reads the weights anyway, ms. */
export function besideWeights(cost: StepCost, tokens: number, columns: number): number {
  return tokens === 0 ? 0 : Math.max(0, cost.predict(tokens, columns) - cost.coefficients.a);
}
