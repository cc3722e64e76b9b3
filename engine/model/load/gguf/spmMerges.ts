/** Makes merges of BPE from the scores of SentencePiece. Does not read files. */

/** Twice the longest list of merges that is read from a file. */
const MAX_PAIRS = 2 ** 20;
/** Of the sum of the squared lengths: characters that are read, and at most written. */
const MAX_WORK = 2 ** 26;

/**
 * For each token every pair of plain tokens that it consists of, the highest score first. Ties: longer left part, then
 * longer right part, then lower ids, as transformers orders them (`generate_merges`). Offsets are characters, not
 * halves of a surrogate pair. `isPlain`: whether a token may be merged. Null for too many pairs, or too long tokens.
 */
export function mergesOf(
  tokens: readonly string[],
  scores: readonly number[],
  isPlain: (id: number) => boolean,
): [left: string, right: string][] | null {
  const ids = new Map<string, number>();
  for (const [id, token] of tokens.entries()) if (isPlain(id)) ids.set(token, id);
  const merges: { left: string; right: string; score: number; leftLength: number; rightLength: number }[] = [];
  let work = 0;
  for (const [token, id] of ids) {
    work += token.length ** 2;
    if (work > MAX_WORK || merges.length > MAX_PAIRS) return null;
    const characters = [...token];
    const pairs: { left: string; right: string; at: number }[] = [];
    let left = '';
    for (let at = 1; at < characters.length; at++) {
      left += characters[at - 1];
      const right = token.slice(left.length);
      if (ids.has(left) && ids.has(right)) pairs.push({ left, right, at });
    }
    pairs.sort((a, b) => ids.get(a.left)! - ids.get(b.left)! || ids.get(a.right)! - ids.get(b.right)!);
    for (const { left, right, at } of pairs)
      merges.push({ left, right, score: scores[id]!, leftLength: at, rightLength: characters.length - at });
  }
  merges.sort((a, b) => b.score - a.score || b.leftLength - a.leftLength || b.rightLength - a.rightLength);
  return merges.map(({ left, right }) => [left, right]);
}
