/** Work on many files, in pieces: what else the extension host has to do, such as completions, goes in between. */

/** Of one piece, in ms. */
const LONGEST_PIECE = 5;

/** The first `most` items that pass, in their order. */
export async function filtered<T>(
  items: Iterable<T>,
  passes: (item: T) => boolean,
  most = Number.POSITIVE_INFINITY,
): Promise<T[]> {
  const kept: T[] = [];
  let since = performance.now();
  for (const item of items) {
    if (kept.length >= most) break;
    if (performance.now() - since >= LONGEST_PIECE) {
      await new Promise((resolve) => setImmediate(resolve));
      since = performance.now();
    }
    if (passes(item)) kept.push(item);
  }
  return kept;
}
