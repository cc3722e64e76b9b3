/**
 * PURE: what code mostly is: something that stands in the file already, or in others of its kind. Where the last two tokens before the
 * cursor have stood before (or else, in this file, the last one), what followed there is a guess at what follows now; all such places
 * vote, for more where the match is longer and the surroundings are alike, other files for less. A small model, which copies badly, is an
 * eighth less uncertain by its file, and a third by a hundred more of the folder (docs/decisions/0016-token-healing-and-copy-prior.md); a large one copies by itself.
 *
 * The distribution is mixed with the model's, p = (1 - w) model + w copied, as in a cache language model (Kuhn and De Mori, 1990). How much
 * it weighs depends on how long the longest match is, how far the places agree, and how sure the model is; the manifest has the figures,
 * fitted by likelihood on code. A function of the texts alone, so tokens stay what they are whoever shares a step.
 */
import type { OtherNext } from '../../sequence/logitFilters.ts';
import { CopyIndex } from './copyIndex.ts';
import { Surroundings } from './copyIndex.ts';

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
  /** The text up to where it goes on, in pieces. */
  readonly current: readonly (readonly number[])[];
  /** What stands in the file behind it. */
  readonly behind: readonly number[];
}

/** Tokens; longer matches count as equal. */
const MAX_COMPARED = 32;
/** A place's vote is its match's length to the power of LENGTH, times e to LIKENESS times what its surroundings have of the cursor's words. Fitted as the manifest's weights are. */
const LENGTH = 3;
const LIKENESS = 4;
/** Places that are looked at for one token, the last ones: a comma may stand everywhere. */
const MAX_PLACES = 2048;
/** Of tokens that may come next, the likeliest. */
const MAX_TOKENS = 64;
/** For an answer, in tokens. */
const ROOM = 64;
/** So that what nothing has copied can still be. */
const MAX_WEIGHT = 0.98;

/** Of other files, whose ids stay the same array for as long as their texts stay. */
const indexes = new WeakMap<readonly number[], CopyIndex>();

/** Where everything stands in another file; found out once. */
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
  /** The answer says something by now. */
  #begun = false;
  /** The text that goes on, and where everything stands in it. */
  readonly #tokens: number[];
  readonly #current: CopyIndex;
  readonly #surroundings: Surroundings;
  /** It and what is behind it, and those of other files; the likeliest first. */
  readonly #own: readonly CopyIndex[];
  readonly #others: readonly CopyIndex[];

  /** @param textOf of a token */
  constructor(weights: CopyWeights, { others, current, behind }: CopySources, textOf: (tokenId: number) => string) {
    this.#weights = weights;
    this.#textOf = textOf;
    this.#tokens = current.flat();
    this.#current = new CopyIndex(this.#tokens, { room: ROOM, singles: true });
    this.#surroundings = new Surroundings(this.#tokens, behind, textOf);
    this.#own = [this.#current, new CopyIndex(behind, { singles: true })];
    this.#others = weights.others > 0 ? others.map(indexOf).reverse() : [];
  }

  /** The text has gone on by a token; `answered`: what of it is the answer's. */
  push(tokenId: number, answered: string): void {
    this.#tokens.push(tokenId);
    this.#current.learn();
    this.#begun ||= answered.trim() !== '';
  }

  /** What may come next; null where the last two tokens have stood nowhere, nor the last one in this file. */
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

  /** From `place` on, as `before` leads; `least` tokens have to be in common. */
  #vote(
    votes: Votes,
    { tokens }: CopyIndex,
    weight: number,
    last: number,
    before: (place: number) => number,
    least: number,
  ): void {
    for (let place = last; place >= 0 && votes.numPlaces < MAX_PLACES; place = before(place)) {
      votes.numPlaces++;
      const tokenId = tokens[place + 1]!;
      const length = this.#commonLength(tokens, place);
      // That a line ends where another one did is nothing to offer: it may be as unfinished as this one.
      if (length >= least && (this.#begun || !this.#breaksLine(tokenId)))
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

  /** How many tokens up to a place equal those up to the end of the text that goes on. */
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

/** For what may come next, by token. */
class Votes {
  readonly of = new Map<number, number>();
  numPlaces = 0;
  /** Tokens of the longest match. */
  longest = 0;

  /** @param length of the match */
  add(tokenId: number, length: number, vote: number): void {
    this.longest = Math.max(this.longest, length);
    this.of.set(tokenId, (this.of.get(tokenId) ?? 0) + vote);
  }
}
