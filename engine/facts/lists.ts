/** Answers questions about a whole file: outline, imports, exports. Does not answer questions about a name. */
import type { Definition } from './extract/definitions.ts';
import type { Exported, Import } from './extract/modules.ts';
import type { Facts } from './extract/facts.ts';
import type { Part } from './intents.ts';
import { fullName, listed, named, type Source, quoted, titleOf, type Words } from './words.ts';

const IS: Readonly<Record<Part, (definition: Definition) => boolean>> = {
  classes: ({ kind }) => kind === 'class',
  functions: ({ kind }) => kind === 'function',
  methods: ({ kind, owner }) => kind === 'method' && owner !== undefined,
  types: ({ kind }) => kind === 'type',
  interfaces: ({ word }) => word === 'interface',
  enums: ({ word }) => word === 'enum',
  namespaces: ({ kind }) => kind === 'namespace',
  constants: ({ kind, owner, constant }) => kind === 'value' && owner === undefined && constant === true,
  variables: ({ kind, owner }) => kind === 'value' && owner === undefined,
  fields: ({ kind, owner }) => kind === 'value' && owner !== undefined,
};
const OUTLINE = ['classes', 'functions', 'types', 'namespaces', 'variables'] as const;
const OF_CLASSES: readonly Part[] = ['methods', 'fields'];

const isOwn = ({ local, owner }: Definition): boolean => !local && owner === undefined;

/** Members belong to the definition that contains them, because several definitions may have one name. */
export const isMemberOf = (member: Definition, { name, at }: Definition): boolean =>
  member.owner === name && (member.ownerAt === undefined || member.ownerAt === at);

/** The first definition of each name, because overloads and accessors count once. */
function firsts(some: readonly Definition[]): Definition[] {
  const seen = new Set<string>();
  return some.filter(({ name, ownerAt = '', functionAt = '' }) => {
    const key = `${name} ${ownerAt} ${functionAt}`;
    return !seen.has(key) && seen.add(key);
  });
}

/** In a tree with errors, a function may be a method of a class. */
const isKnown = ({ kind, broken }: Definition): boolean => kind !== 'function' || !broken;

const told = (some: readonly Definition[], words: Words): string =>
  listed(
    some.map((each) => named(fullName(each), each.line, words)),
    words,
  );

export function outlineAnswer(only: readonly Part[] | undefined, facts: Facts, source: Source): string {
  const { words, path } = source;
  const known = firsts(facts.definitions.filter(isKnown));
  const parts = only ? kindsOf(only, known, facts, source) : [wholeOutline(known, words)];
  const whole = only ? parts.join(' ') : parts[0] ? `${words.outline(path)}\n\n${parts[0]}` : words.nothing(path);
  return facts.broken ? `${whole}${only ? ' ' : '\n\n'}${words.partly}` : whole;
}

/** All definitions at the top level, with their members. */
function wholeOutline(known: readonly Definition[], words: Words): string {
  return OUTLINE.flatMap((kind) => {
    const items = known
      .filter((each) => isOwn(each) && IS[kind](each))
      .map((each) => {
        const members = known.filter((member) => isMemberOf(member, each));
        const names = members.map(({ name, line }) => named(name, line, words));
        return `- ${named(each.name, each.line, words)}${names.length > 0 ? `: ${listed(names, words)}` : ''}`;
      });
    return items.length > 0 ? [`${titleOf(kind, words)}:\n${items.join('\n')}`] : [];
  }).join('\n\n');
}

/** The definitions of some kinds. Those inside functions are listed separately. */
function kindsOf(only: readonly Part[], known: readonly Definition[], facts: Facts, { words, path }: Source): string[] {
  return inPython(only, facts).flatMap((kind) => {
    const all = known.filter(IS[kind]);
    const own = all.filter((each) => !each.local && (OF_CLASSES.includes(kind) || each.owner === undefined));
    const inside = all.filter(({ local }) => local);
    return [
      words.of(titleOf(kind, words), path, own.length > 0 ? told(own, words) : words.atTopLevel),
      ...(inside.length > 0 ? [words.inside(told(inside, words))] : []),
    ];
  });
}

/** In Python, types are classes. */
const inPython = (only: readonly Part[], { exports }: Facts): Part[] => [
  ...new Set(only.map((part) => (exports.isPython && part === 'types' ? 'classes' : part))),
];

export function importsAnswer({ imports, reexports, broken }: Facts, { words, path }: Source): string {
  const modules = (all: readonly Import[]) =>
    all.filter(({ module }, i) => all.findIndex((each) => each.module === module) === i);
  const list = (some: readonly Import[]) =>
    listed(
      modules(some).map(({ module, line }) => named(module, line, words)),
      words,
    );
  const inside = imports.filter((each) => !each.top);
  return [
    words.of(words.imports, path, list(imports.filter(({ top }) => top))),
    ...(inside.length > 0 ? [words.inside(list(inside))] : []),
    ...(reexports.length > 0 ? [words.reexports(list(reexports))] : []),
    ...(broken ? [words.partly] : []),
  ].join(' ');
}

export function exportsAnswer(only: readonly Part[] | undefined, facts: Facts, { words, path }: Source): string {
  const { isPython, listLine, passedOn, unclear, named: exported } = facts.exports;
  if (unclear || facts.broken) return words.unclear(path);
  const own = facts.definitions.filter(isOwn);
  const definitionOf = ({ local, name, module }: Exported) =>
    module === undefined ? own.find((each) => each.name === (local ?? name)) : undefined;
  const byName = isPython && listLine === undefined;
  const all: readonly Exported[] = byName
    ? firsts(own.filter(({ name }) => !name.startsWith('_'))).map(({ name, line }) => ({ name, line }))
    : exported;
  const kinds = only && inPython(only, facts);
  const isWanted = (each: Exported): boolean => {
    const definition = definitionOf(each);
    if (!kinds) return true;
    return definition
      ? kinds.some((kind) => IS[kind](definition))
      : kinds.some((kind) => each.kind !== undefined && KIND_OF[kind] === each.kind);
  };
  const items = all
    .filter(isWanted)
    .map((each) => exportedAs(each, isPython ? (definitionOf(each)?.line ?? 0) : each.line, words));
  const label = kinds
    ? `${words.exports} (${words.and(kinds.map((kind) => titleOf(kind, words).toLowerCase()))})`
    : words.exports;
  return [
    words.of(label, path, listed(items, words)),
    ...(byName ? [words.byName] : isPython && listLine !== undefined ? [words.byAll(listLine)] : []),
    ...(passedOn.length > 0
      ? [words.passesOn(words.and(passedOn.map(({ module, line }) => named(module, line, words))))]
      : []),
  ].join(' ');
}

/** The kinds of exports without a definition in the file. */
const KIND_OF: Readonly<Partial<Record<Part, Exported['kind']>>> = { classes: 'class', functions: 'function' };

function exportedAs({ name, local, module, as }: Exported, line: number, words: Words): string {
  const outer = quoted(as === 'whole' ? 'module.exports' : name);
  const n = local === undefined || local === name || module !== undefined ? outer : words.as(quoted(local), outer);
  return `${module === undefined ? n : words.from(n, quoted(module))}${line > 0 ? ` (${words.line(line)})` : ''}`;
}
