/**
 * PURE: how many tokens a step may have so that it meets a time target. Fits step time = a + b * tokens to the recent
 * steps, older ones fading: decodes alone have a large `a` (all weights are read once), chunks show `b`.
 */

/** While a completion waits or runs, and otherwise. */
export const URGENT_STEP_MS = 50;
export const RELAXED_STEP_MS = 150;
const LEAST_TOKENS = 16;
const MOST_TOKENS = 512;
/** Before anything has been measured. */
const FIRST_TOKENS = 32;
/** Where nothing is learnt: what servers take. */
export const FIXED_TOKENS = 512;
const FADING = 0.9;

/** Fading sums over the observed steps: weight, tokens, ms, tokens^2, tokens * ms; and the last slope that could be told. */
export interface StepCost {
  readonly weight: number;
  readonly tokens: number;
  readonly ms: number;
  readonly tokens2: number;
  readonly tokensMs: number;
  readonly msPerToken: number;
}

export const NO_STEPS: StepCost = { weight: 0, tokens: 0, ms: 0, tokens2: 0, tokensMs: 0, msPerToken: 0 };

export function observeStep(cost: StepCost, numTokens: number, ms: number): StepCost {
  const weight = cost.weight * FADING + 1;
  const tokens = cost.tokens * FADING + numTokens;
  const sumMs = cost.ms * FADING + ms;
  const tokens2 = cost.tokens2 * FADING + numTokens * numTokens;
  const tokensMs = cost.tokensMs * FADING + numTokens * ms;
  // Steps of nearly one size say nothing of the slope: the last one stands, or all time counts as per token.
  const variance = tokens2 / weight - (tokens / weight) ** 2;
  const covariance = tokensMs / weight - (tokens / weight) * (sumMs / weight);
  const known = variance >= 16 && covariance > 0;
  const msPerToken = known ? covariance / variance : cost.msPerToken;
  return { weight, tokens, ms: sumMs, tokens2, tokensMs, msPerToken };
}

/** Tokens for a step of `targetMs`, 16 to 512. */
export function tokenBudget(cost: StepCost, targetMs: number): number {
  if (cost.weight === 0) return FIRST_TOKENS;
  const meanTokens = cost.tokens / cost.weight;
  const meanMs = cost.ms / cost.weight;
  const msPerToken = cost.msPerToken > 0 ? Math.min(cost.msPerToken, meanMs / meanTokens) : meanMs / meanTokens;
  const fixedMs = meanMs - msPerToken * meanTokens;
  const tokens = Math.floor((targetMs - fixedMs) / Math.max(msPerToken, 1e-6));
  return Math.max(LEAST_TOKENS, Math.min(MOST_TOKENS, tokens));
}
