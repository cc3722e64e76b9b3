/**
 * PURE: what code mostly is: something that stands in the file already, or in others of its kind. Where the last tokens before the cursor
 * have stood before, what followed there is a guess at what follows now; all such places vote, longer matches for more, other files for
 * less. A small model, which copies badly, is a fifth less uncertain by its file, and a quarter by five more of the folder
 * (docs/quality.md); a large one copies by itself.
 *
 * The distribution is mixed with the model's, p = (1 - w) model + w copied, as in a cache language model (Kuhn and De Mori, 1990). How much
 * it weighs depends on how long the longest match is, how far the places agree, and how sure the model is; the manifest has the figures,
 * fitted by likelihood on code. A function of the texts alone, so tokens stay what they are whoever shares a step.
 */
import type { OtherNext } from '../blending.ts';

/** How much copying weighs: share * sigmoid(match * ln(longest match) + agreement * (share of the likeliest) - confidence * (the model's likeliest) - doubt). */
export interface CopyWeights {
  /** At most, 0 to 1. 0: nothing is copied. */
  readonly share: number;
  readonly doubt: number;
  readonly match: number;
  readonly agreement: number;
  readonly confidence: number;
  /** What a place in another file counts for beside one in this one. 0: other files are not copied from. */
  readonly others: number;
}

/** Token ids of what may be copied from. */
export interface CopySources {
  /** Texts of other files, the likeliest last. */
  readonly others: readonly (readonly number[])[];
  /** Of the same file, the likeliest last. */
  readonly texts: readonly (readonly number[])[];
  /** The text up to where it goes on, in pieces. */
  readonly current: readonly (readonly number[])[];
}

/** Longer matches count as equal; a place with one token more in common has so many times the vote, up to MOST_VOTING. */
const MOST_COMPARED = 32;
const MOST_VOTING = 16;
const PER_TOKEN = 2.5;
/** Places that are looked at for one token, the last ones: a comma may stand everywhere. */
const MOST_PLACES = 2048;
/** Of tokens that may come next, the likeliest. */
const MOST_TOKENS = 64;
/** For an answer, in tokens; more is made as it is needed. */
const ROOM = 64;
/** Between texts: no token. */
const BREAK = -1;
/** So that what nothing has copied can still be. */
const MOST_WEIGHT = 0.98;

export class CopyPrior {
  readonly #weights: CopyWeights;
  readonly #textOf: (tokenId: number) => string;
  readonly #breaks = new Map<number, boolean>();
  /** The answer says something by now. */
  #begun = false;
  /** Where what is of other files ends. */
  readonly #own: number;
  /** The texts, each behind a break, the last of them the one that goes on; [capacity], `#length` of them in use. */
  #tokens: Int32Array;
  #length = 0;
  /** By hash of a token, the last place where such a one stands, plus one, but for the very last; and by place, the one before it. [power of two], [capacity] */
  readonly #last: Int32Array;
  #before: Int32Array;

  /** @param textOf of a token */
  constructor(weights: CopyWeights, { others, texts, current }: CopySources, textOf: (tokenId: number) => string) {
    this.#weights = weights;
    this.#textOf = textOf;
    const apart = (some: CopySources['texts']): (readonly number[])[] => some.flatMap((text) => [[BREAK], text]);
    const ofOthers = weights.others > 0 ? apart(others) : [];
    const all = [...ofOthers, ...apart(texts), [BREAK], ...current];
    this.#own = lengthOf(ofOthers);
    const numTokens = lengthOf(all);
    this.#tokens = new Int32Array(numTokens + ROOM);
    this.#before = new Int32Array(numTokens + ROOM);
    this.#last = new Int32Array(2 ** Math.ceil(Math.log2(numTokens + ROOM)));
    for (const text of all) for (const tokenId of text) this.#add(tokenId);
  }

  /** The text has gone on by a token; `answered`: what of it is the answer's. */
  push(tokenId: number, answered: string): void {
    this.#add(tokenId);
    this.#begun ||= answered.trim() !== '';
  }

  /** What may come next; null where the last token has stood nowhere. */
  next(): OtherNext | null {
    const { share, doubt, match, agreement, confidence, others } = this.#weights;
    const votes = new Map<number, number>();
    const end = this.#length - 1;
    let longest = 0;
    let place = this.#last[this.#hash(this.#tokens[end]!)]! - 1;
    for (let n = 0; place >= 0 && n < MOST_PLACES; n++, place = this.#before[place]! - 1) {
      const tokenId = this.#tokens[place + 1]!;
      const length = this.#commonLength(place, end);
      // That a line ends where another one did is nothing to offer: it may be as unfinished as this one.
      if (length === 0 || tokenId === BREAK || (!this.#begun && this.#breaksLine(tokenId))) continue;
      longest = Math.max(longest, length);
      votes.set(tokenId, (votes.get(tokenId) ?? 0) + (place < this.#own ? others : 1) * PER_TOKEN ** Math.min(length, MOST_VOTING));
    }
    if (votes.size === 0) return null;
    const ranked = [...votes].sort(([a, votesOfA], [b, votesOfB]) => votesOfB - votesOfA || a - b).slice(0, MOST_TOKENS);
    const all = ranked.reduce((sum, [, vote]) => sum + vote, 0);
    const shares = ranked.map(([, vote]) => vote / all);
    const known = match * Math.log(longest) + agreement * shares[0]! - doubt;
    return { tokenIds: ranked.map(([id]) => id), shares, weight: (likeliest) => Math.min(MOST_WEIGHT, share / (1 + Math.exp(confidence * likeliest - known))) };
  }

  #add(tokenId: number): void {
    if (this.#length === this.#tokens.length) {
      const [tokens, before] = [this.#tokens, this.#before];
      this.#tokens = new Int32Array(2 * tokens.length);
      this.#before = new Int32Array(2 * tokens.length);
      this.#tokens.set(tokens);
      this.#before.set(before);
    }
    // The last token's place is known once something follows it: it must not find itself.
    const at = this.#length - 1;
    if (at >= 0) {
      const hash = this.#hash(this.#tokens[at]!);
      this.#before[at] = this.#last[hash]!;
      this.#last[hash] = at + 1;
    }
    this.#tokens[this.#length++] = tokenId;
  }

  #hash(tokenId: number): number {
    return (Math.imul(tokenId, 0x9e3779b1) >>> 8) & (this.#last.length - 1);
  }

  #breaksLine(tokenId: number): boolean {
    let breaks = this.#breaks.get(tokenId);
    if (breaks === undefined) {
      breaks = this.#textOf(tokenId).includes('\n');
      this.#breaks.set(tokenId, breaks);
    }
    return breaks;
  }

  /** How many tokens up to `a` equal those up to `b`, the text's end. */
  #commonLength(a: number, b: number): number {
    let length = 0;
    while (length < MOST_COMPARED && length <= a && this.#tokens[a - length] === this.#tokens[b - length] && this.#tokens[a - length] !== BREAK) length++;
    return length;
  }
}

function lengthOf(texts: readonly (readonly number[])[]): number {
  return texts.reduce((sum, { length }) => sum + length, 0);
}
