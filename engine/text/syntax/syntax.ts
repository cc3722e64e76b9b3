/**
 * Reads the syntax trees of documents: the place at a cursor, the end of a block, or the whole tree. The results depend
 * on the text alone. Without a tree it returns a reason. Does not parse (see syntaxTrees.ts).
 */
import { t } from '@vscode/l10n';
import type { Language, Tree } from 'web-tree-sitter';
import type { SourceDocument } from './sourceDocument.ts';
import { cursorSyntax, countBracket, eachToken, insideText, type OpenBracket } from './syntaxCursor.ts';
import { lineEnds, lineJudge } from './lineErrors.ts';
import { beginsTag } from './tags.ts';
import { Grammars, grammarFor, MAX_PARSED_TEXT, SyntaxTrees } from './syntaxTrees.ts';

/** After these signs and words an operand follows. */
const EXPECTS = /([=*%&|<>,.?:^~]|(?<!\+)\+|(?<!-)-|\b(and|or|not|in|of|is|return|await|new|yield|typeof))\s*$/;

export interface PlaceSyntax {
  /** The cursor is in a comment or a string. */
  inText: boolean;
  /**
   * The indentation of the statement that opens a block at the end of the cursor's line, or before its blank line.
   * Undefined if none opens.
   */
  openIndent: number | undefined;
  /** The block ends with a word, such as `end` or `fi`. */
  words: boolean;
  /** A statement or member may start on the cursor's blank line. */
  statementStart: boolean;
  /** Whether the last `<` before the cursor begins a tag. Undefined if nothing tells. */
  inTag: boolean | undefined;
  /**
   * Whether text at the cursor adds no error to its line, with the rest of the line behind it. True for a line that has
   * one even with a word there.
   */
  parses: (written: string) => boolean;
  /** The same for whole lines at the cursor, if what they leave open is closed behind them. Undefined if nothing tells. */
  continues: ((written: string) => boolean) | undefined;
  /** The offset of the first closing bracket in text at the cursor that nothing opens. Undefined if nothing tells. */
  excess: ((written: string) => number | undefined) | undefined;
  /** Finds where text at the cursor leaves its block. Takes whole lines only. */
  scan: (written: string) => BlockScan;
  /**
   * Reads the file with text at the cursor, and as it is. What is missing at the end of an unfinished statement is added
   * behind the text, so that the tree tells what its names are. Undefined if there is no tree for it.
   */
  withText: <T>(written: string, read: (tree: Tree, text: string, old: Tree) => T) => T | undefined;
}

/** There is no tree. */
export interface NoSyntax {
  /** Says why, for the user. Left out for a file whose language has no grammar. */
  note?: string;
}

export class Syntax {
  readonly #grammars: Grammars;
  readonly #trees = new SyntaxTrees();

  constructor(grammars = new Grammars()) {
    this.#grammars = grammars;
  }

  /**
   * Parses the current text of the document, so that `at` and `read` are fast. Undefined if that is done already.
   * Otherwise the promise resolves when it is done. It never rejects.
   */
  prepare(doc: SourceDocument): Promise<void> | undefined {
    const grammar = grammarFor(doc);
    if (grammar === undefined || doc.lf.length > MAX_PARSED_TEXT) return undefined;
    const { docId, lf } = doc;
    const update = () => this.#guarded(grammar, (language) => this.#trees.update(docId, language, lf));
    const parsing = this.#grammars.get(grammar) === undefined ? this.#grammars.load(grammar).then(update) : update();
    return parsing?.catch((error: unknown) => this.#grammars.fail(grammar, error));
  }

  /** The syntax at an offset of the LF text. Call `prepare` before, so that the grammar is loaded. */
  at(doc: SourceDocument, offset: number): PlaceSyntax | NoSyntax {
    const grammar = grammarFor(doc);
    if (grammar === undefined) return {};
    const { docId, lf } = doc;
    if (lf.length > MAX_PARSED_TEXT)
      return { note: t('{0} is too long to parse: the completion ends by indentation', doc.path) };
    const place = this.#guarded(grammar, (language) =>
      this.#trees.withTree(docId, language, lf, (tree) => this.#place(doc, grammar, tree, offset)),
    );
    return place ?? { note: t('no syntax for {0} (see the log): the completion ends by indentation', doc.path) };
  }

