/**
 * Judges names that completions of suite `names` offer: by TypeScript's checker, Python's own modules, package.json and
 * the files of a project. Does not complete.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import path from 'node:path';
import ts from 'typescript';
import type { QualityText } from './sources.ts';
import type { UnpackedProjects } from './unpacked.ts';

export type NameKind = 'member' | 'import' | 'call';
/** `unknown`: nothing tells the object's type, and the name is one of the project or language. */
export type Verdict = 'right' | 'exists' | 'unknown' | 'wrong object' | 'nowhere' | 'none';

export interface NamePlace extends Pick<QualityText, 'source' | 'path' | 'language'> {
  readonly kind: NameKind;
  readonly text: string;
  readonly offset: number;
  /** The original rest of the line. */
  readonly taken: string;
  /** What stands before the cursor: an object, a called function, or the beginning of an import. */
  readonly before: string;
}

/** The first name of a text, or the path of an import. */
export function firstName({ kind, before }: Pick<NamePlace, 'kind' | 'before'>, text: string): string | undefined {
  if (kind === 'import' && /['"]$/.test(before)) return /^[^'"\n]+/.exec(text)?.[0];
  return /^[^\p{L}\p{N}_$'"`]*([\p{L}_$][\p{L}\p{N}_$]*)/u.exec(text)?.[1];
}

const WORD = /[\p{L}_$][\p{L}\p{N}_$]*/gu;

interface PythonNames {
  builtins: string[];
  attributes: string[];
  modules: string[];
  /** Of each asked module of the standard library. */
  of: Record<string, string[]>;
}

const ASK_PYTHON = `
import builtins, importlib, json, sys
types = [t for t in vars(builtins).values() if isinstance(t, type)]
def names(m):
    try: return dir(importlib.import_module(m))
    except ImportError: return []
print(json.dumps({
    'builtins': dir(builtins), 'attributes': sorted({n for t in types for n in dir(t)}),
    'modules': sorted(sys.stdlib_module_names),
    'of': {m: names(m) for m in sys.argv[1:] if m.split('.')[0] in sys.stdlib_module_names}}))`;

/** What is known of the projects and of their languages. */
export class NameJudge {
  readonly #texts: readonly QualityText[];
  readonly #projects: UnpackedProjects;
  readonly #words = new Map<string, Set<string>>();
  readonly #python: PythonNames;
  readonly #library: Set<string>;
  readonly #libraryFolder = path.dirname(ts.getDefaultLibFilePath({}));
  readonly #service: ts.LanguageService;
  #edited: Pick<NamePlace, 'source' | 'path' | 'text'> | undefined;
  #version = 0;

  constructor(texts: readonly QualityText[], projects: UnpackedProjects) {
    this.#texts = texts;
    this.#projects = projects;
    const python = texts.filter(({ language }) => language === 'python').map(({ text }) => text);
    const asked = new Set(
      python.flatMap((text) => [...text.matchAll(/^\s*(?:from|import) ([\w.]+)/gm)].map(([, name = '']) => name)),
    );
    this.#python = JSON.parse(
      execFileSync('python3', ['-c', ASK_PYTHON, ...asked], { encoding: 'utf8' }),
    ) as PythonNames;
    const libraries = readdirSync(this.#libraryFolder).filter((name) => /^lib\..*\.d\.ts$/.test(name));
    this.#library = new Set(
      libraries.flatMap((name) => readFileSync(path.join(this.#libraryFolder, name), 'utf8').match(WORD) ?? []),
    );
    this.#service = ts.createLanguageService(this.#host());
  }

  verdict(place: NamePlace, shown: string): Verdict {
    const name = firstName(place, shown);
    if (name === undefined) return 'none';
    if (name === firstName(place, place.taken)) return 'right';
    if (place.kind === 'import') return this.#import(place, name);
    // A parameter of a function that is written, or an argument by name, is no name that must exist.
    if (new RegExp(`^[^\\w$]*${name.replaceAll('$', '\\$')}\\s*(=|,.*\\)\\s*=>|\\)\\s*=>|:)`).test(shown))
      return 'unknown';
    return place.language === 'python' ? this.#pythonName(place, name) : this.#scriptName(place, name);
  }

  #import({ source, path: file, language, before, text }: NamePlace, name: string): Verdict {
    const [folder, files] = this.#projects.filesOf(source);
    if (language === 'python') {
      const module = /^from ([\w.]+)/.exec(before)?.[1];
      if (module === undefined) return this.#python.modules.includes(name) ? 'exists' : 'nowhere';
      const known = this.#python.of[module];
      if (known) return known.includes(name) ? 'exists' : 'wrong object';
      const [, dots = '', rest = ''] = /^(\.*)(.*)/.exec(module) ?? [];
      const base = dots ? path.posix.dirname(file) : '';
      const stem = path.posix.join(base, dots.slice(1).replaceAll('.', '../'), rest.replaceAll('.', '/'));
      const own = files.filter((other) => [`${stem}.py`, `${stem}/__init__.py`].includes(other));
      if (own.length === 0) return 'unknown';
      const wordsIn = (other: string): string[] => readFileSync(path.join(folder, other), 'utf8').match(WORD) ?? [];
      const has = (other: string): boolean => wordsIn(other).includes(name);
      return own.some(has) || files.includes(`${stem}/${name}.py`) ? 'exists' : 'wrong object';
    }
    if (name.startsWith('.')) {
      const target = path.posix.join('package', path.posix.dirname(file), name).replace(/\.[jt]sx?$/, '');
      const ends = ['', '.ts', '.tsx', '.js', '.d.ts', '/index.ts', '/index.js', '/index.d.ts'];
      return ends.some((end) => files.includes(target + end)) ? 'exists' : 'nowhere';
    }
    const wanted = name.split('/', name.startsWith('@') ? 2 : 1).join('/');
    return isBuiltin(name) || this.#projects.packagesOf(source).includes(wanted) || text.includes(name)
      ? 'exists'
      : 'nowhere';
  }

  #pythonName({ source, kind, before, text, offset }: NamePlace, name: string): Verdict {
    const object = /^[\w$]+/.exec(before)?.[0] ?? '';
    const imported = new RegExp(`^\\s*import (?:([\\w.]+) as ${object}|${object})\\s*$`, 'm').exec(text);
    const members = kind === 'member' && imported ? this.#python.of[imported[1] ?? object] : undefined;
    if (members) return members.includes(name) ? 'exists' : 'wrong object';
    if (kind === 'member' && object === 'self') return this.#ownName(text, offset, name);
    const { attributes, builtins } = this.#python;
    const general = kind === 'member' ? attributes : builtins;
    return general.includes(name) || this.#wordsOf(source).has(name) ? 'unknown' : 'nowhere';
  }

  /** A class without a base class has what its file writes to `self` or defines. */
  #ownName(text: string, offset: number, name: string): Verdict {
    const [, base = ''] = [...text.slice(0, offset).matchAll(/^class \w+(.*):$/gm)].at(-1) ?? [];
    const own = new RegExp(`\\bself\\.${name}\\b|\\bdef ${name}\\b|^\\s+${name}\\s*[:=]`, 'm').test(text);
    return own ? 'exists' : /^(\((object)?\))?$/.test(base) && !name.startsWith('__') ? 'wrong object' : 'unknown';
  }

  #scriptName(place: NamePlace, name: string): Verdict {
    this.#edited = place;
    this.#version++;
    const file = this.#nameOf(place);
    const completions = this.#service.getCompletionsAtPosition(file, place.offset, {});
    const entries = completions?.entries.filter(({ kind }) => kind !== 'warning') ?? [];
    if (entries.some((entry) => entry.name === name)) return 'exists';
    const isKnown = this.#wordsOf(place.source).has(name) || this.#library.has(name);
    if (!isKnown) return 'nowhere';
    // The checker knows the members of objects in TypeScript, and all names in scope.
    return entries.length > 0 && (place.kind === 'call' || place.language === 'typescript')
      ? 'wrong object'
      : 'unknown';
  }

  #wordsOf(source: string): Set<string> {
    let words = this.#words.get(source);
    if (!words) {
      words = new Set(this.#texts.flatMap((text) => (text.source === source ? (text.text.match(WORD) ?? []) : [])));
      this.#words.set(source, words);
    }
    return words;
  }

  #nameOf = ({ source, path: file }: Pick<QualityText, 'source' | 'path'>): string => `/${source}/${file}`;

  /** The projects as files of one program, with the text that is edited now. */
  #host(): ts.LanguageServiceHost {
    const scripts = new Map<string, string>(
      this.#texts.flatMap((text) => (text.language === 'python' ? [] : [[this.#nameOf(text), text.text] as const])),
    );
    const isEdited = (name: string): boolean => this.#edited !== undefined && this.#nameOf(this.#edited) === name;
    const read = (name: string): string | undefined =>
      isEdited(name)
        ? this.#edited?.text
        : (scripts.get(name) ?? (name.startsWith(this.#libraryFolder) ? ts.sys.readFile(name) : undefined));
    const { Bundler } = ts.ModuleResolutionKind;
    return {
      getScriptFileNames: () => [...scripts.keys()],
      getScriptVersion: (name) => (isEdited(name) ? String(this.#version) : '0'),
      getScriptSnapshot: (name) => {
        const text = read(name);
        return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
      },
      getCurrentDirectory: () => '/',
      getCompilationSettings: () => ({
        allowJs: true,
        strict: true,
        target: ts.ScriptTarget.ESNext,
        module: ts.ModuleKind.ESNext,
        moduleResolution: Bundler,
        types: [],
      }),
      getDefaultLibFileName: (options) => ts.getDefaultLibFilePath(options),
      fileExists: (name) => read(name) !== undefined,
      readFile: read,
    };
  }
}
