/**
 * Finds where a completion leaves the block of the cursor: at the first bracket that closes more than the completion
 * has opened. Brackets in strings and comments do not count, so this needs the syntax tree of the text with the
 * completion.
 */
import type { Tree } from 'web-tree-sitter';
import { countBracket, eachToken, insideText, type OpenBracket } from './syntaxCursor.ts';

export interface BlockScan {
  /**
   * How much of the completion stays inside, with the block's own closing bracket where the text lacks it; undefined
   * when all does.
   */
  end: number | undefined;
  /** Its end lies in a string, a comment, or brackets that it has opened: what follows may be indented anyhow. */
  nested: boolean;
}

/**
 * @param text with the completion at [start, end)
 * @param open the brackets open at `start`, outermost first
 * @param missing how many of the innermost of them the text does not close
 * @param patterns in this language a bracket that closes nothing may end the pattern of a case
 */
export function scanBlock(
  tree: Tree,
  text: string,
  start: number,
  end: number,
  open: readonly OpenBracket[],
  missing: number,
  patterns: boolean,
): BlockScan {
  const stack: OpenBracket[] = [];
  let numClosed = 0;
  let last = -1;
  let cut: number | undefined;
  eachToken(tree, start, end, false, (cursor) => {
    if (cut !== undefined) return;
    const tokenEnd = cursor.endIndex;
    const type = cursor.nodeType;
    if (numClosed > 0) {
      // Behind the block's own end only what ends its statement belongs to it: "});".
      const closes =
        numClosed < missing &&
        open.at(-1 - numClosed)?.closer === type &&
        !text.slice(last, cursor.startIndex).includes('\n');
      if (closes) numClosed++;
      if (closes || ((type === ';' || type === ',') && last === cursor.startIndex)) last = tokenEnd;
      else cut = last;
      return;
    }
    if (countBracket(stack, cursor, text)) return;
    if (type === ')' && patterns && !open.some(({ closer }) => closer === type)) return;
    if (missing > 0 && open.at(-1)?.closer === type) {
      numClosed = 1;
      last = tokenEnd;
    } else cut = cursor.startIndex;
  });
  if (numClosed > 0) cut ??= last;
  return {
    end: cut === undefined ? undefined : cut - start,
    nested: cut === undefined && (stack.length > 0 || insideText(tree, text, end)),
  };
}

/**
 * How many of the innermost open brackets are not closed behind the cursor, counting those of the innermost one's line.
 * Indentation tells, since in a text that is being written the parser may take a bracket further out for theirs.
 */
export function numMissing(tree: Tree, text: string, offset: number, open: readonly OpenBracket[]): number {
  const top = open.at(-1);
  if (!top || !tree.rootNode.hasError) return 0;
  const lineStart = text.lastIndexOf('\n', top.start) + 1;
  const closers = open
    .filter(({ start }) => start >= lineStart)
    .map(({ closer }) => closer)
    .reverse()
    .join('');
  const standing = closersBelow(text, offset, statementIndent(text, top.start));
  let missing = 0;
  while (
    missing < closers.length &&
    !(standing !== '' && (standing.startsWith(closers.slice(missing)) || closers.slice(missing).startsWith(standing)))
  )
    missing++;
  return missing;
}

/**
 * Indentation of the line on which the statement around an offset begins: further up where brackets closed before it
 * were opened.
 */
export function statementIndent(text: string, offset: number): number {
  let lineStart = text.lastIndexOf('\n', offset) + 1;
  let depth = 0;
  for (let at = offset - 1, lines = 0; lines < 50; at--) {
    const character = text[at];
    if (character === '\n' || at < 0) {
      if (depth <= 0 || at < 0) break;
      lines++;
    } else if (')]}'.includes(character as string)) depth++;
    else if ('([{'.includes(character as string)) depth--;
    if (character !== '\n' && text[at - 1] === '\n') lineStart = at;
  }
  return indentAt(text, lineStart);
}

/**
 * The closing brackets that begin the first line below which is not indented deeper; empty when it is indented less.
 */
function closersBelow(text: string, offset: number, indent: number): string {
  for (let at = text.indexOf('\n', offset); at >= 0; at = text.indexOf('\n', at + 1)) {
    const lineIndent = indentAt(text, at + 1);
    const first = text[at + 1 + lineIndent];
    if (first === '\n' || lineIndent > indent) continue;
    return lineIndent < indent
      ? ''
      : (/^[\])}]*/.exec(text.slice(at + 1 + lineIndent, at + 100 + lineIndent))?.[0] ?? '');
  }
  return '';
}

function indentAt(text: string, lineStart: number): number {
  let at = lineStart;
  while (text[at] === ' ' || text[at] === '\t') at++;
  return at - lineStart;
}