  /** Reads the tree of the document. Undefined if there is none. Call `prepare` before. */
  read<T>(doc: SourceDocument, reader: (tree: Tree, grammar: string, lf: string) => T): T | undefined {
    const grammar = grammarFor(doc);
    const { docId, lf } = doc;
    if (grammar === undefined || lf.length > MAX_PARSED_TEXT) return undefined;
    return this.#guarded(grammar, (language) =>
      this.#trees.withTree(docId, language, lf, (tree) => reader(tree, grammar, lf)),
    );
  }

  /** Frees the trees of a document, or all trees. */
  forget(docId?: string): void {
    this.#trees.forget(docId);
  }

  #place(doc: SourceDocument, grammar: string, tree: Tree, offset: number): PlaceSyntax {
    const { docId, lf } = doc;
    const { inText, blockStart, statementStart, open } = cursorSyntax(tree, grammar, lf, offset);
    const missing = numMissing(tree, lf, offset, open);
    const asWritten: PlaceSyntax['withText'] = (written, read) => {
      const text = lf.slice(0, offset) + written + lf.slice(offset);
      return this.#guarded(grammar, (language) =>
        this.#trees.withEdited(docId, language, lf, text, (whole, old) => read(whole, text, old)),
      );
    };
    const withText: PlaceSyntax['withText'] = (written, read) =>
      asWritten(written + (asWritten(written, (whole) => restOf(whole, written, offset, lf)) ?? ''), read);
    const isCode = (text: string): boolean =>
      this.#guarded(grammar, (language) => this.#trees.isCode(language, text)) ?? true;
    const scan = (written: string): BlockScan =>
      asWritten(written, (whole, text) =>
        scanBlock(whole, text, offset, offset + written.length, open, missing, grammar === 'bash'),
      ) ?? { end: undefined, nested: false };
    return {
      inText,
      inTag: inText ? undefined : beginsTag(doc, offset, grammar, tree),
      parses: lineJudge(lf, offset, asWritten),
      ...lineEnds(grammar, lf, offset, withText, isCode),
      openIndent: blockStart ? statementIndent(lf, lf.slice(0, offset).trimEnd().length - 1) : undefined,
      words: grammar === 'ruby' || grammar === 'bash',
      statementStart,
      scan,
      withText,
    };
  }

  /** Undefined without the grammar, or if the work fails. Then the grammar is not used any more. */
  #guarded<T>(grammar: string, work: (language: Language) => T): T | undefined {
    const language = this.#grammars.get(grammar);
    if (!language) return undefined;
    try {
      return work(language);
    } catch (error) {
      this.#grammars.fail(grammar, error);
      return undefined;
    }
  }
}

export interface BlockScan {
  /**
   * Length of the part of the completion that is inside the block. Includes the closing bracket of the block if the
   * text lacks it. Undefined if everything is inside.
   */
  end: number | undefined;
  /**
   * The completion ends in a string, a comment, or brackets that it has opened. Then the indentation of the next lines
   * says nothing.
   */
  nested: boolean;
}

/**
 * Finds where a completion leaves the block of the cursor: at the first bracket that closes more than the completion
 * has opened. Brackets in strings and comments do not count.
 * @param text with the completion at [start, end)
 * @param open the brackets open at `start`, outermost first
 * @param missing how many of the innermost of them the text does not close
 * @param patterns whether a bracket that closes nothing may end the pattern of a case, as in shells
 */
function scanBlock(
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
      // After the end of the block only the rest of its statement belongs to it, as in "});".
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

/** What a statement lacks that ends with `written`: its last operand, and what closes its brackets and strings. */
function restOf(tree: Tree, written: string, start: number, lf: string): string {
  if (!tree.rootNode.hasError) return '';
  const open: OpenBracket[] = [];
  const text = lf.slice(0, start) + written;
  eachToken(tree, start, text.length, false, (cursor) => void countBracket(open, cursor, text));
  const operand = EXPECTS.test(text) && !/^[\w$"'`]/.test(lf.slice(start)) ? '_' : '';
  return (
    operand +
    open
      .map(({ closer }) => closer)
      .reverse()
      .join('')
  );
}

/**
 * How many of the innermost open brackets are not closed after the cursor, among those on the line of the innermost
 * one. Indentation decides, because in unfinished code the parser may pair them with brackets further out.
 */
function numMissing(tree: Tree, text: string, offset: number, open: readonly OpenBracket[]): number {
  const top = open.at(-1);
  if (!top || !tree.rootNode.hasError) return 0;
  const lineStart = text.lastIndexOf('\n', top.start) + 1;
  const closers = open
    .filter(({ start }) => start >= lineStart)
    .map(({ closer }) => closer)
    .reverse()
    .join('');
  const existing = closersBelow(text, offset, statementIndent(text, top.start));
  let missing = 0;
  while (
    missing < closers.length &&
    !(existing !== '' && (existing.startsWith(closers.slice(missing)) || closers.slice(missing).startsWith(existing)))
  )
    missing++;
  return missing;
}

/**
 * Indentation of the line on which the statement around an offset begins. That line is further up if a bracket before
 * the offset was opened there.
 */
function statementIndent(text: string, offset: number): number {
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
 * The closing brackets at the start of the next line that is not indented more. Empty if that line is indented less.
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
