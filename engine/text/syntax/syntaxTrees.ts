/**
 * Parses documents and keeps their syntax trees. A tree must be a function of its text alone. But what tree-sitter
 * finds in broken code depends on the tree that an incremental parse starts from, and on where a parse is halted. So a
 * text is parsed as a whole, halted after fixed numbers of steps. Time only decides whether other work runs at a halt.
 * Only a text that is read once is parsed incrementally, in one step, from the tree of a similar text.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Edit, type Language, Parser, type Point, type Tree } from 'web-tree-sitter';
import { commonPrefix, commonSuffix } from '../tokenizer/incrementalEncoding.ts';

/** Texts of more UTF-16 units are not parsed: some 12,000 lines of code, whose parse takes about 0.1 s. */
export const MAX_PARSED_TEXT = 512 * 1024;
/** A parse is halted whenever tree-sitter has asked this often, each time after 100 steps: some 20,000 characters. */
const ASKED_PER_SLICE = 64;
/** Milliseconds that a parse may keep the engine from stepping, to the next halt. */
const TURN_MS = 10;
/** Trees that are kept: some 25 bytes for each character. As many as one question may be about. */
export const MAX_TREES = 8;
/** Those of one document: its text, and the one with a completion taken that is asked about ahead. */
const MAX_TREES_OF_DOCUMENT = 2;

interface Entry {
  docId: string;
  language: Language;
  text: string;
  tree: Tree;
}

export class SyntaxTrees {
  readonly #turnMs: number;
  /** Least recently used first. */
  #entries: Entry[] = [];
  readonly #parsers = new Map<Language, Parser>();
  /** The last parse under way, by document: the next one of the same document waits for it. */
  readonly #parsing = new Map<string, Promise<void>>();

  constructor(turnMs = TURN_MS) {
    this.#turnMs = turnMs;
  }

  /** The tree of exactly this text, if it is kept; valid until the next call. */
  get(docId: string, language: Language, text: string): Tree | undefined {
    const at = this.#entries.findIndex(
      (entry) => entry.docId === docId && entry.language === language && entry.text === text,
    );
    if (at >= 0) this.#entries.push(...this.#entries.splice(at, 1));
    return at >= 0 ? this.#entries.at(-1)?.tree : undefined;
  }

  /**
   * Parses the text, which is not too long. Undefined when it is done already, else settles when it is; `get` has the
   * tree.
   */
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
    if (this.get(docId, language, text)) return undefined;
    const slices = parseInSlices(language, text);
    const turn = (): boolean => {
      const end = performance.now() + this.#turnMs;
      do {
        const { done, value } = slices.next();
        if (done) {
          this.#keep({ docId, language, text, tree: value });
          return true;
        }
      } while (performance.now() < end);
      return false;
    };
    if (turn()) return undefined;
    return (async () => {
      do await nextTurn();
      while (!turn());
    })();
  }

  /** What `read` finds in the tree of the text, which is made here unless `update` has. */
  withTree<T>(docId: string, language: Language, text: string, read: (tree: Tree) => T): T {
    const known = this.get(docId, language, text);
    if (known) return read(known);
    const slices = parseInSlices(language, text);
    for (;;) {
      const { done, value: tree } = slices.next();
      if (!done) continue;
      this.#keep({ docId, language, text, tree });
      return read(tree);
    }
  }

  /**
   * What `read` finds in a tree of `text`, made from that of `base`, which is like it but for a small edit; not kept.
   */
  withEdited<T>(docId: string, language: Language, base: string, text: string, read: (tree: Tree) => T): T {
    let parser = this.#parsers.get(language);
    if (!parser) {
      parser = new Parser().setLanguage(language);
      this.#parsers.set(language, parser);
    }
    const old = this.withTree(docId, language, base, (tree) => edited(tree, base, text));
    const tree = parser.parse(text, old) as Tree;
    old.delete();
    try {
      return read(tree);
    } finally {
      tree.delete();
    }
  }

  /** Frees the trees of a document, or all. */
  forget(docId?: string): void {
    this.#free((entry) => docId === undefined || entry.docId === docId);
  }

  #keep(entry: Entry): void {
    const { docId, language, text } = entry;
    this.#free((other) => other.docId === docId && other.language === language && other.text === text);
    const [oldest, ...others] = this.#entries.filter((other) => other.docId === docId);
    if (others.length + 1 >= MAX_TREES_OF_DOCUMENT) this.#free((other) => other === oldest);
    else if (this.#entries.length >= MAX_TREES) this.#free((other) => other === this.#entries[0]);
    this.#entries.push(entry);
  }

  #free(which: (entry: Entry) => boolean): void {
    const freed = this.#entries.filter(which);
    this.#entries = this.#entries.filter((entry) => !freed.includes(entry));
    for (const { tree } of freed) tree.delete();
  }
}

/**
 * Yields at halts that depend on the text alone: a resumed parse recovers from errors in other ways than one that was
 * not halted.
 */
function* parseInSlices(language: Language, text: string): Generator<undefined, Tree> {
  // Its own: another text may be parsed between two slices.
  const parser = new Parser().setLanguage(language);
  for (;;) {
    let asked = 0;
    const tree = parser.parse(text, null, { progressCallback: () => ++asked >= ASKED_PER_SLICE });
    if (tree) {
      parser.delete();
      return tree;
    }
    yield;
  }
}

/** A copy of the tree of `base` with the edit that leads to `text` marked in it. */
function edited(known: Tree, base: string, text: string): Tree {
  const tree = known.copy();
  const start = commonPrefix(base, text);
  const same = commonSuffix(base, text, Math.min(base.length, text.length) - start);
  const oldEnd = base.length - same;
  const newEnd = text.length - same;
  const startPosition = pointAt(text, start);
  tree.edit(
    new Edit({
      startIndex: start,
      oldEndIndex: oldEnd,
      newEndIndex: newEnd,
      startPosition,
      oldEndPosition: pointAt(base, oldEnd),
      newEndPosition: pointAt(text, newEnd),
    }),
  );
  return tree;
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
