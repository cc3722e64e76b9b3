/**
 * Loads grammars, parses documents and keeps their syntax trees. Each grammar is a WebAssembly file beside the bundle,
 * loaded on first use, once per process. Does not interpret trees.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Edit, Language, Parser, type Point, type Tree } from 'web-tree-sitter';
import { commonPrefix, commonSuffix } from '../tokenizer/incrementalEncoding.ts';

/** Texts of more UTF-16 units are not parsed. This is about 12,000 lines of code, which take about 0.1 s. */
export const MAX_PARSED_TEXT = 512 * 1024;
/** A parse pauses after so many progress callbacks, one per 100 steps. This is about 20,000 characters. */
const CALLBACKS_PER_SLICE = 64;
/** Milliseconds after which a parse lets other work run at its next pause. */
const TURN_MS = 10;
/** Trees that are kept, and files that one question may be about. A tree has about 25 bytes per character. */
export const MAX_TREES = 8;
/** Trees of one document: of its text, and of the text with an accepted completion that is asked for in advance. */
const MAX_TREES_OF_DOCUMENT = 2;

interface KeptTree {
  docId: string;
  language: Language;
  text: string;
  tree: Tree;
}

/**
 * A tree must depend on its text alone. But in broken code the result of tree-sitter depends on the tree that an
 * incremental parse starts from, and on where a parse pauses. So a text is parsed as a whole, with pauses after fixed
 * numbers of steps. Time only decides whether other work runs at a pause. Only `withEdited` parses incrementally.
 */
export class SyntaxTrees {
  readonly #turnMs: number;
  /** Least recently used first. */
  #entries: KeptTree[] = [];
  readonly #parsers = new Map<Language, Parser>();
  /** The last parse that runs, by document. The next parse of the same document waits for it. */
  readonly #parsing = new Map<string, Promise<void>>();

  constructor(turnMs = TURN_MS) {
    this.#turnMs = turnMs;
  }

  /** The tree of exactly this text, if it is kept. Valid until the next call. */
  get(docId: string, language: Language, text: string): Tree | undefined {
    const at = this.#entries.findIndex(
      (entry) => entry.docId === docId && entry.language === language && entry.text === text,
    );
    if (at >= 0) this.#entries.push(...this.#entries.splice(at, 1));
    return at >= 0 ? this.#entries.at(-1)?.tree : undefined;
  }

  /** Parses the text. Undefined if that is done already. Otherwise the promise resolves when `get` has the tree. */
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

  /** The result of `read` for the tree of the text. Parses the text at once if `update` has not done so. */
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
   * The result of `read` for a tree of `text`, parsed from the tree of `base` after a small edit. Not kept.
   * @param read also gets the tree of `base`
   */
  withEdited<T>(docId: string, language: Language, base: string, text: string, read: (tree: Tree, old: Tree) => T): T {
    return this.withTree(docId, language, base, (old) => {
      const marked = edited(old, base, text);
      const tree = this.#parserOf(language).parse(text, marked) as Tree;
      marked.delete();
      try {
        return read(tree, old);
      } finally {
        tree.delete();
      }
    });
  }

  /** Whether a short text has no error. */
  isCode(language: Language, text: string): boolean {
    const tree = this.#parserOf(language).parse(text) as Tree;
    try {
      return !tree.rootNode.hasError;
    } finally {
      tree.delete();
    }
  }

  #parserOf(language: Language): Parser {
    const parser = this.#parsers.get(language) ?? new Parser().setLanguage(language);
    this.#parsers.set(language, parser);
    return parser;
  }

  /** Frees the trees of a document, or all. */
  forget(docId?: string): void {
    this.#free((entry) => docId === undefined || entry.docId === docId);
  }

  #keep(entry: KeptTree): void {
    const { docId, language, text } = entry;
    this.#free((other) => other.docId === docId && other.language === language && other.text === text);
    const [oldest, ...others] = this.#entries.filter((other) => other.docId === docId);
    if (others.length + 1 >= MAX_TREES_OF_DOCUMENT) this.#free((other) => other === oldest);
    else if (this.#entries.length >= MAX_TREES) this.#free((other) => other === this.#entries[0]);
    this.#entries.push(entry);
  }

  #free(which: (entry: KeptTree) => boolean): void {
    const freed = this.#entries.filter(which);
    this.#entries = this.#entries.filter((entry) => !freed.includes(entry));
    for (const { tree } of freed) tree.delete();
  }
}

