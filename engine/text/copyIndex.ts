/** PURE: where tokens, and pairs of them, stand in a text, the last places first. Grows at its end. */

/** Places by hash, each with the one before it: [power of two], [capacity]. */
class Chains {
  readonly #mask: number;
  /** By hash the last place plus one, 0 where there is none; by place the one before it, likewise. */
  readonly #last: Int32Array;
  #before: Int32Array;

  constructor(numPlaces: number) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(64, numPlaces)));
    this.#mask = size - 1;
    this.#last = new Int32Array(size);
    this.#before = new Int32Array(numPlaces);
  }

  /** Places are added in order; `hash` is of 32 bits. */
  add(hash: number, place: number): void {
    if (place >= this.#before.length) {
      const before = this.#before;
      this.#before = new Int32Array(2 * place + 64);
      this.#before.set(before);
    }
    const slot = (hash >>> 8) & this.#mask;
    this.#before[place] = this.#last[slot]!;
    this.#last[slot] = place + 1;
  }

  /** The last place with such a hash, or perhaps another; -1: none. */
  last(hash: number): number {
    return this.#last[(hash >>> 8) & this.#mask]! - 1;
  }

  before(place: number): number {
    return this.#before[place]! - 1;
  }
}

const hashOf = (tokenId: number): number => Math.imul(tokenId, 0x9e3779b1);
const pairHashOf = (first: number, second: number): number =>
  Math.imul(Math.imul(first, 0x85ebca6b) ^ second, 0x9e3779b1);

export class CopyIndex {
  readonly tokens: readonly number[];
  readonly #pairs: Chains;
  readonly #singles: Chains | null;
  /** Of `tokens`, those whose place is known: the last one has nothing behind it. */
  #numKnown = 0;

  /** @param tokens may grow, see `learn` @param room tokens that may come, about @param singles whether places of one token are to be found, too */
  constructor(tokens: readonly number[], { room = 0, singles = false } = {}) {
    this.tokens = tokens;
    this.#pairs = new Chains(tokens.length + room);
    this.#singles = singles ? new Chains(tokens.length + room) : null;
    this.learn();
  }

  /** The last place in front of the text's end where these two stand, at which the second does, or perhaps others; -1: none. Go on with `beforePair`. */
  lastPair(first: number, second: number): number {
    return this.#pairs.last(pairHashOf(first, second));
  }

  beforePair(place: number): number {
    return this.#pairs.before(place);
  }

  /** The same of one token. */
  last(tokenId: number): number {
    return this.#singles?.last(hashOf(tokenId)) ?? -1;
  }

  before(place: number): number {
    return this.#singles?.before(place) ?? -1;
  }

  /** The tokens have become more. */
  learn(): void {
    const { tokens } = this;
    for (; this.#numKnown < tokens.length - 1; this.#numKnown++) {
      const at = this.#numKnown;
      this.#singles?.add(hashOf(tokens[at]!), at);
      if (at > 0) this.#pairs.add(pairHashOf(tokens[at - 1]!, tokens[at]!), at);
    }
  }
}
