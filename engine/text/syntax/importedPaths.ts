/**
 * Finds imports in new text of files of the project that do not exist. Knows what some folders hold. Where it does not
 * know a folder, or a program may write the file, it finds nothing. Reads no disk.
 */
import {
  importsModule,
  joined,
  type KnownFile,
  type KnownFolders,
  mayBeJoined,
  withoutEnding,
} from './importedModules.ts';
import { isStandard } from './pythonPackages.ts';

export interface ImportLine {
  /** The statement up to the end of the new text, and what follows it. */
  written: string;
  rest: string;
  file: string;
  /** Further files; the file itself may be one of them. */
  others: readonly KnownFile[];
  folders: KnownFolders;
}

/** Longer lines are generated. In characters. */
const MAX_LINE = 500;
/** A relative path between quotes, with its closing quote if there is one. Sass finds `@import` in its own way. */
const PATHS =
  /(?<![.@])\b(?:from|import|require(?:\.resolve)?|(?:vi|jest)\.\w+)\s*(?:\(\s*)?(['"`])(\.{1,2}(?:\/[^'"`\n]*)?)(\1|$)/g;
const ENDING = String.raw`(?:\.d)?\.[cm]?[jt]sx?`;
/** Behind the name of a module that a script names without its ending. There may be one for each platform. */
const OTHER = String.raw`\.(?:vue|svelte|astro|json|node|wasm|mdx|coffee|g[jt]s|marko|imba|civet|elm|riot)`;
const SCRIPT = new RegExp(String.raw`^(?:\.(?!test|spec|stor(?:y|ies)|bench|e2e)[\w-]+)?(?:${ENDING}|${OTHER})$`);
const JS = /\.([cm]?)jsx?$/;
/** Folders that a build writes. */
const BUILT =
  /^(dist|build|built|out|output|libs?|es|esm|cjs|umd|target|pkg|coverage|public|node_modules|__generated__|typings)$/;
/** Files that a program may write, or that exist only for a bundler. */
const GENERATED = /(^|[._/-])(generated|gen|codegen|version|build-?info)([._/-]|$)|_(pb2?|grpc)\b|\/\.\w|[$+*%]/i;

/** Whether a line imports a file of the project that does not exist. `language`: a grammar, or `script`. */
export function isMissingPath(language: string, line: ImportLine): boolean {
  const { written, rest } = line;
  if (written.length + rest.length > MAX_LINE || /^\s*(\/[/*]|[*#])/.test(written)) return false;
  if (language === 'script') return lacksScript(line);
  if (language === 'python') return lacksPython(line);
  if (language === 'ruby') return lacksRuby(line);
  return language === 'rust' && lacksRust(line);
}

/** What a folder holds. `missing`: it does not exist. */
type Held = readonly string[] | 'unknown' | 'missing';

function heldBy(folder: string, folders: KnownFolders): Held {
  if (Object.hasOwn(folders, folder)) return folders[folder] as readonly string[];
  if (folder === '') return 'unknown';
  const above = heldBy(folderOf(folder), folders);
  if (typeof above === 'string') return above;
  const name = nameOf(folder);
  return above.includes(`${name}/`) || BUILT.test(name) || GENERATED.test(name) ? 'unknown' : 'missing';
}

const folderOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')));
const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

function lacksScript({ written, rest, file, others, folders }: ImportLine): boolean {
  const line = written + rest;
  for (const { 0: whole, 2: module = '', 3: quote, index } of line.matchAll(PATHS)) {
    const path = module.replace(/[?#].*$/, '');
    const target = pathFrom(file, path);
    if (target === undefined || path.includes('${') || GENERATED.test(path)) continue;
    if (quote !== '' && mayBeJoined(whole, line.slice(index + whole.length))) continue;
    // Without its closing quote, or before one that stood there, the path may go on.
    const isOpen = quote === '';
    const mayGoOn = isOpen || index + whole.length > written.length;
    const isFolder = /(^|\/)\.{0,2}$/.test(path);
    if (isFolder ? lacksIndex(target, mayGoOn, folders) : lacksFile(target, { isOpen, mayGoOn }, folders)) {
      if (!isKnown(target, file, others)) return true;
    }
  }
  return false;
}

/** Undefined for a path that leaves the folders that the file's path names. */
function pathFrom(file: string, module: string): string | undefined {
  const numUp = module.split('/').filter((part) => part === '..').length;
  return numUp >= file.split('/').length ? undefined : joined(file, module).replace(/\/$/, '');
}

/** Whether a folder does not exist, or has no module of its own. */
function lacksIndex(folder: string, mayGoOn: boolean, folders: KnownFolders): boolean {
  const held = heldBy(folder, folders);
  if (typeof held === 'string') return held === 'missing';
  return !mayGoOn && !held.some((name) => /^index\.|^package\.json$/.test(name));
}

function lacksFile(
  target: string,
  { isOpen, mayGoOn }: { isOpen: boolean; mayGoOn: boolean },
  folders: KnownFolders,
): boolean {
  const held = heldBy(folderOf(target), folders);
  if (typeof held === 'string') return held === 'missing';
  const name = nameOf(target);
  if (held.includes(name) || (isOpen && held.some((other) => other.startsWith(name)))) return false;
  if (held.includes(`${name}/`) && !lacksIndex(target, mayGoOn, folders)) return false;
  const [, kind] = JS.exec(name) ?? [];
  // A script may be named as what it is compiled to.
  const stem = name.replace(JS, '');
  if (BUILT.test(stem)) return false;
  const endings = kind === undefined ? SCRIPT : new RegExp(`^(?:\\.d)?\\.${kind}[jt]sx?$`);
  if (held.some((other) => other.startsWith(`${stem}.`) && endings.test(other.slice(stem.length)))) return false;
  // One of several sizes.
  const [, image, ending] = /^(.+)(\.(?:png|jpe?g|webp))$/.exec(name) ?? [];
  return (
    image === undefined || !held.some((other) => other.startsWith(`${image}@`) && other.endsWith(ending as string))
  );
}

/** Whether a file is open, or another one imports it. */
function isKnown(target: string, file: string, others: readonly KnownFile[]): boolean {
  const stem = withoutEnding(target);
  const last = nameOf(stem);
  return others.some(({ path, text }) => {
    if (path !== file && withoutEnding(path).replace(/\/index$/, '') === stem) return true;
    if (!text.includes(last)) return false;
    return [...text.matchAll(/(['"])(\.{1,2}\/[^'"\n]+)\1/g)].some(
      ([, , module = '']) => withoutEnding(joined(path, module)) === stem,
    );
  });
}

const PYTHON = /\.(py|pyi|pyx|so|pyd)$/;
/** Sources of compiled modules. */
const NATIVE = /\.(pyx|c|cc|cpp|rs)$|^Cargo\.toml$/;

function lacksPython({ written, rest, file, others, folders }: ImportLine): boolean {
  const line = written + rest;
  const [, dots, module = '', names = ''] = /^\s*from\s+(\.*)([\w.]*)\s+import\b\s*\(?([^#)\n]*)/.exec(line) ?? [];
  const modules =
    dots === undefined
      ? (/^\s*import\s+([\w., ]+)$/.exec(line)?.[1] ?? '').split(',').map((one) => one.trim().split(/\s/, 1)[0] ?? '')
      : [module];
  // One that is compiled may be missing, so it is tried.
  const mayBeTried = /^\s/.test(line) || Object.values(folders).some((held) => held.some((name) => NATIVE.test(name)));
  return modules.some((one) => {
    const parts = one === '' ? [] : one.split('.');
    const base = dots ? pathFrom(file, `${'../'.repeat(dots.length - 1)}.`) : rootOf(parts[0] ?? '', folders);
    if (base === undefined || parts.includes('') || (!dots && parts.length === 0)) return false;
    const found = pythonModule(base, parts, mayBeTried, folders);
    if (typeof found === 'string') return found === 'missing' && !isImported((dots ?? '') + one, file, others);
    return dots !== undefined && lacksName(found.folder, names, others, folders);
  });
}

/** Whether a file imports a module. From another folder, a relative path names another one. */
const isImported = (module: string, file: string, others: readonly KnownFile[]): boolean =>
  /\w/.test(module) &&
  others.some(
    ({ path, text }) =>
      (!module.startsWith('.') || folderOf(path) === folderOf(file)) &&
      importsModule(text, module.replaceAll('.', '\\.')),
  );

/** What the root of a project of Python has, or a folder with a project below it. */
const PROJECT = /^(pyproject\.toml|setup\.(py|cfg)|manage\.py|tox\.ini|Pipfile|requirements[\w-]*\.txt|\.git\/)$/;

/**
 * The one known folder that has a package of this name, if modules are searched there. A package below another one, or
 * in a folder of its own, may only have the name of a library.
 */
function rootOf(name: string, folders: KnownFolders): string | undefined {
  if (isStandard(name)) return undefined;
  const roots = Object.keys(folders).filter((path) =>
    folders[path]?.some((held) => held === `${name}/` || held === `${name}.py`),
  );
  const [root] = roots;
  if (roots.length !== 1 || root === undefined || !isSearched(root, folders)) return undefined;
  const held = heldBy(root === '' ? name : `${root}/${name}`, folders);
  return typeof held !== 'string' && held.includes('__init__.py') ? root : undefined;
}

function isSearched(root: string, folders: KnownFolders): boolean {
  const isProject = (folder: string): boolean => folders[folder]?.some((name) => PROJECT.test(name)) ?? false;
  if (folders[root]?.includes('__init__.py')) return false;
  return isProject(root) || (/^(src|lib|python)$/.test(nameOf(root)) && isProject(folderOf(root)));
}

/** Finds a module below a folder. */
function pythonModule(
  base: string,
  parts: readonly string[],
  mayBeTried: boolean,
  folders: KnownFolders,
): 'missing' | 'unknown' | 'file' | { folder: string } {
  let folder = base;
  for (const [i, part] of parts.entries()) {
    const held = heldBy(folder, folders);
    if (typeof held === 'string') return held;
    const files = held.filter((name) => name.startsWith(`${part}.`) && PYTHON.test(name));
    if (held.includes(`${part}/`)) folder = folder === '' ? part : `${folder}/${part}`;
    else if (files.length > 0) return i === parts.length - 1 || !files.includes(`${part}.py`) ? 'file' : 'missing';
    else return GENERATED.test(part) || (mayBeTried && part.startsWith('_')) ? 'unknown' : 'missing';
  }
  return { folder };
}

/** Whether a package has one of these names neither in its own file nor as a module. */
function lacksName(folder: string, names: string, others: readonly KnownFile[], folders: KnownFolders): boolean {
  const held = heldBy(folder, folders);
  if (typeof held === 'string') return false;
  const own = others.find(
    ({ path, isCut }) => !isCut && /(^|\/)__init__\.pyi?$/.test(path) && folderOf(path) === folder,
  );
  if (!own && held.some((name) => name.startsWith('__init__.'))) return false;
  if (own && /\bimport \*|__getattr__|globals\(\)|__all__ *\+=/.test(own.text)) return false;
  return names.split(',').some((each) => {
    const name = /^\s*([A-Za-z]\w*)/.exec(each)?.[1];
    if (name === undefined || GENERATED.test(name) || held.includes(`${name}/`)) return false;
    return !own?.text.includes(name) && !held.some((other) => other.startsWith(`${name}.`) && PYTHON.test(other));
  });
}

function lacksRuby({ written, rest, file, folders }: ImportLine): boolean {
  const line = written + rest;
  const [whole = '', , path] = /^\s*require_relative\s*\(?\s*(['"])([^'"#\n]+)\1/.exec(line) ?? [];
  if (path === undefined || mayBeJoined(whole, line.slice(whole.length))) return false;
  const target = pathFrom(file, path);
  const held = target === undefined ? 'unknown' : heldBy(folderOf(target), folders);
  if (target === undefined || typeof held === 'string') return held === 'missing';
  // What is compiled may be missing.
  const mayBeBuilt = Object.values(folders).some((names) => names.includes('ext/') || names.includes('extconf.rb'));
  const endings = ['', '.rb', '.so', '.bundle', '.jar'];
  return !GENERATED.test(path) && !mayBeBuilt && endings.every((ending) => !held.includes(nameOf(target) + ending));
}

/** A module is beside the file, or in the folder with the file's name. */
function lacksRust({ written, rest, file, others, folders }: ImportLine): boolean {
  const name = /^(?:pub(?:\([\w: ]+\))?\s+)?mod\s+(\w+)\s*;/.exec(written + rest)?.[1];
  const isElsewhere = others.some(({ path, text }) => path === file && text.includes('#[path'));
  if (name === undefined || isElsewhere || GENERATED.test(name)) return false;
  const beside = folderOf(file);
  const below = /(^|\/)(lib|main|mod)\.rs$/.test(file) ? beside : file.replace(/\.rs$/, '');
  return [beside, below].every((folder) => {
    const held = heldBy(folder, folders);
    if (typeof held === 'string') return held === 'missing';
    return !held.includes(`${name}.rs`) && !held.includes(`${name}/`);
  });
}
