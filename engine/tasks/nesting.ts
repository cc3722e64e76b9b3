/**
 * Finds out what the rest of the cursor's line closes, because an editor closes brackets and quotes by itself, and where
 * a completion has to end so that it does not close that again. Reads the characters of one line. In doubt cuts nothing.
 */
import { patternLength } from './balance.ts';

const CLOSERS: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };
const QUOTES = '\'"`';
/** Longer lines are read around the cursor only. */
const MAX_LINE = 1000;

/** Type arguments, or the name of a header in C. */
const HEADER = /^\s*#\s*include\s*<[^<>]*$/;
const OPENS_ANGLE = /\w<[^<>\s]*$/;
const OPENS_TAG = /(^|[^\w<])<(\/?[\w.-]*|\w[\w-]*\s[^<>]*)$/;
/** Where it is known which of them can stand there. */
const ONLY_ANGLE = /(^|[\w)\].:]|[\s(=,])<[^<>;]*$/;
const ONLY_TAG = /<(\/?[\w.:-]*|\w[\w:.-]*\s[^<>]*)$/;

/** What the rest of the line closes: the string at the cursor, type arguments, or a tag. */
export type Closing = { kind: 'string' | 'angle' | 'tag'; closer: string };

/** Whether a string may start here. Not at the apostrophe of a word, or of a lifetime in Rust. */
function isQuote(text: string, i: number): boolean {
  if (text[i] !== "'") return QUOTES.includes(text[i] as string);
  const [end = ''] = /[&<]$|[\p{L}\p{N}_]+$/u.exec(text.slice(Math.max(0, i - 3), i)) ?? [];
  return end === '' || /^[bfru]{1,2}$/i.test(end);
}

/** What closes the brackets and quotes that a text leaves open, outermost first. */
export function leftOpen(line: string): string[] {
  const text = line.slice(-MAX_LINE);
  const levels: string[] = [];
  for (let i = 0; i < text.length; i++) {
    const character = text[i] as string;
    const top = levels.at(-1);
    if (top !== undefined && QUOTES.includes(top[0] as string)) {
      if (character === '\\') i++;
      else if (text.startsWith(top, i)) {
        levels.pop();
        i += top.length - 1;
      } else if (top === '`' && text.startsWith('${', i)) {
        levels.push('}');
        i++;
      }
    } else if (isQuote(text, i)) {
      const triple = text.slice(i, i + 3);
      const isTriple = triple === '"""' || triple === "'''";
      levels.push(isTriple ? triple : character);
      if (isTriple) i += 2;
    } else if (CLOSERS[character] !== undefined) levels.push(CLOSERS[character]);
    else if (')]}'.includes(character) && levels.pop() !== character) levels.length = 0;
  }
  return levels;
}

/**
 * @param before the cursor's line up to the cursor
 * @param after the rest of the line
 * @param inText whether the syntax tree has a string or comment at the cursor; undefined without a tree
 * @param inTag whether the last `<` begins a tag; undefined if nothing tells
 */
export function closingOf({ before, after, inText, inTag }: LinePlace): Closing | undefined {
  const top = leftOpen(before).at(-1);
  if (top !== undefined && QUOTES.includes(top[0] as string))
    return quotesIn(after.slice(0, MAX_LINE), top).count % 2 === 1 ? { kind: 'string', closer: top } : undefined;
  // A string that began on an earlier line.
  const long = inText === true ? ['"""', "'''", '`'].find((quote) => after.startsWith(quote)) : undefined;
  if (long !== undefined) return { kind: 'string', closer: long };
  const kind = angleOf(before.slice(-MAX_LINE), inTag);
  const [closers = ''] = /^>+(?!=)/.exec(after) ?? [];
  return kind && closers !== '' && (closers.length === 1 || closers.length <= anglesOpen(before))
    ? { kind, closer: '>' }
    : undefined;
}

