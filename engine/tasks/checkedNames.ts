/**
 * Cuts a text of a small model before the first sentence with a name that its source does not have, or with a list that
 * repeats a name. Such a model invents both. Does not judge words that are not written as code.
 */
import { t } from '@vscode/l10n';
import type { KnownAnswer } from '../facts/ask.ts';
import type { PreparedRequest } from './preparedRequest.ts';

export interface NameCheck {
  /** The texts that the model writes about, with their paths. */
  texts: readonly string[];
  /** The kinds of definitions of a name, if they are known. Then "the class `a`" must be one. */
  kindsOf?: ((name: string) => ReadonlySet<string>) | undefined;
  /** Shown if nothing of the text is left. */
  instead: () => KnownAnswer | undefined;
}

const IDENTIFIER = /[\p{L}_$][\p{L}\p{N}_$]*/gu;
/** Words of languages, which a text about code may use although the code does not. */
const WORDS = new Set(
  'null undefined true false None True False self this void string number boolean int str bool float'.split(' '),
);
const SPAN = '`[^`\\n]+`';
/** camelCase, snake_case, and a word with its parentheses, but not "file(s)". */
const BARE = String.raw`(?<![\w$.])(?:\p{Ll}+\p{Lu}[\w$]*|[\p{L}$]\w*_\w+|[\p{L}_$][\w$]*(?=\((?!e?s\))))`;
const NAME = new RegExp(`${SPAN}|${BARE}`, 'gu');
const AND = String.raw`(?:,\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+)`;
const ITEM = String.raw`(?:${SPAN}|${BARE})(?:\([^()\n]*\))?`;
const LIST = new RegExp(`${ITEM}(?:${AND}${ITEM})+`, 'gu');
const OF_KIND = new RegExp(
  String.raw`\b(class|function|method|type|interface|enum)(?:e?s)?\s+(${SPAN}(?:${AND}${SPAN})*)`,
  'gu',
);
/** Kinds of definitions by the word for them. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  class: ['class'],
  function: ['function'],
  method: ['method', 'accessor'],
  type: ['type'],
  interface: ['type'],
  enum: ['type', 'class'],
};
/** The end of a sentence, or of a line. */
const SENTENCE_END = /[.!?](?=\s)|\n/g;

/** `shape` with whole sentences only, each of them checked. */
export function withCheckedNames(
  shape: PreparedRequest['shape'],
  { texts, kindsOf, instead }: NameCheck,
): PreparedRequest['shape'] {
  let known: ReadonlySet<string> | undefined;
  const isTrue = (sentence: string): boolean => {
    known ??= new Set(texts.flatMap((text) => text.match(IDENTIFIER) ?? []));
    return namesHold(sentence, known) && !repeats(sentence) && (!kindsOf || kindsHold(sentence, kindsOf));
  };
  return (rawText, finished) => {
    const shaped = shape(rawText, finished);
    const sentences = sentencesOf(shaped.text, finished || shaped.stop);
    const wrong = sentences.findIndex((sentence) => !isTrue(sentence));
    // White space is held back, because the next sentence may be cut.
    const upTo = (end: number): string => sentences.slice(0, end).join('').trimEnd();
    if (wrong < 0 && finished) return shaped;
    // About a whole file, prose says nothing without the names.
    const kept = wrong < 0 ? sentences : sentences.slice(0, wrong);
    const numUseful = kindsOf ? kept.findLastIndex((sentence) => namesIn(sentence).length > 0) + 1 : kept.length;
    if (wrong < 0) return { ...shaped, text: upTo(numUseful) };
    if (upTo(numUseful) !== '') {
      const notes = [shaped.note, t('cut before a sentence with a name that is not in the code')];
      return { text: upTo(wrong), stop: true, note: notes.filter((note) => note !== undefined).join('; ') };
    }
    if (!finished) return { text: '', stop: true };
    const known = instead();
    return known
      ? { ...known, stop: true, isInstead: true }
      : { text: '', stop: true, note: t('the model gave no answer') };
  };
}

/** In order, with the white space behind them. The last one only if the text is `whole`. */
function sentencesOf(text: string, whole: boolean): string[] {
  const sentences: string[] = [];
  let start = 0;
  for (const { index, 0: end } of text.matchAll(SENTENCE_END)) {
    // A point inside a code span ends nothing.
    if ((text.slice(start, index).split('`').length - 1) % 2 === 1 && end !== '\n') continue;
    sentences.push(text.slice(start, index + 1));
    start = index + 1;
  }
  if (whole && start < text.length) sentences.push(text.slice(start));
  return sentences;
}

const namesIn = (sentence: string): string[] => sentence.match(NAME) ?? [];

function namesHold(sentence: string, known: ReadonlySet<string>): boolean {
  // A span that is cut off may end inside a name.
  if ((sentence.split('`').length - 1) % 2 === 1) return false;
  return namesIn(sentence)
    .flatMap((name) => name.match(IDENTIFIER) ?? [])
    .every((name) => known.has(name) || WORDS.has(name));
}

const repeats = (sentence: string): boolean =>
  (sentence.match(LIST) ?? []).some((list) => {
    const names = namesIn(list);
    return new Set(names).size < names.length;
  });

function kindsHold(sentence: string, kindsOf: (name: string) => ReadonlySet<string>): boolean {
  return [...sentence.matchAll(OF_KIND)].every(([, word = '', list = '']) =>
    namesIn(list).every((span) => {
      const name = span.replaceAll('`', '');
      if (word === 'type' && WORDS.has(name)) return true;
      const kinds = kindsOf(name);
      return KINDS[word]?.some((kind) => kinds.has(kind)) ?? true;
    }),
  );
}
