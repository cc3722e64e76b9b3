/**
 * Cache ids: token ids as the cache knows them. Pure. Rows from the two lanes of the step graph differ in their last
 * bits, so the id says which lane computed them. The native kernels have one lane; there the id says that a token is
 * part of a file. Rows that were taken over or computed from parts of a context have ids
 * of their own.
 */

/** Larger than any vocabulary. */
const PREFILL = 2 ** 24;
const SHIFTED = 2 ** 25;
const SKETCHED = 2 ** 26;

/** Tokens of a sequence by index: `from` inclusive, `to` exclusive. */
export type TokenRange = readonly [from: number, to: number];

/** Cache ids of tokens. Those in the ranges, which are in order, are computed in the prefill lane. */
export function laneIds(tokenIds: readonly number[], prefill: readonly TokenRange[]): number[] {
  const ids = [...tokenIds];
  for (const [from, to] of prefill)
    for (let i = from; i < Math.min(to, ids.length); i++) ids[i] = tokenIds[i]! + PREFILL;
  return ids;
}

/** The parts of the ranges before `end`. */
export function clipped(ranges: readonly TokenRange[], end: number): TokenRange[] {
  return ranges.filter(([from, to]) => from < Math.min(to, end)).map(([from, to]) => [from, Math.min(to, end)]);
}

/** Whether the prefill lane has computed the token. */
export function isPrefill(cacheId: number): boolean {
  return cacheId >= PREFILL && cacheId < SHIFTED;
}

/** Whether the token's rows were taken over (shifted reuse). */
export function isShifted(cacheId: number): boolean {
  return cacheId >= SHIFTED && cacheId < SKETCHED;
}

/** The id of the same token with rows that were computed from a part of their context (sparse contexts). */
export function sketchedId(cacheId: number): number {
  return cacheId + SKETCHED;
}

export function isSketched(cacheId: number): boolean {
  return cacheId >= SKETCHED;
}

/** The token id. */
export function tokenOf(cacheId: number): number {
  return cacheId % PREFILL;
}

/** The id of the same token with rows that were taken over. */
export function shiftedId(cacheId: number): number {
  return isShifted(cacheId) ? cacheId : cacheId + SHIFTED;
}

/** The id of the same token with computed rows. */
export function exactId(cacheId: number): number {
  return isShifted(cacheId) ? cacheId - SHIFTED : cacheId;
}
