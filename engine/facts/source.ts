/** One file with what it defines, and how its names and lines become parts of an answer. Answers nothing. */
import type { SourceDocument } from '../text/syntax/sourceDocument.ts';
import type { Definition } from './extract/definitions.ts';
import { entriesOf, type Entry } from './extract/entries.ts';
import { type Facts, NO_FACTS } from './extract/facts.ts';
import type { Language } from './intents.ts';
import { type Item, quoted, sentence, type Title, words } from './sentences.ts';

/** A definition of a tree, or an entry of a data file. */
export type Defined = Definition & { entry?: Entry };

export interface Source {
  document: SourceDocument;
  facts: Facts;
  defined: readonly Defined[];
  /** A data file, such as JSON. */
  isData: boolean;
  language: Language;
  /** A sentence about a name, or about the file. `other` is the file, too. */
  say(title: Title, items?: readonly Item[], about?: string, other?: string): string;
}

export function sourceOf(document: SourceDocument, facts: Facts = NO_FACTS, language: Language): Source {
  const entries = entriesOf(document);
  const path = quoted(document.path);
  return {
    ...{ document, facts, language },
    defined: entries?.map(asDefined) ?? facts.definitions,
    isData: entries !== undefined,
    say(title, items, about = path, other = path) {
      const said = words(language, title, about, other);
      return items ? sentence(said, items, language) : said;
    },
  };
}

function asDefined(entry: Entry): Defined {
  const kind = entry.kind === 'function' || entry.kind === 'type' ? entry.kind : 'value';
  return { kind, name: entry.name, line: entry.line, entry, local: false, broken: false, brokenInside: false };
}

/** So many places are shown with their code, if it is not longer than MAX_CODE. */
const MAX_PLACES = 3;
const MAX_CODE = 140;

/** Few lines with their code, or more lines as one item. */
export function placesOf(lines: readonly number[], { document: { lf } }: Source): Item[] {
  const all = [...new Set(lines)].sort((a, b) => a - b);
  if (all.length > MAX_PLACES) return [{ lines: all }];
  const code = lf.split('\n');
  return all.map((line) => ({ lines: [line], detail: shown((code[line - 1] ?? '').trim(), MAX_CODE) }));
}

/** Code for an item. Undefined if it is longer than `max`, or cannot be quoted. */
export const shown = (code: string, max: number): string | undefined =>
  code.length <= max && !code.includes('``') ? quoted(code) : undefined;

export const fullName = ({ name, owner }: Pick<Definition, 'name' | 'owner'>): string =>
  owner === undefined ? name : `${owner}.${name}`;

export const asItem = ({ name, line }: { name: string; line: number }): Item => ({ text: quoted(name), lines: [line] });
