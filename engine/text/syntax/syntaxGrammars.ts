/**
 * Chooses and loads grammars: the tree-sitter runtime and one WebAssembly file per language, from a folder beside the
 * bundle, each on first use and once per process. A missing or broken grammar is reported once on stderr; files of
 * that language are then read by their indentation.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Language, Parser } from 'web-tree-sitter';

/** Grammar name, also in its file's name, to the file extensions and whole file names that it reads. */
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

/** Where the editor's name of a language is not that of its grammar. */
const BY_LANGUAGE: Readonly<Record<string, string>> = {
  c: 'cpp',
  csharp: 'c-sharp',
  javascriptreact: 'javascript',
  shellscript: 'bash',
  typescriptreact: 'tsx',
};

/** The grammar for a document, or undefined where there is none. */
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
  /** Null is one that cannot be loaded. */
  readonly #loaded = new Map<string, Language | null>();

  constructor(folder = grammarFolder()) {
    this.#folder = folder;
  }

  /**
   * The language; null when it cannot be loaded; undefined when it has not been asked for by `load`, or is on its way.
   */
  get(grammar: string): Language | null | undefined {
    return this.#loaded.get(grammar);
  }

  /** Never rejects; `get` says what came of it. */
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

  /** Gives a grammar up, saying why. */
  fail(grammar: string, error: unknown): void {
    this.#loaded.set(grammar, null);
    console.error(
      `no syntax tree for ${grammar}: ${error instanceof Error ? error.message : String(error)}; completions there go by indentation`,
    );
  }

  async #read(grammar: string): Promise<Language> {
    this.#runtime ??= this.#start();
    await this.#runtime;
    return await Language.load(await readFile(join(this.#folder, `tree-sitter-${grammar}.wasm`)));
  }

  async #start(): Promise<void> {
    // The bytes themselves: nothing is looked up by name, nothing fetched.
    await Parser.init({ wasmBinary: await readFile(join(this.#folder, 'web-tree-sitter.wasm')) } as Parameters<
      typeof Parser.init
    >[0]);
  }
}

/** `grammars` beside the bundle; run from source, what the last build has put into dist. */
export function grammarFolder(): string {
  const beside = join(__dirname, 'grammars');
  return existsSync(beside) ? beside : join(__dirname, '../../../dist/grammars');
}
