/** Answers questions about a whole file: outline, imports, exports. Does not answer questions about a name. */
import type { Definition } from './extract/definitions.ts';
import type { Exported, Import } from './extract/modules.ts';
import { fullName, type Source } from './places.ts';
import { type Part, quoted, type Words } from './words.ts';

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

/** What is read of other languages. */
const OF_PARTIAL: readonly Part[] = ['functions', 'methods', 'classes'];

/** Undefined if kinds are asked for that are not read in this language. */
export function outlineAnswer(asked: readonly Part[] | undefined, source: Source): string | undefined {
  const { facts, words, path } = source;
  if (facts.partial && asked?.some((part) => !OF_PARTIAL.includes(part))) return undefined;
  // In most other languages functions are methods.
  const only = facts.partial && asked?.includes('functions') ? [...new Set([...asked, 'methods' as const])] : asked;
  const known = firsts(facts.definitions.filter(isKnown));
  const partly = facts.broken ? [words.partly] : [];
  if (only) return [...kindsOf(only, known, source), ...partly].join(' ');
  const all = wholeOutline(known, words);
  if (all === '' && facts.partial) return undefined;
  return [all === '' ? words.nothing(path) : `${words.outline(path)}\n\n${all}`, ...partly].join('\n\n');
}

/** All definitions at the top level, with their members. */
function wholeOutline(known: readonly Definition[], words: Words): string {
  return OUTLINE.flatMap((kind) => {
    const items = known
      .filter((each) => isOwn(each) && IS[kind](each))
      .map((each) => {
        const members = words.listedNames(known.filter((member) => isMemberOf(member, each)));
        return `- ${words.named(each.name, each.line)}${members === '' ? '' : `: ${members}`}`;
      });
    return items.length > 0 ? [`${words.title(kind)}:\n${items.join('\n')}`] : [];
  }).join('\n\n');
}

/** The definitions of some kinds. Those inside functions are listed separately. */
function kindsOf(only: readonly Part[], known: readonly Definition[], { facts, words, path }: Source): string[] {
  const told = (some: readonly Definition[]): string =>
    words.listedNames(some.map((each) => ({ name: fullName(each), line: each.line })));
  return inPython(only, facts).flatMap((kind) => {
    const all = known.filter(IS[kind]);
    const own = all.filter((each) => !each.local && (OF_CLASSES.includes(kind) || each.owner === undefined));
    const inside = all.filter(({ local }) => local);
    return [
      words.of(words.title(kind), path, told(own) || words.atTopLevel),
      ...(inside.length > 0 ? [words.inside(told(inside))] : []),
    ];
  });
}

/** In Python, types are classes. */
const inPython = (only: readonly Part[], { exports }: Source['facts']): Part[] => [
  ...new Set(only.map((part) => (exports.isPython && part === 'types' ? 'classes' : part))),
];

export function importsAnswer({ facts, words, path }: Source): string {
  const { imports, reexports, broken } = facts;
  const list = (some: readonly Import[]): string =>
    words.listedNames(
      some
        .map(({ module, line }) => ({ name: module, line }))
        .filter(({ name }, i, all) => all.findIndex((each) => each.name === name) === i),
    );
  const inside = imports.filter((each) => !each.top);
  return [
    words.of(words.titles.imports, path, list(imports.filter(({ top }) => top))),
    ...(inside.length > 0 ? [words.inside(list(inside))] : []),
    ...(reexports.length > 0 ? [words.reexports(list(reexports))] : []),
    ...(broken ? [words.partly] : []),
  ].join(' ');
}

export function exportsAnswer(only: readonly Part[] | undefined, { facts, words, path }: Source): string {
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
  const isOf = (kind: Part, each: Exported): boolean => {
    const definition = definitionOf(each);
    return definition ? IS[kind](definition) : each.kind !== undefined && KIND_OF[kind] === each.kind;
  };
  const items = all
    .filter((each) => !kinds || kinds.some((kind) => isOf(kind, each)))
    .map((each) => exportedAs(each, isPython ? (definitionOf(each)?.line ?? 0) : each.line, words));
  const titles = kinds ? ` (${words.and(kinds.map((kind) => words.title(kind).toLowerCase()))})` : '';
  const modules = words.and(passedOn.map(({ module, line }) => words.named(module, line)));
  return [
    words.of(`${words.titles.exports}${titles}`, path, words.listed(items)),
    ...(byName ? [words.byName] : listLine === undefined ? [] : [words.byAll(words.line(listLine))]),
    ...(passedOn.length > 0 ? [words.passesOn(modules)] : []),
  ].join(' ');
}

/** The kinds of exports without a definition in the file. */
const KIND_OF: Readonly<Partial<Record<Part, Exported['kind']>>> = { classes: 'class', functions: 'function' };

function exportedAs({ name, local, module, as }: Exported, line: number, words: Words): string {
  const outer = quoted(as === 'whole' ? 'module.exports' : name);
  const n = local === undefined || local === name || module !== undefined ? outer : words.as(quoted(local), outer);
  return `${module === undefined ? n : words.from(n, quoted(module))}${line > 0 ? ` ${words.line(line)}` : ''}`;
}
