/** What a file exports, all of it or one kind, with the lines; of Python by the rule that says it. What the file leaves open is said to be so. Pure. */
import type { Exported } from '../text/factExports.ts';
import type { Definition, Facts } from '../text/facts.ts';
import type { ExportKind, ListKind, QuestionLanguage } from './factPatterns.ts';
import { firstOf, quoted, WORDS } from './factWords.ts';

export const KIND_OF: Readonly<Record<ListKind, Definition['kind']>> = { classes: 'class', functions: 'function', types: 'type' };

/** @param path as the answer names the file. Undefined where a list may be short of something. */
export function exportsAnswer(asked: ExportKind, { exports, definitions, broken }: Facts, text: string, path: string, language: QuestionLanguage): string | undefined {
  const { passedOn, isPython, listLine, unclear } = exports;
  const words = WORDS[language];
  const own = definitions.filter(({ local, owner }) => !local && owner === undefined);
  const byName = isPython && listLine === undefined;
  const all = byName ? publicNames(own) : isPython ? exports.named.map((each) => ({ ...each, line: own.find(({ name }) => name === each.name)?.line ?? 0 })) : exports.named;
  if (broken || unclear) return undefined;
  // Said somewhere, and not read.
  if ((byName && text.includes('__all__')) || (!isPython && all.length === 0 && /\bexports\b/.test(text))) return undefined;
  const whole = all.find(({ as }) => as === 'whole');
  const named = all.filter(({ as }) => as !== 'whole');
  const item = ({ name, local, line, module, as }: Exported): string => {
    const n = as === 'default' ? words.asDefault(local === undefined || local === 'default' ? undefined : quoted(local)) : quoted(name);
    return `${module === undefined ? n : words.from(n, quoted(module))}${line > 0 ? ` (${words.line} ${line})` : ''}`;
  };
  const list = (some: readonly Exported[]): string => firstOf(some.map(item), language);
  const wholeSentence = whole ? [words.whole(whole.local === undefined ? undefined : quoted(whole.local), whole.kind, whole.line)] : [];
  const passes = passedOn.length ? [words.passesOn([...new Set(passedOn.map(({ module }) => module))], passedOn.map(({ line }) => line))] : [];
  const rule = byName ? 'names' : (listLine ?? 'statements');
  if (asked === 'exported default') {
    const defaults = named.filter(({ as }) => as === 'default');
    if (isPython) return undefined;
    return defaults.length ? words.exports(rule, undefined, defaults.length, list(defaults)) : (wholeSentence[0] ?? words.noDefaultExport(quoted(path)));
  }
  if (asked === 'exports') {
    const first = named.length > 0 || isPython ? [words.exports(rule, undefined, named.length, list(named))] : [];
    return first.length + wholeSentence.length + passes.length > 0 ? [...first, ...wholeSentence, ...passes].join(' ') : words.noExports(quoted(path));
  }
  if (all.length + passedOn.length === 0 && !isPython) return words.noExports(quoted(path));
  const kindOf = ({ kind, module, local, name }: Exported): Definition['kind'] | undefined => (module === undefined ? (kind ?? own.find((each) => each.name === (local ?? name))?.kind) : undefined);
  const listed = asked.slice('exported '.length) as ListKind;
  const ofKind = named.filter((each) => kindOf(each) === KIND_OF[listed]);
  const unknown = named.filter((each) => kindOf(each) === undefined);
  const isWhole = whole !== undefined && kindOf(whole) === KIND_OF[listed];
  return [
    ...(isWhole && ofKind.length === 0 ? [] : [words.exports(rule, listed, ofKind.length, list(ofKind))]),
    ...(isWhole || (whole && kindOf(whole) === undefined) ? wholeSentence : []),
    ...(unknown.length ? [words.besides(list(unknown))] : []),
    ...passes,
  ].join(' ');
}

/** Without a list, in Python: what does not begin with a low line. */
function publicNames(own: readonly Definition[]): Exported[] {
  const named = new Map<string, number>();
  for (const { name, line } of own) if (!name.startsWith('_') && !named.has(name)) named.set(name, line);
  return [...named].map(([name, line]) => ({ name, line }));
}
