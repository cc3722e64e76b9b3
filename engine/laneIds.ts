/**
 * PURE: token ids as the cache sees them. A token's K/V rows differ in their last bits between the two lanes of the step
 * graph, so rows of one are no hit for the other: the id says which lane they are from.
 */

/** Above every vocabulary. */
const PREFILL = 2 ** 24;

/** Ids of tokens of which the first `prefillEnd` are computed in the prefill lane. */
export function laneIds(tokenIds: readonly number[], prefillEnd: number): number[] {
  return tokenIds.map((id, i) => (i < prefillEnd ? id + PREFILL : id));
}
