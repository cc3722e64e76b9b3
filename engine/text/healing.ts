/**
 * Token healing: a cursor within a word leaves the model a beginning of it that it has never seen cut there, because texts
 * are cut into whole words' pieces first. So the tokens of the word's last part are taken off the prompt, and what is generated has to
 * begin with their characters: "retu" may then become the one token "return".
 */
import type { Tokenizer } from './tokenizer.ts';

/** The part of a word that a prefix ends in: as words are put together, "Name" of getUserName, "id" of user_id. */
const LAST_PART = /(?:\p{Lu}?[\p{Ll}\p{N}]+|\p{Lu}+)$/u;
/** What has another form in some tokenizers, as accents have, is left alone. */
const PLAIN = /^[\x20-\x7e]+$/;

/** What a generated text has to begin with, token by token. */
export class Opening {
  readonly #tokenizer: Tokenizer;
  /** What is still to be said, as tokens spell it. */
  #left: string;
  /** Characters that have still to come out of the tokens. */
  #numHidden: number;

  constructor(tokenizer: Tokenizer, text: string) {
    this.#tokenizer = tokenizer;
    this.#left = tokenizer.spelling(text);
    this.#numHidden = text.length;
  }

  /** Tokens of which one has to come next; null: any. */
  get allowed(): readonly number[] | null {
    return this.#left === '' ? null : this.#tokenizer.tokensToward(this.#left);
  }

  push(tokenId: number): void {
    if (this.#left === '') return;
    const token = this.#tokenizer.spellingOf(tokenId);
    this.#left = token.length >= this.#left.length ? '' : this.#left.slice(token.length);
  }

  /** The next text of the tokens, without what stands before the cursor already. */
  hide(text: string): string {
    const hidden = Math.min(this.#numHidden, text.length);
    this.#numHidden -= hidden;
    return text.slice(hidden);
  }
}

/** The ids of a prefix without those of the part of a word that it ends in, and the text of these; '': all of them. `ends`: see Tokenizer. */
export function healed(prefix: string, ids: readonly number[], ends: readonly number[]): { ids: readonly number[]; opening: string } {
  const part = LAST_PART.exec(prefix.slice(-64));
  const whole = { ids, opening: '' };
  if (!part) return whole;
  const start = prefix.length - part[0].length;
  const first = ends.findIndex((end) => end > start);
  // A prompt has to be left, and the first token may stand for more than its text.
  if (first <= 0 || ends[first - 1] === 0) return whole;
  const opening = prefix.slice(ends[first - 1]);
  return PLAIN.test(opening) ? { ids: ids.slice(0, first), opening } : whole;
}
