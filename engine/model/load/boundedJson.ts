/**
 * Parses JSON of untrusted files. Bounds its nesting and its number of values before the parser takes memory for them.
 * Does not know what the values mean.
 */

/** The deepest file of a real model, a tokenizer.json, has 7 levels. */
const MAX_DEPTH = 64;
/** Parsed values take up to about 50 bytes each. The largest tokenizer.json, with 262,144 tokens, has 2.9 million. */
const MAX_VALUES = 4_000_000;

/** What is too much in a text, as the end of a sentence. */
export class JsonTooLarge extends Error {}

/**
 * @throws JsonTooLarge if it is nested too deeply or has too many values
 * @throws SyntaxError as JSON.parse
 */
export function parseBoundedJson(text: string): unknown {
  let depth = 0;
  let values = 0;
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 0x22: // A string: its end is the next quote without a backslash before it.
        do {
          i = text.indexOf('"', i + 1);
          if (i < 0) return JSON.parse(text);
        } while (isEscaped(text, i));
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > MAX_DEPTH) throw new JsonTooLarge(`is nested more than ${MAX_DEPTH} levels deep`);
        values++;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth--;
        break;
      case 0x2c: // ,
        values++;
    }
    if (values > MAX_VALUES) throw new JsonTooLarge(`has more than ${MAX_VALUES} values`);
  }
  return JSON.parse(text);
}

/** Whether an odd number of backslashes stands before a place in a string. */
function isEscaped(text: string, at: number): boolean {
  let first = at;
  while (text.charCodeAt(first - 1) === 0x5c) first--;
  return (at - first) % 2 === 1;
}
