/**
 * Cuts a text of a small model before the first sentence with a name that its source does not have, or with a list that
 * repeats a name. Such a model invents both. Does not judge words that are not written as code.
 */
import { t } from '@vscode/l10n';
import type { KnownAnswer } from '../facts/ask.ts';
import { holds, type KindsOf } from './nameKinds.ts';
import type { PreparedRequest } from './preparedRequest.ts';
import { claimsIn, namesIn, repeats, SQL_WORDS, WORDS, withoutOthers } from './sentenceNames.ts';

export interface NameCheck {
  /** The texts that the model writes about, with their paths. */
  texts: readonly string[];
  /** Whether names in capitals and in small letters are the same, as in SQL. */
  ignoresCase?: boolean;
  /** What a name is, if that is known. Then "the class `a`" must be one. */
  kindsOf?: KindsOf | undefined;
  /** Shown if nothing of the text is left. */
  instead: () => KnownAnswer | undefined;
}

const IDENTIFIER = /(?<![\p{L}\p{N}_$])[\p{L}_$][\p{L}\p{N}_$]*/gu;
/** A span that stands for several names, as in `get*`. */
const PATTERN = /^`([\w$]*)(?:\*|…|\.\.\.)([\w$]*)(?:\(\))?`$/;
/** The end of a sentence, or of a line. */
const SENTENCE_END = /[.!?](?=\s)|\n/g;
/** A point behind it ends no sentence: the number of an item, or a short form. */
const NO_END = /^\s*\d+$|\b(?:e\.g|i\.e|vs|cf)$/;
/** A longer one repeats itself, and takes the square of its length to judge. In characters. */
const MAX_SENTENCE = 2000;
const FENCE = /^\s*(?:```|~~~)/;

/** `shape` with whole sentences only, each of them checked. */
export function withCheckedNames(
  shape: PreparedRequest['shape'],
  { texts, ignoresCase = false, kindsOf, instead }: NameCheck,
): PreparedRequest['shape'] {
  let known: ReadonlySet<string> | undefined;
  const judge = (text: string): boolean => {
    if (text.length > MAX_SENTENCE) return false;
    known ??= new Set(texts.flatMap((each) => (ignoresCase ? each.toLowerCase() : each).match(IDENTIFIER) ?? []));
    const sentence = withoutOthers(text);
    return (
      namesHold(sentence, known, ignoresCase) &&
      !repeats(sentence) &&
      (!kindsOf || claimsIn(sentence).every((claim) => holds(claim, kindsOf)))
    );
  };
  /** The text grows, and its sentences stay. */
  const judged = new Map<string, boolean>();
  const isTrue = ({ text, isCode }: Sentence): boolean => {
    if (isCode) return true;
    const verdict = judged.get(text) ?? judge(text);
    judged.set(text, verdict);
    return verdict;
  };
  return (rawText, finished) => {
    const shaped = shape(rawText, finished);
    const sentences = sentencesOf(shaped.text, finished || shaped.stop);
    const wrong = sentences.findIndex((sentence) => !isTrue(sentence));
    // White space is held back, because the next sentence may be cut.
    const upTo = (end: number): string =>
      sentences
        .slice(0, end)
        .map(({ text }) => text)
        .join('')
        .trimEnd();
    if (wrong < 0 && finished) return shaped;
    // About a whole file, prose says nothing without the names.
    const kept = wrong < 0 ? sentences : sentences.slice(0, wrong);
    const numUseful = kindsOf
      ? kept.findLastIndex(({ text, isCode }) => isCode || namesIn(text).length > 0) + 1
      : kept.length;
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

interface Sentence {
  text: string;
  /** A line of a fenced block. */
  isCode: boolean;
}

/** In order, with the white space behind them. The last one only if the text is `whole`. */
function sentencesOf(text: string, whole: boolean): Sentence[] {
  const sentences: Sentence[] = [];
  let start = 0;
  let isFenced = false;
  const add = (end: number): void => {
    const sentence = text.slice(start, end);
    const isFence = FENCE.test(sentence);
    sentences.push({ text: sentence, isCode: isFenced || isFence });
    if (isFence) isFenced = !isFenced;
    start = end;
  };
  for (const { index, 0: end } of text.matchAll(SENTENCE_END)) {
    const before = text.slice(start, index);
    // A point inside a code span ends nothing.
    if (end !== '\n' && (isFenced || NO_END.test(before) || before.split('`').length % 2 === 0)) continue;
    add(index + 1);
  }
  if (whole && start < text.length) add(text.length);
  return sentences;
}

function namesHold(sentence: string, known: ReadonlySet<string>, ignoresCase: boolean): boolean {
  // A span that is cut off may end inside a name.
  if (sentence.split('`').length % 2 === 0) return false;
  return namesIn(sentence).every((span) => {
    const [, begin = '', end = ''] = PATTERN.exec(span) ?? [];
    if (begin + end !== '') return [...known].some((name) => name.startsWith(begin) && name.endsWith(end));
    return (span.match(IDENTIFIER) ?? []).every(
      (name) =>
        WORDS.has(name) ||
        (ignoresCase ? known.has(name.toLowerCase()) || SQL_WORDS.has(name.toLowerCase()) : known.has(name)),
    );
  });
}
