/** Answers questions about lists: outline, imports, exports, members. Does not answer other questions about a name. */
import type { Exported } from './extract/modules.ts';
import type { Kind } from './intents.ts';
import type { Query } from './questions.ts';
import { bullets, joined, listed, quoted, titleOf, words } from './sentences.ts';
import { asItem, type Defined, fullName, type Source } from './source.ts';

/** The kinds of lists that a definition or entry belongs to. The first one is its kind in an outline. */
function kindsOf({ kind, owner, word, constant, held, entry }: Defined): readonly string[] {
  if (entry) return entry.isTable ? ['keys', 'tables'] : [entry.kind === 'index' ? 'indexes' : `${entry.kind}s`];
  if (kind === 'class') return ['classes'];
  if (kind === 'value') return owner === undefined ? ['variables', constant ? 'constants' : ''] : ['fields'];
  if (kind === 'method') return owner === undefined ? [] : ['methods', held ? 'fields' : ''];
  return [`${kind}s`, word === undefined ? '' : `${word}s`];
}

/** What is read completely. Of other kinds it is not known that there are none. */
const READ = {
  sql: 'tables views indexes triggers functions types',
  toml: 'tables keys',
  md: 'headings',
  data: 'keys',
  partial: 'functions methods',
  python: 'classes functions methods constants variables accessors fields',
  script: 'classes functions methods types interfaces enums namespaces constants variables accessors fields',
};
const OUTLINE = 'classes tables views indexes triggers functions types namespaces variables keys headings'.split(' ');
const OF_CLASSES: readonly Kind[] = ['methods', 'accessors', 'fields'];

function isRead(kind: Kind, { document: { path }, facts, isData }: Source): boolean {
  const [, ending = 'data'] = /\.(sql|toml|md)x?$/i.exec(path) ?? [];
  const code = facts.partial ? 'partial' : facts.exports.isPython ? 'python' : 'script';
  return READ[isData ? (ending.toLowerCase() as 'sql') : code].split(' ').includes(kind);
}

/** Members belong to the definition that contains them, because several definitions may have one name. */
export const isMemberOf = (member: Defined, { name, at }: Defined): boolean =>
  member.owner === name && (member.ownerAt === undefined || member.ownerAt === at);

/** The first definition of each name, because overloads and accessors count once. */
function firsts<T extends Pick<Defined, 'name' | 'entry' | 'ownerAt' | 'functionAt'>>(some: readonly T[]): T[] {
  const keys = some.map(({ name, ownerAt, functionAt }) => `${name} ${ownerAt} ${functionAt}`);
  const first = new Map(keys.map((key, i) => [key, i] as const).reverse());
  return some.filter(({ entry }, i) => entry ?? first.get(keys[i] ?? '') === i);
}

/** In Python, types are classes. In most other languages functions are methods. */
function asked({ kinds = [] }: Query, { facts, isData }: Source): Kind[] {
  const own = kinds.map((kind) => (facts.exports.isPython && kind === 'types' ? 'classes' : kind));
  if (facts.partial && !isData && own.includes('functions')) own.push('methods');
  return [...new Set(own)];
}

/** In other languages, structs and enums are read as classes. */
const titled = (kind: Kind, { facts, isData, language }: Source): string =>
  titleOf(kind === 'classes' && facts.partial && !isData ? 'types' : kind, language);

/** All definitions, or those of some kinds. Undefined if those are not read in this language. */
export function outlineAnswer(query: Query, source: Source): string | undefined {
  const { facts, isData, defined, say } = source;
  // In a tree with errors, a function may be a method of a class.
  const known = firsts(defined.filter(({ kind, broken }) => kind !== 'function' || !broken));
  const lists = asked(query, source).map((kind) => listOf(kind, known, source));
  if (lists.length > 0) return lists.includes(undefined) ? undefined : joined([...lists, partly(source)]);
  const all = OUTLINE.flatMap((kind) => groupOf(kind as Kind, known, source));
  if (all.length === 0 && facts.partial && !isData) return undefined;
  return [say(all.length > 0 ? 'outline' : 'nothingDefined'), ...all, partly(source) ?? []].flat().join('\n\n');
}

export const partly = ({ facts, say }: Source): string | undefined => (facts.broken ? say('partly') : undefined);

/** The definitions of a kind. Those inside functions are listed separately. */
function listOf(kind: Kind, known: readonly Defined[], source: Source): string | undefined {
  const all = [
    ...known.filter((each) => kindsOf(each).includes(kind) && (kind !== 'keys' || each.entry?.depth === 0)),
    ...(kind === 'fields' ? assignedFields(known, source) : []),
  ].sort((a, b) => a.line - b.line);
  if (all.length === 0 && !isRead(kind, source)) return undefined;
  const isOfClasses = OF_CLASSES.includes(kind);
  const own = all.filter(({ local, owner }) => !local && (isOfClasses || owner === undefined));
  const inside = all.filter(({ local }) => local);
  const items = (some: readonly Defined[]) => some.map((each) => asItem({ name: fullName(each), line: each.line }));
  const isWhole = own.length > 0 || source.isData || isOfClasses;
  const title = isWhole && kind !== 'keys' ? 'list' : 'topList';
  return joined([
    source.say(title, items(own), titled(kind, source)),
    inside.length > 0 ? source.say('inside', items(inside)) : undefined,
  ]);
}

