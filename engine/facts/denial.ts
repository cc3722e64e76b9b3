/**
 * An answer that denies what the model was given, in the words of its training: "There is no `flush` in src/store.ts." Small models overlook
 * names, and say so with confidence; they deny words, too, that nobody meant as a name. Such a sentence is held back until it is known whom
 * it denies. Where the name does stand in code that was given, the line is shown in its place; where it is none of a program, and where the
 * model says that it cannot answer, what it can. So only of a name that is asked for and stands nowhere a denial is shown. Pure.
 */
import { grammarFor } from '../text/syntax/syntaxGrammars.ts';
import { factQuestion } from './factQuestion.ts';
import { WORDS } from './factWords.ts';
import { occursIn } from './factWhere.ts';
import { languageOf } from './questionLanguage.ts';
import type { Shaped } from '../tasks/preparedRequest.ts';

/** What the model was given to read. */
export interface GivenText {
  path: string;
  /** The editor's name of it, where the path does not tell. */
  language?: string | undefined;
  /** LF line ends. */
  text: string;
  /** Of its first line, from 1; undefined where that is not known. */
  startLine?: number;
}

type Shape = (rawText: string, finished: boolean) => Shaped;

interface Denied {
  name: string;
  pt: boolean;
}

const DENIALS = [
  { opening: 'there is no `', behind: ' in', pt: false },
  { opening: 'não existe `', behind: ' em', pt: true },
  { opening: 'não há `', behind: ' em', pt: true },
] as const;
/** What the model was trained to say of what it was not trained for. */
const REFUSAL = 'that is beyond this small starter model.';
/** Longer lines are not shown. */
const MAX_LINE = 140;

/**
 * `shape` without sentences that deny what cannot be denied, and without refusals.
 * @param asked what the user has said, the question last. @param beyond said where there is no answer; what the model can be asked when left out
 */
export function withoutDenial(
  shape: Shape,
  given: readonly GivenText[],
  asked: readonly string[],
  beyond: Shaped = { text: WORDS[languageOf(asked.at(-1) ?? '')].beyond, stop: true, source: 'stock' },
): Shape {
  // Texts are long, and what is shaped grows token by token.
  const found = new Map<string, Shaped | undefined>();
  return (rawText, finished) => {
    const shaped = shape(rawText, finished);
    const ended = finished || shaped.stop;
    const denied = deniedIn(shaped.text, ended);
    if (denied === 'open' || (!ended && isBeginning(shaped.text, REFUSAL))) return { ...shaped, text: '' };
    if (shaped.text.toLowerCase().startsWith(REFUSAL)) return beyond;
    if (!denied) return shaped;
    const key = `${denied.pt} ${denied.name}`;
    if (!found.has(key)) found.set(key, insteadOf(denied, given, asked, beyond));
    return found.get(key) ?? shaped;
  };
}

/** Undefined: the denial is right, as far as words tell. */
function insteadOf(
  { name, pt }: Denied,
  given: readonly GivenText[],
  asked: readonly string[],
  beyond: Shaped,
): Shaped | undefined {
  // Where words of the question are taken for a name, one of them may be one.
  const said = lastPart(name)
    .split(/\s+/)
    .filter((word) => isSaid(word, asked));
  const place = said.map((word) => placeOf(word, given)).find((each) => each !== undefined);
  if (place) return { text: sentence(place, pt), stop: true, source: 'stock' };
  return said[0] === lastPart(name) &&
    isSurelyName(said[0], asked) &&
    !given.some(({ text }) => occursIn(text, said[0]!))
    ? undefined
    : beyond;
}

/** Whether an answer is one that was said in the place of what the model had written. */
export const isStock = (answer = ''): boolean =>
  Object.values(WORDS).some(({ beyond, noMore }) => beyond === answer || answer.endsWith(noMore));

/** Whether it may still become `sentence`. */
function isBeginning(text: string, sentence: string): boolean {
  return text !== '' && text.length < sentence.length && sentence.startsWith(text.toLowerCase());
}

