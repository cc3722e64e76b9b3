/**
 * PURE: which tokens of a text stand in an older version of it, though at other places. An edit leaves whole runs as
 * they
 * were; they are found by short pieces that occur once in the older text, and followed in both directions as far as
 * they go.
 */

/**
 * Tokens `start` to `end` (exclusive) of the text are those of the older one that stand `by` earlier there; by may be
 * negative.
 */
export interface CommonRun {
  start: number;
  end: number;
  by: number;
}

/** Tokens of a piece: long enough to be rare in a source file. */
const PIECE = 16;
const BASE = 0x01000193;

/** Hashes of the pieces that begin at each index. */
function hashes(ids: readonly number[], from: number, to: number): Int32Array {
  const count = Math.max(0, to - from - PIECE + 1);
  const result = new Int32Array(count);
  let power = 1;
  for (let i = 0; i < PIECE; i++) power = Math.imul(power, BASE);
  let hash = 0;
  for (let i = from; i < to; i++) {
    hash = (Math.imul(hash, BASE) + ids[i]!) | 0;
    if (i - from >= PIECE) hash = (hash - Math.imul(ids[i - PIECE]!, power)) | 0;
    if (i - from >= PIECE - 1) result[i - from - PIECE + 1] = hash;
  }
  return result;
}

/**
 * Runs of `ids` within [from, to), in order. A run may begin before `from`: then that much before it is the same in
 * both texts.
 */
export function commonRuns(older: readonly number[], ids: readonly number[], from: number, to: number): CommonRun[] {
  /** Index in the older text; -1 for what occurs more than once. */
  const places = new Map<number, number>();
  for (const [i, hash] of hashes(older, 0, older.length).entries()) places.set(hash, places.has(hash) ? -1 : i);
  const wanted = hashes(ids, from, to);
  const runs: CommonRun[] = [];
  for (let at = from; at - from < wanted.length; ) {
    const place = places.get(wanted[at - from]!) ?? -1;
    const by = at - place;
    let end = at;
    if (place >= 0) while (end < to && older[end - by] === ids[end]) end++;
    if (end - at < PIECE) {
      at++;
      continue;
    }
    let start = at;
    while (start > 0 && start > by && older[start - by - 1] === ids[start - 1]) start--;
    runs.push({ start, end, by });
    at = end;
  }
  return runs;
}
