/** Finds errors in a part of a syntax tree, and tells whether new text adds one to its line. */
import type { Tree } from 'web-tree-sitter';
import { excessClosers, lineReader } from './pythonLines.ts';

/** Lines that grammars do not read whole: directives, and templates with type arguments. */
const UNREAD = /^\s*#|[\w)\]]<[^`;]*>`/;
/** Longer lines are generated. They are not judged. In characters. */
const MAX_LINE = 1000;
/** Stands for text at the cursor where a line has an error without any, as `${}` has. */
const ANY_WORD = 'x';

/** Grammars in which brackets cannot close what a line opens. Python has judges of its own. */
const ENDED_BY_INDENTATION = new Set(['ruby', 'bash', 'yaml']);

/** Reads the tree with text at the cursor, and the one without. Undefined without a tree. */
type Reader = <T>(written: string, read: (tree: Tree, text: string, old: Tree) => T) => T | undefined;

/**
 * Returns a function that tells whether text at the cursor adds no error to its line, with the rest of the line behind
 * it. It does not judge a line that has one even with a word at the cursor, nor a long one.
 * @param open more text may follow on the line, so that nothing is missing at its end
 */
export function lineJudge(
  lf: string,
  offset: number,
  withText: Reader,
  { open = false } = {},
): (written: string) => boolean {
  const start = lf.lastIndexOf('\n', offset - 1) + 1;
  const end = lf.indexOf('\n', offset) < 0 ? lf.length : lf.indexOf('\n', offset);
  const cleanPart = (tree: Tree, length: number): 'file' | 'line' | undefined => {
    if (!tree.rootNode.hasError) return 'file';
    return hasErrorIn(tree, start, end + length - (open ? 1 : 0)) ? undefined : 'line';
  };
  let isRead: boolean | undefined;
  let clean: 'file' | 'line' | 'none' | undefined;
  return (written) => {
    isRead ??= end - start <= MAX_LINE && !UNREAD.test(lf.slice(start, end));
    if (!isRead) return true;
    clean ??=
      withText(ANY_WORD, (tree, _, old) => {
        const [before, now] = [cleanPart(old, 0), cleanPart(tree, ANY_WORD.length)];
        return before === 'file' || now === 'file' ? 'file' : (before ?? now);
      }) ?? 'none';
    const now = clean === 'none' ? 'file' : withText(written, (tree) => cleanPart(tree, written.length) ?? 'none');
    return now === undefined || now === 'file' || now === clean;
  };
}

/** Judges whole lines at the cursor. See `continues` and `excess` of PlaceSyntax. */
export function lineEnds(
  grammar: string,
  lf: string,
  offset: number,
  withText: Reader,
  isCode: (text: string) => boolean,
): {
  continues: ((written: string) => boolean) | undefined;
  excess: ((written: string) => number | undefined) | undefined;
} {
  if (ENDED_BY_INDENTATION.has(grammar)) return { continues: undefined, excess: undefined };
  if (grammar !== 'python') return { continues: lineJudge(lf, offset, withText, { open: true }), excess: undefined };
  const above = lf.slice(0, offset);
  return { continues: lineReader(above, isCode), excess: excessClosers(above, lf.slice(offset)) };
}

/** Whether something in [from, to] is an error, or missing. An error that begins there may be longer. */
function hasErrorIn(tree: Tree, from: number, to: number): boolean {
  if (!tree.rootNode.hasError) return false;
  const cursor = tree.walk();
  try {
    for (;;) {
      if (cursor.startIndex > to) return false;
      const { currentNode: node } = cursor;
      const isInside = cursor.endIndex >= from && node.hasError;
      if (isInside && (node.isMissing || (node.isError && cursor.startIndex >= from))) return true;
      if (isInside && cursor.gotoFirstChild()) continue;
      while (!cursor.gotoNextSibling()) if (!cursor.gotoParent()) return false;
    }
  } finally {
    cursor.delete();
  }
}