/** Pauses at places that depend on the text alone, because a resumed parse recovers from errors in other ways. */
function* parseInSlices(language: Language, text: string): Generator<undefined, Tree> {
  // A parser of its own, because another text may be parsed between two slices.
  const parser = new Parser().setLanguage(language);
  for (;;) {
    let asked = 0;
    const tree = parser.parse(text, null, { progressCallback: () => ++asked >= CALLBACKS_PER_SLICE });
    if (tree) {
      parser.delete();
      return tree;
    }
    yield;
  }
}

/** A copy of the tree of `base` in which the edit that leads to `text` is marked. */
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

/** By grammar, the file extensions and file names that it reads. The file of a grammar has its name. */
export const GRAMMARS: Readonly<Record<string, readonly string[]>> = {
  bash: ['sh', 'bash', 'zsh', '.bashrc', '.zshrc', '.profile'],
  'c-sharp': ['cs', 'csx'],
  cpp: ['c', 'h', 'cc', 'cpp', 'cxx', 'hh', 'hpp', 'hxx', 'ino'],
  css: ['css'],
  go: ['go'],
  java: ['java'],
  javascript: ['js', 'mjs', 'cjs', 'jsx'],
  php: ['php'],
  powershell: ['ps1', 'psm1'],
  python: ['py', 'pyi', 'pyw'],
  ruby: ['rb', 'rake', 'gemspec', 'Rakefile', 'Gemfile'],
  rust: ['rs'],
  tsx: ['tsx'],
  typescript: ['ts', 'mts', 'cts'],
};

const BY_NAME = new Map(
  Object.entries(GRAMMARS).flatMap(([grammar, names]) => names.map((name) => [name, grammar] as const)),
);

/** The grammar of a language, if the editor's name of the language is another one. */
const BY_LANGUAGE: Readonly<Record<string, string>> = {
  c: 'cpp',
  csharp: 'c-sharp',
  javascriptreact: 'javascript',
  shellscript: 'bash',
  typescriptreact: 'tsx',
};

/** The grammar for a document, or undefined if there is none. */
export function grammarFor({ path, language }: { path: string; language?: string | undefined }): string | undefined {
  if (language !== undefined)
    return BY_LANGUAGE[language] ?? (Object.hasOwn(GRAMMARS, language) ? language : undefined);
  const file = path.slice(path.lastIndexOf('/') + 1);
  return (
    BY_NAME.get(file) ??
    (file.includes('.') ? BY_NAME.get(file.slice(file.lastIndexOf('.') + 1).toLowerCase()) : undefined)
  );
}

export class Grammars {
  readonly #folder: string;
  #runtime: Promise<void> | undefined;
  readonly #loading = new Map<string, Promise<void>>();
  /** Null for a grammar that cannot be loaded. */
  readonly #loaded = new Map<string, Language | null>();

  constructor(folder = grammarFolder()) {
    this.#folder = folder;
  }

  /** The language. Null if it cannot be loaded, undefined if it is not loaded yet. */
  get(grammar: string): Language | null | undefined {
    return this.#loaded.get(grammar);
  }

  /** Never rejects. `get` has the result. */
  load(grammar: string): Promise<void> {
    let loading = this.#loading.get(grammar);
    if (loading === undefined) {
      loading = this.#read(grammar).then(
        (language) => void this.#loaded.set(grammar, language),
        (error: unknown) => this.fail(grammar, error),
      );
      this.#loading.set(grammar, loading);
    }
    return loading;
  }

  /** Stops using a grammar and reports why on stderr, once. Its files are then read by their indentation. */
  fail(grammar: string, error: unknown): void {
    this.#loaded.set(grammar, null);
    console.error(
      `no syntax tree for ${grammar}: ${error instanceof Error ? error.message : String(error)}; ` +
        'completions in this language follow indentation',
    );
  }

  async #read(grammar: string): Promise<Language> {
    this.#runtime ??= this.#start();
    await this.#runtime;
    return await Language.load(await readFile(join(this.#folder, `tree-sitter-${grammar}.wasm`)));
  }

  async #start(): Promise<void> {
    // With the bytes given, the runtime looks up and fetches nothing.
    await Parser.init({ wasmBinary: await readFile(join(this.#folder, 'web-tree-sitter.wasm')) } as Parameters<
      typeof Parser.init
    >[0]);
  }
}

/** `grammars` beside the bundle, or in dist if the engine runs from source. */
export function grammarFolder(): string {
  const beside = join(__dirname, 'grammars');
  return existsSync(beside) ? beside : join(__dirname, '../../../dist/grammars');
}
