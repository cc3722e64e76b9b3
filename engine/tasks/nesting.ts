/**
 * Keeps the brackets and quotes of the cursor's line balanced: finds out which of them the rest of the line closes, and
 * where a completion has to end so that it does not close them again. Reads characters; a syntax tree is only a hint.
 */

/** A bracket or quote that is open. */
interface Level {
  /** The text that closes it. */
  readonly close: string;
  /** Offset of its opening in the completion. -1: opened before the cursor. */
  readonly at: number;
}

const CLOSERS: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };
const QUOTES = '\'"`';

/** What the rest of the cursor's line closes. */
export interface OpenAtCursor {
  /** Brackets and quotes that are open at the cursor as far as the line shows, outermost first. */
  readonly levels: readonly string[];
  /** Those that the rest of the line closes, in its order. */
  readonly closed: readonly string[];
  /** The rest of the line begins with `>`, which may close type arguments or a tag. */
  readonly isAngle: boolean;
}

export interface Balanced {
  /** [0, end) opens nothing that it does not close, and closes nothing that the rest of the line closes. */
  end: number;
  /** The rest of the line goes on there. What the completion has behind it is superfluous. */
  isCut: boolean;
  /** [0, own) ends with the last bracket or quote that the completion closes or escapes itself. */
  own: number;
}

interface Token {
  readonly length: number;
  readonly opens?: string;
  readonly closes?: string;
}

const isString = (level: string | undefined): boolean => level !== undefined && QUOTES.includes(level[0] as string);

/** The next characters at `i`. `top` closes the innermost level. */
function tokenAt(text: string, i: number, top: string | undefined): Token {
  const character = text[i] as string;
  if (top !== undefined && isString(top)) {
    if (character === '\\') return { length: 2 };
    if (text.startsWith(top, i)) return { length: top.length, closes: top };
    return top === '`' && character === '{' && text[i - 1] === '$' ? { length: 1, opens: '}' } : { length: 1 };
  }
  const opens = CLOSERS[character] ?? (isQuote(text, i) ? character : undefined);
  if (opens !== undefined) return { length: 1, opens };
  return ')]}'.includes(character) ? { length: 1, closes: character } : { length: 1 };
}

/** Whether a string may start here. Not at the apostrophe of a word or of a lifetime in Rust. */
function isQuote(text: string, i: number): boolean {
  if (text[i] !== "'") return QUOTES.includes(text[i] as string);
  const [end = ''] = /[&<]$|[\p{L}\p{N}_]+$/u.exec(text.slice(Math.max(0, i - 3), i)) ?? [];
  return end === '' || /^[bfru]{1,2}$/i.test(end);
}

/**
 * The brackets and quotes that a text leaves open, outermost first.
 * @param isCode it does not end inside a string, so a quote that stays open is an apostrophe
 */
function leftOpen(text: string, isCode: boolean, apostrophes: readonly number[] = []): string[] {
  const levels: Level[] = [];
  for (let i = 0; i < text.length; ) {
    const top = levels.at(-1)?.close;
    const triple = text.slice(i, i + 3);
    const isTriple = !isString(top) && (triple === '"""' || triple === "'''");
    const token = isTriple ? { length: 3, opens: triple } : tokenAt(text, i, top);
    if (token.opens !== undefined && !apostrophes.includes(i)) levels.push({ close: token.opens, at: i });
    else if (token.closes !== undefined && levels.pop()?.close !== token.closes) levels.length = 0;
    i += token.length;
  }
  const quote = levels.find(({ close }) => isString(close));
  return isCode && quote ? leftOpen(text, isCode, [...apostrophes, quote.at]) : levels.map(({ close }) => close);
}

/**
 * What a text closes of `levels`, or of what was opened before them.
 * @returns `quote`: of a string that the text leaves open
 */
