/** Answers questions about lists: outline, imports, exports, members. Does not answer other questions about a name. */
import type { Exported } from './extract/modules.ts';
import type { Kind } from './intents.ts';
import type { Query } from './questions.ts';
import { bullets, joined, listed, quoted, titleOf, words } from './sentences.ts';
import { type Answer, asItem, type Defined, fullName, ofEach, partly, type Source } from './source.ts';

export const LISTS = {
  outline: outlineAnswer,
  imports: importsAnswer,
  exports: exportsAnswer,
  members: ofEach(membersAnswer),
  base: ofEach(baseAnswer),
} as const satisfies Readonly<Record<string, Answer>>;

/** The kinds of lists that a definition or entry belongs to. The first one is its kind in an outline. */
function kindsOf({ kind, owner, word, constant, entry }: Defined): readonly string[] {
  if (entry) return entry.isTable ? ['keys', 'tables'] : [entry.kind === 'index' ? 'indexes' : `${entry.kind}s`];
  if (kind === 'class') return ['classes'];
  // Assignments make fields, too, so those of a file are not listed.
  if (kind === 'value') return owner === undefined ? ['variables', constant ? 'constants' : ''] : [];
  if (kind === 'method') return owner === undefined ? [] : ['methods'];
  return [`${kind}s`, word === undefined ? '' : `${word}s`];
}

const OUTLINE = 'classes tables views indexes triggers functions types namespaces variables keys headings'.split(' ');

/** Members belong to the definition that contains them, because several definitions may have one name. */
export const isMemberOf = (member: Defined, { name, at }: Defined): boolean =>
  member.owner === name && (member.ownerAt === undefined || member.ownerAt === at);

/** The first definition of each name, because overloads and accessors count once. */
export function firsts<T extends Pick<Defined, 'name'> & Partial<Defined>>(some: readonly T[]): T[] {
  const keys = some.map(({ name, ownerAt, functionAt }) => `${name} ${ownerAt} ${functionAt}`);
  const first = new Map(keys.map((key, i) => [key, i] as const).reverse());
  return some.filter(({ entry }, i) => entry ?? first.get(keys[i] ?? '') === i);
}

/** In other languages, structs and enums are read as classes. */
const titled = (kind: Kind, { facts, isData, language }: Source): string =>
  titleOf(kind === 'classes' && facts.partial && !isData ? 'types' : kind, language);

/** The definitions of some kinds. Without any of one of these, all: that there are none cannot be said. */
export function outlineAnswer({ kinds = [] }: Query, source: Source): string | undefined {
  const { facts, isData, defined, say } = source;
  const isPartial = facts.partial && !isData;
  // In a tree with errors, a function may be a method of a class.
  const known = firsts(defined.filter(({ kind, broken }) => kind !== 'function' || !broken));
  // In most other languages, functions are methods.
  const asked = isPartial && kinds.includes('functions') ? [...new Set<Kind>([...kinds, 'methods'])] : kinds;
  const lists = asked.flatMap((kind) => listOf(kind, known, source) ?? []);
  if (lists.length > 0 && (isPartial || lists.length === kinds.length)) return joined([...lists, partly(source)]);
  const all = OUTLINE.flatMap((kind) => groupOf(kind as Kind, known, source));
  if (isPartial && (all.length === 0 || kinds.length > 0)) return undefined;
  return [say(all.length > 0 ? 'outline' : 'nothingDefined'), ...all, partly(source) ?? []].flat().join('\n\n');
}

/** The definitions of a kind, also those inside functions. */
function listOf(kind: Kind, known: readonly Defined[], source: Source): string | undefined {
  const items = known
    .filter((each) => kindsOf(each).includes(kind) && (kind !== 'keys' || each.entry?.depth === 0))
    .map((each) => asItem({ name: fullName(each), line: each.line }));
  return items.length > 0 ? source.say(kind === 'keys' ? 'topList' : 'list', items, titled(kind, source)) : undefined;
}

/** The definitions of a kind at the top level, with their members. Of data files at most two levels of keys. */
function groupOf(kind: Kind, known: readonly Defined[], source: Source): string[] {
  const items = known
    .filter((each) => kindsOf(each)[0] === kind && !each.local && each.owner === undefined)
    .filter(({ entry }) => kind !== 'keys' || (entry && entry.depth < 2))
    .map((each) => {
      const members = known.filter((member) => isMemberOf(member, each)).map(asItem);
      const detail = members.length > 0 ? listed(members, source.language) : undefined;
      return { ...asItem(each), detail, depth: each.entry?.depth ?? 0 };
    });
  return items.length > 0 ? [`${titled(kind, source)}:\n${bullets(items, source.language)}`] : [];
}

