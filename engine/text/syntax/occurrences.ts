/** Finds a name in a text as a whole word. Does not read syntax. */

/** A name that occurs more often says nothing. */
const MAX_OCCURRENCES = 100;
/** Longer lines are generated, or data. In characters. */
const MAX_LINE = 500;

/** Offsets of a whole word. Undefined for too many. */
export function occurrences(text: string, name: string): number[] | undefined {
  const found: number[] = [];
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    if (isLetter(text[at - 1]) || isLetter(text[at + name.length])) continue;
    if (found.length === MAX_OCCURRENCES) return undefined;
    found.push(at);
  }
  return found;
}

/** The lines that have a whole word, without long ones. Empty for a word that occurs too often. */
export function linesWith(text: string, name: string): string[] {
  const lines = new Set<string>();
  for (const at of occurrences(text, name) ?? []) {
    const start = text.lastIndexOf('\n', at) + 1;
    const end = text.indexOf('\n', at);
    const line = text.slice(start, end < 0 ? undefined : end);
    if (line.length <= MAX_LINE) lines.add(line);
  }
  return [...lines];
}

/** Matches the name as a whole word. */
const asWord = (name: string): RegExp =>
  new RegExp(`(?<![\\p{L}\\p{N}_$])${name.replace(/[$.*+?^(){}|[\]\\/]/g, '\\$&')}(?![\\p{L}\\p{N}_$])`, 'u');

export const occursIn = (text: string, name: string): boolean => asWord(name).test(text);

/** The numbers of all lines that contain a name, from 1. */
export function lineNumbersOf(text: string, name: string): number[] {
  const named = asWord(name);
  return text.split('\n').flatMap((line, i) => (named.test(line) ? [i + 1] : []));
}

export const isLetter = (character: string | undefined): boolean =>
  character !== undefined && /[\p{L}\p{N}_$]/u.test(character);
