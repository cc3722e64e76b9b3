/**
 * Predicts the next token from copies: code mostly repeats what the file, or others like it, already contain. Where
 * the last two tokens before the cursor (or else, in this file, the last one) occurred before, what followed there is
 * a guess. All such places vote, with more weight for longer matches and similar surroundings, and less for other
 * files.
 *
 * A small model copies badly and is an eighth less uncertain with its own file, and a third with a hundred more of the
 * folder (docs/decisions/0016-token-healing-and-copy-prior.md). A large one copies by itself.
 * The distribution is mixed with that of the model, p = (1 - w) model + w copied, as in a cache language model (Kuhn
 * and De Mori, 1990). The weight depends on the length of the longest match, the agreement of the places, and the
 * confidence of the model. The manifest has the figures, fitted by likelihood on code. It is a function of the texts
 * alone, so tokens do not depend on who shares a step.
 */
import type { OtherNext } from '../../sequence/sampler.ts';
import { CopyIndex, Surroundings } from './copyIndex.ts';

/**
 * The weight of copying: share * sigmoid(match * ln(longest match) + agreement * (share of the likeliest) - confidence
 * * (the likeliest of the model) - doubt).
 */
export interface CopyWeights {
  /** The largest weight, 0 to 1. With 0 nothing is copied. */
  readonly share: number;
  readonly doubt: number;
  readonly match: number;
  readonly agreement: number;
  readonly confidence: number;
  /** The weight of a place in another file, relative to one in this file. With 0 other files are not used. */
  readonly others: number;
}

/** Token ids of the texts that may be copied from. */
export interface CopySources {
  /** Texts of other files, the likeliest last. */
  readonly others: readonly (readonly number[])[];
  /** The text up to the cursor, in pieces. */
  readonly current: readonly (readonly number[])[];
  /** The text of the file behind the cursor. */
  readonly behind: readonly number[];
}

/** Longest match, in tokens. Longer ones count as equal. */
const MAX_COMPARED = 32;
/**
 * The vote of a place is the length of its match to the power of LENGTH, times e to LIKENESS times the similarity of
 * its surroundings. Fitted like the weights of the manifest.
 */
const LENGTH = 3;
const LIKENESS = 4;
/** Places that are used for one token, last ones first: a comma may occur everywhere. */
const MAX_PLACES = 2048;
/** The number of likeliest next tokens that are kept. */
const MAX_TOKENS = 64;
/** For an answer, in tokens. */
const ROOM = 64;
/** Leaves a chance for tokens that no copy predicts. */
const MAX_WEIGHT = 0.98;

/** Indexes of other files. The array of ids stays the same as long as the text does. */
const indexes = new WeakMap<readonly number[], CopyIndex>();

/** The index of another file, built once. */
export function indexOf(tokenIds: readonly number[]): CopyIndex {
  const known = indexes.get(tokenIds);
  if (known) return known;
  const index = new CopyIndex(tokenIds);
  indexes.set(tokenIds, index);
  return index;
}

export class CopyPrior {
  readonly #weights: CopyWeights;
  readonly #textOf: (tokenId: number) => string;
  readonly #breaks = new Map<number, boolean>();
  /** Whether the answer holds more than white space. */
  #begun = false;
  /** The text that grows, and its index. */
  readonly #tokens: number[];
  readonly #current: CopyIndex;
  readonly #surroundings: Surroundings;
  /** Indexes of this file, before and behind the cursor, and of other files, likeliest first. */
  readonly #own: readonly CopyIndex[];
  readonly #others: readonly CopyIndex[];

  /** `textOf`: the text of a token. */
  constructor(weights: CopyWeights, { others, current, behind }: CopySources, textOf: (tokenId: number) => string) {
    this.#weights = weights;
    this.#textOf = textOf;
    this.#tokens = current.flat();
    this.#current = new CopyIndex(this.#tokens, { room: ROOM, singles: true });
    this.#surroundings = new Surroundings(this.#tokens, behind, textOf);
    this.#own = [this.#current, new CopyIndex(behind, { singles: true })];
    this.#others = weights.others > 0 ? others.map(indexOf).reverse() : [];
  }

  /** Adds a token. `answered`: the text of the answer so far. */
  push(tokenId: number, answered: string): void {
    this.#tokens.push(tokenId);
    this.#current.learn();
    this.#begun ||= answered.trim() !== '';
  }

  /** The next tokens. Null if the last two tokens occur nowhere, nor the last one in this file. */
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

  /**
   * Adds the votes of the places from `last` on, in the order of `before`. At minLength `minLength` tokens must match.
   */
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
      // A copied line end is not offered first: the line that it comes from may be as unfinished as this one.
      if (length >= minLength && (this.#begun || !this.#breaksLine(tokenId)))
        votes.add(
          tokenId,
          length,
          weight * length ** LENGTH * Math.exp(LIKENESS * this.#surroundings.at(tokens, place)),
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

  /** How many tokens up to a place equal those up to the end of the growing text. */
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

/** Votes by next token. */
class Votes {
  readonly of = new Map<number, number>();
  numPlaces = 0;
  /** Tokens of the longest match. */
  longest = 0;

  /** `length`: of the match. */
  add(tokenId: number, length: number, vote: number): void {
    this.longest = Math.max(this.longest, length);
    this.of.set(tokenId, (this.of.get(tokenId) ?? 0) + vote);
  }
}
