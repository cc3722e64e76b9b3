/**
 * PURE: which leading tokens of a prompt go through the prefill lane. It must follow from the prompt alone, and two prompts
 * that share a beginning should agree on it, or they could not share rows: file blocks always do, other text in whole
 * pieces of a fixed length, counted from the block's end.
 */

/** Shorter texts gain nothing; a longer piece would leave much to the window lane. */
const PIECE = 256;

/** @param numBlock tokens of the file block. @param numText tokens behind it that stay the same while the request's kind of prompt grows. */
export function prefillTokens(numBlock: number, numText: number): number {
  return numBlock + Math.floor(Math.max(0, numText - 1) / PIECE) * PIECE;
}
