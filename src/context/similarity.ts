/**
 * Which lines of another file are most like those around the cursor: windows of 60 lines, compared by the share of words
 * that they have in common (Jaccard). A file's windows are built once a version and in pieces, so that gathering can stop
 * at any time and go on from there. Pure.
 */

export const WINDOW_LINES = 60;
/** Windows overlap by half: what is cut by one stands whole in the next. */
const STRIDE = WINDOW_LINES / 2;
/** Below this, two pieces of code have little more than keywords in common. */
const LEAST_SCORE = 0.05;
/** Longer lines are data. */
const LONGEST_LINE = 500;

export interface Window {
  startLine: number;
  text: string;
  score: number;
}

/** The words of a text that say what it is about. */
export function wordsOf(text: string): Set<string> {
  return new Set(text.match(/[\p{L}_$][\p{L}\p{N}_$]+/gu) ?? []);
}

/** Common words by all words, 0..1. */
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

  /** Builds windows until all are there or `outOfTime` says so; whether all are there. */
  build(outOfTime: () => boolean): boolean {
    while (this.#words.length * STRIDE < this.#lines.length) {
      // The last full window has the rest of the file.
      if (this.#words.length > 0 && (this.#words.length + 1) * STRIDE >= this.#lines.length) break;
      if (outOfTime()) return false;
      this.#words.push(wordsOf(this.#slice(this.#words.length * STRIDE).join('\n')));
    }
    return true;
  }

  /** The window most like `reference` of those that are built; undefined where none is like it. */
  best(reference: ReadonlySet<string>): Window | undefined {
    let best = { index: -1, score: LEAST_SCORE };
    for (const [index, words] of this.#words.entries()) {
      const score = jaccard(words, reference);
      if (score > best.score) best = { index, score };
    }
    if (best.index < 0) return undefined;
    const startLine = best.index * STRIDE;
    return { startLine, text: this.#slice(startLine).join('\n'), score: best.score };
  }

  #slice(startLine: number): string[] {
    return this.#lines
      .slice(startLine, startLine + WINDOW_LINES)
      .map((line) => (line.length > LONGEST_LINE ? '' : line));
  }
}