const asModules = (some: readonly { module: string; line: number }[]) =>
  firsts(some.map(({ module, line }) => ({ name: module, line }))).map(asItem);

function importsAnswer(_: Query, source: Source): string {
  const { imports, reexports } = source.facts;
  return joined([
    source.say('imports', asModules(imports)),
    reexports.length > 0 ? source.say('reexports', asModules(reexports)) : undefined,
    partly(source),
  ]);
}

/** The exports, or those of some kinds. Without any of these, all: that there are none cannot be said. */
function exportsAnswer({ kinds = [] }: Query, source: Source): string {
  const { facts, say } = source;
  const { isPython, listLine, passedOn, unclear, named } = facts.exports;
  if (unclear || facts.broken) return say('unclear');
  const own = facts.definitions.filter(({ local, owner }) => !local && owner === undefined);
  const byName = isPython && listLine === undefined;
  const isPublic = ({ name }: Defined): boolean => !name.startsWith('_');
  const all: readonly Exported[] = byName
    ? firsts(own.filter(isPublic)).map(({ name, line }) => ({ name, line }))
    : named;
  const items = all.map((each) => {
    const definition = each.module ? undefined : own.find(({ name }) => name === (each.local ?? each.name));
    // An export without a name has no definition.
    const of = definition ? kindsOf(definition) : [each.kind === 'class' ? 'classes' : `${each.kind}s`];
    return { of, text: exportedAs(each, source), lines: [isPython ? (definition?.line ?? 0) : each.line] };
  });
  const asked = items.filter(({ of }) => kinds.some((kind) => of.includes(kind)));
  const titles = kinds.map((kind) => titled(kind, source).toLowerCase()).join(', ');
  return joined([
    asked.length > 0 ? say('someExports', asked, titles) : say('exports', items),
    byName ? say('byName') : undefined,
    passedOn.length > 0 ? say('passesOn', asModules(passedOn)) : undefined,
  ]);
}

function exportedAs({ name, local, module, as }: Exported, { language }: Source): string {
  const outer = quoted(as === 'whole' ? 'module.exports' : name);
  if (module !== undefined) return words(language, 'from', outer, quoted(module));
  return local === undefined || local === name ? outer : words(language, 'as', quoted(local), outer);
}

/** The methods, accessors and fields of a class. Undefined if other code may add some. */
function membersAnswer(one: Defined, source: Source, about: string, { kinds = [] }: Query): string | undefined {
  const { facts, say } = source;
  const isOpen = facts.calls.some(({ on, name: to }) => (on === 'Object' && to === 'assign') || to === 'setattr');
  if (facts.broken || one.bases === undefined || (isOpen && (kinds.length === 0 || kinds.includes('fields'))))
    return undefined;
  const members = facts.definitions.filter((each) => isMemberOf(each, one));
  const assigned = facts.fields.filter(({ classAt, of }) => (of === undefined ? classAt === one.at : of === one.name));
  const accessors = members.filter(({ kind }) => kind === 'accessor');
  const methods = members.filter(({ kind, held }) => kind === 'method' && !held);
  const fields = [...members.filter(({ kind, held }) => kind === 'value' || held), ...assigned]
    .filter(({ name }) => !accessors.some((each) => each.name === name))
    .sort((a, b) => a.line - b.line);
  const all = Object.entries({ methods, accessors, fields }) as [Kind, { name: string; line: number }[]][];
  const told = all.filter(([kind, some]) =>
    kind === 'accessors' || kinds.length === 0 ? some.length > 0 : kinds.includes(kind),
  );
  return joined([
    ...(told.length > 0 ? told : all.slice(2)).map(([kind, some]) =>
      say('list', firsts(some.map(({ name, line }) => ({ name, line }))).map(asItem), titled(kind, source), about),
    ),
    one.bases.length > 0 ? baseAnswer(one, source) : undefined,
  ]);
}

function baseAnswer({ bases, interfaces = [], name }: Defined, { say }: Source): string | undefined {
  const items = (some: readonly string[]) => some.map((each) => ({ text: quoted(each), lines: [] }));
  if (bases === undefined) return undefined;
  return joined([
    bases.length > 0 ? say('extends', items(bases), quoted(name)) : say('noBase', undefined, quoted(name)),
    interfaces.length > 0 ? say('implements', items(interfaces)) : undefined,
  ]);
}
