/**
 * Finds where tokens and pairs of tokens occur in a text, last occurrence first. The text may grow at its end. Also
 * compares the surroundings of a place with those of the cursor. Pure functions of the text.
 */

/** Places by hash, each linked to the previous one with the same hash: [power of two], [capacity]. */
class Chains {
  readonly #mask: number;
  /** By hash, the last place plus one, or 0 for none. By place, the previous one in the same way. */
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

  /** The last place with this hash. Different tokens may share a hash. -1: none. */
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
  /** How many of `tokens` are indexed. The last token is not, since nothing follows it. */
  #numKnown = 0;

  /**
   * `tokens` may grow (see `learn`). `room`: about how many tokens may come. `singles`: also index places of single
   * tokens.
   */
  constructor(tokens: readonly number[], { room = 0, singles = false } = {}) {
    this.tokens = tokens;
    this.#pairs = new Chains(tokens.length + room);
    this.#singles = singles ? new Chains(tokens.length + room) : null;
    this.learn();
  }

  /**
   * The last place before the end of the text where the second of these two follows the first. Places with the same
   * hash may be others. -1: none. Continue with `beforePair`.
   */
  lastPair(first: number, second: number): number {
    return this.#pairs.last(pairHashOf(first, second));
  }

  beforePair(place: number): number {
    return this.#pairs.before(place);
  }

  /** The same for one token. */
  last(tokenId: number): number {
    return this.#singles?.last(hashOf(tokenId)) ?? -1;
  }

  before(place: number): number {
    return this.#singles?.before(place) ?? -1;
  }

  /** Indexes the tokens that were added. */
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
 * How similar the surroundings of a place and of the cursor are: the share of the words right before the cursor that
 * occur around the place, plus that of the words right behind it. A line is mostly copied from where its neighbours
 * occur, too.
 *
 * At 18,000 tokens of the projects that copying is fitted on, a token costs 1.070 nats without this and 1.053 with it,
 * and 1.050 if it is computed for each place instead of each sixteen. Giving rare words more weight, or half or twice
 * as much text, is no better (docs/decisions/0016-token-healing-and-copy-prior.md).
 */

/** Tokens on either side that are compared. */
const BEFORE = 48;
const BEHIND = 60;
/** Places this close to one another share their surroundings. */
const BLOCK = 16;
const WORD = /\p{L}{2}/u;

/** The distinct words among some tokens, numbered in order of occurrence. */
class Words {
  readonly size: number;
  /** By token id, its number plus one, or 0 for no word. */
  readonly #numberOf: Uint8Array;
  /** By number, the last stretch that contained the word. */
  readonly #lastStretch: Int32Array;
  #stretch = 0;

  constructor(tokenIds: readonly number[], isWord: (tokenId: number) => boolean) {
    const words = [...new Set(tokenIds)].filter(isWord);
    this.size = words.length;
    this.#numberOf = new Uint8Array(words.reduce((most, id) => Math.max(most, id), -1) + 1);
    this.#lastStretch = new Int32Array(words.length);
    for (const [i, id] of words.entries()) this.#numberOf[id] = i + 1;
  }

  /** The share of the words that occur in `tokens` from `start` up to `end`: 0 to 1. */
  shareIn(tokens: readonly number[], start: number, end: number): number {
    if (this.size === 0) return 0;
    const stretch = ++this.#stretch;
    let found = 0;
    for (let i = Math.max(0, start); i < end; i++) {
      const number = this.#numberOf[tokens[i]!];
      if (!number || this.#lastStretch[number - 1] === stretch) continue;
      this.#lastStretch[number - 1] = stretch;
      found++;
    }
    return found / this.size;
  }
}

export class Surroundings {
  readonly #before: Words;
  readonly #behind: Words;
  /** By text, up to `end`. The text that grows keeps its first length, so that an answer changes nothing. */
  readonly #likeness = new Map<readonly number[], { readonly end: number; readonly blocks: Float64Array }>();

  /** `before`: tokens up to the cursor, may grow. `behind`: tokens behind it. `textOf`: the text of a token. */
  constructor(before: readonly number[], behind: readonly number[], textOf: (tokenId: number) => string) {
    const isWord = (tokenId: number): boolean => WORD.test(textOf(tokenId));
    this.#before = new Words(before.slice(-BEFORE), isWord);
    this.#behind = new Words(behind.slice(0, BEHIND), isWord);
    this.#open(before);
  }

  /** Similarity of a place in `tokens` and the cursor: 0 to 2. */
  at(tokens: readonly number[], place: number): number {
    const { end, blocks } = this.#likeness.get(tokens) ?? this.#open(tokens);
    // New tokens are at the cursor.
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
