/** What a file exports, all of it, one kind or one name, with the lines; of Python by the rule that says it. What the file leaves open is said to be so. Pure. */
import type { Exported } from './extract/factExports.ts';
import type { Definition, Facts } from './extract/facts.ts';
import type { ExportKind, ListKind, QuestionLanguage } from './factKinds.ts';
import { inItsWords, isOfKind, isOwn } from './factListed.ts';
import { type ExportRule, firstOf, quoted } from './factPhrases.ts';
import { WORDS } from './factWords.ts';

/** @param lists what `exported` asks for. @param path as the answer names the file. Undefined where a list may be short of something. */
export function exportsAnswer(
  asked: ExportKind,
  lists: readonly ListKind[],
  facts: Facts,
  text: string,
  path: string,
  language: QuestionLanguage,
): string | undefined {
  const { passedOn, isPython } = facts.exports;
  const words = WORDS[language];
  const own = facts.definitions.filter(isOwn);
  const read = exported(facts, text);
  if (!read) return undefined;
  const { all, rule } = read;
  const whole = all.find(({ as }) => as === 'whole');
  const named = all.filter(({ as }) => as !== 'whole');
  const item = ({ name, local, line, module, as }: Exported): string => {
    const n =
      as === 'default'
        ? words.asDefault(local === undefined || local === 'default' ? undefined : quoted(local))
        : quoted(name);
    return `${module === undefined ? n : words.from(n, quoted(module))}${line > 0 ? ` (${words.line} ${line})` : ''}`;
  };
  const listed = (some: readonly Exported[]): string => firstOf(some.map(item), language);
  const wholeSentence = whole
    ? [words.whole(whole.local === undefined ? undefined : quoted(whole.local), whole.kind, whole.line)]
    : [];
  const passes = passedOn.length
    ? [
        words.passesOn(
          [...new Set(passedOn.map(({ module }) => module))],
          passedOn.map(({ line }) => line),
        ),
      ]
    : [];
  if (asked === 'exported default') {
    const defaults = named.filter(({ as }) => as === 'default');
    if (isPython) return undefined;
    return defaults.length
      ? words.exports(rule, undefined, defaults.length, listed(defaults))
      : (wholeSentence[0] ?? words.noDefaultExport(quoted(path)));
  }
  if (asked === 'exports') {
    const first = named.length > 0 || isPython ? [words.exports(rule, undefined, named.length, listed(named))] : [];
    return first.length + wholeSentence.length + passes.length > 0
      ? [...first, ...wholeSentence, ...passes].join(' ')
      : words.noExports(quoted(path));
  }
  if (all.length + passedOn.length === 0 && !isPython) return words.noExports(quoted(path));
  const kinds = inItsWords(lists, facts);
  if (!kinds) return undefined;
  const defined = ({ module, local, name }: Exported): Definition | undefined =>
    module === undefined ? own.find((each) => each.name === (local ?? name)) : undefined;
  const isKnown = (each: Exported): boolean =>
    each.module === undefined && (each.kind !== undefined || defined(each) !== undefined);
  const is = (each: Exported, list: ListKind): boolean => {
    const definition = defined(each);
    if (each.module !== undefined) return false;
    return definition
      ? isOfKind({ ...definition, kind: each.kind ?? definition.kind }, list)
      : each.kind !== undefined && each.kind === KIND_OF[list];
  };
  const unknown = named.filter((each) => !isKnown(each));
  const isWhole = (list: ListKind): boolean => whole !== undefined && is(whole, list);
  return [
    ...kinds.flatMap((list) => {
      const some = named.filter((each) => is(each, list));
      return isWhole(list) && some.length === 0 ? [] : [words.exports(rule, list, some.length, listed(some))];
    }),
    ...(whole && (kinds.some(isWhole) || !isKnown(whole)) ? wholeSentence : []),
    ...(unknown.length ? [words.besides(listed(unknown))] : []),
    ...passes,
  ].join(' ');
}

/** What is exported without a name can be told by what it is. */
const KIND_OF: Readonly<Partial<Record<ListKind, Definition['kind']>>> = { classes: 'class', functions: 'function' };

/** All that is exported, and by what it is; undefined where that may be short of something. */
function exported(
  { exports, definitions, broken }: Facts,
  text: string,
): { all: Exported[]; rule: ExportRule } | undefined {
  const { isPython, listLine, unclear, named } = exports;
  if (broken || unclear) return undefined;
  const own = definitions.filter(isOwn);
  const byName = isPython && listLine === undefined;
  const all = byName
    ? publicNames(own)
    : isPython
      ? named.map((each) => ({ ...each, line: own.find(({ name }) => name === each.name)?.line ?? 0 }))
      : named;
  // What a namespace exports is exported in a way.
  if (all.length === 0 && definitions.some(({ kind }) => kind === 'namespace')) return undefined;
  // Said somewhere, and not read.
  if ((byName && text.includes('__all__')) || (!isPython && all.length === 0 && /\bexports\b/.test(text)))
    return undefined;
  return { all, rule: byName ? 'names' : (listLine ?? 'statements') };
}

/** Whether something is exported that is called so. Undefined where that is not settled, of members for instance. */
export function passedAnswer(name: string, facts: Facts, text: string, language: QuestionLanguage): string | undefined {
  const { definitions, imports, exports } = facts;
  const words = WORDS[language];
  const read = exported(facts, text);
  // A default has no name.
  if (!read || name === 'default') return undefined;
  const { all, rule } = read;
  const found = all.filter((each) => each.name === name || (each.local === name && each.module === undefined));
  if (found.length > 0) {
    const items = found.map(({ name: to, local, line, module, as }) => {
      const n =
        as === 'default'
          ? words.asDefault(quoted(local ?? name))
          : as === 'whole' || local === undefined || local === to || module !== undefined
            ? quoted(to || name)
            : words.as(quoted(local), quoted(to));
      return `${module === undefined ? n : words.from(n, quoted(module))}${line > 0 ? ` (${words.line} ${line})` : ''}`;
    });
    return answered(words.yes, words.exports(rule, undefined, items.length, firstOf(items, language)));
  }
  const line = (
    definitions.find((each) => each.name === name && isOwn(each)) ?? imports.find(({ names }) => names.includes(name))
  )?.line;
  // What a namespace exports is exported in a way; a public name is a matter of custom in Python.
  if (
    line === undefined ||
    rule === 'names' ||
    exports.passedOn.length > 0 ||
    definitions.some(({ kind }) => kind === 'namespace')
  )
    return undefined;
  return answered(words.no, words.notExported(quoted(name), rule, line));
}

export const answered = (word: string, sentence: string): string =>
  `${word}: ${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}`;

/** Without a list, in Python: what does not begin with a low line. */
function publicNames(own: readonly Definition[]): Exported[] {
  const named = new Map<string, number>();
  for (const { name, line } of own) if (!name.startsWith('_') && !named.has(name)) named.set(name, line);
  return [...named].map(([name, line]) => ({ name, line }));
}
