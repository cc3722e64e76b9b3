/**
 * Syntax trees of the mirrored documents, brought up to date by parsing what an edit has changed. A tree is the same
 * however it came about, so nothing that is read from it depends on what was parsed before. Whether a text is parsed at
 * all depends on its size alone, never on a clock: a long parse is done in slices between which the engine steps.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Edit, type Language, Parser, type Point, type Tree } from 'web-tree-sitter';
import { commonPrefix, commonSuffix } from './incrementalEncoding.ts';

/** Texts of more UTF-16 units are not parsed: some 12,000 lines of code, whose first parse takes about 0.1 s. */
export const LONGEST_PARSED_TEXT = 512 * 1024;
/** Milliseconds that a parse may keep the engine from stepping. */
const SLICE_MS = 10;
/** Documents whose trees are kept: some 25 bytes for each character. */
const MOST_TREES = 6;

interface Entry {
  language: Language;
  text: string;
  tree: Tree;
}

export class SyntaxTrees {
  /** By document id, least recently used first. */
  readonly #entries = new Map<string, Entry>();
  readonly #parsers = new Map<Language, Parser>();
  /** Parses under way, by document: the next one of the same document starts from its tree. */
  readonly #parsing = new Map<string, Promise<void>>();

  /** The tree of exactly this text, if `update` has made it; valid until the next call. */
  get(docId: string, language: Language, text: string): Tree | undefined {
    const entry = this.#entries.get(docId);
    return entry?.language === language && entry.text === text ? entry.tree : undefined;
  }

  /** Parses the text, which is not too long. Undefined when it is done already, else settles when it is; `get` has the tree. */
  update(docId: string, language: Language, text: string): Promise<void> | undefined {
    const before = this.#parsing.get(docId);
    const parsing = before ? before.then(() => this.#parse(docId, language, text)) : this.#parse(docId, language, text);
    if (!parsing) return undefined;
    this.#parsing.set(docId, parsing);
    return parsing.finally(() => {
      if (this.#parsing.get(docId) === parsing) this.#parsing.delete(docId);
    });
  }

  #parse(docId: string, language: Language, text: string): Promise<void> | undefined {
    const known = this.#entries.get(docId);
    if (known && this.get(docId, language, text)) {
      this.#keep(docId, known);
      return undefined;
    }
    const old = this.#edited(docId, language, text);
    // Its own: another text may be parsed between two slices.
    const parser = new Parser().setLanguage(language);
    const slice = (): boolean => {
      const end = performance.now() + SLICE_MS;
      const tree = parser.parse(text, old, { progressCallback: () => performance.now() > end });
      if (!tree) return false;
      this.#keep(docId, { language, text, tree });
      parser.delete();
      old?.delete();
      return true;
    };
    if (slice()) return undefined;
    return (async () => {
      do await nextTurn();
      while (!slice());
    })();
  }

  /** What `read` finds in the tree of a text that is like the document's last one but for a small edit; not kept. */
  withTree<T>(docId: string, language: Language, text: string, read: (tree: Tree) => T): T {
    const known = this.get(docId, language, text);
    if (known) return read(known);
    let parser = this.#parsers.get(language);
    if (!parser) {
      parser = new Parser().setLanguage(language);
      this.#parsers.set(language, parser);
    }
    const old = this.#edited(docId, language, text);
    const tree = parser.parse(text, old) as Tree;
    old?.delete();
    try {
      return read(tree);
    } finally {
      tree.delete();
    }
  }

  /** Frees the tree of a document, or all. */
  forget(docId?: string): void {
    for (const id of docId === undefined ? [...this.#entries.keys()] : [docId]) {
      this.#entries.get(id)?.tree.delete();
      this.#entries.delete(id);
    }
  }

  /** A copy of the document's tree with the edit that leads to `text` marked in it. */
  #edited(docId: string, language: Language, text: string): Tree | null {
    const entry = this.#entries.get(docId);
    if (entry?.language !== language) return null;
    const tree = entry.tree.copy();
    const start = commonPrefix(entry.text, text);
    const same = commonSuffix(entry.text, text, Math.min(entry.text.length, text.length) - start);
    const oldEnd = entry.text.length - same;
    const newEnd = text.length - same;
    const startPosition = pointAt(text, start);
    tree.edit(new Edit({ startIndex: start, oldEndIndex: oldEnd, newEndIndex: newEnd, startPosition, oldEndPosition: pointAt(entry.text, oldEnd), newEndPosition: pointAt(text, newEnd) }));
    return tree;
  }

  #keep(docId: string, entry: Entry): void {
    const old = this.#entries.get(docId);
    if (old && old !== entry) old.tree.delete();
    this.#entries.delete(docId);
    this.#entries.set(docId, entry);
    if (this.#entries.size > MOST_TREES) this.forget(this.#entries.keys().next().value as string);
  }
}

function pointAt(text: string, offset: number): Point {
  let row = 0;
  let lineStart = 0;
  for (let at = text.indexOf('\n'); at >= 0 && at < offset; at = text.indexOf('\n', at + 1)) {
    row++;
    lineStart = at + 1;
  }
  return { row, column: offset - lineStart };
}
