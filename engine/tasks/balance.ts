/**
 * Finds how much of a completion leaves the cursor's line as balanced as it was. Reads brackets, strings, patterns and
 * code in strings by their characters, in any language. Does not read other lines.
 */

const CLOSERS: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };
/** Longer lines are read around the cursor only. */
const MAX_LINE = 1000;
/** More open brackets are no code. */
const MAX_OPEN = 50;
/** Characters before a quote or slash that tell what it is. */
const MAX_LOOKBACK = 12;
const PATTERN = /^\/(?![/*\s])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\//;
const IN_PATTERN = /([(,=:[!&|?{};]|\breturn)\s*\/(?![/*\s])((?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])*)$/;
/** Of a text in a pattern. */
const MAX_PATTERN = 200;
const BEFORE_PATTERN = /(^|[(,=:[!&|?{;]|=>|\breturn)\s*$/;
/** It would hide the rest of the line. Not a division without remainder. */
const COMMENT = /^(\/\/\s?[\p{L}'-]+\s[\p{L}'-]|\/\/$|#\s\p{L})/u;

/** Brackets in which a semicolon may stand. */
const SEMICOLONS = /\b(for|url)\s*\([^()]*$/;
const ONLY_CLOSES = /^[\s)\]};,]*$/;

/** What is open at a place: the closers, outermost first. One of a string with code between braces begins with `f`. */
interface State {
  open: readonly string[];
  /** Closing brackets that the line does not open. */
  unopened: string;
}

/** The length of the longest beginning of `text` after which the rest of the line is as balanced as without it. */
export function balancedLength(
  before: string,
  text: string,
  after: string,
  /** `closer`: of a string that began on an earlier line. `isKnown`: the language is, so `'` begins a string. */
  { closer, isKnown }: { closer?: string; isKnown: boolean },
): number {
  const head = before.slice(-MAX_LINE);
  const rest = after.slice(0, MAX_LINE);
  if (IN_PATTERN.test(head) && rest.includes('/')) return lengthInPattern(head, text, rest);
  // As in Lisp and ML.
  const isMark = !isKnown && /^[^'"]*(?<![^\s(])'\w[^'"]*$/.test(text) && !(head + rest).includes("'");
  let state: State = { open: closer === undefined ? [] : [closer], unopened: '' };
  for (let at = 0; at < head.length; ) [at, state] = step(head, at, state);
  // Two more quotes behind the one before the cursor would begin a longer string.
  const quote = head.at(-1) ?? '';
  if (/["'`]/.test(quote) && state.open.at(-1)?.endsWith(quote) && text.startsWith(quote + quote)) return 0;
  // Code between braces, as in format strings.
  if (/["'`]/.test(state.open.at(-1)?.at(-1) ?? '') && /\{[\w.]*$/.test(head) && rest.startsWith('}'))
    state = { ...state, open: [...state.open, '}'] };
  const was = atEnd(head.slice(-MAX_LOOKBACK), rest, state);
  // The line ends inside a string of several lines.
  const long = ONLY_CLOSES.test(rest) ? undefined : was.open.at(-1);
  const isLong = /`$|"{3}|'{3}/.test(long ?? '');
  // A bracket that the line opens at its end is inside the ones before it, which are closed further down.
  const goesOn = /[([{]\s*$/.test(rest);
  const closes = /[)\]}>'"`]/.test(rest);
  const line = head + (isMark ? text.replace("'", ' ') : text);
  let best = 0;
  const known = new Map<string, boolean>();
  for (let at = head.length; at < line.length; ) {
    if (isKnown && line[at] === ';' && state.open.at(-1) === ')' && !SEMICOLONS.test(line.slice(0, at))) break;
    [at, state] = step(line, at, state);
    if (at > line.length || state.open.length > MAX_OPEN) break;
    const above = line.slice(Math.max(0, at - MAX_LOOKBACK), at);
    const key = `${state.open.join(' ')} ${state.unopened} ${above.slice(-3)}`;
    let fits = known.get(key);
    if (fits === undefined) {
      const now = atEnd(above, rest, state);
      fits =
        isPart(now.open, was.open) &&
        (!isLong || now.open.at(-1) === long) &&
        (!goesOn || now.open.length === was.open.length) &&
        (closes ? now.unopened === was.unopened : now.unopened.startsWith(was.unopened));
      known.set(key, fits);
    }
    if (fits) best = at - head.length;
  }
  return best;
}

/** Length of the longest beginning of `text` with which the regular expression at the cursor can be read. */
function lengthInPattern(head: string, text: string, rest: string): number {
  const [, , begun = ''] = IN_PATTERN.exec(head) ?? [];
  const reads = (added: string): boolean => {
    const end = unescapedSlash(begun + added + rest);
    if (end === undefined || end < begun.length + added.length || /(?<!\\)(\\\\)*\\$/.test(added)) return false;
    try {
      return new RegExp((begun + added + rest).slice(0, end)) instanceof RegExp;
    } catch {
      return false;
    }
  };
  if (!reads('')) return text.length;
  let length = Math.min(text.length, MAX_PATTERN);
  while (length > 0 && !reads(text.slice(0, length))) length--;
  return length;
}

/** Where a pattern ends. */
function unescapedSlash(pattern: string): number | undefined {
  let isClass = false;
  for (let i = 0; i < pattern.length; i++) {
    const character = pattern[i];
    if (character === '\\') i++;
    else if (character === '[') isClass = true;
    else if (character === ']') isClass = false;
    else if (character === '/' && !isClass) return i;
  }
  return undefined;
}

function atEnd(above: string, rest: string, state: State): State {
  const line = above + rest;
  let at = above.length;
  while (at < line.length) [at, state] = step(line, at, state);
  return state;
}

/** Whether `some` are elements of `all`, in their order. */
function isPart(some: readonly string[], all: readonly string[]): boolean {
  let i = 0;
  for (const one of all) if (one === some[i]) i++;
  return i === some.length;
}

/** Reads the character at a place, or the sign that begins there. */
function step(line: string, at: number, state: State): [number, State] {
  const { open, unopened } = state;
  const character = line[at] as string;
  const top = open.at(-1) ?? '';
  const opened = (closer: string, length: number): [number, State] => [
    at + length,
    { open: [...open, closer], unopened },
  ];
  if (top === '//') return [line.length, state];
  if (/["'`]$/.test(top)) {
    if (character === '\\') return [at + 2, state];
    const closer = top.replace('f', '');
    if (line.startsWith(closer, at)) return [at + closer.length, { open: open.slice(0, -1), unopened }];
    if (/^[$#]\{/.test(line.slice(at, at + 2)) && closer !== "'") return opened('}', 2);
    if (top === closer || character !== '{') return [at + 1, state];
    return line[at + 1] === '{' ? [at + 2, state] : opened('}', 1);
  }
  const above = line.slice(Math.max(0, at - MAX_LOOKBACK), at);
  const pattern = patternLength(line, at);
  if (pattern > 0) return [at + pattern, state];
  if (character === '/' && BEFORE_PATTERN.test(above) && /^\/[^/*\s>]?[^/\n]*$/.test(line.slice(at)))
    return opened('//', 1);
  if (/\s$/.test(above) && COMMENT.test(line.slice(at))) return opened('//', 1);
  if (isQuote(line, at, above)) {
    const triple = character.repeat(3);
    const closer = character !== '`' && line.startsWith(triple, at) ? triple : character;
    return opened((/(\b(f|rf|fr)|\$@?)$/i.test(above) ? 'f' : '') + closer, closer.length);
  }
  if (CLOSERS[character] !== undefined) return opened(CLOSERS[character], 1);
  if (!')]}'.includes(character)) return [at + 1, state];
  return [at + 1, top === character ? { open: open.slice(0, -1), unopened } : { open, unopened: unopened + character }];
}

/** The length of the pattern that begins at a slash, or 0. */
export function patternLength(line: string, at: number): number {
  if (line[at] !== '/' || !BEFORE_PATTERN.test(line.slice(Math.max(0, at - MAX_LOOKBACK), at))) return 0;
  return PATTERN.exec(line.slice(at))?.[0].length ?? 0;
}

/** Not the apostrophe of a word, or of a lifetime in Rust. */
function isQuote(line: string, at: number, above: string): boolean {
  if (line[at] !== "'") return '"`'.includes(line[at] as string);
  if (/[&<]'[a-z_]/.test(line) && /^'[a-z_]\w*(?![\w'])/.test(line.slice(at))) return false;
  const [word = ''] = /[\p{L}\p{N}_]+$/u.exec(above) ?? [];
  return word === '' || /^[bfru]{1,2}$/i.test(word);
}
