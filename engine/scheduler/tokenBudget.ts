/** PURE: how many tokens a step may have: as many as fit into the time target by what steps have cost so far. */
import { type Part, sharesStep } from './grouping.ts';
import type { StepCost } from './stepCost.ts';

/**
 * How a prompt stands to a step: it has the step's time; it rides along with a completion; it has waited and goes on by
 * a long part now.
 */
export type PromptStanding = 'own' | 'beside' | 'late';

/** `columns`: of the pool, those that each token of the step pays for (see attendedPages). */
export interface TokenBudget {
  /** Most tokens of a step, decodes included, of which it has `numDecodes`. */
  tokens(columns: number, numDecodes: number): number;
  /** The same where others ride along in a step that serves a completion, which has `ownTokens` itself. */
  beside(columns: number, ownTokens: number): number;
  /** What a prompt gets in any case when it has waited too long. */
  readonly leastTokens: number;
  /**
   * Most tokens of a prompt in the prefill lane, whose first stands at `startIndex`, in a step with `poolTokens` in the
   * other lane.
   */
  prefill(startIndex: number, columns: number, poolTokens: number, standing: PromptStanding): number;
  /** Between two parts of prompts that others have to wait for. */
  readonly betweenPartsMs: number;
  /** What a token costs for the columns that it attends to, ms; 0 where nothing is learnt. */
  columnMs(columns: number): number;
  /** Whether two parts had better be one step over `columns` than two. */
  shares(one: Part, other: Part, columns: number): boolean;
}

const MAX_TOKENS = 512;
/**
 * Most scores of a step, over all query heads: attention writes a few intermediates of so many float32 values (64 MB
 * each).
 */
const MAX_SCORES = 2 ** 24;
/** Of the prefill lane: more gain nothing, their intermediates are no longer in the processor's cache. */
const MAX_PREFILL = 256;
/**
 * Fewest tokens that are worth a step of the prefill lane: as many as cost what the step does by itself, within these
 * bounds.
 */
const MIN_PREFILL = 16;
const MAX_LEAST = 48;
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
    const most = Math.min(MAX_TOKENS, Math.floor(MAX_SCORES / (numHeads * Math.max(1, columns))));
    return cost.known ? Math.min(most, cost.tokensWithin(ms, columns)) : FIRST_TOKENS;
  };
  return {
    tokens: (columns, numDecodes) => Math.max(within(target.ms, columns), numDecodes + target.leastTokens),
    beside: (columns, ownTokens) => within(besideMs(target, cost.predict(ownTokens, columns + ownTokens)), columns),
    leastTokens: target.leastTokens,
    betweenPartsMs: BETWEEN_PARTS * Math.max(OWN_MS, target.lateMs),
    prefill: (startIndex, columns, poolTokens, standing) => {
      if (!prefillCost.known) return FIRST_TOKENS;
      const pool = besideWeights(cost, poolTokens, columns + poolTokens);
      const own = Math.max(OWN_MS, target.ms - pool);
      const ms = {
        own,
        beside: besideMs(target, cost.predict(poolTokens, columns + poolTokens)) - pool,
        late: Math.max(own, target.lateMs),
      }[standing];
      const tokens = Math.min(MAX_PREFILL, prefillCost.tokensWithin(ms, startIndex));
      // A few tokens cost nearly as much as many here: rather none, until waiting makes the prompt urgent.
      const least = Math.min(MAX_LEAST, Math.max(MIN_PREFILL, prefillCost.evenTokens(startIndex)));
      return tokens >= least ? tokens : standing !== 'beside' || poolTokens === 0 ? least : 0;
    },
    columnMs: (columns) => (cost.known ? cost.coefficients.c * columns : 0),
    shares: (one, other, columns) => !cost.known || sharesStep(cost.coefficients, one, other, columns),
  };
}

/** What `tokens` of the paged lane add to a step that reads the weights anyway, ms. */
export function besideWeights(cost: StepCost, tokens: number, columns: number): number {
  return tokens === 0 ? 0 : Math.max(0, cost.predict(tokens, columns) - cost.coefficients.a);
}

/**
 * PURE: how long a step may take. A step cannot be interrupted, so its length is the delay of whatever happens next: a
 * keystroke, an abort, the next token of an answer that is being read. Longer steps are more efficient.
 */

/**
 * While a completion waits or runs. Where several wait, a part of what those behind the first have to compute, within
 * bounds:
 * one that comes now waits for them in any case, and all of them end sooner in fewer, longer steps.
 */
const URGENT_MS = 50;
const BACKLOG_SHARE = 0.25;
/**
 * Shortly after typing, when the next completion may come at any moment; while an answer is being read; for idle work.
 */
const ATTENTIVE_MS = 150;
const TYPING_MS = 5000;
/** When someone has typed lately and may well do so again. */
const NEAR_MS = 300;
const LATELY_MS = 60_000;
const RELAXED_MS = 800;
/**
 * A few tokens of a prompt cost nearly as much as many: where others have to wait for them, they may as well be many,
 * up to this.
 */
const LATE_MS = 300;
/**
 * A step reads all weights once, however few tokens it has: with less time than this many readings most of it would be
 * reading, and a prompt in small pieces would take several times as long as in large ones.
 */
const MIN_READINGS = 3;
/** By how much others may lengthen the steps of a completion. */
const BESIDE = 1.4;

export interface Attention {
  /** A completion waits or runs. */
  readonly completion: boolean;
  /** What completions have to compute before they generate, the first one apart. */
  readonly backlogMs: number;
  /** Someone reads along: a chat answer is being generated. */
  readonly reading: boolean;
  /** All there is to do is idle work, which nobody waits for. */
  readonly idleOnly: boolean;
  /** Since the last keystroke; infinite when there was none. */
  readonly msSinceTyping: number;
  /** What reading all weights takes; 0 before it is known. */
  readonly weightsMs: number;
}

export interface StepTarget {
  readonly ms: number;
  /** Of a step in which a prompt goes on by a part that others have to wait for, which comes seldom. */
  readonly lateMs: number;
  /** Prompt tokens that a step has in any case, or now and then beside a completion, so that everything goes on. */
  readonly leastTokens: number;
}

export function stepTarget(attention: Attention): StepTarget {
  const { ms: usual, leastTokens } = wanted(attention);
  const ms = Math.max(usual, MIN_READINGS * attention.weightsMs);
  // The next completion would wait for it.
  const isTyping = attention.completion || attention.msSinceTyping < TYPING_MS;
  return { ms, lateMs: isTyping ? ms : Math.min(LATE_MS, 2 * ms), leastTokens };
}

function wanted({
  completion,
  backlogMs,
  reading,
  idleOnly,
  msSinceTyping,
}: Attention): Pick<StepTarget, 'ms' | 'leastTokens'> {
  if (completion) return { ms: Math.min(ATTENTIVE_MS, Math.max(URGENT_MS, BACKLOG_SHARE * backlogMs)), leastTokens: 4 };
  if (reading || idleOnly || msSinceTyping < TYPING_MS) return { ms: ATTENTIVE_MS, leastTokens: 4 };
  return { ms: msSinceTyping < LATELY_MS ? NEAR_MS : RELAXED_MS, leastTokens: 16 };
}

/** How long a step of a completion, which takes `ownMs` without them, may become for the sake of others. */
export function besideMs(target: StepTarget, ownMs: number): number {
  return Math.min(target.ms, BESIDE * ownMs);
}
