/**
 * Decides how much of a completion is confident enough to be shown. The probability that all so far is right is the
 * product of those of its tokens. A line is shown once it is whole, if that is not too small; the words at its
 * beginning at once while it is large; further lines, whole ones only, where it is large enough for them. They are
 * rarely right, and one wrong line among right ones has to be removed by hand. Nothing shown is taken back, since the
 * probability only falls. docs/decisions/0017-confidence-limit.md has the effect of limits with the built-in model.
 */

export interface ConfidenceLimits {
  /**
   * Least probability, 0 to 1, of the first line that is not blank, of words at its beginning by themselves, and of
   * more lines, each with all before it. All 0: everything is shown.
   */
  readonly line: number;
  readonly words: number;
  readonly lines: number;
}

const WORD_CHARACTER = /[\p{L}\p{N}_$]/u;
const TRAILING_WORD = /[\p{L}\p{N}_$]+$/u;

export class Confidence {
  readonly #line: number;
  readonly #words: number;
  readonly #lines: number;
  /** Of all of the text. */
  #logprob = 0;
  #text = '';
  #numSure = 0;
  /** A line that is not blank is whole. */
  #hasLine = false;

  constructor({ line, words, lines }: ConfidenceLimits) {
    this.#line = Math.log(line);
    this.#words = Math.log(words);
    this.#lines = Math.log(lines);
  }

  /** Characters of the text that may be shown. */
  get numSure(): number {
    return this.#numSure;
  }

  /** Nothing more will be. */
  get isLost(): boolean {
    return this.#logprob < (this.#hasLine ? this.#lines : this.#line);
  }

  /** A token and the text that it completes. */
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
    // What is held back of a word was sure when the last of it came; that it ends there shows only now.
    if (before >= this.#words && text !== '' && !WORD_CHARACTER.test(text[0]!)) this.#showWords(length);
    if (this.#logprob >= this.#words)
      this.#showWords(this.#text.length - (TRAILING_WORD.exec(this.#text)?.[0].length ?? 0));
  }

  /** All of the text is what the model had to say. */
  settle(): void {
    if (!this.isLost) this.#show(this.#text.length);
  }

  /** A bracket alone is nothing to look at. */
  #showWords(end: number): void {
    if (WORD_CHARACTER.test(this.#text.slice(0, end))) this.#show(end);
  }

  #show(end: number): void {
    this.#numSure = Math.max(this.#numSure, end);
  }
}
