/**
 * Decides how much of a completion is confident enough to be shown. Never takes shown text back. Effects of the limits:
 * docs/decisions/0017-confidence-limit.md.
 */

export interface ConfidenceLimits {
  /** Least probability, 0 to 1, of the first line that is not blank. If all limits are 0, everything is shown. */
  readonly line: number;
  /** Least probability of words at the beginning of that line, which are shown before the line is complete. */
  readonly words: number;
  /** Least probability of each further line, with all text before it. */
  readonly lines: number;
}

const WORD_CHARACTER = /[\p{L}\p{N}_$]/u;
const TRAILING_WORD = /[\p{L}\p{N}_$]+$/u;

/**
 * The probability that the text so far is right is the product of the probabilities of its tokens, so it only falls.
 * The first line is shown when it is complete, words at its beginning earlier. Further lines are shown complete only,
 * because they are rarely right, and the user must remove a wrong line by hand.
 */
export class Confidence {
  readonly #line: number;
  readonly #words: number;
  readonly #lines: number;
  /** Of the whole text. */
  #logprob = 0;
  #text = '';
  #numSure = 0;
  /** Whether a line that is not blank is complete. */
  #hasLine = false;

  constructor({ line, words, lines }: ConfidenceLimits) {
    this.#line = Math.log(line);
    this.#words = Math.log(words);
    this.#lines = Math.log(lines);
  }

  /** Number of characters of the text that may be shown. */
  get numSure(): number {
    return this.#numSure;
  }

  /** No more text will be shown. */
  get isLost(): boolean {
    return this.#logprob < (this.#hasLine ? this.#lines : this.#line);
  }

  /** Adds a token: its text and its log-probability. */
  push(text: string, logprob: number): void {
    const before = this.#logprob;
    this.#logprob += logprob;
    const length = this.#text.length;
    this.#text += text;
    for (
      let lineEnd = this.#text.indexOf('\n', length);
      lineEnd >= 0 && !this.isLost;
      lineEnd = this.#text.indexOf('\n', lineEnd + 1)
    ) {
      this.#show(lineEnd + 1);
      this.#hasLine ||= this.#text.slice(0, lineEnd).trim() !== '';
    }
    if (this.#hasLine) return;
    // This token shows that the last word is complete. That word was confident enough before this token.
    if (before >= this.#words && text !== '' && !WORD_CHARACTER.test(text[0]!)) this.#showWords(length);
    if (this.#logprob >= this.#words)
      this.#showWords(this.#text.length - (TRAILING_WORD.exec(this.#text)?.[0].length ?? 0));
  }

  /** The text is complete. */
  settle(): void {
    if (!this.isLost) this.#show(this.#text.length);
  }

  /** Shows nothing without a word, because a bracket alone is useless. */
  #showWords(end: number): void {
    if (WORD_CHARACTER.test(this.#text.slice(0, end))) this.#show(end);
  }

  #show(end: number): void {
    this.#numSure = Math.max(this.#numSure, end);
  }
}
