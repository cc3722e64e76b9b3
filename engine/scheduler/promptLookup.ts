/**
 * Guesses a sequence's next tokens: finds where its last tokens have stood before, in the sequence itself or in other
 * sources, and returns what followed there. Does not decide how many tokens are drafted.
 */

/** Tokens of the shortest match: a pair, which is hashed. */
const PAIR = 2;
/** Longest length that is compared. Longer matches count as equal. */
const MAX_COMPARED = 32;
const MAX_SEARCHED = 64;
/** Separates sources. Not a token. */
const BREAK = -1;
const NOWHERE = -1;

/**
 * The longest match wins, and among equals the most recent. The sequence is more recent than its sources, and a later
 * source than an earlier one.
 *
 * As in LZ77 compressors, the hash of every pair of tokens heads a chain of the places where such pairs stand, and a
 * match that goes on needs no search. With typed arrays, adding a token takes O(1) on average and creates no garbage. A
 * search looks at no more than MAX_SEARCHED places.
 */
export class PromptLookup {
  /** Sources, each with a break after it, then the sequence; [capacity], the first `#length` in use. */
  #tokens: Int32Array;
  #length = 0;
  /** Index at which the sequence begins. */
  readonly #start: number;
  /** By hash of a pair, 1 + its last place, which is the index of its second token; 0: none. [power of two] */
  #heads: Int32Array;
  /** By place, 1 + the place before it with the same hash. [capacity] */
  #before: Int32Array;
  /** Places below it are in the chains. The last pair is not, because it must not find itself. */
  #numIndexed = 1;
  /** Index of the token after the match, or NOWHERE; and the length of the match. */
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

  /** Adds the new tokens at the end of `tokenIds`, the whole sequence. */
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
    // A match that goes on is still the longest, because any other was at most as long one token ago.
    if (this.#next !== NOWHERE && this.#tokens[this.#next] === BREAK) this.#next = NOWHERE;
    if (this.#next === NOWHERE) this.#search();
  }

  /** Length of the match that the guess comes from, at most MAX_COMPARED; 0 without one. */
  get matchLength(): number {
    return this.#next === NOWHERE ? 0 : Math.min(this.#matched, MAX_COMPARED);
  }

  /** The tokens that followed the match, at most `most`; in a repetition they continue with themselves. */
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

  /** How many tokens up to `a` equal those up to `b`, the sequence's last token; at most MAX_COMPARED. */
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

  /** Enlarges the arrays for this many more tokens, at least twofold, and indexes all again. */
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
