/** One file with what it defines, and how its names and lines become parts of an answer. Answers nothing. */
import type { SourceDocument } from '../text/syntax/sourceDocument.ts';
import type { Definition } from './extract/definitions.ts';
import { entriesOf, type Entry } from './extract/entries.ts';
import { type Facts, NO_FACTS } from './extract/facts.ts';
import type { Language } from './intents.ts';
import type { Query } from './questions.ts';
import { type Item, joined, quoted, sentence, type Title, words } from './sentences.ts';

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

/** All names of the file. A parameter whose name may be an ordinary word is none. */
export function namesIn({ facts, defined }: Source): Set<string> {
  const { changes, fields, imports, localNames } = facts;
  return new Set([
    ...defined.flatMap(({ name, entry }) => (entry ? [name, ...name.split('.')] : [name])),
    ...[...fields, ...changes.writes, ...changes.throws].flatMap(({ name }) => name ?? []),
    ...imports.flatMap(({ names }) => names),
    ...[...localNames].filter((name) => !/^\p{Ll}+$/u.test(name)),
  ]);
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

export const partly = ({ facts, say }: Source): string | undefined => (facts.broken ? say('partly') : undefined);

/** With more definitions of one name, only the question where it is defined is answered. */
export const MAX_SAME = 8;

export type Answer = (query: Query, source: Source) => string | undefined;

/** The definitions of the name, without setters that have a getter. `c` names `s.c` in a data file. */
export function calledBy({ name, owner, parameter, within }: Query, defined: readonly Defined[]): Defined[] {
  const called = defined.filter((each) =>
    each.entry
      ? each.name === name || each.name.endsWith(`.${name}`)
      : each.name === name &&
        (owner === undefined || each.owner === owner) &&
        (parameter === undefined || each.parameters?.some((one) => bareOf(one.name) === parameter)) &&
        (within === undefined || (each.at !== undefined && within.start <= each.at && each.at < within.end)),
  );
  const getters = called.filter(({ kind, parameters }) => kind !== 'accessor' || parameters?.length === 0);
  return getters.length > 0 ? getters : called;
}

/** Without what is not part of it in all languages: `$total`, `*rest`, `count?`. */
export const bareOf = (name: string): string => name.replace(/^(?:\$|\.\.\.|\*+)|\?$/g, '');

/** What is said of each definition of a name. `about` has the owner where the definitions have different ones. */
export function ofEach(
  answer: (one: Defined, source: Source, about: string, query: Query) => string | undefined,
): Answer {
  return (query, source) => {
    const called = calledBy(query, source.defined);
    if (called.length === 0 || called.length > MAX_SAME || called.some(({ broken }) => broken)) return undefined;
    const hasOwners = new Set(called.map(({ owner }) => owner)).size > 1;
    const said = called.map((one) => answer(one, source, quoted(hasOwners ? fullName(one) : one.name), query));
    return said.includes(undefined) ? undefined : joined(said);
  };
}
