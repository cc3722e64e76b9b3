/**
 * Token ids as the cache sees them. Pure. K/V rows of a token differ in their last bits between the two lanes of the
 * step graph, so
 * the id says which lane computed them. Rows taken over from another place of a text (shifted reuse), and rows computed
 * from a part of
 * their context (sparse contexts), have ids of their own, which no exact row has.
 */

/** Above every vocabulary. */
const PREFILL = 2 ** 24;
const SHIFTED = 2 ** 25;
const SKETCHED = 2 ** 26;

/** Tokens of a sequence, by their places: from the first up to, but not including, the second. */
export type TokenRange = readonly [from: number, to: number];

/** Ids of tokens of which those in the ranges, which are in order, are computed in the prefill lane. */
export function laneIds(tokenIds: readonly number[], prefill: readonly TokenRange[]): number[] {
  const ids = [...tokenIds];
  for (const [from, to] of prefill)
    for (let i = from; i < Math.min(to, ids.length); i++) ids[i] = tokenIds[i]! + PREFILL;
  return ids;
}

/** The ranges' tokens before `end`. */
export function clipped(ranges: readonly TokenRange[], end: number): TokenRange[] {
  return ranges.filter(([from, to]) => from < Math.min(to, end)).map(([from, to]) => [from, Math.min(to, end)]);
}

/** Of a token that was computed, in the prefill lane. */
export function isPrefill(cacheId: number): boolean {
  return cacheId >= PREFILL && cacheId < SHIFTED;
}

/** Of a token whose rows were taken over. */
export function isShifted(cacheId: number): boolean {
  return cacheId >= SHIFTED && cacheId < SKETCHED;
}

/** The id of the same token, its rows computed from a part of their context. */
export function sketchedId(cacheId: number): number {
  return cacheId + SKETCHED;
}

export function isSketched(cacheId: number): boolean {
  return cacheId >= SKETCHED;
}

/** The token itself. */
export function tokenOf(cacheId: number): number {
  return cacheId % PREFILL;
}

/** The id of the same token, its rows taken over. */
export function shiftedId(cacheId: number): number {
  return isShifted(cacheId) ? cacheId : cacheId + SHIFTED;
}

/** The id of the same token, its rows computed. */
export function exactId(cacheId: number): number {
  return isShifted(cacheId) ? cacheId - SHIFTED : cacheId;
}
