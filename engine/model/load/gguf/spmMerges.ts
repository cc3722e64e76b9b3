/** Makes merges of BPE from the scores of SentencePiece. Does not read files. */

/**
 * For each token every pair of plain tokens that it consists of, the highest score first. Ties: longer left part, then
 * longer right part, then lower ids, as transformers orders them (`generate_merges`). Offsets are characters, not
 * halves of a surrogate pair. `isPlain`: whether a token may be merged.
 */
export function mergesOf(
  tokens: readonly string[],
  scores: readonly number[],
  isPlain: (id: number) => boolean,
): [left: string, right: string][] {
  const ids = new Map<string, number>();
  for (const [id, token] of tokens.entries()) if (isPlain(id)) ids.set(token, id);
  const merges: { left: string; right: string; score: number; leftLength: number; rightLength: number }[] = [];
  for (const [token, id] of ids) {
    const characters = [...token];
    if (characters.length > MAX_CHARACTERS) continue;
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

/** SentencePiece has at most 16 characters in a token, unless it is told otherwise. Bounds the work for a long one. */
const MAX_CHARACTERS = 512;
