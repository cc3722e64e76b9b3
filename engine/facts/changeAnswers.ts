/** Answers questions about what is assigned and thrown, from the changes that a tree shows. Does not read trees. */
import type { Changes, Throw, Write } from './extract/changes.ts';
import type { FactQuery } from './factQuestions.ts';
import { linesOf, placesOf, type Source } from './places.ts';
import { quoted } from './words.ts';

type ChangeKind = 'changes' | 'changers' | 'thrown' | 'throwsOf' | 'throwers' | 'assigned';
type Asked = (query: FactQuery, source: Source) => string | undefined;

const ANSWERS: Readonly<Record<ChangeKind, Asked>> = {
  changes: changesAnswer,
  changers: changersAnswer,
  thrown: thrownAnswer,
  throwsOf: throwsAnswer,
  throwers: throwersAnswer,
  assigned: assignedAnswer,
};

export const isOfChanges = (kind: string): kind is ChangeKind => Object.hasOwn(ANSWERS, kind);

/** Undefined if the tree leaves it open. */
export function changeAnswer(kind: ChangeKind, query: FactQuery, source: Source): string | undefined {
  return ANSWERS[kind](query, source);
}

const distinct = (lines: readonly number[]): number[] => [...new Set(lines)].sort((a, b) => a - b);
const linesAt = (some: readonly { line: number }[]): number[] => distinct(some.map(({ line }) => line));

const writesOf = ({ writes }: Changes, name: string): Write[] => writes.filter((each) => each.name === bareOf(name));
/** `#` and `$` before a name are not part of it in all languages. */
const bareOf = (name: string): string => name.replace(/^\$/, '');

function changesAnswer({ name }: FactQuery, source: Source): string | undefined {
  const { facts, words, path } = source;
  const all = writesOf(facts.changes, name);
  const later = all.filter(({ declares }) => !declares);
  const first = all.filter(({ declares }) => declares);
  // With errors in the tree, some assignments may be missing.
  if (later.length === 0 && facts.broken) return undefined;
  const calls = later.length === 0 ? linesAt(facts.calls.filter(({ on }) => on === name)) : [];
  return told([
    later.length > 0
      ? words.assigned(quoted(name), placesOf(linesAt(later), source))
      : words.notAssigned(quoted(name), path),
    ...(first.length > 0 ? [words.firstValue(placesOf(linesAt(first), source))] : []),
    ...(calls.length > 0 ? [words.callsOn(placesOf(calls, source))] : []),
    ...(facts.broken ? [words.partly] : []),
  ]);
}

const told = (sentences: readonly string[]): string =>
  sentences.join(sentences.some((each) => each.includes('\n')) ? '\n\n' : ' ');

function changersAnswer(query: FactQuery, source: Source): string | undefined {
  const { name } = query;
  const { facts, words } = source;
  const later = writesOf(facts.changes, name).filter(({ declares }) => !declares);
  if (later.length === 0) return changesAnswer(query, source);
  const list = words.listed(
    [...byFunction(later)].map(([within, some]) => {
      const lines = linesAt(some).map((line) => words.line(line));
      return `${within === '' ? words.outsideFunctions : quoted(within)} ${lines.join(' ')}`;
    }),
  );
  return told([words.changedBy(quoted(name), list), ...(facts.broken ? [words.partly] : [])]);
}

function byFunction<T extends { within?: string }>(some: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of some) groups.set(one.within ?? '', [...(groups.get(one.within ?? '') ?? []), one]);
  return groups;
}

function thrownAnswer({ name }: FactQuery, source: Source): string | undefined {
  const { facts, words, path, text } = source;
  const lines = linesAt(facts.changes.throws.filter((each) => each.name === bareOf(name)));
  if (lines.length > 0) return words.thrown(quoted(name), placesOf(lines, source));
  if (facts.broken) return undefined;
  const others = linesOf(text, name);
  return told([
    words.notThrown(quoted(name), path),
    ...(others.length > 0 ? [words.alsoAppears(placesOf(others, source))] : []),
  ]);
}

function throwsAnswer({ name, owner }: FactQuery, { facts, words }: Source): string | undefined {
  const { named, throws } = facts.changes;
  const functions = named.filter(
    (each) => each.name === name && each.kind !== 'class' && (owner === undefined || each.owner === owner),
  );
  if (functions.length === 0 || facts.broken) return undefined;
  const called = new Set(functions.map((each) => (each.owner === undefined ? name : `${each.owner}.${name}`)));
  const own = throws.filter(({ within }) => within !== undefined && called.has(within));
  return own.length > 0
    ? words.throws(quoted(name), words.and(own.map((each) => thrownIn(each, words))))
    : words.throwsNothing(quoted(name));
}

const thrownIn = ({ name, line, inner }: Throw, words: Source['words']): string =>
  `${name === undefined ? words.aValue : quoted(name)} ${words.line(line)}${inner ? ` ${words.inInner}` : ''}`;

function throwersAnswer(_: FactQuery, { facts, words, path, text }: Source): string | undefined {
  const { throws } = facts.changes;
  if (text.trim() === '') return undefined;
  if (throws.length === 0) return facts.broken ? undefined : words.noThrowers(path);
  const list = [...byFunction(throws)].map(([within, some]) => {
    const what = some.map((each) => thrownIn(each, words));
    return `${within === '' ? words.outsideFunctions : quoted(within)}: ${words.listed(what)}`;
  });
  return told([
    list.length === 1
      ? `${words.throwers(path, list.join(''))}.`
      : `${words.throwers(path, '').trimEnd()}\n\n${list.map((each) => `- ${each}`).join('\n')}`,
    words.mayThrow,
    ...(facts.broken ? [words.partly] : []),
  ]);
}

/** The names that are assigned after their first value. */
function assignedAnswer(_: FactQuery, { facts, words, path }: Source): string | undefined {
  const names = new Map<string, number>();
  for (const { name, line, declares } of facts.changes.writes) if (!declares && !names.has(name)) names.set(name, line);
  const list = words.listedNames([...names].map(([name, line]) => ({ name, line })));
  if (list === '' && facts.broken) return undefined;
  return told([words.of(words.assignedNames, path, list), ...(facts.broken ? [words.partly] : [])]);
}
