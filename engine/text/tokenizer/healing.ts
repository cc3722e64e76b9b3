/**
 * Token healing. A text that is cut within a token gives the model a beginning that it has never seen. So the last
 * tokens are removed from the prompt, and the generated text must begin with their characters: "retu" may then become
 * the one token "return", and the space after a "=" the one that " foo" begins with.
 */
import type { Tokenizer } from './tokenizer.ts';

/**
 * The part of a word that a prefix ends with: "Name" of getUserName, "id" of user_id. Digits are mostly tokens by
 * themselves, which no letter makes longer.
 */
const LAST_PART = /(?:\p{Lu}?\p{Ll}+|\p{Lu}+)$/u;
/** What has another form in some tokenizers, as accents have, is left alone. */
const PLAIN = /^[\t\x20-\x7e]+$/;
/**
 * Each may have to be said again in a step of its own, before anything is seen. A part of so many is no word that the
 * model knows.
 */
const MAX_TOKENS = 3;

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

  get isSaid(): boolean {
    return this.#left === '';
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

/**
 * What is taken off a prompt: nothing, the last part of a word that it ends in, or besides, where it ends in none, the
 * last token.
 */
export type Healing = 'none' | 'word' | 'token';

/** The ids of a prefix without what is said again, and the text of these; '': all of them. */
export function healed(
  tokenizer: Tokenizer,
  prefix: string,
  healing: Healing,
): { ids: readonly number[]; opening: string } {
  const { ids, ends } = tokenizer.encodeWithOffsets(prefix);
  const part = LAST_PART.exec(prefix.slice(-64));
  const whole = { ids, opening: '' };
  if (healing === 'none' || (!part && healing === 'word')) return whole;
  const start = prefix.length - (part?.[0].length ?? 1);
  const first = ends.findIndex((end) => end > start);
  // A prompt has to be left, and the first token may stand for more than its text.
  if (first <= 0 || ends[first - 1] === 0 || ids.length - first > MAX_TOKENS) return whole;
  const opening = prefix.slice(ends[first - 1]);
  return PLAIN.test(opening) && tokenizer.canSpell(opening) ? { ids: ids.slice(0, first), opening } : whole;
}
