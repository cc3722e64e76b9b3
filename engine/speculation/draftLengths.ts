/**
 * PURE: how many tokens to draft for each sequence of a step. A row more costs time, a token more is worth what a token
 * costs otherwise: rows go where a draft is most likely right, as long as that raises the tokens per millisecond.
 */

export interface DraftChance {
  /** Probability that a drafted token is right, given that those before it are. */
  readonly rate: number;
  /** Tokens that could be drafted. */
  readonly most: number;
}

/**
 * Drafted tokens of each sequence, together at most `mostRows`. `numRows`: rows that the step has without drafts.
 * `fixedRows`: what a step costs beside its rows, in rows.
 */
export function draftLengths(
  chances: readonly DraftChance[],
  numRows: number,
  fixedRows: number,
  mostRows: number,
): number[] {
  const lengths = chances.map(() => 0);
  const gains = chances.map(({ rate }) => rate);
  let tokens = chances.length;
  for (let added = 0; added < mostRows; added++) {
    let best = -1;
    for (let i = 0; i < chances.length; i++)
      if (lengths[i]! < chances[i]!.most && (best < 0 || gains[i]! > gains[best]!)) best = i;
    if (best < 0 || gains[best]! <= tokens / (fixedRows + numRows + added)) break;
    tokens += gains[best]!;
    lengths[best]!++;
    gains[best]! *= chances[best]!.rate;
  }
  return lengths;
}
