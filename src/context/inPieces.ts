/** Processes many files in slices, so that the extension host can do other work in between, such as completions. */

/** Length of a slice, in ms. */
const MAX_SLICE_MS = 5;

/** The first `max` items that pass, in order. */
export async function filtered<T>(
  items: Iterable<T>,
  passes: (item: T) => boolean,
  max = Number.POSITIVE_INFINITY,
): Promise<T[]> {
  const kept: T[] = [];
  let since = performance.now();
  for (const item of items) {
    if (kept.length >= max) break;
    if (performance.now() - since >= MAX_SLICE_MS) {
      await new Promise((resolve) => setImmediate(resolve));
      since = performance.now();
    }
    if (passes(item)) kept.push(item);
  }
  return kept;
}
