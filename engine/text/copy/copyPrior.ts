/**
 * Predicts the next token from what followed the last tokens earlier in the file or in other files, because code mostly
 * repeats existing code. Does not run the model.
 */
import type { OtherNext } from '../../sequence/sampler.ts';
import { CopyIndex, Surroundings } from './copyIndex.ts';

/**
 * The weight of copying is share * sigmoid(match * ln(tokens of the longest match) + agreement * (share of the
 * likeliest copied token) - confidence * (probability of the likeliest token of the model) - doubt).
 */
export interface CopyWeights {
  /** The largest weight, 0 to 1. With 0 nothing is copied. */
  readonly share: number;
  readonly doubt: number;
  readonly match: number;
  readonly agreement: number;
  readonly confidence: number;
  /** Weight of a place in another file relative to a place in this file. With 0 other files are not used. */
  readonly others: number;
}

/** The texts that may be copied from, as token ids. */
export interface CopySources {
  /** Other files, the likeliest last. */
  readonly others: readonly (readonly number[])[];
  /** The file up to the cursor, in pieces. */
  readonly current: readonly (readonly number[])[];
  /** The file after the cursor. */
  readonly behind: readonly number[];
}

/** Longest match that is measured, in tokens. */
const MAX_COMPARED = 32;
/**
 * The vote of a place is length ** LENGTH_EXPONENT * exp(SIMILARITY_FACTOR * similarity), with the length of its match
 * and the similarity of its surroundings. Fitted like the weights of the manifest.
 */
const LENGTH_EXPONENT = 3;
const SIMILARITY_FACTOR = 4;
/** Most places that vote on one token, the last ones first. A comma may occur everywhere. */
const MAX_PLACES = 2048;
/** Most next tokens that are returned, the likeliest ones. */
const MAX_TOKENS = 64;
/** Expected tokens of an answer. */
const ANSWER_TOKENS = 64;
/** Leaves some probability to tokens that no copy predicts. */
const MAX_WEIGHT = 0.98;

/** Indexes of other files, by their array of ids. An unchanged file keeps its array. */
const indexes = new WeakMap<readonly number[], CopyIndex>();

/** The index of another file. Builds it once. */
export function indexOf(tokenIds: readonly number[]): CopyIndex {
  const known = indexes.get(tokenIds);
  if (known) return known;
  const index = new CopyIndex(tokenIds);
  indexes.set(tokenIds, index);
  return index;
}

/**
 * All places where the last two tokens occurred before vote on the next token. If there are none, the places of the
 * last token in this file vote. Longer matches and similar surroundings have more weight, other files less. The caller
 * mixes the result into the distribution of the model, p = (1 - w) model + w copied, as in a cache language model (Kuhn
 * and De Mori, 1990). The result depends on the texts alone, so tokens do not depend on the other sequences of a step.
 * A small model copies badly: its uncertainty falls by an eighth with its own file and by a third with a hundred more
 * files of the folder (docs/decisions/0016-token-healing-and-copy-prior.md). A large model copies by itself.
 */
export class CopyPrior {
  readonly #weights: CopyWeights;
  readonly #textOf: (tokenId: number) => string;
  readonly #breaks = new Map<number, boolean>();
  /** Whether the answer contains more than white space. */
  #begun = false;
  /** The text up to the end of the answer, and its index. */
  readonly #tokens: number[];
  readonly #current: CopyIndex;
  readonly #surroundings: Surroundings;
  /** Indexes of this file before and after the cursor, and of other files, the likeliest first. */
  readonly #own: readonly CopyIndex[];
  readonly #others: readonly CopyIndex[];

  /** `textOf`: gives the text of a token. */
  constructor(weights: CopyWeights, { others, current, behind }: CopySources, textOf: (tokenId: number) => string) {
    this.#weights = weights;
    this.#textOf = textOf;
    this.#tokens = current.flat();
    this.#current = new CopyIndex(this.#tokens, { growth: ANSWER_TOKENS, singles: true });
    this.#surroundings = new Surroundings(this.#tokens, behind, textOf);
    this.#own = [this.#current, new CopyIndex(behind, { singles: true })];
    this.#others = weights.others > 0 ? others.map(indexOf).reverse() : [];
  }

