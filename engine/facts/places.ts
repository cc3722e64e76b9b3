/** Finds names in texts and writes lines and lists for answers. */
import type { Definition } from './extract/definitions.ts';
import { quoted, type Words } from './words.ts';

/** Lists longer than MAX_NAMES name only the first NAMED. */
const MAX_NAMES = 60;
const NAMED = 20;
/** So many places are shown with their code; more are line numbers. */
const MAX_SHOWN = 3;
/** Longer lines are not shown. */
const MAX_CODE = 140;

/** What an answer is read from. */
export interface Source {
  text: string;
  /** Ready for display. */
  path: string;
  words: Words;
}

/** The name as a word of its own. */
const asWord = (name: string): RegExp =>
  new RegExp(`(?<![\\p{L}\\p{N}_$])${name.replace(/[$.*+?^(){}|[\]\\/]/g, '\\$&')}(?![\\p{L}\\p{N}_$])`, 'u');

export const occursIn = (text: string, name: string): boolean => asWord(name).test(text);

/** All lines in which a name stands, from 1. */
export function linesOf(text: string, name: string): number[] {
  const named = asWord(name);
  return text.split('\n').flatMap((line, i) => (named.test(line) ? [i + 1] : []));
}

/** All items, or the first ones and how many more there are. */
export function listed(items: readonly string[], words: Words): string {
  return words.and(items.length <= MAX_NAMES ? items : [...items.slice(0, NAMED), words.more(items.length - NAMED)]);
}

/** " in line 3: `code`." or " in lines 3, 5 and 9.", or a list, with the space or break before it. */
export function placesOf(lines: readonly number[], { text, words }: Source): string {
  if (lines.length > MAX_SHOWN) return ` ${words.inLines(listed(lines.map(String), words))}.`;
  const all = text.split('\n');
  const places = lines.map((line) => {
    const code = (all[line - 1] ?? '').trim();
    return words.inLine(line, code.length <= MAX_CODE && !code.includes('`') ? `\`${code}\`` : undefined);
  });
  return places.length > 1 ? `\n\n${places.map((place) => `- ${place}`).join('\n')}` : ` ${places.join('')}.`;
}

/** "`flush` (line 3)". */
export const named = (name: string, line: number, words: Words): string => `${quoted(name)} (${words.line(line)})`;

export const fullName = ({ name, owner }: Pick<Definition, 'name' | 'owner'>): string =>
  owner === undefined ? name : `${owner}.${name}`;

/** With its class where that tells several of one name apart. */
export function toldApart(all: readonly Definition[], one: Definition): string {
  return quoted(new Set(all.map(({ owner }) => owner)).size > 1 ? fullName(one) : one.name);
}

/** Different sentences, as a list if they are many. */
export function sentences(all: readonly string[]): string {
  const different = [...new Set(all)];
  return different.length > 2 ? different.map((each) => `- ${each}`).join('\n') : different.join(' ');
}
