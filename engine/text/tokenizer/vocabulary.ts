/**
 * The vocabulary of a model: token ids, their strings and bytes, and which tokens can begin a given text. Turns ids
 * back into text. Does not encode text (see tokenizer.ts).
 */
import { BYTE_CHARACTERS, byteValue } from './spelling.ts';
import type { AddedToken } from './tokenizerJson.ts';

/** Tokens are grouped by this many first characters. */
const GROUP_CHARACTERS = 2;

export class Vocabulary {
  /** Control tokens and other added tokens, by id. */
  readonly addedTokens: ReadonlyMap<number, AddedToken>;
  /** Token strings spell bytes in GPT-2's alphabet (see Pieces). */
  readonly #byteLevel: boolean;
  readonly #idOf: Map<string, number>;
  /** Token string by id, as the vocabulary spells it. */
  readonly #tokens: string[] = [];
  readonly #bytes: Uint8Array[] = [];
  #groups: Map<string, number[]> | null = null;
  readonly #byteOfCharacter = new Map(BYTE_CHARACTERS.map((character, byte) => [character, byte]));

  /** `vocab`: ids by token string, without the added tokens. */
  constructor(vocab: Record<string, number>, added: readonly AddedToken[], byteLevel: boolean) {
    this.#byteLevel = byteLevel;
    this.#idOf = new Map(Object.entries(vocab));
    this.addedTokens = new Map(added.map((token) => [token.id, token]));
    for (const token of added) this.#idOf.set(token.content, token.id);
    for (const [token, id] of this.#idOf) this.#tokens[id] = token;
  }

  /** One more than the largest id. */
  get size(): number {
    return this.#tokens.length;
  }

  /** The id of a token by its exact string. Also finds added tokens. */
  idOf(token: string): number | undefined {
    return this.#idOf.get(token);
  }

  /** Spells ASCII text as the strings of the vocabulary do. */
  spelling(text: string): string {
    return this.#byteLevel
      ? Array.from(text, (character) => BYTE_CHARACTERS[character.charCodeAt(0)]).join('')
      : text.replaceAll(' ', '▁');
  }

  /** Whether each character of an ASCII text has a token. Then the text can be continued from any place in it. */
  canSpell(text: string): boolean {
    return [...text].every(
      (character) => this.#idOf.has(this.spelling(character)) || this.#byteToken(character) !== undefined,
    );
  }

  /** The token for the byte of an ASCII character, if the vocabulary has tokens for bytes. */
  #byteToken(character: string): number | undefined {
    return this.#byteLevel
      ? undefined
      : this.#idOf.get(`<0x${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}>`);
  }

  /** The string of a token. A token for a byte gives the character. '' for an id outside the vocabulary. */
  spellingOf(id: number): string {
    const token = this.#tokens[id] ?? '';
    const byte = this.#byteLevel ? undefined : byteValue(token);
    return byte === undefined ? token : this.spelling(String.fromCharCode(byte));
  }

  /** Tokens that begin with this spelling of ASCII text, or whose string begins it. Never control tokens. */
  tokensToward(spelling: string): number[] {
    const ids: number[] = [];
    const ofByte = this.#byteToken(spelling[0] === '▁' ? ' ' : spelling);
    if (ofByte !== undefined) ids.push(ofByte);
    const isPlain = (id: number): boolean => !this.addedTokens.has(id);
    for (let length = 1; length < spelling.length; length++) {
      const id = this.#idOf.get(spelling.slice(0, length));
      if (id !== undefined && isPlain(id)) ids.push(id);
    }
    for (const id of this.#byFirstCharacters.get(spelling.slice(0, GROUP_CHARACTERS)) ?? [])
      if (this.#tokens[id]!.startsWith(spelling) && isPlain(id)) ids.push(id);
    if (spelling.length < GROUP_CHARACTERS)
      for (const [first, group] of this.#byFirstCharacters)
        if (first.length > spelling.length && first.startsWith(spelling)) ids.push(...group.filter(isPlain));
    return ids;
  }

  /** Token ids by their first characters. Built on first use: about 20 ms for 150,000 tokens. */
  get #byFirstCharacters(): ReadonlyMap<string, readonly number[]> {
    if (this.#groups) return this.#groups;
    this.#groups = new Map();
    for (const [id, token] of this.#tokens.entries()) {
      if (token === undefined) continue;
      const first = token.slice(0, GROUP_CHARACTERS);
      const group = this.#groups.get(first);
      if (group) group.push(id);
      else this.#groups.set(first, [id]);
    }
    return this.#groups;
  }

  /** The bytes that a token adds to a text. Empty for an id outside the vocabulary. */
  bytesOf(id: number): Uint8Array {
    const known = this.#bytes[id];
    if (known !== undefined) return known;
    const token = this.#tokens[id];
    if (token === undefined) return new Uint8Array(0);
    const bytes = this.#toBytes(token, this.addedTokens.has(id));
    this.#bytes[id] = bytes;
    return bytes;
  }

  #toBytes(token: string, added: boolean): Uint8Array {
    if (this.#byteLevel) {
      const bytes = added ? undefined : Array.from(token, (character) => this.#byteOfCharacter.get(character));
      return bytes === undefined || bytes.includes(undefined)
        ? new TextEncoder().encode(token)
        : Uint8Array.from(bytes as number[]);
    }
    const byte = byteValue(token);
    return byte === undefined ? new TextEncoder().encode(token.replaceAll('▁', ' ')) : Uint8Array.of(byte);
  }
}

/**
 * Turns token ids into text, one id at a time. Holds bytes back until they form whole characters. Bytes that can never
 * become a character come out as U+FFFD.
 */
export class Detokenizer {
  readonly #bytesOf: (tokenId: number) => Uint8Array;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  /** The start of a character, at most three bytes. */
  #held: Uint8Array = new Uint8Array(0);

  constructor(bytesOf: (tokenId: number) => Uint8Array) {
    this.#bytesOf = bytesOf;
  }

  /** The text that this token completes. May be empty. */
  push(tokenId: number): string {
    const added = this.#bytesOf(tokenId);
    const bytes = new Uint8Array(this.#held.length + added.length);
    bytes.set(this.#held);
    bytes.set(added, this.#held.length);
    const end = bytes.length - numUnfinished(bytes);
    this.#held = bytes.slice(end);
    return this.#decoder.decode(bytes.subarray(0, end));
  }

  /** The text of the bytes that are held back. Resets the detokenizer. */
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
