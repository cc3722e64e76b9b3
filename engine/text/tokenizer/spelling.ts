/** How the tokens of a vocabulary spell bytes, and where normalised text comes from. Does not know any vocabulary. */

/** The byte of a token such as "<0x0A>". */
export function byteValue(token: string): number | undefined {
  return token.length === 6 && token.startsWith('<0x') && token.endsWith('>')
    ? Number.parseInt(token.slice(3, 5), 16)
    : undefined;
}

/** GPT-2's alphabet: the character for each byte. */
export const BYTE_CHARACTERS: readonly string[] = (() => {
  const printable = (byte: number): boolean =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : next++));
})();

/** Spells a text in GPT-2's alphabet. */
export function bytesAsText(text: string): string {
  return Array.from(new TextEncoder().encode(text), (byte) => BYTE_CHARACTERS[byte]).join('');
}

export function utf8Size(code: number): number {
  if (code < 0x80) return 1;
  if (code < 0x800) return 2;
  return code < 0x10000 ? 3 : 4;
}

/** For each offset of the normalised text, the offset in the source. Exact at every ASCII character. */
export function sourceOffsets(text: string, normalize: (part: string) => string): number[] {
  const map = [0];
  let source = 0;
  // No composition crosses an ASCII character, so each one is normalised with the characters after it.
  for (const part of text.match(/[\0-\x7f]?[^\0-\x7f]*/g) ?? []) {
    const composed = normalize(part);
    const same = composed.length === part.length;
    for (let i = 1; i <= composed.length; i++)
      map.push(
        same || i === composed.length ? source + Math.min(i, part.length) : source + Math.min(i - 1, part.length),
      );
    source += part.length;
    map[map.length - 1] = source;
  }
  return map;
}
