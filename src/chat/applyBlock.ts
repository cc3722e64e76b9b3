/**
 * Finds where a code block of an answer belongs in a file. Tries in this order: the selection; the whole file, if the
 * block is a version of it; the block's definitions, if they are adjacent in the file; the lines from the block's first
 * to its last; the cursor. Pure: works on offsets and texts.
 */

export interface Place {
  start: number;
  end: number;
  /** The block, indented like the text it replaces. */
  text: string;
}

export interface PlaceOptions {
  /** Empty for a cursor. */
  selection: { start: number; end: number };
  /** Definitions of the file. */
  symbols: readonly { name: string; start: number; end: number }[];
}

const MODIFIERS =
  '(?:(?:export|default|public|private|protected|static|abstract|async|pub|override|readonly|final)\\s+)*';
const NAME = '([A-Za-z_$][\\w$]*)';
const KEYWORDS = 'function\\*?|class|interface|enum|struct|trait|def|func|fn|type|const|let|var';
/** A definition that starts with a keyword. In Go, a method's receiver comes before the name. */
const DEFINITION = new RegExp(`^\\s*${MODIFIERS}(?:${KEYWORDS})\\s+(?:\\([^)]*\\)\\s*)?${NAME}`);
/** A method of a class. */
const METHOD = new RegExp(`^\\s*${MODIFIERS}${NAME}\\s*(?:<[^>]*>)?\\([^;]*\\{`);
/** A comment line or a decorator. */
const COMMENT = /^\s*(?:\/\*|\*|\/\/|#|@)/;
const NO_NAMES = new Set(['if', 'for', 'while', 'switch', 'return', 'catch', 'with', 'match', 'else', 'try', 'do']);

/** `text` and `block` may have LF or CRLF line ends. */
export function placeBlock(text: string, block: string, { selection, symbols }: PlaceOptions): Place {
  const code = block.replace(/\r\n/g, '\n').replace(/^\n+|\s+$/g, '');
  if (selection.start < selection.end) return replaceLines(text, selection.start, selection.end, code);
  const known = definedNames(code)
    .flatMap((name) => {
      const named = symbols.filter((symbol) => symbol.name === name);
      // Of two definitions with one name, the one around the cursor.
      return (
        named.find(({ start, end }) => start <= selection.start && selection.start <= end) ??
        (named.length === 1 ? named : [])
      );
    })
    .sort((a, b) => a.start - b.start);
  const [first, last] = [known[0], known.at(-1)];
  if ((known.length > 1 || !startsWithDefinition(code)) && isVersionOf(text, code))
    return { start: 0, end: text.length, text: `${code}\n` };
  // Text between two definitions must not be lost.
  const together = known.every(({ start }, i) => {
    const before = known[i - 1]?.end ?? start;
    return (
      before <= start &&
      text
        .slice(before, start)
        .split('\n')
        .every((line) => !line.trim() || COMMENT.test(line))
    );
  });
  if (first && last && together) return replaceLines(text, withComment(text, first.start, code), last.end, code);
  const region = first ? undefined : regionOf(text, code);
  if (region) return replaceLines(text, region.start, region.end, code);
  if (isVersionOf(text, code)) return { start: 0, end: text.length, text: `${code}\n` };
  return replaceLines(text, selection.start, selection.start, code);
}

/** Names of the outermost definitions in the block. */
export function definedNames(code: string): string[] {
  const found = code.split('\n').flatMap((line) => {
    const name = DEFINITION.exec(line)?.[1] ?? methodName(line);
    return name === undefined ? [] : [{ name, indent: line.search(/\S/) }];
  });
  const min = Math.min(...found.map(({ indent }) => indent));
  return [...new Set(found.filter(({ indent }) => indent === min).map(({ name }) => name))];
}

/** Whether only comments come before the first definition. */
function startsWithDefinition(code: string): boolean {
  const line = code.split('\n').find((each) => !COMMENT.test(each) && each.trim()) ?? '';
  return (DEFINITION.exec(line)?.[1] ?? methodName(line)) !== undefined;
}

/** The name in a line such as `async flush(path) {`. */
export function methodName(line: string): string | undefined {
  const name = METHOD.exec(line)?.[1];
  return name === undefined || NO_NAMES.has(name) ? undefined : name;
}

/**
 * The code with its common indentation replaced by `indent`. The first line gets none, because it starts where the
 * replaced text starts.
 */
function replaceLines(text: string, start: number, end: number, code: string): Place {
  const lineStart = text.lastIndexOf('\n', start - 1) + 1;
  const before = text.slice(lineStart, start);
  const first = /^[ \t]*/.exec(text.slice(start, end))?.[0] ?? '';
  const indent = before.trim() === '' ? before + first : (/^[ \t]*/.exec(before)?.[0] ?? '');
  const lines = code.split('\n');
  const shared = Math.min(...lines.filter((line) => line.trim()).map((line) => /^[ \t]*/.exec(line)![0].length));
  const indented = lines.map((line, i) => {
    const bare = line.slice(Math.min(shared, line.length));
    if (!bare.trim()) return '';
    return i === 0 ? (before.trim() === '' ? indent.slice(before.length) : '') + bare : indent + bare;
  });
  // A selection of whole lines ends after a line break, which stays.
  const tail = start < end && text.slice(start, end).endsWith('\n') ? '\n' : '';
  return { start, end, text: indented.join('\n') + tail };
}

/** The start of the comment above a definition, if the block brings its own comment. */
function withComment(text: string, start: number, code: string): number {
  if (!COMMENT.test(code)) return start;
  let at = text.lastIndexOf('\n', start - 1) + 1;
  const indentAt = at;
  for (;;) {
    const above = text.lastIndexOf('\n', at - 2) + 1;
    if (at === 0 || !COMMENT.test(text.slice(above, at))) break;
    at = above;
  }
  if (at === indentAt) return start;
  return at + (/^[ \t]*/.exec(text.slice(at))?.[0].length ?? 0);
}

/** The lines from the block's first to its last, if each occurs exactly once in the text. */
function regionOf(text: string, code: string): { start: number; end: number } | undefined {
  const wanted = code
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line);
  const [first, last] = [wanted[0], wanted.at(-1)];
  if (first === undefined || last === undefined || wanted.length < 2 || first.length < 6) return undefined;
  const lines: { start: number; end: number; text: string }[] = [];
  for (let start = 0; start <= text.length; ) {
    const end = text.indexOf('\n', start) < 0 ? text.length : text.indexOf('\n', start);
    lines.push({ start, end, text: text.slice(start, end).trim() });
    start = end + 1;
  }
  const starts = lines.flatMap((line, i) => (line.text === first ? [i] : []));
  if (starts.length !== 1) return undefined;
  const from = starts[0] as number;
  const indentOf = (i: number) => /^[ \t]*/.exec(text.slice(lines[i]!.start))![0];
  // The closing line of the same depth.
  const to = lines.findIndex((line, i) => i > from && line.text === last && indentOf(i) === indentOf(from));
  if (to < 0 || to - from > 3 * wanted.length + 20) return undefined;
  return {
    start: lines[from]!.start + indentOf(from).length,
    end: lines[to]!.end - (text[lines[to]!.end - 1] === '\r' ? 1 : 0),
  };
}

/** Whether most lines of the file are in the block, and most of the block's in the file. */
function isVersionOf(text: string, code: string): boolean {
  const linesOf = (of: string) =>
    of
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line.length > 3);
  const [ofText, ofCode] = [linesOf(text), linesOf(code)];
  if (ofText.length < 4 || ofCode.length < 4) return false;
  const [inText, inCode] = [new Set(ofText), new Set(ofCode)];
  return (
    ofText.filter((line) => inCode.has(line)).length > 0.6 * ofText.length &&
    ofCode.filter((line) => inText.has(line)).length > 0.4 * ofCode.length
  );
}
