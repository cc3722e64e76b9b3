/**
 * Token healing. A prompt that ends within a token is a beginning that the model has never seen. So the last tokens are
 * removed from the prompt, and the generated text must begin with their characters. "retu" may become "return".
 */
import type { Tokenizer } from './tokenizer.ts';
import type { Vocabulary } from './vocabulary.ts';

/**
 * The part of a word that a prefix ends with: "Name" of getUserName, "id" of user_id. Without digits, because most
 * tokenizers have a token per digit.
 */
const LAST_PART = /(?:\p{Lu}?\p{Ll}+|\p{Lu}+)$/u;
/** Only ASCII is healed. Some tokenizers normalise other characters, such as accents. */
const PLAIN = /^[\t\x20-\x7e]+$/;
/**
 * Most tokens that are removed. Each one may need a step of its own before new text appears. The model does not know a
 * word that takes more tokens.
 */
const MAX_TOKENS = 3;

/** The text that a generated text must begin with, checked token by token. */
export class Opening {
  readonly #vocabulary: Vocabulary;
  /** The rest that must still be generated, in the spelling of the vocabulary. */
  #left: string;
  /** Characters of the generated text that stand before the cursor already. */
  #numHidden: number;

  constructor(tokenizer: Tokenizer, text: string) {
    this.#vocabulary = tokenizer.vocabulary;
    this.#left = this.#vocabulary.spelling(text);
    this.#numHidden = text.length;
  }

  /** The tokens that may come next. Null: any token. */
  get allowed(): readonly number[] | null {
    return this.#left === '' ? null : this.#vocabulary.tokensToward(this.#left);
  }

  get isSaid(): boolean {
    return this.#left === '';
  }

  push(tokenId: number): void {
    if (this.#left === '') return;
    const token = this.#vocabulary.spellingOf(tokenId);
    this.#left = token.length >= this.#left.length ? '' : this.#left.slice(token.length);
  }

  /** The next generated text, without the characters that stand before the cursor already. */
  hide(text: string): string {
    const hidden = Math.min(this.#numHidden, text.length);
    this.#numHidden -= hidden;
    return text.slice(hidden);
  }
}

/**
 * What is removed from a prompt: nothing; the part of a word at its end; or that part, and without one the last token.
 */
export type Healing = 'none' | 'word' | 'token';

/** The ids of a prefix without the removed tokens, and the text of the removed ones. '' if none are removed. */
export function healed(
  tokenizer: Tokenizer,
  prefix: string,
  healing: Healing,
): { ids: readonly number[]; opening: string } {
  const { ids, ends } = tokenizer.encodeWithOffsets(prefix, 'token');
  const part = LAST_PART.exec(prefix.slice(-64));
  const whole = { ids, opening: '' };
  if (healing === 'none' || (!part && healing === 'word')) return whole;
  const start = prefix.length - (part?.[0].length ?? 1);
  const first = ends.findIndex((end) => end > start);
  // Some prompt must remain, and the first token may stand for more than its text.
  if (first <= 0 || ends[first - 1] === 0 || ids.length - first > MAX_TOKENS) return whole;
  const opening = prefix.slice(ends[first - 1]);
  return PLAIN.test(opening) && tokenizer.vocabulary.canSpell(opening) ? { ids: ids.slice(0, first), opening } : whole;
}
