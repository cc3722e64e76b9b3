/**
 * An answer that denies what the model was given, in the words of its training: "There is no `flush` in src/store.ts." Small models overlook
 * names, and say so with confidence; they deny words, too, that nobody meant as a name. Such a sentence is held back until it is known whom
 * it denies. Where the name does stand in code that was given, the line is shown in its place; where it cannot be right for another reason,
 * and where the model says that it cannot answer, what it can. So only of what is asked and stands nowhere a denial is shown. Pure.
 */
import { grammarFor } from '../text/syntaxGrammars.ts';
import { WORDS } from './factWords.ts';
import { occursIn } from './factWhere.ts';
import { languageOf } from './questionLanguage.ts';
import type { Shaped } from './preparedRequest.ts';

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

const DENIALS = [
  { opening: 'there is no `', behind: ' in', pt: false },
  { opening: 'não existe `', behind: ' em', pt: true },
  { opening: 'não há `', behind: ' em', pt: true },
] as const;
/** What the model was trained to say of what it was not trained for. */
const REFUSAL = 'that is beyond this small starter model.';
/** Longer lines are not shown. */
const LONGEST_LINE = 140;

/** `shape` without sentences that deny what cannot be denied, and without refusals. @param asked what the user has said, the question last */
export function withoutDenial(shape: Shape, given: readonly GivenText[], asked: readonly string[]): Shape {
  const beyond = { text: WORDS[languageOf(asked.at(-1) ?? '')].beyond, stop: true, stock: true } as const;
  return (rawText, finished) => {
    const shaped = shape(rawText, finished);
    const ended = finished || shaped.stop;
    const denied = deniedIn(shaped.text, ended);
    if (denied === 'open' || (!ended && isBeginning(shaped.text, REFUSAL))) return { ...shaped, text: '' };
    if (shaped.text.toLowerCase().startsWith(REFUSAL)) return beyond;
    if (!denied) return shaped;
    const isAsked = asked.some((message) => isName(denied.name, message));
    const place = isAsked ? placeOf(denied.name, given) : undefined;
    if (place) return { text: sentence(place, denied.pt), stop: true, stock: true };
    return isAsked && !given.some(({ text }) => occursIn(text, lastPart(denied.name))) ? shaped : beyond;
  };
}

/** Whether an answer is what is said where the model has none. */
export const isBeyond = (answer: string | undefined): boolean => Object.values(WORDS).some(({ beyond }) => beyond === answer);

/** Whether it may still become `sentence`. */
function isBeginning(text: string, sentence: string): boolean {
  return text !== '' && text.length < sentence.length && sentence.startsWith(text.toLowerCase());
}

/** `open`: it may still become such a sentence. */
function deniedIn(text: string, ended: boolean): { name: string; pt: boolean } | 'open' | undefined {
  for (const { opening, behind, pt } of DENIALS) {
    if (!ended && isBeginning(text, opening)) return 'open';
    if (!text.toLowerCase().startsWith(opening)) continue;
    // Models of words in pieces write a piece too many before a name: "` flush`", "`s flush`".
    const [, name, rest] = /^(?:\p{L}{0,2} +)?([^`(\n]*)(?:\([^`\n]*)?(?:`([\s\S]*))?$/u.exec(text.slice(opening.length)) ?? [];
    if (name === undefined) return undefined;
    if (rest === undefined) return ended ? undefined : 'open';
    if (name === '') return undefined;
    if (/^[.,;]/.test(rest) || rest.startsWith(behind) || (ended && rest === '')) return { name, pt };
    return !ended && behind.startsWith(rest) ? 'open' : undefined;
  }
  return undefined;
}

/** Of `Store.flush` only that stands where it is defined. */
const lastPart = (name: string): string => name.split(/[.#]/).filter((part) => part !== '').at(-1) ?? '';

/** What sentences are made of: no names, unless they are marked as such. */
const FUNCTION_WORDS = new Set(
  `a about after all also an and any are as at be been before but by can could did do does done each else every for from had has have he her here his how i if in
  inside into is it its just like made make may me might more most must my no not of off on one only or other our out over own same say says see shall she should so
  some such tell than that the their them then there these they this those to too under until up use used uses using was we were what when where whether which while
  who whom whose why will with within without would yes you your
  a ao aos as até cada com como da das de dela dele deles do dos e é ela elas ele eles em entre era essa esse esta está estão este eu foi há isso isto já lá mais mas
  me mesmo meu minha muito na nas nem no nos não o onde os ou para pela pelo por porque qual quais quando que quem se sem ser seu sim sobre são só sua também tem todas
  todos tudo um uma você`.split(/\s+/),
);

/** Whether the user has asked for it by that name, or with it in it. */
function isName(denied: string, message: string): boolean {
  const name = lastPart(denied);
  if ([...message.matchAll(/`([^`]+)`/g)].some(([, code = '']) => occursIn(code, name))) return true;
  return !FUNCTION_WORDS.has(name.toLowerCase()) && occursIn(message.toLowerCase(), name.toLowerCase());
}

interface Place {
  name: string;
  path: string;
  line: number | undefined;
  /** That line. */
  text: string;
}

/** Where languages have text that is no code: comments and strings. */
const TEXTS = {
  hash: /#.*|"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/g,
  slashes: /\/\*[\s\S]*?\*\/|\/\/.*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\[\s\S]|[^`\\])*`/g,
};

/** Where a name stands in code that was given, outside of comments and strings as far as that shows without a tree. */
export function placeOf(denied: string, given: readonly GivenText[]): Place | undefined {
  const name = lastPart(denied);
  for (const { path, text, startLine, language } of given) {
    const grammar = grammarFor({ path, language });
    if (name === '' || grammar === undefined) continue;
    const lines = text.split('\n');
    const texts = /^(?:bash|powershell|python|ruby)$/.test(grammar) ? TEXTS.hash : TEXTS.slashes;
    const row = text.replace(texts, (part) => part.replace(/[^\n]/g, ' ')).split('\n').findIndex((line) => occursIn(line, name));
    if (row >= 0) return { name, path, line: startLine === undefined ? undefined : startLine + row, text: lines[row]!.trim() };
  }
  return undefined;
}

function sentence({ name, path, line, text }: Place, pt: boolean): string {
  const shown = text.length <= LONGEST_LINE && !text.includes('`') ? `: \`${text}\`` : '';
  const where = line === undefined ? '' : ` (${pt ? 'linha' : 'line'} ${line}${shown})`;
  return pt ? `\`${name}\` está em ${path}${where}. Mais do que isso o modelo não soube dizer.` : `\`${name}\` stands in ${path}${where}. The model could not say more about it.`;
}
