/** Shows names and messages in one line. Does not shorten or translate them. */

/** The text with control characters and line separators written as in JSON, such as `\n`. */
export function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]/gu, (character) =>
    character >= '\u007f'
      ? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
      : JSON.stringify(character).slice(1, -1),
  );
}
