/** How lists, names and lines are written in answers to questions for facts. Pure. */
import type { ListKind, QuestionLanguage } from './factKinds.ts';

/** More is a list that nobody reads: */
export const MAX_NAMES = 60;
/** of those that are longer so many are named. */
const NAMED = 20;
/** More are a list. */
export const MAX_IN_LINE = 2;
/** More of one name are a list that nobody reads. */
export const MAX_PLACES = 8;
/** Longer ones are no short answer. */
const MAX_TYPE = 200;

export const CONSTRUCTOR = /^(?:constructor|construtor|__init__)$/;

export const brief = (text: string | undefined): boolean =>
  text === undefined || (text.length <= MAX_TYPE && !text.includes('`'));

const together = (sentences: readonly string[]): string =>
  sentences.length <= MAX_IN_LINE ? sentences.join(' ') : sentences.map((each) => `- ${each}`).join('\n');

/** In one sentence each; undefined unless there is an answer for all. */
export function every<T>(definitions: readonly T[], answer: (definition: T) => string | undefined): string | undefined {
  const answers = definitions.map(answer);
  return answers.every((each) => each !== undefined) ? together([...new Set(answers)]) : undefined;
}

/** What has such marks inside needs more of them. */
export const quoted = (name: string): string => (name.includes('`') ? `\`\` ${name} \`\`` : `\`${name}\``);

/** With what it belongs to where that tells several apart. */
export function qualified(all: readonly { owner?: string }[], name: string, owner: string | undefined): string {
  return quoted(owner !== undefined && new Set(all.map((each) => each.owner)).size > 1 ? `${owner}.${name}` : name);
}

export function listed(names: readonly string[], language: QuestionLanguage): string {
  return joined(names.map(quoted), language);
}

const AND = { en: 'and', pt: 'e' } as const;

/** @param last between the last two */
export function joined(each: readonly string[], language: QuestionLanguage, last: string = AND[language]): string {
  return each.length < 2 ? each.join('') : `${each.slice(0, -1).join(', ')} ${last} ${each.at(-1)}`;
}

/** All of them, or the first and how many more there are. @param most that are all named; of more than that so many, or `NAMED` */
export function firstOf(items: readonly string[], language: QuestionLanguage, most = MAX_NAMES): string {
  const named = Math.min(most, NAMED);
  return joined(
    items.length <= most
      ? items
      : [...items.slice(0, named), language === 'en' ? `${items.length - named} more` : `mais ${items.length - named}`],
    language,
  );
}

export const span = (lines: readonly number[], one: string, many: string): string => {
  const [first, last] = [Math.min(...lines), Math.max(...lines)];
  return first === last ? `${one} ${first}` : `${many} ${first}–${last}`;
};

/** How a function gives what it gives. */
export interface Gives {
  generator: boolean;
  async: boolean;
}

/** What says what a file exports; a number is the line of Python's `__all__`. */
export type ExportRule = 'statements' | 'names' | number;

/** Of definitions at a file's top level. */
export type Defined = ListKind | 'namespaces';

/** One kind of what a file defines, and where. */
export interface DefinedList {
  kind: Defined;
  count: number;
  places: string;
}

/** Why there is nothing in a file to find. */
export type Nothing = 'empty' | 'comments';
