/** PURE: how many tokens a step may have: as many as fit into the time target by what steps have cost so far. */
import { type Part, sharesStep } from './grouping.ts';
import type { StepCost } from './stepCost.ts';
import { besideMs, type StepTarget } from './stepTarget.ts';

/** How a prompt stands to a step: it has the step's time; it rides along with a completion; it has waited and goes on by a long part now. */
export type PromptStanding = 'own' | 'beside' | 'late';

/** `columns`: of the window, those that each token of the step pays for (see attendedPages). */
export interface TokenBudget {
  /** Most tokens of a step, decodes included, of which it has `numDecodes`. */
  tokens(columns: number, numDecodes: number): number;
  /** The same where others ride along in a step that serves a completion, which has `ownTokens` itself. */
  beside(columns: number, ownTokens: number): number;
  /** What a prompt gets in any case when it has waited too long. */
  readonly leastTokens: number;
  /** Most tokens of a prompt in the prefill lane, whose first stands at `startIndex`, in a step with `windowTokens` in the other lane. */
  prefill(startIndex: number, columns: number, windowTokens: number, standing: PromptStanding): number;
  /** Between two parts of prompts that others have to wait for. */
  readonly betweenPartsMs: number;
  /** What a token costs for the columns that it attends to, ms; 0 where nothing is learnt. */
  columnMs(columns: number): number;
  /** Whether two parts had better be one step over `columns` than two. */
  shares(one: Part, other: Part, columns: number): boolean;
}

/** Where nothing is learnt: what servers take. */
export const FIXED_TOKENS = 512;
const MOST_TOKENS = 512;
/** Most scores of a step, over all query heads: attention writes a few intermediates of so many float32 values (64 MB each). */
const MOST_SCORES = 2 ** 24;
/** Of the prefill lane: more gain nothing, their intermediates are no longer in the processor's cache. */
const MOST_PREFILL = 256;
/** Fewest tokens that are worth a step of the prefill lane: as many as cost what the step does by itself, within these bounds. */
const LEAST_PREFILL = 16;
const MOST_LEAST = 48;
/** A few tokens cost nearly as much as many there. So what a prompt has of a step is at least so long. */
const OWN_MS = 150;
/** A part that others have to wait for, and as half as long again for them. */
const BETWEEN_PARTS = 1.5;
/** Of the first step, before anything has been measured. */
const FIRST_TOKENS = 32;

/** The same for every step; prompts get a quarter of it however many sequences decode. */
export function fixedBudget(tokens: number): TokenBudget {
  const most = (numDecodes: number): number => Math.max(tokens, numDecodes + Math.ceil(tokens / 4));
  return {
    tokens: (_, numDecodes) => most(numDecodes),
    beside: () => tokens,
    leastTokens: 1,
    prefill: () => tokens,
    betweenPartsMs: BETWEEN_PARTS * OWN_MS,
    columnMs: () => 0,
    shares: () => true,
  };
}

/** `prefillCost`: of steps with the prefill lane alone; its columns are the prompt's own. `numHeads`: query heads. */
export function learntBudget(cost: StepCost, prefillCost: StepCost, target: StepTarget, numHeads = 1): TokenBudget {
  const within = (ms: number, columns: number): number => {
    const most = Math.min(MOST_TOKENS, Math.floor(MOST_SCORES / (numHeads * Math.max(1, columns))));
    return cost.known ? Math.min(most, cost.tokensWithin(ms, columns)) : FIRST_TOKENS;
  };
  return {
    tokens: (columns, numDecodes) => Math.max(within(target.ms, columns), numDecodes + target.leastTokens),
    beside: (columns, ownTokens) => within(besideMs(target, cost.predict(ownTokens, columns + ownTokens)), columns),
    leastTokens: target.leastTokens,
    betweenPartsMs: BETWEEN_PARTS * Math.max(OWN_MS, target.lateMs),
    prefill: (startIndex, columns, windowTokens, standing) => {
      if (!prefillCost.known) return FIRST_TOKENS;
      const window = besideWeights(cost, windowTokens, columns + windowTokens);
      const own = Math.max(OWN_MS, target.ms - window);
      const ms = {
        own,
        beside: besideMs(target, cost.predict(windowTokens, columns + windowTokens)) - window,
        late: Math.max(own, target.lateMs),
      }[standing];
      const tokens = Math.min(MOST_PREFILL, prefillCost.tokensWithin(ms, startIndex));
      // A few tokens cost nearly as much as many here: rather none, until waiting makes the prompt urgent.
      const least = Math.min(MOST_LEAST, Math.max(LEAST_PREFILL, prefillCost.evenTokens(startIndex)));
      return tokens >= least ? tokens : standing !== 'beside' || windowTokens === 0 ? least : 0;
    },
    columnMs: (columns) => (cost.known ? cost.coefficients.c * columns : 0),
    shares: (one, other, columns) => !cost.known || sharesStep(cost.coefficients, one, other, columns),
  };
}

/** What `tokens` of the window lane add to a step that reads the weights anyway, ms. */
export function besideWeights(cost: StepCost, tokens: number, columns: number): number {
  return tokens === 0 ? 0 : Math.max(0, cost.predict(tokens, columns) - cost.coefficients.a);
}
