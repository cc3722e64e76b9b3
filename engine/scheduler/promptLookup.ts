/**
 * PURE: what came next the last time. An index over a sequence's own tokens and over sources beside it finds where the
 * sequence's last tokens have stood before; what followed there is a guess at what follows now. The longest match goes
 * first, of equals the most recent; the sequence is more recent than its sources, the last source than those before it.
 *
 * As in LZ77 compressors: a hash of every pair of tokens heads a chain of the places where that pair stands, and a
 * match
 * that goes on needs no search. All in typed arrays: adding a token costs O(1) on average and leaves no garbage. A
 * search looks at no more than 64 places.
 */

/** Shortest match: the pair that is hashed. */
const PAIR = 2;
/** Longer matches count as equal. */
const MAX_COMPARED = 32;
const MAX_SEARCHED = 64;
/** Between sources: no token. */
const BREAK = -1;
const NOWHERE = -1;

export class PromptLookup {
  /** Sources, each with a break behind it, then the sequence; [capacity], `#length` of them in use. */
  #tokens: Int32Array;
  #length = 0;
  /** Where the sequence begins. */
  readonly #start: number;
  /** By hash of a pair, the last place where one stands: the index of its second token. [power of two] */
  #heads: Int32Array;
  /** By place, the one before it with the same hash. [capacity] */
  #before: Int32Array;
  /** Places below it are in the chains. The last pair is not: it must not find itself. */
  #numIndexed = 1;
  /** Index of what followed the match, NOWHERE without one; and its length. */
  #next = NOWHERE;
  #matched = 0;

  constructor(sources: readonly (readonly number[])[] = [], capacity = 1024) {
    const numTokens = sources.reduce((sum, source) => sum + source.length + 1, 0);
    this.#tokens = new Int32Array(numTokens + capacity);
    this.#heads = new Int32Array(0);
    this.#before = new Int32Array(0);
    for (const source of sources) {
      this.#tokens.set(source, this.#length);
      this.#length += source.length + 1;
      this.#tokens[this.#length - 1] = BREAK;
    }
    this.#start = this.#length;
    this.#reserve(capacity);
  }

  /** Tokens of the sequence that have been added. */
  get numTokens(): number {
    return this.#length - this.#start;
  }

  /** Adds what `tokenIds`, the whole sequence, has grown by. */
  extend(tokenIds: readonly number[]): void {
    this.#reserve(tokenIds.length - this.numTokens);
    for (let i = this.numTokens; i < tokenIds.length; i++) {
      const tokenId = tokenIds[i]!;
      if (this.#next !== NOWHERE) {
        if (this.#tokens[this.#next] === tokenId) {
          this.#next++;
          this.#matched++;
        } else this.#next = NOWHERE;
      }
      this.#tokens[this.#length++] = tokenId;
    }
    for (; this.#numIndexed < this.#length - 1; this.#numIndexed++) this.#index(this.#numIndexed);
    // A match that went on is still the longest: any other was at most as long one token ago.
    if (this.#next !== NOWHERE && this.#tokens[this.#next] === BREAK) this.#next = NOWHERE;
    if (this.#next === NOWHERE) this.#search();
  }

  /**
   * How many of the sequence's last tokens stand where the guess comes from, 0 without one; longer ones count as 32.
   */
  get matchLength(): number {
    return this.#next === NOWHERE ? 0 : Math.min(this.#matched, MAX_COMPARED);
  }

  /**
   * The next tokens as they followed the match, at most `most`; they may run into themselves, as in a repetition. Empty
   * without a match.
   */
  guess(most: number): number[] {
    const guessed: number[] = [];
    if (this.#next === NOWHERE) return guessed;
    for (let i = 0; i < most; i++) {
      const at = this.#next + i;
      const tokenId = at < this.#length ? this.#tokens[at]! : guessed[at - this.#length]!;
      if (tokenId === BREAK) break;
      guessed.push(tokenId);
    }
    return guessed;
  }

  #search(): void {
    const last = this.#length - 1;
    if (this.numTokens < PAIR) return;
    let best = 0;
    let place = this.#heads[this.#hash(last)]! - 1;
    for (let searched = 0; place >= 0 && searched < MAX_SEARCHED && best < MAX_COMPARED; searched++) {
      const length = this.#commonLength(place, last);
      if (length > best && length >= PAIR && this.#tokens[place + 1] !== BREAK) {
        best = length;
        this.#next = place + 1;
        this.#matched = length;
      }
      place = this.#before[place]! - 1;
    }
  }

  /** How many tokens up to `a` equal those up to `b`, the sequence's last; at most MAX_COMPARED. */
  #commonLength(a: number, b: number): number {
    const most = Math.min(MAX_COMPARED, a + 1, b - this.#start + 1);
    let length = 0;
    while (length < most && this.#tokens[a - length] === this.#tokens[b - length]) length++;
    return length;
  }

  #hash(place: number): number {
    const mixed = Math.imul(Math.imul(this.#tokens[place - 1]!, 0x9e3779b1) ^ this.#tokens[place]!, 0x85ebca6b);
    return (mixed ^ (mixed >>> 15)) & (this.#heads.length - 1);
  }

  #index(place: number): void {
    const hash = this.#hash(place);
    this.#before[place] = this.#heads[hash]!;
    this.#heads[hash] = place + 1;
  }

  /** Room for so many more tokens; at least doubles, and indexes anew. */
  #reserve(numMore: number): void {
    const needed = this.#length + numMore;
    if (needed <= this.#before.length) return;
    const capacity = Math.max(needed, 2 * this.#before.length);
    const tokens = new Int32Array(capacity);
    tokens.set(this.#tokens.subarray(0, this.#length));
    this.#tokens = tokens;
    this.#before = new Int32Array(capacity);
    this.#heads = new Int32Array(2 ** Math.ceil(Math.log2(2 * capacity)));
    const numIndexed = this.#numIndexed;
    for (this.#numIndexed = 1; this.#numIndexed < numIndexed; this.#numIndexed++) this.#index(this.#numIndexed);
  }
}
