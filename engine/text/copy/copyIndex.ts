/**
 * Finds where tokens and pairs of tokens occur in a text, last occurrence first, and compares the surroundings of a
 * place with those of the cursor. The text may grow at its end. Does not predict tokens (see copyPrior.ts).
 */

/** Places by hash. Each place is linked to the previous one with the same hash. */
class Chains {
  readonly #mask: number;
  /** By hash, the last place plus one, or 0 for none. The length is a power of two. */
  readonly #last: Int32Array;
  /** By place, the previous place with the same hash plus one, or 0 for none. */
  #before: Int32Array;

  constructor(numPlaces: number) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(64, numPlaces)));
    this.#mask = size - 1;
    this.#last = new Int32Array(size);
    this.#before = new Int32Array(numPlaces);
  }

  /** Adds a place. Places are added in order. `hash` has 32 bits. */
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

  /** The last place with this hash, or -1. Different tokens may share a hash. */
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
  /** How many of `tokens` are indexed. The last token is not indexed, because nothing follows it. */
  #numKnown = 0;

  /**
   * `tokens` may grow (see `learn`). `growth`: how many tokens will about be added. `singles`: also index places of
   * single tokens.
   */
  constructor(tokens: readonly number[], { growth = 0, singles = false } = {}) {
    this.tokens = tokens;
    this.#pairs = new Chains(tokens.length + growth);
    this.#singles = singles ? new Chains(tokens.length + growth) : null;
    this.learn();
  }

  /**
   * The last place of this pair of tokens before the end of the text, or -1. Continue with `beforePair`. The caller
   * must compare the tokens, because another pair may have the same hash.
   */
  lastPair(first: number, second: number): number {
    return this.#pairs.last(pairHashOf(first, second));
  }

  beforePair(place: number): number {
    return this.#pairs.before(place);
  }

  /** The last place of a token, as `lastPair`. Continue with `before`. */
  last(tokenId: number): number {
    return this.#singles?.last(hashOf(tokenId)) ?? -1;
  }

  before(place: number): number {
    return this.#singles?.before(place) ?? -1;
  }

  /** Indexes the tokens that were added to `tokens`. */
  learn(): void {
    const { tokens } = this;
    for (; this.#numKnown < tokens.length - 1; this.#numKnown++) {
      const at = this.#numKnown;
      this.#singles?.add(hashOf(tokens[at]!), at);
      if (at > 0) this.#pairs.add(pairHashOf(tokens[at - 1]!, tokens[at]!), at);
    }
  }
}

// --- surroundings -----------------------------------------------------------------

/** Tokens before and after the cursor that are compared. */
const BEFORE = 48;
const BEHIND = 60;
/** So many places share their surroundings. */
const BLOCK = 16;
const WORD = /\p{L}{2}/u;

/** The distinct words among some tokens. */
class Words {
  readonly size: number;
  /** By token id, the number of the word plus one, or 0 for a token that is no word. */
  readonly #numberOf: Uint8Array;
  /** By number of the word, the last call of shareIn that found it. */
  readonly #lastCall: Int32Array;
  #numCalls = 0;

  constructor(tokenIds: readonly number[], isWord: (tokenId: number) => boolean) {
    const words = [...new Set(tokenIds)].filter(isWord);
    this.size = words.length;
    this.#numberOf = new Uint8Array(words.reduce((most, id) => Math.max(most, id), -1) + 1);
    this.#lastCall = new Int32Array(words.length);
    for (const [i, id] of words.entries()) this.#numberOf[id] = i + 1;
  }

  /** The share of the words that occur in `tokens` from `start` up to `end`: 0 to 1. */
  shareIn(tokens: readonly number[], start: number, end: number): number {
    if (this.size === 0) return 0;
    const call = ++this.#numCalls;
    let found = 0;
    for (let i = Math.max(0, start); i < end; i++) {
      const number = this.#numberOf[tokens[i]!];
      if (!number || this.#lastCall[number - 1] === call) continue;
      this.#lastCall[number - 1] = call;
      found++;
    }
    return found / this.size;
  }
}

/**
 * The similarity of places to the cursor: the share of the words before the cursor that occur around the place, plus
 * the same for the words after it. Lines are mostly copied from places where the neighbouring lines occur, too.
 * On 18,000 tokens of the projects that copying is fitted on, a token costs 1.070 nats without this, 1.053 with it, and
 * 1.050 if it is computed for every place (docs/decisions/0016-token-healing-and-copy-prior.md).
 */
export class Surroundings {
  readonly #before: Words;
  readonly #behind: Words;
  /** By text. `end`: its length when it was first seen, so that a growing answer changes nothing. */
  readonly #similarity = new Map<readonly number[], { readonly end: number; readonly blocks: Float64Array }>();

  /** `before`: tokens before the cursor, may grow. `behind`: tokens after it. `textOf`: the text of a token. */
  constructor(before: readonly number[], behind: readonly number[], textOf: (tokenId: number) => string) {
    const isWord = (tokenId: number): boolean => WORD.test(textOf(tokenId));
    this.#before = new Words(before.slice(-BEFORE), isWord);
    this.#behind = new Words(behind.slice(0, BEHIND), isWord);
    this.#open(before);
  }

  /** Similarity of a place in `tokens` to the cursor, 0 to 2. */
  at(tokens: readonly number[], place: number): number {
    const { end, blocks } = this.#similarity.get(tokens) ?? this.#open(tokens);
    // Tokens that were added later count as the last block.
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
    this.#similarity.set(tokens, opened);
    return opened;
  }
}
