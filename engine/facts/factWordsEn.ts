/** The words that answers to questions for facts are made of, in English. Pure. */
import type { ListKind } from './factKinds.ts';
import {
  type Defined,
  type DefinedList,
  type ExportRule,
  type Gives,
  listed,
  MAX_NAMES,
  type Nothing,
  span,
} from './factPhrases.ts';

const KINDS: Readonly<Record<Defined, readonly [one: string, many: string]>> = {
  classes: ['class', 'classes'],
  functions: ['function', 'functions'],
  types: ['type', 'types'],
  interfaces: ['interface', 'interfaces'],
  enums: ['enum', 'enums'],
  namespaces: ['namespace', 'namespaces'],
  constants: ['constant', 'constants'],
  variables: ['variable', 'variables'],
};

export const ENGLISH_WORDS = {
  line: 'line',
  or: 'or',
  yes: 'Yes',
  no: 'No',
  alsoLocal: 'Variables or parameters inside functions are called so, too.',
  defines: (kind: ListKind, n: number, places: string, counted: boolean) => {
    const [one, many] = KINDS[kind];
    if (n > (counted ? 1 : MAX_NAMES)) return `This file defines ${n} ${many}: ${places}.`;
    return n === 0
      ? `This file defines no ${many} at its top level.`
      : `This file defines the ${n === 1 ? one : many} ${places}.`;
  },
  definesAll: (lists: readonly DefinedList[]) =>
    lists.length === 0
      ? 'This file defines nothing at its top level.'
      : `This file defines ${lists.map(({ kind, count, places }) => `the ${KINDS[kind][count === 1 ? 0 : 1]} ${places}`).join('; ')}.`,
  nothing: (path: string, why: Nothing, what: 'imports' | 'exports' | 'defines') =>
    `${path} ${why === 'empty' ? 'is empty' : 'has only comments'}: it ${what} nothing.`,
  about:
    'I am a small model that runs on this machine. I complete code as you type, and can be asked for facts of a TypeScript, JavaScript or Python file: what it imports, defines or exports, the parameters of a function, the members of a class, where a name is defined, what its comment says. Larger models can be installed for more.',
  otherLanguage:
    'This is beyond the model, which can be asked about TypeScript, JavaScript and Python files. In others it completes code as you type. A larger model can be installed for more.',
  noComment: 'No comment says what it does.',
  beyond:
    'This is beyond the model. It can be asked for facts of a file: what it imports, defines or exports, the parameters of a function, the members of a class, where a name is defined. `/summarize` sums a file up, and code is completed as you type. A larger model can be installed for more.',
  guess: 'No comment says what it does; the model guesses:',
  guesses: 'The model guesses:',
  noMore: 'The model could not say more about it.',
  noAnswer: (paths: readonly string[]) =>
    `${listed(paths, 'en')} ${paths.length === 1 ? 'is' : 'are'} empty: there is nothing in ${paths.length === 1 ? 'it' : 'them'} to answer from.`,
  others: 'What is imported, and variables of functions and loops, are not listed.',
  lines: (n: number) => `This file has ${n} ${n === 1 ? 'line' : 'lines'}.`,
  constants: 'Functions and classes that a constant holds, and constants inside functions, are not listed.',
  constantsByCustom: 'In Python these are, by custom, names in capitals.',
  async: (n: number, places: string) =>
    n === 0
      ? 'No function or method that this file defines is `async`.'
      : `${places} ${n === 1 ? 'is' : 'are'} \`async\`.`,
  partly: 'The file has syntax errors, so there may be more.',
  unreadable: 'That cannot be told: the file has syntax errors.',
  inside: (places: string) => `Inside others it defines ${places}.`,
  defined: (n: string) => `${n} is defined`,
  where: (line: number, text?: string) => `in line ${line}${text === undefined ? '' : `: \`${text}\``}`,
  missing: (n: string, path: string) => `There is no ${n} in ${path}.`,
  unread: (n: number) => `This model knows only what stands in the ${n === 1 ? 'file' : 'files'}.`,
  codeThere: 'Its code is there, not in this file.',
  noWord: (n: string, path: string) => `${n} does not stand in ${path}.`,
  isParameter: (n: string, functions: string) => `${n} is a parameter of ${functions}.`,
  standsIn: (n: string, places: string) => `${n} stands ${places}.`,
  like: (n: string, line: number) => `There is ${n} (line ${line}).`,
  imported: (n: string, module: string, line: number) => `${n} is imported from ${module} (line ${line}).`,
  importsModule: (module: string, line: number) => `${module} is imported (line ${line}).`,
  notImported: (n: string) => `${n} is not imported.`,
  calledIn: (n: string, places: string) => `${n} is called ${places}.`,
  calledAfterDot: (n: string, places: string) => `After a dot, where it may be another one, ${n} is called ${places}.`,
  inLines: (lines: string) => `in the lines ${lines}`,
  notCalled: (n: string) => `${n} is not called in this file.`,
  alsoStands: (places: string) => `Its name also stands ${places}.`,
  nowhereElse: 'Its name stands in no other line.',
  namedIn: (lines: string, one: boolean) => `Its name stands in the line${one ? '' : 's'} ${lines}.`,
  signature: (n: string, written: string, line: number) => `${n} is declared in line ${line}: ${written}.`,
  parameters: (n: string, names: readonly string[], line: number) =>
    `${n} takes ${names.length ? listed(names, 'en') : 'no parameters'} (line ${line}).`,
  hasType: (p: string, type: string, line: number) => `${p} has the type \`${type}\` (line ${line}).`,
  noType: (p: string, n: string, line: number) => `${p} of ${n} is declared without a type (line ${line}).`,
  hasDefault: (p: string, value: string, line: number) => `${p} defaults to \`${value}\` (line ${line}).`,
  defaultOf: (p: string, n: string, value: string, line: number) =>
    `${p} of ${n} defaults to \`${value}\` (line ${line}).`,
  noDefault: (p: string, n: string, line: number) => `${p} of ${n} has no default value (line ${line}).`,
  returns: (n: string, type: string | undefined, line: number) =>
    type === undefined
      ? `${n} is declared without a return type (line ${line}).`
      : `${n} returns \`${type}\` (line ${line}).`,
  /** @param values undefined: none */
  returned: (n: string, { generator, async }: Gives, values: string | undefined, line: number) => {
    const what = values ?? `nothing: no \`${generator ? 'yield' : 'return'}\` in it has a value (line ${line})`;
    if (generator) return `${n} is ${async ? 'an asynchronous' : 'a'} generator and yields ${what}.`;
    return async ? `${n} is \`async\`: awaited, it returns ${what}.` : `${n} returns ${what}.`;
  },
  nothingGiven: 'nothing',
  moreReturned: (count: number, { generator }: Gives, lines: readonly number[]) =>
    `what ${count === 1 ? 'another' : `${count} other`} \`${generator ? 'yield' : 'return'}\`${count === 1 ? ' gives' : 's give'} (${span(lines, 'line', 'lines')})`,
  says: (n: string, docstring: boolean, line: number) =>
    `The ${docstring ? 'docstring' : 'comment'} of ${n} (line ${line}) says:`,
  base: (n: string, bases: readonly string[], interfaces: readonly string[], line: number) =>
    `${n} ${bases.length ? `extends ${listed(bases, 'en')}` : 'has no base class'}${interfaces.length ? ` and implements ${listed(interfaces, 'en')}` : ''} (line ${line}).`,
  owner: (n: string, isMethod: boolean, owner: string, isClass: boolean, line: number) =>
    `${n} is a ${isMethod ? 'method' : 'member'} of ${owner}${isClass ? '' : ', which is an object and no class'} (line ${line}).`,
  noOwner: (n: string, line: number) => `${n} belongs to no class: it is a function (line ${line}).`,
  members: (
    n: string,
    methods: readonly string[],
    accessors: readonly string[],
    line: number,
    bases: readonly string[],
  ) =>
    `${n} has ${methods.length ? `the method${methods.length > 1 ? 's' : ''} ${listed(methods, 'en')}` : 'no methods of its own'}${accessors.length ? ` and the accessor${accessors.length > 1 ? 's' : ''} ${listed(accessors, 'en')}` : ''} (from line ${line})${bases.length ? ', besides those that it inherits' : ''}.`,
  fields: (n: string, names: readonly string[], line: number, bases: readonly string[]) =>
    `${n} has ${names.length ? `the field${names.length > 1 ? 's' : ''} ${listed(names, 'en')}` : 'no fields of its own'} (from line ${line})${bases.length ? ', besides those that it inherits' : ''}.`,
  imports: (
    path: string,
    top: readonly string[],
    deeper: readonly string[],
    reexports: readonly string[],
    lines: readonly number[],
    deeperLines: readonly number[],
    exportLines: readonly number[],
  ) =>
    [
      top.length
        ? `This file imports ${listed(top, 'en')} (${span(lines, 'line', 'lines')}).`
        : `There are no imports at the top level of ${path}.`,
      ...(deeper.length
        ? [`Inside blocks or functions it imports ${listed(deeper, 'en')} (${span(deeperLines, 'line', 'lines')}).`]
        : []),
      ...(reexports.length
        ? [`It exports from ${listed(reexports, 'en')} (${span(exportLines, 'line', 'lines')}).`]
        : []),
    ].join(' '),
  /** @param items '' for none */
  exports: (by: ExportRule, kind: ListKind | undefined, n: number, items: string) => {
    const [one, many] = kind ? KINDS[kind] : ['', ''];
    const what =
      items === ''
        ? kind
          ? `nothing that it defines as ${/^[aeiou]/.test(one) ? 'an' : 'a'} ${one}`
          : 'nothing'
        : kind
          ? `the ${n === 1 ? one : many} ${items}`
          : items;
    if (by === 'statements') return `This file exports ${what}.`;
    if (by !== 'names') return `By \`__all__\` (line ${by}), this file exports ${what}.`;
    if (items === '')
      return `There is no \`__all__\` in this file, and no ${kind ? `${one} with a public name` : 'public name'} is defined at its top level.`;
    return `There is no \`__all__\` in this file, so it exports what it defines at its top level under a public name: ${what}.`;
  },
  noExports: (path: string) => `There is no export in ${path}.`,
  notExported: (n: string, by: ExportRule, line: number) =>
    by === 'statements'
      ? `this file does not export ${n} (line ${line}).`
      : `\`__all__\` (line ${by}) does not have ${n} (line ${line}).`,
  as: (n: string, name: string) => `${n} as ${name}`,
  noDefaultExport: (path: string) => `There is no default export in ${path}.`,
  asDefault: (n: string | undefined) => (n === undefined ? 'a default' : `${n} as the default`),
  from: (n: string, module: string) => `${n} from ${module}`,
  /** @param n undefined: without a name */
  whole: (n: string | undefined, kind: 'function' | 'class' | undefined, line: number) =>
    `What it exports as a whole is ${n ?? `a ${kind}`} (line ${line}).`,
  besides: (items: string) => `It exports ${items}, too, and does not say what that is.`,
  passesOn: (modules: readonly string[], lines: readonly number[]) =>
    `It passes on all exports of ${listed(modules, 'en')} (${span(lines, 'line', 'lines')}).`,
};