/** Fields of classes that only assignments and parameters of constructors name. */
function assignedFields(known: readonly Defined[], { facts }: Source): Defined[] {
  const fields = facts.fields.flatMap(({ name, line, classAt, of }): Defined[] => {
    const owner = known.find(
      (each) => each.bases !== undefined && (of === undefined ? each.at === classAt : each.name === of),
    );
    if (!owner || known.some((each) => each.name === name && isMemberOf(each, owner))) return [];
    const { local, broken, at } = owner;
    return [{ kind: 'value', name, line, owner: owner.name, local, broken, brokenInside: broken, ownerAt: at }];
  });
  return firsts(fields);
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

export function importsAnswer(_: Query, source: Source): string {
  const { imports, reexports } = source.facts;
  const inside = imports.filter(({ top }) => !top);
  return joined([
    source.say('imports', asModules(imports.filter(({ top }) => top))),
    inside.length > 0 ? source.say('inside', asModules(inside)) : undefined,
    reexports.length > 0 ? source.say('reexports', asModules(reexports)) : undefined,
    partly(source),
  ]);
}

export function exportsAnswer(query: Query, source: Source): string {
  const { facts, say } = source;
  const { isPython, listLine, passedOn, unclear, named } = facts.exports;
  if (unclear || facts.broken) return say('unclear');
  const own = facts.definitions.filter(({ local, owner }) => !local && owner === undefined);
  const byName = isPython && listLine === undefined;
  const all: readonly Exported[] = byName
    ? firsts(own.filter(({ name }) => !name.startsWith('_'))).map(({ name, line }) => ({ name, line }))
    : named;
  const kinds = asked(query, source);
  const items = all.flatMap((each) => {
    const definition = each.module ? undefined : own.find(({ name }) => name === (each.local ?? each.name));
    // An export without a name has no definition.
    const of = definition ? kindsOf(definition) : [each.kind === 'class' ? 'classes' : `${each.kind}s`];
    if (kinds.length > 0 && !kinds.some((kind) => of.includes(kind))) return [];
    return [{ text: exportedAs(each, source), lines: [isPython ? (definition?.line ?? 0) : each.line] }];
  });
  const titles = kinds.map((kind) => titled(kind, source).toLowerCase()).join(', ');
  return joined([
    titles === '' ? say('exports', items) : say('someExports', items, titles),
    byName ? say('byName') : undefined,
    listLine === undefined ? undefined : say('byAll', [{ lines: [listLine] }]),
    passedOn.length > 0 ? say('passesOn', asModules(passedOn)) : undefined,
  ]);
}

function exportedAs({ name, local, module, as }: Exported, { language }: Source): string {
  const outer = quoted(as === 'whole' ? 'module.exports' : name);
  if (module !== undefined) return words(language, 'from', outer, quoted(module));
  return local === undefined || local === name ? outer : words(language, 'as', quoted(local), outer);
}

/** The methods, accessors and fields of a class. Undefined if other code may add some. */
export function membersAnswer({ kinds }: Query, one: Defined, source: Source): string | undefined {
  const { facts, say } = source;
  if (facts.broken || one.bases === undefined) return undefined;
  const isOpen = facts.calls.some(({ on, name: to }) => (on === 'Object' && to === 'assign') || to === 'setattr');
  if (isOpen && kinds?.includes('fields') !== false) return undefined;
  const members = facts.definitions.filter((each) => isMemberOf(each, one));
  const assigned = facts.fields.filter(({ classAt, of }) => (of === undefined ? classAt === one.at : of === one.name));
  const accessors = members.filter(({ kind }) => kind === 'accessor');
  const methods = members.filter(({ kind, held }) => kind === 'method' && !held);
  const fields = [...members.filter(({ kind, held }) => kind === 'value' || held), ...assigned]
    .filter(({ name }) => !accessors.some((each) => each.name === name))
    .sort((a, b) => a.line - b.line);
  const all = Object.entries({ methods, accessors, fields }) as [Kind, { name: string; line: number }[]][];
  const told = all.filter(([kind, some]) =>
    kind === 'accessors' ? some.length > 0 : (kinds?.includes(kind) ?? some.length > 0),
  );
  return joined([
    ...(told.length > 0 ? told : all.slice(2)).map(([kind, some]) =>
      say(
        'list',
        firsts(some.map(({ name, line }) => ({ name, line }))).map(asItem),
        titled(kind, source),
        quoted(one.name),
      ),
    ),
    one.bases.length > 0 ? baseAnswer(one, source) : undefined,
  ]);
}

export function baseAnswer({ bases, interfaces = [], name }: Defined, { say }: Source): string | undefined {
  const items = (some: readonly string[]) => some.map((each) => ({ text: quoted(each), lines: [] }));
  if (bases === undefined) return undefined;
  return joined([
    bases.length > 0 ? say('extends', items(bases), quoted(name)) : say('noBase', undefined, quoted(name)),
    interfaces.length > 0 ? say('implements', items(interfaces)) : undefined,
  ]);
}
