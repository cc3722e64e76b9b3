/** How many tokens a step may have: as many as fit into its time target at the learnt cost. Pure functions. */
import { type Part, sharesStep, type StepCost } from './stepCost.ts';

/**
 * What a prompt may take of a step: the step's time (`own`); what is left beside a completion (`beside`); a long part,
 * because it has waited (`late`).
 */
export type PrefillShare = 'own' | 'beside' | 'late';

/** `columns`: columns of the pool that each token of the step pays for (see attendedPages). */
export interface TokenBudget {
  /** Most tokens of a step, including its `numDecodes` decodes. */
  tokens(columns: number, numDecodes: number): number;
  /** Most tokens of a step that serves completions, which have `ownTokens`, and other sequences beside them. */
  beside(columns: number, ownTokens: number): number;
  /** Tokens that a prompt gets in any case when it has waited too long. */
  readonly leastTokens: number;
  /** Most tokens of a prompt in the prefill lane from `startIndex` on, with `poolTokens` in the paged lane. */
  prefill(startIndex: number, columns: number, poolTokens: number, share: PrefillShare): number;
  /** Time between two long parts of prompts that other sequences have to wait for. */
  readonly betweenPartsMs: number;
  /** ms that a token costs for the columns that it attends to; 0 with a fixed budget. */
  columnMs(columns: number): number;
  /** Whether one step with both parts, over `columns`, costs no more than two steps. */
  shares(one: Part, other: Part, columns: number): boolean;
}

const MAX_TOKENS = 512;
/** Most attention scores of a step, over all heads. Attention writes a few float32 tensors of this size (64 MB). */
const MAX_SCORES = 2 ** 24;
/** Most tokens in the prefill lane. With more, intermediates no longer fit into the processor's cache. */
const MAX_PREFILL = 256;
/** Bounds of the fewest tokens worth a step of the prefill lane: as many as cost as much as the step's fixed part. */
const MIN_PREFILL = 16;
const MAX_LEAST = 48;
/** A prompt gets at least this time of a step, because in the prefill lane few tokens cost nearly as much as many. */
const OWN_MS = 150;
/** The time between two long parts, as a multiple of the time of one. */
const BETWEEN_PARTS = 1.5;
/** Tokens of the first step, before anything has been measured. */
const FIRST_TOKENS = 32;

/** The same budget for every step. Prompts get a quarter of it, however many sequences decode. */
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

/** A budget by learnt costs. `prefillCost`: of the prefill lane alone, whose columns are the prompt's own. */
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
    prefill: (startIndex, columns, poolTokens, share) => {
      if (!prefillCost.known) return FIRST_TOKENS;
      const pool = besideWeights(cost, poolTokens, columns + poolTokens);
      const own = Math.max(OWN_MS, target.ms - pool);
      const ms = {
        own,
        beside: besideMs(target, cost.predict(poolTokens, columns + poolTokens)) - pool,
        late: Math.max(own, target.lateMs),
      }[share];
      const tokens = Math.min(MAX_PREFILL, prefillCost.tokensWithin(ms, startIndex));
      // Few tokens cost nearly as much as many here. So it gets none until waiting makes the prompt urgent.
      const least = Math.min(MAX_LEAST, Math.max(MIN_PREFILL, prefillCost.evenTokens(startIndex)));
      return tokens >= least ? tokens : share !== 'beside' || poolTokens === 0 ? least : 0;
    },
    columnMs: (columns) => (cost.known ? cost.coefficients.c * columns : 0),
    shares: (one, other, columns) => !cost.known || sharesStep(cost.coefficients, one, other, columns),
  };
}

/** ms that `tokens` of the paged lane add to a step that reads the weights in any case. */
export function besideWeights(cost: StepCost, tokens: number, columns: number): number {
  return tokens === 0 ? 0 : Math.max(0, cost.predict(tokens, columns) - cost.coefficients.a);
}

/*
 * Time targets. A step cannot be interrupted, so its length delays what happens next: a keystroke, an abort, the next
 * token of an answer that the user reads. Longer steps are more efficient.
 */

/**
 * Target while a completion waits or runs. If several wait, the target is a share of the time for those behind the
 * first, between URGENT_MS and ATTENTIVE_MS: a new one waits for them in any case, and all of them end sooner in fewer,
 * longer steps.
 */
const URGENT_MS = 50;
const BACKLOG_SHARE = 0.25;
/** Target shortly after typing, when a completion may come at any moment; while an answer is read; for idle work. */
const ATTENTIVE_MS = 150;
const TYPING_MS = 5000;
/** Target when the user has typed lately and may type again. */
const NEAR_MS = 300;
const LATELY_MS = 60_000;
const RELAXED_MS = 800;
/** Target of a long part: few tokens of a prompt cost nearly as much as many, and others wait for either. */
const LATE_MS = 300;
/**
 * A target is at least this many times the time for reading all weights. A step reads them once, however few tokens it
 * has. In shorter steps, a prompt would take several times as long.
 */
const MIN_READINGS = 3;
/** Factor by which other sequences may lengthen a completion's steps. */
const BESIDE = 1.4;

export interface Attention {
  /** A completion waits or runs. */
  readonly completion: boolean;
  /** Time that completions need before they generate, without the first one. */
  readonly backlogMs: number;
  /** A chat answer is being generated, and the user reads it. */
  readonly reading: boolean;
  /** There is only idle work. */
  readonly idleOnly: boolean;
  /** Time since the last keystroke; infinite if there was none. */
  readonly msSinceTyping: number;
  /** Time for reading all weights; 0 before it is known. */
  readonly weightsMs: number;
}

export interface StepTarget {
  readonly ms: number;
  /** Target of a step with a long part of a prompt, which comes seldom. */
  readonly lateMs: number;
  /** Prompt tokens that a step has in any case (beside a completion: now and then), so that no prompt stops. */
  readonly leastTokens: number;
}

export function stepTarget(attention: Attention): StepTarget {
  const { ms: usual, leastTokens } = wanted(attention);
  const ms = Math.max(usual, MIN_READINGS * attention.weightsMs);
  // The next completion would wait for a long part.
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

/** ms that a completion's step may take with other sequences in it. `ownMs`: ms without them. */
export function besideMs(target: StepTarget, ownMs: number): number {
  return Math.min(target.ms, BESIDE * ownMs);
}