  /** Adds a generated token. `answered`: the text of the answer so far. */
  push(tokenId: number, answered: string): void {
    this.#tokens.push(tokenId);
    this.#current.learn();
    this.#begun ||= answered.trim() !== '';
  }

  /** Predicts the next token. Null if there is no place to copy from. */
  next(): OtherNext | null {
    const { share, doubt, match, agreement, confidence, others } = this.#weights;
    const [previous, token] = [this.#tokens.at(-2), this.#tokens.at(-1)];
    if (token === undefined) return null;
    const votes = new Votes();
    if (previous !== undefined) {
      for (const index of this.#own)
        this.#vote(votes, index, 1, index.lastPair(previous, token), (place) => index.beforePair(place), 2);
      for (const index of this.#others)
        this.#vote(votes, index, others, index.lastPair(previous, token), (place) => index.beforePair(place), 2);
    }
    if (votes.of.size === 0)
      for (const index of this.#own) this.#vote(votes, index, 1, index.last(token), (place) => index.before(place), 1);
    if (votes.of.size === 0) return null;
    const ranked = [...votes.of]
      .sort(([a, votesOfA], [b, votesOfB]) => votesOfB - votesOfA || a - b)
      .slice(0, MAX_TOKENS);
    const all = ranked.reduce((sum, [, vote]) => sum + vote, 0);
    const shares = ranked.map(([, vote]) => vote / all);
    const known = match * Math.log(votes.longest) + agreement * shares[0]! - doubt;
    return {
      tokenIds: ranked.map(([id]) => id),
      shares,
      weight: (likeliest) => Math.min(MAX_WEIGHT, share / (1 + Math.exp(confidence * likeliest - known))),
    };
  }

  /** Adds the votes of the places from `last` on, in the order of `before`. At least `minLength` tokens must match. */
  #vote(
    votes: Votes,
    { tokens }: CopyIndex,
    weight: number,
    last: number,
    before: (place: number) => number,
    minLength: number,
  ): void {
    for (let place = last; place >= 0 && votes.numPlaces < MAX_PLACES; place = before(place)) {
      votes.numPlaces++;
      const tokenId = tokens[place + 1]!;
      const length = this.#commonLength(tokens, place);
      // An answer does not begin with a copied line end, because the copied line may be unfinished, too.
      if (length >= minLength && (this.#begun || !this.#breaksLine(tokenId)))
        votes.add(
          tokenId,
          length,
          weight * length ** LENGTH_EXPONENT * Math.exp(SIMILARITY_FACTOR * this.#surroundings.at(tokens, place)),
        );
    }
  }

  #breaksLine(tokenId: number): boolean {
    let breaks = this.#breaks.get(tokenId);
    if (breaks === undefined) {
      breaks = this.#textOf(tokenId).includes('\n');
      this.#breaks.set(tokenId, breaks);
    }
    return breaks;
  }

  /** How many tokens before a place equal the last tokens of the current text. */
  #commonLength(tokens: readonly number[], place: number): number {
    const current = this.#tokens;
    const end = current.length - 1;
    let length = 0;
    while (
      length < MAX_COMPARED &&
      length <= place &&
      length <= end &&
      tokens[place - length] === current[end - length]
    )
      length++;
    return length;
  }
}

class Votes {
  /** By next token. */
  readonly of = new Map<number, number>();
  numPlaces = 0;
  /** Tokens of the longest match. */
  longest = 0;

  /** `length`: of the match, in tokens. */
  add(tokenId: number, length: number, vote: number): void {
    this.longest = Math.max(this.longest, length);
    this.of.set(tokenId, (this.of.get(tokenId) ?? 0) + vote);
  }
}
