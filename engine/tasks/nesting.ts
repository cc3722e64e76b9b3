/**
 * Finds out what the rest of the cursor's line closes, because an editor closes brackets and quotes by itself, and where
 * a completion has to end so that it does not close that again. Reads the characters of one line. In doubt cuts nothing.
 */

const CLOSERS: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };
const QUOTES = '\'"`';
/** Longer lines are read around the cursor only. */
const MAX_LINE = 1000;

/** Type arguments, or the name of a header in C. */
const OPENS_ANGLE = /\w<[^<>\s]*$|^\s*#\s*include\s*<[^<>]*$/;
const OPENS_TAG = /(^|[^\w<])<(\/?[\w.-]*|\w[\w-]*\s[^<>]*)$/;

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
 */
export function closingOf(before: string, after: string, inText: boolean | undefined): Closing | undefined {
  const top = leftOpen(before).at(-1);
  if (top !== undefined && QUOTES.includes(top[0] as string))
    return quotesIn(after.slice(0, MAX_LINE), top).count % 2 === 1 ? { kind: 'string', closer: top } : undefined;
  // A string that began on an earlier line.
  const long = inText === true ? ['"""', "'''", '`'].find((quote) => after.startsWith(quote)) : undefined;
  if (long !== undefined) return { kind: 'string', closer: long };
  // Type arguments, or a tag. Other signs like these compare, redirect or select.
  const line = before.slice(-MAX_LINE);
  const kind = OPENS_ANGLE.test(line) ? 'angle' : OPENS_TAG.test(line) ? 'tag' : undefined;
  const [closers = ''] = /^>+(?!=)/.exec(after) ?? [];
  return kind && closers !== '' && (closers.length === 1 || closers.length <= anglesOpen(before))
    ? { kind, closer: '>' }
    : undefined;
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
export function anglesIn(text: string): { closed: number[]; open: number | undefined } {
  const closed: number[] = [];
  const opened: number[] = [-1];
  let brackets = 0;
  let quote = '';
  for (let i = 0; i < text.length; i++) {
    const character = text[i] as string;
    if (quote !== '') {
      if (character === quote) quote = '';
    } else if (character === '"' || character === '`') quote = character;
    else if (CLOSERS[character] !== undefined) brackets++;
    else if (')]}'.includes(character)) brackets--;
    else if (brackets > 0) continue;
    else if (character === '<') opened.push(i);
    else if (character === '>' && !/[=-]/.test(text[i - 1] ?? '') && opened.pop() !== undefined && opened.length === 0)
      closed.push(i);
  }
  const isWhole = opened.length === 1 && !/<[/\s]*$/.test(text);
  return { closed, open: isWhole ? text.length : opened[1] };
}