interface LinePlace {
  before: string;
  after: string;
  inText?: boolean | undefined;
  inTag?: boolean | undefined;
}

/** Type arguments, or a tag. Other signs like these compare, redirect or select. */
function angleOf(line: string, inTag: boolean | undefined): 'angle' | 'tag' | undefined {
  if (HEADER.test(line)) return 'angle';
  if (inTag !== undefined) return (inTag ? ONLY_TAG : ONLY_ANGLE).test(line) ? (inTag ? 'tag' : 'angle') : undefined;
  return OPENS_ANGLE.test(line) ? 'angle' : OPENS_TAG.test(line) ? 'tag' : undefined;
}

/** How many type arguments a line leaves open. */
function anglesOpen(before: string): number {
  const line = before.slice(-MAX_LINE);
  return (line.match(/\w</g)?.length ?? 0) - (line.match(/(?<![=-])>/g)?.length ?? 0);
}

/**
 * Where a completion begins to close the string at the cursor. A doubled quote is one in the string, as in SQL.
 * @returns `count`: of the quotes that end or begin a string
 */
export function quotesIn(text: string, closer: string): { first: number | undefined; count: number } {
  let first: number | undefined;
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\') i++;
    else if (text.startsWith(closer, i)) {
      if (closer.length === 1 && text[i + 1] === closer && count % 2 === 0) i++;
      else {
        first ??= i;
        count++;
        i += closer.length - 1;
      }
    }
  }
  return { first, count };
}

/**
 * Reads a completion of type arguments or of a tag.
 * @returns `closed`: the places where it closes what the `>` behind the cursor closes; `open`: the length of its
 *   beginning behind which that `>` may follow, if it does not end outside of a tag
 */
export function anglesIn(text: string, isTag: boolean): { closed: number[]; open: number | undefined } {
  const closed: number[] = [];
  const opened: number[] = [-1];
  let brackets = 0;
  let quote = '';
  let quoteAt = 0;
  for (let i = 0; i < text.length; i++) {
    const character = text[i] as string;
    if (quote !== '') {
      if (character === quote) quote = '';
    } else if (character === '"' || character === '`') {
      quote = character;
      quoteAt = i;
    } else if (CLOSERS[character] !== undefined) brackets++;
    else if (')]}'.includes(character)) brackets--;
    else if (brackets > 0) continue;
    else if (character === '<') opened.push(i);
    else if (character === '>' && !/[=-]/.test(text[i - 1] ?? '') && opened.pop() !== undefined && opened.length === 0)
      closed.push(i);
  }
  const isWhole = opened.length === 1 && !/<[/\s]*$/.test(text);
  // Before an attribute whose value is cut off.
  const end = quote === '' || !isTag ? text.length : /\s*\S*$/.exec(text.slice(0, quoteAt))?.index;
  return { closed, open: isWhole ? end : opened[1] };
}

/**
 * Where a text begins to close a mark of two or more signs that the rest of the line closes, as the backticks of
 * ``code`` in a comment.
 */
export function runIn(text: string, { before, after }: LinePlace): number | undefined {
  const run = /^(?:`{2,}(?!`)|\*\*(?!\*))/.exec(after)?.[0];
  if (run === undefined || before.split(run).length % 2 === 1) return undefined;
  const at = text.indexOf(run);
  return at < 0 ? undefined : at;
}

/** Where prose opens a bracket that it does not close. */
export function unclosedIn(text: string): number | undefined {
  const opened: number[] = [];
  for (let i = 0; i < text.length; i++)
    if ('([{'.includes(text[i] as string)) opened.push(i);
    else if (')]}'.includes(text[i] as string)) opened.pop();
  return opened[0];
}

interface Closers {
  /** The places of closing brackets that the text has not opened. */
  at: number[];
  /** How many brackets it leaves open, and the place of the first one. */
  open: number;
  unclosed: number | undefined;
  /** Of the string in which the text ends, or ''. */
  quote: string;
}

