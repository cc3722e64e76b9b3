/**
 * Turns token ids back into text, one id at a time. Holds bytes until they form whole characters, so that a reader
 * never sees half of one. Bytes that can never become a character come out as U+FFFD.
 */
export class Detokenizer {
  readonly #bytesOf: (tokenId: number) => Uint8Array;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  /** The start of a character, at most three bytes. */
  #held: Uint8Array = new Uint8Array(0);

  constructor(bytesOf: (tokenId: number) => Uint8Array) {
    this.#bytesOf = bytesOf;
  }

  /** The text that this token completes; may be empty. */
  push(tokenId: number): string {
    const added = this.#bytesOf(tokenId);
    const bytes = new Uint8Array(this.#held.length + added.length);
    bytes.set(this.#held);
    bytes.set(added, this.#held.length);
    const end = bytes.length - numUnfinished(bytes);
    this.#held = bytes.slice(end);
    return this.#decoder.decode(bytes.subarray(0, end));
  }

  /** What is still held back; the detokenizer is then as new. */
  flush(): string {
    const text = this.#decoder.decode(this.#held);
    this.#held = new Uint8Array(0);
    return text;
  }
}

/**
 * How many bytes at the end are the start of a character. An encoded surrogate counts as one until its third byte, as
 * in Python.
 */
function numUnfinished(bytes: Uint8Array): number {
  for (let length = 1; length <= Math.min(3, bytes.length); length++) {
    const lead = bytes[bytes.length - length] as number;
    if (lead >= 0x80 && lead < 0xc0) continue;
    const size =
      lead >= 0xc2 && lead < 0xe0 ? 2 : lead >= 0xe0 && lead < 0xf0 ? 3 : lead >= 0xf0 && lead < 0xf5 ? 4 : 1;
    if (length >= size) return 0;
    const second = length > 1 ? (bytes[bytes.length - length + 1] as number) : undefined;
    const wrong =
      second !== undefined &&
      ((lead === 0xe0 && second < 0xa0) || (lead === 0xf0 && second < 0x90) || (lead === 0xf4 && second > 0x8f));
    return wrong ? 0 : length;
  }
  return 0;
}
