/** Answers questions about lists: outline, imports, exports, members. Does not answer other questions about a name. */
import { contentsOf, type Definition, firsts, isMemberOf } from './extract/definitions.ts';
import { topOf } from './extract/facts.ts';
import { type Kind, KINDS } from './intents.ts';
import type { Query } from './questions.ts';
import { asItem, fullName, type Item, joined, type Source } from './sentences.ts';

/** The kinds of lists that a definition belongs to. The first one is its kind in an outline. */
function kindsOf({ kind, owner, word, constant }: Definition, { facts }: Source): readonly (string | undefined)[] {
  // Assignments make properties, too, so those of a file are not listed.
  if (kind === 'value') return owner === undefined ? ['variable', constant && 'constant'] : [];
  // In most other languages, functions are methods.
  if (kind === 'method') return owner === undefined ? [] : ['method', facts.partial ? 'function' : ''];
  return [kind, word];
}

/** An item for each name or module. */
const itemsOf = (some: readonly { name?: string; module?: string; line: number }[]): Item[] =>
  firsts(some.map(({ name, module = '', line }) => ({ name: name ?? module, line }))).map(asItem);

/** The definitions of some kinds. Without any of one of these, all: that there are none cannot be said. */
export function outlineAnswer({ kinds = [] }: Query, source: Source): string | undefined {
  // In a tree with errors, a function may be a method of a class.
  const known = firsts(source.facts.definitions.filter(({ kind, broken }) => kind !== 'function' || !broken));
  const lists = kinds.map((kind) => {
    const some = known.filter((each) => kindsOf(each, source).includes(kind));
    const items = some.map((each) => ({ text: fullName(each, source), lines: [each.line] }));
    // Keys stand in others, so they are shown with their depth.
    return kind === 'key' ? undefined : source.sayAny('list', items, source.titleOf(kind));
  });
  if (kinds.length > 0 && !lists.includes(undefined)) return joined([...lists, source.partly()]);
  const groups = (Object.keys(KINDS) as Kind[]).flatMap((kind) => groupOf(kind, known, source) ?? []);
  if (source.facts.partial && (groups.length === 0 || kinds.length > 0)) return undefined;
  const title = source.say(groups.length > 0 ? 'outline' : 'nothingDefined');
  return [title, ...groups, source.partly() ?? []].flat().join('\n\n');
}

/** The definitions of a kind at the top level, with their members. Of data files at most two levels of keys. */
function groupOf(kind: Kind, known: readonly Definition[], source: Source): string | undefined {
  const isTop = topOf(source.facts);
  const inside = contentsOf(known, kind === 'namespace');
  const items = known
    .filter((each) => kindsOf(each, source)[0] === kind && !each.local && isTop(each))
    .filter(({ depth = 0 }) => kind !== 'key' || depth < 2)
    .map((each) => {
      const detail = (kind !== 'method' && source.listed(inside(each).map(asItem))) || undefined;
      return { text: fullName(each, source), lines: [each.line], detail, depth: each.depth ?? 0 };
    });
  return source.sayAny('group', items, source.titleOf(kind));
}

export function importsAnswer(_: Query, source: Source): string | undefined {
  const { imports, reexports } = source.facts;
  const others = source.sayAny('reexports', itemsOf(reexports));
  return joined([source.say('imports', undefined, itemsOf(imports)), others, source.partly()]);
}

export function exportsAnswer(_: Query, source: Source): string | undefined {
  const { definitions, exports, broken } = source.facts;
  const { isPython, listLine, passedOn, unclear, named } = exports;
  if (unclear || broken) return source.say('unclear');
  const isByName = isPython && listLine === undefined;
  const isPublic = ({ name, local, owner }: Definition) => !local && owner === undefined && !name.startsWith('_');
  return joined([
    source.say(isByName ? 'publics' : 'exports', undefined, itemsOf(isByName ? definitions.filter(isPublic) : named)),
    source.sayAny('reexports', itemsOf(passedOn)),
  ]);
}

/** The methods and properties of a class. Undefined if other code may add some. */
export function membersAnswer(one: Definition, source: Source, about: string, query: Query): string | undefined {
  const { definitions, fields, calls, broken, partial } = source.facts;
  const { kinds = [] } = query;
  const isOpen = calls.some(({ on, name: to }) => (on === 'Object' && to === 'assign') || to === 'setattr');
  if (broken || (partial ? one.kind !== 'class' : one.bases === undefined) || (isOpen && !kinds.includes('method')))
    return undefined;
  const isMethod = ({ kind, held }: Definition): boolean => kind === 'method' && !held;
  const members = definitions.filter((each) => isMemberOf(each, one));
  const assigned = fields.filter(({ classAt, of }) => (of === undefined ? classAt === one.at : of === one.name));
  const properties = [...members.filter((each) => !isMethod(each)), ...assigned].sort((a, b) => a.line - b.line);
  const lists = [['method', itemsOf(members.filter(isMethod))] as const, ['property', itemsOf(properties)] as const];
  const asked = lists.filter(([kind, all]) => (kinds.length === 0 ? !partial || all.length > 0 : kinds.includes(kind)));
  // Of other languages, not all kinds of members are read.
  if (partial && asked.some(([, all]) => all.length === 0)) return undefined;
  const said = asked.map(([kind, items]) => source.say('list', source.titleOf(kind), items, about));
  if (said.length === 0 || one.bases?.length === 0) return joined(said);
  return joined([...said, basesAnswer(one, source, about), source.say('inherits')]);
}

export const basesAnswer = ({ bases, line }: Definition, source: Source, about: string): string | undefined =>
  bases && source.say('bases', about, itemsOf(bases.map((name) => ({ name, line }))));
