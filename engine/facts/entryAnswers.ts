/** Answers questions about tables, keys and headings of data files, from their entries. Does not read files. */
import { ENTRY_NAMES } from './changeWords.ts';
import type { Entry, EntryKind } from './extract/entries.ts';
import type { FactQuery } from './factQuestions.ts';
import { placesOf, type Source } from './places.ts';
import { quoted, type Words } from './words.ts';

/** The kinds that `only` of an outline means in these files. */
const OF_PARTS: Readonly<Record<string, EntryKind>> = { functions: 'function', types: 'type' };
const KINDS = Object.keys(ENTRY_NAMES) as EntryKind[];

const titleOf = (kind: EntryKind, { language }: Words): string => {
  const [word = ''] = ENTRY_NAMES[kind][language].split(',');
  return `${word.charAt(0).toUpperCase()}${word.slice(1)}`;
};

/** Undefined if the entries do not give it. A file of a kind that cannot have what is asked for gives no answer. */
export function entryAnswer(query: FactQuery, entries: readonly Entry[], source: Source): string | undefined {
  const { kind, name, only, entry: asked } = query;
  const { words, path } = source;
  if (kind === 'where' || kind === 'changes') {
    const lines = entries
      .filter((each) => each.name === name || each.name.endsWith(`.${name}`))
      .map(({ line }) => line);
    return lines.length > 0 ? words.defined(quoted(name), placesOf(lines, source)) : undefined;
  }
  // Such a file is for what it defines.
  if ((kind === 'purpose' && name === '') || (kind === 'outline' && only === undefined))
    return entries.length === 0 ? words.nothing(path) : `${words.outline(path)}\n\n${outline(entries, words)}`;
  const tables = kind === 'entries' ? tomlTables(asked, entries, source) : undefined;
  if (tables !== undefined) return tables;
  const kinds = kind === 'entries' ? asked : kind === 'outline' ? only?.map((part) => OF_PARTS[part]) : undefined;
  if (!kinds || kinds.some((each) => each === undefined || !isOfFile(each, entries, path))) return undefined;
  return kinds.map((each) => listOf(each as EntryKind, entries, source)).join('\n\n');
}

/** TOML calls its sections tables. */
function tomlTables(asked: FactQuery['entry'], entries: readonly Entry[], { words, path }: Source): string | undefined {
  if (asked?.length !== 1 || !(asked[0] === 'table' || asked[0] === 'heading') || !/\.toml`?$/.test(path))
    return undefined;
  return words.of(titleOf('table', words), path, words.listedNames(entries.filter(({ isTable }) => isTable)));
}

/** Whether such a file can have entries of a kind. An SQL file has no headings. */
function isOfFile(kind: EntryKind, entries: readonly Entry[], path: string): boolean {
  const isKeys = kind === 'key' || kind === 'heading';
  if (entries.length > 0) return entries.some((each) => each.kind === kind) || (!isKeys && entries.every(isSql));
  return (kind === 'heading') === /\.mdx?`?$/.test(path) && (kind === 'key') !== /\.(?:sql|mdx?)`?$/.test(path);
}

const isSql = ({ kind }: Entry): boolean => kind !== 'key' && kind !== 'heading';

function listOf(kind: EntryKind, entries: readonly Entry[], { words, path }: Source): string {
  const own = entries.filter((each) => each.kind === kind && (kind !== 'key' || each.depth === 0));
  const title = kind === 'key' ? words.topLevel : titleOf(kind, words);
  return words.of(title, path, words.listedNames(own));
}

/** Headings and keys with their depth, at most two levels of keys. */
function outline(entries: readonly Entry[], words: Words): string {
  return KINDS.flatMap((kind) => {
    const some = entries.filter((each) => each.kind === kind && (kind !== 'key' || each.depth < 2));
    const items = some.map(({ name, line, depth }) => `${'  '.repeat(depth)}- ${words.named(name, line)}`);
    return items.length > 0 ? [`${titleOf(kind, words)}:\n${items.join('\n')}`] : [];
  }).join('\n\n');
}
