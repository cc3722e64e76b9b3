/**
 * PURE: whether the tokens of a step attend to all its pages together, or each to those of its own sequence (see windowLane).
 * Together nothing is copied, but every token pays for every page; apart each token's pages are gathered, as many for each
 * as the longest sequence has.
 */

/**
 * What a page costs apart, in pages attended to together. Measured on the shape of Qwen2.5-0.5B, where all sequences have the same
 * pages: 0.95 to 1.1 for tokens of as many sequences, up to 1.25 for 4 to 16 tokens of each; with large key biases the same.
 */
const APART_PRICE = 1.2;
/** Bytes that may be gathered for all tokens of a step in one layer, if they are more than all its pages have. */
const MOST_GATHERED = 64e6;

export interface Attended {
  readonly apart: boolean;
  /** What each token pays for, in pages attended to together; at least one. */
  readonly pages: number;
}

/** `most`: pages of the sequence that has most; `all`: of all sequences together; `pageBytes`: of a page in one layer. */
export function attendedPages(numTokens: number, most: number, all: number, pageBytes: number): Attended {
  const pages = APART_PRICE * most;
  const apart = pages < all && numTokens * most * pageBytes <= Math.max(MOST_GATHERED, all * pageBytes);
  return { apart, pages: Math.max(1, apart ? pages : all) };
}
