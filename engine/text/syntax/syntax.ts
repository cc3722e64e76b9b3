/**
 * What the syntax trees of documents tell: the place at a cursor, the end of a block, and the whole tree for facts.
 * Answers depend on the text alone. Where there is no tree (no grammar, text too long, grammar missing) the answer is
 * a reason.
 */
import { t } from '@vscode/l10n';
import type { Language, Tree } from 'web-tree-sitter';
import type { SourceDocument } from './sourceDocument.ts';
import { type BlockScan, numMissing, scanBlock, statementIndent } from './syntaxBlock.ts';
import { cursorSyntax } from './syntaxCursor.ts';
import { Grammars, grammarFor } from './syntaxGrammars.ts';
import { MAX_PARSED_TEXT, SyntaxTrees } from './syntaxTrees.ts';

export interface PlaceSyntax {
  /** In a comment or a string. */
  inText: boolean;
  /**
   * Something opens before the cursor, at the end of its line or before its blank line: the indentation of that
   * statement.
   */
  openIndent: number | undefined;
  /** What opens there ends with a word. */
  words: boolean;
  /** A statement or member may start on the cursor's blank line. */
  statementStart: boolean;
  /** Where lines written at the cursor leave its block. Whole lines only; the same for the same text. */
  scan: (written: string) => BlockScan;
}

/** No tree: silently for files without a grammar, else with a note for the user. */
export interface NoSyntax {
  note?: string;
}

export class Syntax {
  readonly #grammars: Grammars;
  readonly #trees = new SyntaxTrees();

  constructor(grammars = new Grammars()) {
    this.#grammars = grammars;
  }

  /**
   * Makes `at` and `read` quick for the document as it stands. Undefined when it is, else settles when it is; never
   * rejects.
   */
  prepare(doc: SourceDocument): Promise<void> | undefined {
    const grammar = grammarFor(doc);
    if (grammar === undefined || doc.lf.length > MAX_PARSED_TEXT) return undefined;
    const { docId, lf } = doc;
    const update = () => this.#guarded(grammar, (language) => this.#trees.update(docId, language, lf));
    const parsing = this.#grammars.get(grammar) === undefined ? this.#grammars.load(grammar).then(update) : update();
    return parsing?.catch((error: unknown) => this.#grammars.fail(grammar, error));
  }

  /** What stands at an offset of the LF text. `prepare` must have settled since the grammar was first needed. */
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

  /** Reads the document's tree. Undefined where there is none. After `prepare`, as for `at`. */
  read<T>(doc: SourceDocument, reader: (tree: Tree, grammar: string, lf: string) => T): T | undefined {
    const grammar = grammarFor(doc);
    const { docId, lf } = doc;
    if (grammar === undefined || lf.length > MAX_PARSED_TEXT) return undefined;
    return this.#guarded(grammar, (language) =>
      this.#trees.withTree(docId, language, lf, (tree) => reader(tree, grammar, lf)),
    );
  }

  /** Frees what belongs to a document, or to all. */
  forget(docId?: string): void {
    this.#trees.forget(docId);
  }

  #place({ docId, lf }: SourceDocument, grammar: string, tree: Tree, offset: number): PlaceSyntax {
    const { inText, blockStart, statementStart, open } = cursorSyntax(tree, grammar, lf, offset);
    const missing = numMissing(tree, lf, offset, open);
    const scan = (written: string): BlockScan => {
      const text = lf.slice(0, offset) + written + lf.slice(offset);
      const read = (whole: Tree) =>
        scanBlock(whole, text, offset, offset + text.length - lf.length, open, missing, grammar === 'bash');
      return (
        this.#guarded(grammar, (language) => this.#trees.withEdited(docId, language, lf, text, read)) ?? {
          end: undefined,
          nested: false,
        }
      );
    };
    return {
      inText,
      openIndent: blockStart ? statementIndent(lf, lf.slice(0, offset).trimEnd().length - 1) : undefined,
      words: grammar === 'ruby' || grammar === 'bash',
      statementStart,
      scan,
    };
  }

  /** Undefined without the grammar, and where it fails, which ends its use. */
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
