/** Finds the lines of a file that contain a name, and writes names and lines for an answer. Knows no language. */
import type { Definition } from './extract/definitions.ts';
import type { Facts } from './extract/facts.ts';
import { quoted, type Words } from './words.ts';

/** So many places are shown with their code. More places are shown as line numbers. */
const MAX_SHOWN = 3;
/** Longer lines of code are not shown. */
const MAX_CODE = 140;

/** The file of an answer. */
export interface Source {
  text: string;
  /** Ready for display. */
  path: string;
  facts: Facts;
  words: Words;
}

/** Matches the name as a whole word. */
const asWord = (name: string): RegExp =>
  new RegExp(`(?<![\\p{L}\\p{N}_$])${name.replace(/[$.*+?^(){}|[\]\\/]/g, '\\$&')}(?![\\p{L}\\p{N}_$])`, 'u');

export const occursIn = (text: string, name: string): boolean => asWord(name).test(text);

/** The lines that contain a name, from 1. */
export function linesOf(text: string, name: string): number[] {
  const named = asWord(name);
  return text.split('\n').flatMap((line, i) => (named.test(line) ? [i + 1] : []));
}

/** " in line 3: `code`.", " in lines 3, 5 and 9.", or a list. Begins with a space or a line break. */
export function placesOf(lines: readonly number[], { text, words }: Source): string {
  if (lines.length > MAX_SHOWN) return ` ${words.inLines(words.listed(lines.map(String)))}.`;
  const all = text.split('\n');
  const places = lines.map((line) => {
    const code = (all[line - 1] ?? '').trim();
    return words.inLine(line, code.length <= MAX_CODE && !code.includes('`') ? `\`${code}\`` : undefined);
  });
  return places.length > 1 ? `\n\n${places.map((place) => `- ${place}`).join('\n')}` : ` ${places.join('')}.`;
}

export const fullName = ({ name, owner }: Pick<Definition, 'name' | 'owner'>): string =>
  owner === undefined ? name : `${owner}.${name}`;

/** The name of a definition, with its class if several classes have that name. */
export function toldApart(all: readonly Definition[], one: Definition): string {
  return quoted(new Set(all.map(({ owner }) => owner)).size > 1 ? fullName(one) : one.name);
}

/** Joins the different sentences. More than two become a list. */
export function sentences(all: readonly string[]): string {
  const different = [...new Set(all)];
  return different.length > 2 ? different.map((each) => `- ${each}`).join('\n') : different.join(' ');
}
