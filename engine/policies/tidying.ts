/**
 * PURE: which runs leave the window before many tokens are computed. Every token attends to every column, those of runs
 * that its sequence does not use included, under a mask: a dead column costs c ms for each token of the work ahead. To
 * leave the window costs a copy to the store, to come back another one, in the first step of whoever needs the run again.
 */

/** ms per byte of a token's rows, measured on the window's layout in one thread: 14, 10 and 2.2 us per token of 6.5 kB. */
const DEMOTE_MS = 2.1e-6;
const PROMOTE_MS = 1.5e-6;
const RELAYOUT_MS = 0.34e-6;
/** Scattered rows cost this much more than contiguous ones. */
const SCATTERED = 3;
/** Coming back delays a step that someone waits for; leaving is done before work that takes long anyway. */
const PROMOTE_WEIGHT = 3;
/** What was used so recently is likely to be used next. */
const HOT_MS = 10_000;
/** A run that parts from what is being computed after so many common tokens is an old version of it. */
const VERSION_TOKENS = 256;

/** What lies ahead. */
export interface Work {
  /** Tokens to be computed by the sequences that run now. */
  readonly tokens: number;
  /** ms per token and column. */
  readonly msPerProduct: number;
  /** Of K/V rows per token. */
  readonly bytesPerToken: number;
}

/** A run in the window that nobody references. */
export interface DeadRun {
  readonly hasCopy: boolean;
  readonly pinned: boolean;
  readonly msSinceUse: number;
  /** Tokens that it has in common with a sequence that runs and goes on differently. */
  readonly commonTokens: number;
}

/** Whether the work ahead is more than the copies of any run are worth. */
export function isMuchWork({ tokens, msPerProduct, bytesPerToken }: Work): boolean {
  return tokens * msPerProduct > PROMOTE_WEIGHT * PROMOTE_MS * bytesPerToken;
}

export function shouldLeave(run: DeadRun, { tokens, msPerProduct, bytesPerToken }: Work): boolean {
  const isHot = run.pinned || run.msSinceUse < HOT_MS;
  if (isHot && run.commonTokens < VERSION_TOKENS) return false;
  return tokens * msPerProduct > bytesPerToken * ((run.hasCopy ? 0 : DEMOTE_MS) + PROMOTE_WEIGHT * PROMOTE_MS);
}

/**
 * Whether a window of `numSlots` should shrink to `target`, when `numMoved` rows have to move for it. Tokens ahead that
 * need a slot grow it again, `growth` slots at a time.
 */
export function shouldShrink(numSlots: number, target: number, numMoved: number, growth: number, { tokens, msPerProduct, bytesPerToken }: Work): boolean {
  const freed = numSlots - target;
  const regrown = Math.min(tokens, freed);
  const saved = msPerProduct * (tokens * freed - regrown * (tokens - regrown / 2));
  const relayouts = 1 + Math.ceil(regrown / growth);
  return freed > 0 && saved > bytesPerToken * (RELAYOUT_MS * relayouts * numSlots + SCATTERED * (DEMOTE_MS + PROMOTE_MS) * numMoved);
}