/** Looks at brackets outside strings. `quote`: of the string that the text starts in, or ''. */
export function closersOf(text: string, closer: string, quote = ''): Closers {
  const opener = '([{'[')]}'.indexOf(closer)];
  const at: number[] = [];
  const opened: number[] = [];
  for (let i = 0; i < text.length; i++) {
    const character = text[i] as string;
    if (quote !== '') {
      if (character === '\\') i++;
      else if (character === quote) quote = '';
    } else if ('\'"`'.includes(character)) quote = character;
    else if (character === '/') i += Math.max(0, patternLength(text, i) - 1);
    else if (character === opener) opened.push(i);
    else if (character === closer && opened.pop() === undefined) at.push(i);
  }
  return { at, open: opened.length, unclosed: opened[0], quote };
}

/** Offset after the last bracket or quote that closes one in the same text. */
function endOfOwnClosers(text: string): number {
  const open: string[] = [];
  let end = 0;
  for (let i = 0; i < text.length; i++) {
    const character = text[i] as string;
    const top = open.at(-1);
    if (top !== undefined && '\'"`'.includes(top)) {
      if (character === '\\') i++;
      else if (character === top) {
        open.pop();
        end = i + 1;
      }
    } else if ('\'"`'.includes(character)) {
      // A quote without a closing one closes a string from before the cursor.
      if (text.includes(character, i + 1)) open.push(character);
    } else if ('([{'.includes(character)) open.push(character);
    else if (')]}'.includes(character) && top === '([{'[')]}'.indexOf(character)]) {
      open.pop();
      end = i + 1;
    }
  }
  return end;
}

/** Where the longest suffix of `text` begins that is a prefix of `rest`. */
function overlapStart(text: string, rest: string): number {
  let overlap = Math.min(text.length, rest.length);
  while (overlap > 0 && !text.endsWith(rest.slice(0, overlap))) overlap--;
  return text.length - overlap;
}

/** What opens brackets at the beginning of the rest of the line. Their doubles can be told in code only. */
const openerOf = (rest: string, inText?: boolean): string => (inText ? '' : (/^\s*([([])/.exec(rest)?.[1] ?? ''));

/** How much of a text is surely no repetition of the rest of the line, whatever comes after it. */
export function heldBefore(text: string, rest: string, inText?: boolean): number {
  const opener = openerOf(rest, inText);
  const at = opener === '' ? -1 : text.indexOf(opener);
  return overlapStart(at < 0 ? text : text.slice(0, at), rest);
}

/** Where a text ends if what repeats the rest of the line is cut. Keeps brackets and quotes that close its own. */
export function endBefore(text: string, rest: string, inText?: boolean): number {
  const end = Math.max(overlapStart(text, rest), endOfOwnClosers(text));
  return doubledAt(text.slice(0, end), rest, openerOf(rest, inText)) ?? end;
}

/** Where the brackets begin with which a text ends, if the rest of the line has them: `orders (id)` before ` (id)`. */
function doubledAt(text: string, rest: string, opener: string): number | undefined {
  const closer = CLOSERS[opener];
  const code = text.replace(/[;,]?\s*$/, '');
  if (closer === undefined || !code.endsWith(closer)) return undefined;
  for (let at = code.lastIndexOf(opener); at >= 0; at = at > 0 ? code.lastIndexOf(opener, at - 1) : -1) {
    const { at: excess, open, quote } = closersOf(code.slice(at), closer);
    if (excess.length > 0 || open > 0 || quote !== '') continue;
    // Behind a name there is one call. Other brackets may follow, as in `rows[i][j]` and `if (a) (b)`.
    const isDouble = rest.startsWith('(') || rest.trimStart().startsWith(code.slice(at));
    return isDouble ? overlapStart(text.slice(0, at), rest) : undefined;
  }
  return undefined;
}
