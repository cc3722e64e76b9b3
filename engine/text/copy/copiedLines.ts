/**
 * Finds the places from which the lines of a completion are copied word for word, and what stands above them. Compares
 * lines without their indentation and skips blank ones. Does not decide what may be copied.
 */

/** Lines above a block that are read to find its header. */
const MAX_HEADER_LINES = 12;
/** A first statement that says nothing of a function. */
const FIRST = /^(super\(.*\);?|super\([\w, ]*\)\.__init__\(.*\)|(['"])use \w+\2;?)$/;
/** Places of a first line that are compared. */
const MAX_PLACES = 64;

/** Where copied lines stand. */
export interface CopiedFrom {
  text: string;
  /** Offset of the beginning of the first line. */
  at: number;
}

/**
 * The places in `texts` where all these lines follow each other.
 * @param lines without indentation, not blank
 */
export function placesOf(lines: readonly string[], texts: readonly string[]): CopiedFrom[] {
  const [first = ''] = lines;
  const found: CopiedFrom[] = [];
  for (const text of texts)
    for (let at = text.indexOf(first); at >= 0 && found.length < MAX_PLACES; at = text.indexOf(first, at + 1)) {
      let lineStart = at;
      while (lineStart > 0 && /[^\S\n]/.test(text[lineStart - 1] as string)) lineStart--;
      const isLineStart = lineStart === 0 || text[lineStart - 1] === '\n';
      if (isLineStart && follows(text, lineStart, lines)) found.push({ text, at: lineStart });
    }
  return found;
}

function follows(text: string, start: number, lines: readonly string[]): boolean {
  let i = 0;
  for (let at = start; i < lines.length; ) {
    if (at >= text.length) return false;
    const end = text.indexOf('\n', at);
    const line = text.slice(at, end < 0 ? undefined : end).trim();
    if (line !== '' && line !== lines[i++]) return false;
    if (end < 0) break;
    at = end + 1;
  }
  return i === lines.length;
}

/**
 * The lines that open the block of which `at` is the first line, without comments and the call of a base class between.
 * Undefined if other code stands above it.
 */
export function headerAbove(text: string, at: number): string | undefined {
  const indent = /^[ \t]*/.exec(text.slice(at, at + 200))?.[0].length ?? 0;
  const lines: string[] = [];
  for (let end = at - 1, i = 0; end >= 0 && i < MAX_HEADER_LINES; i++) {
    const start = text.lastIndexOf('\n', end - 1) + 1;
    const line = text.slice(start, end);
    const plain = line.trim();
    end = start - 1;
    if (plain === '' || (lines.length === 0 && (isComment(plain) || FIRST.test(plain)))) continue;
    if (lines.length === 0 && !/([{(:]|=>|->|\bdo|\|)$/.test(plain)) return undefined;
    lines.unshift(plain);
    const depth = line.length - line.trimStart().length;
    // The end of parameters on several lines.
    if (depth < indent && !/^[)\]}]/.test(plain)) return lines.join(' ');
  }
  return undefined;
}

/** The same for the block that the line before the cursor opens, if nothing stands behind the cursor. */
export function headerBefore(text: string, offset: number): string | undefined {
  const lineStart = text.lastIndexOf('\n', offset - 1) + 1;
  const [line, [after = '']] = [text.slice(lineStart, offset), text.slice(offset).split('\n', 1)];
  if (line.trim() === '' || after.trim() !== '') return undefined;
  const indent = /^[ \t]*/.exec(line)?.[0] ?? '';
  return headerAbove(`${text.slice(0, offset)}\n${indent} `, offset + 1);
}

/** Whether the line at `at` is the last one of its block. */
export function isBlockEnd(text: string, at: number): boolean {
  const indentOf = (line: string): number => line.length - line.trimStart().length;
  const [line = '', ...below] = text.slice(at, at + 2000).split('\n');
  const next = below.find((other) => other.trim() !== '');
  return next === undefined || indentOf(next) < indentOf(line);
}

export function isComment(line: string): boolean {
  return /^(\/\/|#(?!\[|!|include|define|if|end)|\/\*|\*(?![\w*=])|--\s|"""|''')/.test(line);
}
