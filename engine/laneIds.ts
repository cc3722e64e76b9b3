/**
 * PURE: token ids as the cache sees them. A token's K/V rows differ in their last bits between the two lanes of the step
 * graph, so rows of one are no hit for the other: the id says which lane they are from. Rows that were taken over from
 * another text and place (see shiftedReuse) differ by more: they have ids of their own, which no exact token has.
 */

/** Above every vocabulary. */
const PREFILL = 2 ** 24;
const SHIFTED = 2 ** 25;

/** Ids of tokens of which the first `prefillEnd` are computed in the prefill lane. */
export function laneIds(tokenIds: readonly number[], prefillEnd: number): number[] {
  return tokenIds.map((id, i) => (i < prefillEnd ? id + PREFILL : id));
}

/** Of a token that was computed, in the prefill lane. */
export function isPrefill(cacheId: number): boolean {
  return cacheId >= PREFILL && cacheId < SHIFTED;
}

/** Of a token whose rows were taken over. */
export function isShifted(cacheId: number): boolean {
  return cacheId >= SHIFTED;
}

/** The id of the same token, its rows taken over. */
export function shiftedId(cacheId: number): number {
  return isShifted(cacheId) ? cacheId : cacheId + SHIFTED;
}

/** The id of the same token, its rows computed. */
export function exactId(cacheId: number): number {
  return isShifted(cacheId) ? cacheId - SHIFTED : cacheId;
}