/** Whether a text denies something in those words. */
export const isDenial = (text: string): boolean =>
  DENIALS.some(({ opening }) => text.toLowerCase().startsWith(opening));

/** `open`: it may still become such a sentence. */
function deniedIn(text: string, ended: boolean): Denied | 'open' | undefined {
  for (const { opening, behind, pt } of DENIALS) {
    if (!ended && isBeginning(text, opening)) return 'open';
    if (!text.toLowerCase().startsWith(opening)) continue;
    // Models of words in pieces write a piece too many before a name: "` flush`", "`s flush`".
    const [, name, rest] =
      /^(?:\p{L}{0,2} +)?([^`(\n]*)(?:\([^`\n]*)?(?:`([\s\S]*))?$/u.exec(text.slice(opening.length)) ?? [];
    if (name === undefined) return undefined;
    if (rest === undefined) return ended ? undefined : 'open';
    if (name === '') return undefined;
    if (/^[.,;]/.test(rest) || rest.startsWith(behind) || (ended && rest === '')) return { name, pt };
    return !ended && behind.startsWith(rest) ? 'open' : undefined;
  }
  return undefined;
}

/** Of `Store.flush` only that stands where it is defined. */
const lastPart = (name: string): string =>
  name
    .split(/[.#]/)
    .filter((part) => part !== '')
    .at(-1) ?? '';

/** Words of the languages themselves, which stand in most files and are what nobody asks for, unless it is marked as a name. */
const KEYWORDS = new Set(
  `and as async await break by case catch class const continue def default del do elif else enum except export extends false finally for from function get global if
  import in interface is lambda let match new none not null of or pass raise return self set static super switch this throw true try type var void while with yield`.split(
    /\s+/,
  ),
);

/** Whether the user has said it, marked as a name or in so many words. */
function isSaid(name: string, asked: readonly string[]): boolean {
  if (isMarked(name, asked)) return true;
  return (
    name.length > 1 &&
    !KEYWORDS.has(name.toLowerCase()) &&
    asked.some((message) => occursIn(message.toLowerCase(), name.toLowerCase()))
  );
}

const isMarked = (name: string, asked: readonly string[]): boolean =>
  asked.some((message) => [...message.matchAll(/`([^`]+)`/g)].some(([, code = '']) => occursIn(code, name)));

/** Nobody writes these of anything but a program. */
const IDENTIFIER = /[_$\d]|\p{Ll}\p{Lu}/u;

/** Whether a name of the program is meant, and no word: "there is no `error`" says nothing of errors. */
export function isSurelyName(denied: string, asked: readonly string[]): boolean {
  const name = lastPart(denied);
  return isMarked(name, asked) || IDENTIFIER.test(name) || factQuestion(asked.at(-1) ?? '')?.name === name;
}

interface Place {
  name: string;
  path: string;
  line: number | undefined;
  /** That line. */
  text: string;
}

/** Where a name stands in code that was given: in prose a word stands somewhere without answering anything. */
export function placeOf(denied: string, given: readonly GivenText[]): Place | undefined {
  const name = lastPart(denied);
  for (const { path, text, startLine, language } of given) {
    if (name === '' || grammarFor({ path, language }) === undefined) continue;
    const lines = text.split('\n');
    const row = lines.findIndex((line) => occursIn(line, name));
    if (row >= 0)
      return { name, path, line: startLine === undefined ? undefined : startLine + row, text: lines[row]!.trim() };
  }
  return undefined;
}

function sentence({ name, path, line, text }: Place, pt: boolean): string {
  const shown = text.length <= MAX_LINE && !text.includes('`') ? `: \`${text}\`` : '';
  const where = line === undefined ? '' : ` (${pt ? 'linha' : 'line'} ${line}${shown})`;
  const { noMore } = WORDS[pt ? 'pt' : 'en'];
  return `\`${name}\` ${pt ? 'está em' : 'stands in'} ${path}${where}. ${noMore}`;
}
