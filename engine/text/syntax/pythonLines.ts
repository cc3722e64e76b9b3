/**
 * Judges new Python code by its brackets and line by line. Reads strings and comments by their characters, because a
 * tree of unfinished Python code has errors anyway.
 */

/** A comment, a string with its closing quotes if it has them, or a bracket. */
const TOKEN = /#[^\n]*|("""|''')(?:\\[\s\S]|(?!\1)[\s\S])*(\1)?|(["'])(?:\\[\s\S]|(?!\3)[^\\\n])*(\3)?|[()[\]{}]/g;
const OPENERS: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' };
const CLOSERS: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };
/** Longer lines are generated. They are not judged. In characters. */
const MAX_LINE = 500;
/** By the first word of a line, what must stand above it. */
const ABOVE: Readonly<Record<string, string>> = {
  elif: 'if _:\n pass\n',
  else: 'if _:\n pass\n',
  except: 'try:\n pass\n',
  finally: 'try:\n pass\n',
  case: 'match _:\n',
};
/** A command of a notebook's cell, as `%matplotlib inline` and `!ls`. */
const MAGIC = /^(?:%{1,2}|!)\w/;
/** The first words of statements with a block, or with more lines of them. */
const OPENS = /^(?:@|(?:async|case|class|def|elif|else|except|finally|for|if|match|try|while|with)\b)/;
/** What may be missing in open brackets, and at the end of an unfinished statement. */
const IN_BRACKETS = ['', ' _', ' in _', ' _ in _', ' else _', ' _ else _', ': _'];
const AT_END = ['', ' else _', ': _', ' _', ' in _', ' _ else _', ' import _', ' _ import _'];
const AT_BLOCK = [
  ...AT_END,
  ':\n  pass',
  ' in _:\n  pass',
  '\nexcept _: pass',
  ':\n case _: pass',
  '\ndef _(): pass',
  '_\ndef _(): pass',
  '\n  pass',
  ' _:\n  pass',
  ' _ in _:\n  pass',
  '():\n  pass',
  ' _():\n  pass',
  '\n  pass\nexcept _: pass',
  ':\n  pass\nexcept _: pass',
  '\n case _: pass',
];
/** The same behind brackets that were open. */
const BEHIND_BRACKETS = AT_END.slice(0, 3);
const BLOCK_BEHIND_BRACKETS = [...BEHIND_BRACKETS, ...AT_BLOCK.slice(AT_END.length, AT_END.length + 5)];

/** Begins a line outside of brackets. */
const STATEMENT = /^(?:@|(?:async|class|def|elif|except|finally|from|import|raise|return|try|while|with)\b)/;

/**
 * Returns a function that gives the offset of the first bracket in text at the cursor that closes none before it, or
 * one that the lines below close. It reads the code around the cursor once, and tells nothing if the code above has
 * such a bracket or ends in a string or comment.
 */
export function excessClosers(above: string, below: string): (written: string) => number | undefined {
  let known: readonly string[] | undefined | null = null;
  return (written) => {
    if (known === null) known = withoutClosed(openAtEnd(above), below);
    return known && excessIn(written, [...known]);
  };
}

/** The brackets that are open above without those that the lines below close, which are the outer ones. */
function withoutClosed(open: readonly string[] | undefined, below: string): readonly string[] | undefined {
  if (!open) return undefined;
  const lines = below.split('\n');
  const end = lines.findIndex((line) => STATEMENT.test(line.trim()));
  const opened: string[] = [];
  const closed: string[] = [];
  for (const [token] of lines
    .slice(0, end < 0 ? lines.length : end)
    .join('\n')
    .matchAll(TOKEN)) {
    const opener = OPENERS[token];
    if (/^[([{]$/.test(token)) opened.push(token);
    else if (opener !== undefined && opened.pop() === undefined) closed.push(opener);
  }
  let from = 0;
  for (const opener of closed.slice(0, open.length).reverse()) from = open.indexOf(opener, from) + 1 || from;
  return open.slice(from);
}

/**
 * Returns a function that tells whether each line of text at the cursor can be read, or the beginning of one. Does not
 * know the lines above. True if nothing tells.
 * @param isCode whether a text has no error
 */
export function lineReader(above: string, isCode: (text: string) => boolean): (written: string) => boolean {
  const lineStart = above.lastIndexOf('\n') + 1;
  const judged = new Map<string, boolean>();
  let isAlone: boolean | undefined;
  return (written) => {
    isAlone ??= openAtEnd(above.slice(0, lineStart))?.length === 0 && above[lineStart - 2] !== '\\';
    if (!isAlone) return true;
    return statementsOf(above.slice(lineStart) + written).every((line) => {
      const known = judged.get(line) ?? isStatement(line, isCode);
      judged.set(line, known);
      return known;
    });
  };
}

/** The lines, without their indentation. A line goes on while a bracket or string is open. */
function statementsOf(text: string): string[] {
  const found: string[] = [];
  let from = 0;
  for (let at = text.indexOf('\n'); from < text.length; at = text.indexOf('\n', at + 1)) {
    const line = text.slice(from, at < 0 ? text.length : at);
    if (at >= 0 && (line.endsWith('\\') || openAtEnd(`${line}\n`)?.length !== 0)) continue;
    found.push(line.trim());
    from = at < 0 ? text.length : at + 1;
  }
  return found;
}

function isStatement(line: string, isCode: (text: string) => boolean): boolean {
  const open = openAtEnd(line);
  if (!open || line === '' || line.length > MAX_LINE || line.endsWith('\\') || MAGIC.test(line)) return true;
  const word = /^\w*/.exec(line)?.[0] ?? '';
  const above = (Object.hasOwn(ABOVE, word) ? ABOVE[word] : '') + (word === 'case' ? ' ' : '');
  const closers = open.map((opener) => CLOSERS[opener]).reverse();
  const isOpen = open.length > 0;
  const [first = '', ...others] = closers;
  // What is missing may stand in the innermost bracket, or behind it, as in `{(a, b`.
  const inside = [
    ...(isOpen ? IN_BRACKETS : ['']).map((inner) => [inner, ...closers].join('')),
    ...(others.length > 0 ? IN_BRACKETS.slice(1).map((inner) => [first, inner, ...others].join('')) : []),
  ];
  const [simple, block] = isOpen ? [BEHIND_BRACKETS, BLOCK_BEHIND_BRACKETS] : [AT_END, AT_BLOCK];
  const ends = OPENS.test(line) ? block : simple;
  // A name may be `case`.
  return (word === 'case' ? [above, ''] : [above]).some((start) =>
    inside.some((inner) => ends.some((end) => isCode(start + line + inner + end))),
  );
}

/** The brackets that are open at the end of a text. */
function openAtEnd(text: string): string[] | undefined {
  const open: string[] = [];
  if (excessIn(text, open) !== undefined) return undefined;
  const last = [...text.matchAll(TOKEN)].at(-1);
  const endsInside = last && last.index + last[0].length === text.length && /^["'#]/.test(last[0]);
  return endsInside && (last[2] ?? last[4]) === undefined ? undefined : open;
}

/** @param open the brackets that are open before the text; changed */
function excessIn(text: string, open: string[]): number | undefined {
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    const opener = OPENERS[token];
    if (/^[([{]$/.test(token)) open.push(token);
    else if (opener !== undefined && open.pop() !== opener) return index;
  }
  return undefined;
}
