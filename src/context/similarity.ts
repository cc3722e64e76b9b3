/**
 * Finds the lines of another file that are most similar to those around the cursor: windows of 60 lines, compared by
 * the share of common words (Jaccard). Windows are built once per version and in slices, so that gathering can stop and
 * continue. Pure.
 */

export const WINDOW_LINES = 60;
/** Windows overlap by half, so that code cut by one is whole in the next. */
const STRIDE = WINDOW_LINES / 2;
/** Below this, two pieces of code share little more than keywords. */
const MIN_SCORE = 0.05;
/** Longer lines are data. */
const MAX_LINE = 500;

export interface Window {
  startLine: number;
  text: string;
  score: number;
}

/** The words that carry meaning in a text. */
export function wordsOf(text: string): Set<string> {
  return new Set(text.match(/[\p{L}_$][\p{L}\p{N}_$]+/gu) ?? []);
}

/** Common words divided by all words, 0..1. */
export function jaccard(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  if (a.size === 0 || b.size === 0) return 0;
  const [small, large] = a.size <= b.size ? [a, b] : [b, a];
  let common = 0;
  for (const word of small) if (large.has(word)) common++;
  return common / (a.size + b.size - common);
}

/** The windows of one version of a file. */
export class Windows {
  readonly #lines: string[];
  readonly #words: Set<string>[] = [];

  constructor(text: string) {
    this.#lines = text.split(/\r?\n/);
  }

  /** Builds windows until all are built or `outOfTime` returns true. Returns whether all are built. */
  build(outOfTime: () => boolean): boolean {
    while (this.#words.length * STRIDE < this.#lines.length) {
      // The last full window includes the rest of the file.
      if (this.#words.length > 0 && (this.#words.length + 1) * STRIDE >= this.#lines.length) break;
      if (outOfTime()) return false;
      this.#words.push(wordsOf(this.#slice(this.#words.length * STRIDE).join('\n')));
    }
    return true;
  }

  /** The built window most similar to `reference`; undefined if none is similar. */
  best(reference: ReadonlySet<string>): Window | undefined {
    let best = { index: -1, score: MIN_SCORE };
    for (const [index, words] of this.#words.entries()) {
      const score = jaccard(words, reference);
      if (score > best.score) best = { index, score };
    }
    if (best.index < 0) return undefined;
    const startLine = best.index * STRIDE;
    return { startLine, text: this.#slice(startLine).join('\n'), score: best.score };
  }

  #slice(startLine: number): string[] {
    return this.#lines.slice(startLine, startLine + WINDOW_LINES).map((line) => (line.length > MAX_LINE ? '' : line));
  }
}
