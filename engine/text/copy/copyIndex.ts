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

/**
 * PURE: how like a place's surroundings are to the cursor's: the share of the words right before the cursor that stand around the place,
 * and of those right behind it. A line is mostly copied from where its neighbours stand, too.
 *
 * At 18,000 tokens of the projects that copying is fitted on a token costs 1.070 nats without and 1.053 with it, 1.050 where it is found out
 * for each place instead of each sixteen; rare words counting for more, or half or twice as much text, are no better (docs/decisions/0016-token-healing-and-copy-prior.md).
 */

/** Tokens on either side that are compared. */
const BEFORE = 48;
const BEHIND = 60;
/** Places so near to one another have the same surroundings. */
const BLOCK = 16;
const WORD = /\p{L}{2}/u;

/** Distinct words among tokens: each has a number, in the order in which it comes. */
class Words {
  readonly size: number;
  /** By token id its number plus one, 0: none. */
  readonly #numberOf: Uint8Array;
  /** By number, the last window that had it. */
  readonly #seenIn: Int32Array;
  #window = 0;

  constructor(tokenIds: readonly number[], isWord: (tokenId: number) => boolean) {
    const words = [...new Set(tokenIds)].filter(isWord);
    this.size = words.length;
    this.#numberOf = new Uint8Array(words.reduce((most, id) => Math.max(most, id), -1) + 1);
    this.#seenIn = new Int32Array(words.length);
    for (const [i, id] of words.entries()) this.#numberOf[id] = i + 1;
  }

  /** The share that stands in `tokens` from `start` up to `end`; 0 to 1. */
  shareIn(tokens: readonly number[], start: number, end: number): number {
    if (this.size === 0) return 0;
    const window = ++this.#window;
    let found = 0;
    for (let i = Math.max(0, start); i < end; i++) {
      const number = this.#numberOf[tokens[i]!];
      if (!number || this.#seenIn[number - 1] === window) continue;
      this.#seenIn[number - 1] = window;
      found++;
    }
    return found / this.size;
  }
}

export class Surroundings {
  readonly #before: Words;
  readonly #behind: Words;
  /** By text, up to `end`: the one that goes on has what it had at first, so that an answer changes nothing of it. */
  readonly #likeness = new Map<readonly number[], { readonly end: number; readonly blocks: Float64Array }>();

  /** @param before tokens up to the cursor; may grow @param behind those behind it @param textOf a token */
  constructor(before: readonly number[], behind: readonly number[], textOf: (tokenId: number) => string) {
    const isWord = (tokenId: number): boolean => WORD.test(textOf(tokenId));
    this.#before = new Words(before.slice(-BEFORE), isWord);
    this.#behind = new Words(behind.slice(0, BEHIND), isWord);
    this.#open(before);
  }

  /** Of a place in `tokens` and the cursor; 0 to 2. */
  at(tokens: readonly number[], place: number): number {
    const { end, blocks } = this.#likeness.get(tokens) ?? this.#open(tokens);
    // What is written now stands where the cursor does.
    const block = Math.min(Math.floor(place / BLOCK), blocks.length - 1);
    if (blocks[block]! < 0) {
      const start = block * BLOCK;
      blocks[block] =
        this.#before.shareIn(tokens, start + BLOCK / 2 - BEFORE, Math.min(end, start + BLOCK)) +
        this.#behind.shareIn(tokens, start, Math.min(end, start + BLOCK / 2 + BEHIND));
    }
    return blocks[block]!;
  }

  #open(tokens: readonly number[]): { end: number; blocks: Float64Array } {
    const opened = {
      end: tokens.length,
      blocks: new Float64Array(Math.max(1, Math.ceil(tokens.length / BLOCK))).fill(-1),
    };
    this.#likeness.set(tokens, opened);
    return opened;
  }
}
