/**
 * Encodes a text that changes a little at a time: cuts it into chunks at line starts where both sides encode
 * independently, and encodes only the chunks that an edit touches. The ids always equal those of the whole text.
 */
import type { Tokenizer } from './tokenizer.ts';

interface Chunk {
  /** In UTF-16 units. */
  length: number;
  ids: number[];
  /** The offset in the chunk at which each token ends. */
  ends: number[];
}

/** A chunk ends at the first boundary after so many characters. A keystroke encodes about one chunk. */
const CHUNK_CHARACTERS = 1024;

export class IncrementalEncoding {
  readonly #tokenizer: Tokenizer;
  #text = '';
  #chunks: Chunk[] = [];
  #ids: number[] | undefined = [];
  /** Characters that all updates together have encoded. For measuring the cost of updates. */
  numEncodedCharacters = 0;

  constructor(tokenizer: Tokenizer) {
    this.#tokenizer = tokenizer;
  }

  get text(): string {
    return this.#text;
  }

  /** Ids of the whole text. Valid until the next update. */
  get ids(): readonly number[] {
    this.#ids ??= this.#chunks.flatMap((chunk) => chunk.ids);
    return this.#ids;
  }

  get numTokens(): number {
    return this.#chunks.reduce((sum, chunk) => sum + chunk.ids.length, 0);
  }

  update(text: string): void {
    const old = this.#text;
    if (text === old) return;
    const head = commonPrefix(old, text);
    const tail = commonSuffix(old, text, Math.min(old.length, text.length) - head);

    // Chunks before the change are kept if their end and the character after it are before the change.
    let first = 0;
    let start = 0;
    while (first < this.#chunks.length - 1 && start + (this.#chunks[first] as Chunk).length < head)
      start += (this.#chunks[first++] as Chunk).length;
    // Chunks after the change are kept if the line break before their start is after the change.
    let last = this.#chunks.length;
    let end = old.length;
    while (last > first + 1 && end - (this.#chunks[last - 1] as Chunk).length > old.length - tail)
      end -= (this.#chunks[--last] as Chunk).length;

    const encoded = this.#encode(text, start, end + text.length - old.length);
    if (encoded === undefined)
      this.#chunks = [{ length: text.length, ...this.#tokenizer.encodeWithOffsets(text, 'token') }];
    else this.#chunks.splice(first, last - first, ...encoded);
    this.#text = text;
    this.#ids = undefined;
  }

  /** How many tokens end at or before this offset. */
  numTokensBefore(offset: number): number {
    let start = 0;
    let count = 0;
    for (const chunk of this.#chunks) {
      if (start + chunk.length > offset) {
        for (const end of chunk.ends) {
          if (start + end > offset) return count;
          count++;
        }
        return count;
      }
      start += chunk.length;
      count += chunk.ids.length;
    }
    return count;
  }

  /** Encodes [start, end), which is between two boundaries. Undefined if one of them is no boundary after all. */
  #encode(text: string, start: number, end: number): Chunk[] | undefined {
    const chunks: Chunk[] = [];
    let from = start;
    while (from < end) {
      const to = this.#tokenizer.hasLineBoundaries ? nextBoundary(text, from + CHUNK_CHARACTERS, end) : end;
      const part = text.slice(from, to);
      const before = from > 0 ? 'text' : 'token';
      const encoding =
        to === text.length
          ? this.#tokenizer.encodeWithOffsets(part, before)
          : this.#tokenizer.encodeBefore(part, text[to] as string, before);
      if (encoding === undefined) return undefined;
      this.numEncodedCharacters += part.length;
      chunks.push({ length: part.length, ...encoding });
      from = to;
    }
    return chunks;
  }
}

/** The first offset from `from` on between a line break and a visible ASCII character, or `end`. */
function nextBoundary(text: string, from: number, end: number): number {
  for (let at = text.indexOf('\n', Math.max(0, from - 1)) + 1; at > 0 && at < end; at = text.indexOf('\n', at) + 1) {
    const next = text.charCodeAt(at);
    if (next > 0x20 && next < 0x7f) return at;
  }
  return end;
}

/**
 * Length of the common prefix. Found by bisection, because comparing slices is far faster than comparing characters.
 */
export function commonPrefix(a: string, b: string): number {
  let low = 0;
  let high = Math.min(a.length, b.length);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (a.slice(low, middle) === b.slice(low, middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Length of the common suffix, at most `limit`. */
export function commonSuffix(a: string, b: string, limit: number): number {
  let low = 0;
  let high = limit;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (a.slice(a.length - middle, a.length - low) === b.slice(b.length - middle, b.length - low)) low = middle;
    else high = middle - 1;
  }
  return low;
}