function closedBy(text: string, levels: readonly string[]): { closed: string[]; quote: string | undefined } {
  const outer = [...levels];
  const own: string[] = [];
  const closed: string[] = [];
  for (let i = 0; i < text.length; ) {
    const { length, opens, closes } = tokenAt(text, i, own.at(-1) ?? outer.at(-1));
    if (opens !== undefined) own.push(opens);
    else if (closes !== undefined && own.length > 0) {
      if (own.pop() !== closes) break;
    } else if (closes !== undefined) {
      closed.push(closes);
      if (outer.pop() !== closes) outer.length = 0;
    }
    i += length;
  }
  return { closed, quote: [...outer.slice(-1), ...own].find(isString) };
}

/** Longer lines are read around the cursor only. */
const MAX_LINE = 1000;

/**
 * @param before the cursor's line up to the cursor
 * @param after the rest of the line
 * @param inText whether the syntax tree has a string or comment at the cursor; undefined without a tree
 */
export function openAtCursor(before: string, after: string, inText: boolean | undefined): OpenAtCursor {
  const levels = leftOpen(before.slice(-MAX_LINE), inText === false);
  const rest = after.slice(0, MAX_LINE);
  const isAngle = /^\s*>(?!=)/.test(rest);
  const here = closedBy(rest, levels);
  if (isString(levels.at(-1))) {
    // The completion may have to close the string, as in `f("|)`.
    const outside = closedBy(rest, levels.slice(0, -1));
    const isInside = here.closed.length > 0 && (here.quote === undefined || outside.quote !== undefined);
    return isInside ? { levels, closed: here.closed, isAngle: false } : { levels, closed: outside.closed, isAngle };
  }
  // A string that began on an earlier line.
  if (here.quote !== undefined && (inText ?? here.quote === '`')) {
    const inside = closedBy(rest, [here.quote]);
    if (inside.quote === undefined) return { levels: [here.quote], closed: inside.closed, isAngle: false };
  }
  return { levels, closed: here.closed, isAngle };
}

/** How many of the open brackets and quotes the completion itself may close, so that the rest closes the others. */
function numFree({ levels, closed }: OpenAtCursor): number {
  for (let free = Math.max(0, levels.length - closed.length); free > 0; free--) {
    const rest = levels.slice(0, levels.length - free);
    if (closed.every((close, k) => rest.at(-1 - k) === close)) return free;
  }
  return 0;
}

/** Where a completion ends that keeps the line balanced. `end` never moves back when the text grows. */
export function balance(cursor: OpenAtCursor, text: string): Balanced {
  const stack: Level[] = cursor.levels.map((close) => ({ close, at: -1 }));
  const least = cursor.levels.length - numFree(cursor);
  const mayClose = cursor.closed.length === 0;
  let own = 0;
  let angles = 0;
  const result = (end: number, isCut: boolean): Balanced => {
    const open = stack.find(({ at }) => at >= 0)?.at ?? end;
    return { end: Math.min(end, open), isCut, own: Math.min(own, open) };
  };
  for (let i = 0; i < text.length; ) {
    const top = stack.at(-1);
    // The next characters may make it the closing quotes.
    if (top && top.close.length > text.length - i && top.close.startsWith(text.slice(i))) return result(i, false);
    const { length, opens, closes } = tokenAt(text, i, top?.close);
    // A backslash at the end would escape the closing quote.
    if (i + length > text.length) return result(i, false);
    if (length > 1) own = i + length;
    if (opens !== undefined) stack.push({ close: opens, at: i });
    else if (closes !== undefined) {
      const isOwn = top !== undefined && top.at >= 0;
      if (isOwn ? top.close !== closes : !mayClose && (top?.close !== closes || stack.length <= least))
        return result(i, true);
      if (top?.close === closes) stack.pop();
      own = i + length;
    } else if (cursor.isAngle && !isString(top?.close)) {
      if (text[i] === '<') angles++;
      else if (text[i] === '>' && !/[=-]$/.test(text.slice(0, i))) {
        if (angles-- === 0) return result(i, true);
        own = i + 1;
      }
    }
    i += length;
  }
  return result(text.length, false);
}
