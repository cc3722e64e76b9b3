/**
 * An answer that denies what the model was given, in the words of its training: "There is no `flush` in src/store.ts." Small models overlook
 * names, and say so with confidence. Such a sentence is held back until it is known whom it denies, and where the name does stand in what
 * was given, the line is shown in its place. Only of code, and of what is surely a name: in prose a word stands somewhere without answering anything. Pure.
 */
import { grammarFor } from '../text/syntaxGrammars.ts';
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
/** Longer lines are not shown. */
const LONGEST_LINE = 140;

/** `shape` without sentences that deny a name of `given`. @param asked what the user has said */
export function withoutDenial(shape: Shape, given: readonly GivenText[], asked = ''): Shape {
  return (rawText, finished) => {
    const shaped = shape(rawText, finished);
    const denied = deniedIn(shaped.text, finished || shaped.stop);
    if (denied === 'open') return { ...shaped, text: '' };
    const place = denied && placeOf(denied.name, given, asked);
    return place ? { text: sentence(place, denied.pt), stop: true } : shaped;
  };
}

/** `open`: it may still become such a sentence. */
function deniedIn(text: string, finished: boolean): { name: string; pt: boolean } | 'open' | undefined {
  for (const { opening, behind, pt } of DENIALS) {
    const start = text.slice(0, opening.length).toLowerCase();
    if (!finished && start !== '' && start.length < opening.length && opening.startsWith(start)) return 'open';
    if (start !== opening) continue;
    // Models of words in pieces write a piece too many before a name: "` flush`", "`s flush`".
    const [, name, rest] = /^(?:\p{L}{0,2} +)?([\p{L}\w$.#]*)(?:\(\)?)?(?:`([\s\S]*))?$/u.exec(text.slice(opening.length)) ?? [];
    if (name === undefined) return undefined;
    if (rest === undefined) return finished ? undefined : 'open';
    if (name === '') return undefined;
    if (/^[.,;]/.test(rest) || rest.startsWith(behind) || (finished && rest === '')) return { name, pt };
    return !finished && behind.startsWith(rest) ? 'open' : undefined;
  }
  return undefined;
}

interface Place {
  name: string;
  path: string;
  line: number | undefined;
  /** That line. */
  text: string;
}

/** Nobody writes these of anything but a program. */
const IDENTIFIER = /[_$\d]|\p{Ll}\p{Lu}|^\p{Lu}[\p{L}\d]*$/u;

/** Where a name stands in code that was given. */
export function placeOf(denied: string, given: readonly GivenText[], asked: string): Place | undefined {
  // Of `Store.flush` only the last part stands where it is defined.
  const name = denied.split(/[.#]/).filter((part) => part !== '').at(-1);
  if (name === undefined) return undefined;
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}_$])${name.replaceAll('$', '\\$')}(?![\\p{L}\\p{N}_$])`, 'u');
  const marked = [...asked.matchAll(/`([^`]+)`/g)].some(([, code = '']) => pattern.test(code));
  if (!marked && !IDENTIFIER.test(name)) return undefined;
  for (const { path, text, startLine, language } of given) {
    if (grammarFor({ path, language }) === undefined) continue;
    const at = pattern.exec(text)?.index;
    if (at === undefined) continue;
    const row = text.slice(0, at).split('\n').length - 1;
    return { name, path, line: startLine === undefined ? undefined : startLine + row, text: (text.split('\n')[row] ?? '').trim() };
  }
  return undefined;
}

function sentence({ name, path, line, text }: Place, pt: boolean): string {
  const shown = text.length <= LONGEST_LINE && !text.includes('`') ? `: \`${text}\`` : '';
  const where = line === undefined ? '' : ` (${pt ? 'linha' : 'line'} ${line}${shown})`;
  return pt ? `\`${name}\` está em ${path}${where}. Mais do que isso o modelo não soube dizer.` : `\`${name}\` stands in ${path}${where}. The model could not say more about it.`;
}
