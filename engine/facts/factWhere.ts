/** Where something stands, and whether it does. Pure. */
import type { Import } from './extract/factImports.ts';
import type { Definition, Facts } from './extract/facts.ts';
import type { QuestionLanguage } from './factKinds.ts';
import { MAX_IN_LINE, quoted } from './factPhrases.ts';
import type { FactQuestion } from './factQuestion.ts';
import { WORDS } from './factWords.ts';

/** Longer ones are no short answer. */
const MAX_LINE = 140;

/** A name as a word of its own. */
export const asWord = (name: string, flags = 'u'): RegExp =>
  new RegExp(`(?<![\\p{L}\\p{N}_$])${name.replace(/[$.*+?^(){}|[\]\\/]/g, '\\$&')}(?![\\p{L}\\p{N}_$])`, flags);

export const occursIn = (text: string, name: string): boolean => asWord(name).test(text);

/** Of all lines in which a name stands, from 1. */
export function linesOf(text: string, name: string): number[] {
  const named = asWord(name);
  return text.split('\n').flatMap((line, i) => (named.test(line) ? [i + 1] : []));
}

interface Line {
  /** From 1. */
  line: number;
  /** Without indentation. */
  text: string;
}

export const lineAt = (text: string, line: number): Line => ({ line, text: (text.split('\n')[line - 1] ?? '').trim() });

/** With what stands there: on one line, or as a list of them. */
export function places(lines: readonly Line[], language: QuestionLanguage): string {
  const each = lines.map(({ line, text }) =>
    WORDS[language].where(line, text.length <= MAX_LINE && !text.includes('`') ? text : undefined),
  );
  return each.length > MAX_IN_LINE
    ? `\n\n${each.map((place) => `- ${place}`).join('\n')}`
    : each.join(language === 'en' ? ', and ' : ', e ');
}

/** What a file defines and imports by a name. */
export function whereAnswer(
  called: readonly Definition[],
  from: readonly Import[],
  name: string,
  language: QuestionLanguage,
): string {
  const words = WORDS[language];
  const imported = from.map(({ module, line }) => words.imported(quoted(name), quoted(module), line));
  return [
    ...(called.length
      ? [
          called.length > MAX_IN_LINE
            ? `${words.defined(quoted(name))}${places(called, language)}`
            : `${words.defined(quoted(name))} ${places(called, language)}.`,
        ]
      : []),
    ...imported,
  ].join(called.length > MAX_IN_LINE ? '\n\n' : ' ');
}

/** Where it is, or whether there is one. */
export function foundAnswer(
  question: FactQuestion,
  called: readonly Definition[],
  from: readonly Import[],
  name: string,
  { localNames }: Facts,
): string | undefined {
  return localNames.has(name) && question.owner === undefined
    ? alsoLocal(question, called, from, name)
    : found(question, called, from, name);
}

/** Variables and parameters are listed nowhere: that there are some of this name is said, unless one of them was asked for. */
function alsoLocal(
  question: FactQuestion,
  called: readonly Definition[],
  from: readonly Import[],
  name: string,
): string | undefined {
  if (
    /variable|constant|parameter|argument|variável|constante|parâmetro|parametro|argumento/.test(question.ofKind ?? '')
  )
    return undefined;
  const where = found(question, called, from, name);
  return `${where}${where.includes('\n') ? '\n\n' : ' '}${WORDS[question.language].alsoLocal}`;
}

/** Where it is; to whether there is one, yes or no besides, if the kind that was said settles it. */
function found(
  { kind, language, ofKind = '' }: FactQuestion,
  called: readonly Definition[],
  from: readonly Import[],
  name: string,
): string {
  const where = whereAnswer(called, from, name, language);
  const behind = where.replace(/^A /, 'a ');
  const said = OF_KIND.find(([word]) => word.test(ofKind));
  if (kind !== 'exists' || called.length > MAX_IN_LINE || !said) return where;
  const [, kinds, others] = said;
  if (kinds === undefined || called.some((definition) => kinds.includes(definition.kind)))
    return `${WORDS[language].yes}: ${behind}`;
  return others && from.length === 0 && called.every((definition) => others.includes(definition.kind))
    ? `${WORDS[language].no}: ${behind}`
    : where;
}

/** By the word that was said: what is one, undefined for anything, and what is surely none. A value may be anything. */
const OF_KIND: readonly (readonly [RegExp, (readonly Definition['kind'][])?, (readonly Definition['kind'][])?])[] = [
  [/^$|definition|symbol|definição|símbolo/],
  [/class/, ['class'], ['function', 'method', 'accessor', 'type']],
  [/function|method|função|funcao|método|metodo/, ['function', 'method', 'accessor'], ['class', 'type']],
];
