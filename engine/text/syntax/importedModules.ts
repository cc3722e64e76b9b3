/**
 * Finds imports in new text that the project contradicts: a package that it does not have, a name that the imported file
 * does not contain, or that the project imports from elsewhere. In doubt finds nothing.
 */
import { isPackage, isUnknownPackage, packageOf } from './importedPackages.ts';
import { isKnownModule, modulesIn } from './pythonPackages.ts';

export interface KnownFile {
  path: string;
  text: string;
  /** The text is only the beginning of the file. */
  isCut?: boolean;
}

const STATEMENT =
  /^\s*(?:import\b|export\b[^'"]*\bfrom\b|\}\s*from\b|(?:const|let|var)\b[^'"]*=\s*(?:await\s+)?(?:require|import)\()/;
const MODULE = /(?:\bfrom\s+|\bimport\s+|\brequire\(\s*|\bimport\(\s*)(['"])([^'"\n]+)\1/;
/** Names between the brackets of an import, or of a `require` whose result is taken apart. */
const NAMES =
  /^\s*import\s+(?:type\s+)?(?:[\w$]+\s*,\s*)?\{([^{}]*)\}\s*from\b|^\s*(?:const|let|var)\s*\{([^{}]*)\}\s*=\s*require\(/;
/** What an import binds, and from where, also in comments. No part may run over the beginning of the next one, or time is quadratic. */
const IMPORTS =
  /\b(?:import|export)\s+(?:type\s+)?((?:[\w$]+\s*,\s*)?(?:\{[\w$*,\s]*\}|\*\s*as\s+[\w$]+)|[\w$]+|\*)\s*\bfrom\s*(['"])([^'"\n]+)\2/g;
const REQUIRES = /\b(?:const|let|var)\s+([\w$]+|\{[\w$,:\s]*\})\s*=\s*require\((['"])([^'"\n]+)\2/g;
const PYTHON_IMPORTS = /^[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^()]*\)|[\w, \t]+)/gm;
/** Longer lines are generated. In characters. */
const MAX_LINE = 500;

/** What is known of a project. */
export interface KnownProject {
  /** Files; the one that is edited may be one of them. */
  others: readonly KnownFile[];
  /** Names of the packages that it has. Undefined if they are not known. */
  packages: readonly string[] | undefined;
  folders?: KnownFolders;
}

/** By path, the names of a folder's files, and of its folders with `/` at the end. Unknown folders are left out. */
export type KnownFolders = Readonly<Record<string, readonly string[]>>;

/**
 * Whether a line imports something that does not exist.
 * @param line the statement, in one line
 * @param file path of the file
 */
export function isWrongImport(
  grammar: string,
  line: string,
  file: string,
  { others, packages, folders = {} }: KnownProject,
): boolean {
  if (line.length > MAX_LINE) return false;
  if (grammar === 'python') return isWrongPython(line, file, others, packages);
  if (!/^(javascript|typescript|tsx)$/.test(grammar) || !STATEMENT.test(line)) return false;
  const found = MODULE.exec(line);
  if (!found || mayBeJoined(found[0], line.slice(found.index + found[0].length))) return false;
  const [, , module = ''] = found;
  // No package is called so.
  if (!module.startsWith('.') && /[\s`]|\$\{/.test(module)) return true;
  const [, imported, required] = NAMES.exec(line) ?? [];
  const bound = bindingsIn(line, false).flatMap(({ names }) => names);
  if (module.startsWith('.')) {
    const stem = withoutEnding(joined(file, module));
    const known = others.filter(({ path }) => withoutEnding(path) === stem);
    if (known.length === 0) return isElsewhere(module, bound, file, others, false);
    const names = imported ?? required;
    return names !== undefined && lacksNames(known, names);
  }
  if (packages !== undefined) return isUnknownPackage(module, packages, others, folders);
  return isPackage(module) && isElsewhere(module, bound, file, others, false);
}

function isWrongPython(
  line: string,
  file: string,
  others: readonly KnownFile[],
  packages: readonly string[] | undefined,
): boolean {
  const isOwn = (name: string): boolean =>
    others.some(({ path, text }) => new RegExp(`(^|/)${name}(/|\\.pyi?$)`).test(path) || importsModule(text, name));
  if (packages && modulesIn(line).some((name) => !isKnownModule(name, packages) && !isOwn(name))) return true;
  const [, module, names] = /^\s*from\s+(\.+\w[\w.]*|\w+(?:\.\w+)+)\s+import\s+\(?([\w, ]+)/.exec(line) ?? [];
  if (module === undefined || names === undefined) return false;
  const path = resolved(file, module, true);
  const isIt = (other: string): boolean => (module.startsWith('.') ? other === path : hasEnd(other, path));
  const known = others.filter((other) => isIt(other.path.replace(/(\/__init__)?\.pyi?$/, '')));
  if (known.length === 0) return isElsewhere(module, namesOf(names), file, others, true);
  // The names may be those of files in the folder.
  if (known.some((other) => /__init__\.pyi?$/.test(other.path)) || !lacksNames(known, names)) return false;
  // Another part of the project may have a file of this name.
  const [{ path: only }] = known as [KnownFile];
  const root = only.slice(0, only.lastIndexOf(path)).replace(/(?:src|lib|python)\/$/, '');
  return module.startsWith('.') || file.startsWith(root);
}

/** `name` is a part of a pattern. */
export const importsModule = (text: string, name: string): boolean =>
  new RegExp(`^[ \\t]*(?:from|import)[ \\t]+(?:[\\w., \\t]*,[ \\t]*)?${name}\\b`, 'm').test(text);

interface Binding {
  module: string;
  names: string[];
}

/** The imports of a text, without names that stand for the whole module: each file chooses them itself. */
function bindingsIn(text: string, isPython: boolean): Binding[] {
  if (isPython)
    return [...text.matchAll(PYTHON_IMPORTS)].map(([, module = '', names = '']) => ({ module, names: namesOf(names) }));
  return [IMPORTS, REQUIRES].flatMap((pattern) =>
    [...text.matchAll(pattern)].map(([, names = '', , module = '']) => ({
      module,
      names: namesOf(/\{.*\}/s.exec(names)?.[0] ?? '').filter((name) => name !== 'default'),
    })),
  );
}

/** The imported names, not what they are called here. */
const namesOf = (list: string): string[] =>
  list
    .split(/[,{}()]/)
    .map((name) => /^\s*(?:type\s+)?([\p{L}_$][\p{L}\p{N}_$]*)/u.exec(name)?.[1])
    .filter((name) => name !== undefined);

/**
 * Whether a module that no known file is or imports is to have names that the project has from elsewhere: one of its
 * files exports them, or imports them. A module above or with a usual name may pass on what another one exports. A module
 * with the name of another file may be its counterpart in this folder.
 */
function isElsewhere(
  module: string,
  names: readonly string[],
  file: string,
  others: readonly KnownFile[],
  isPython: boolean,
): boolean {
  const last = lastOf(module);
  const isPath = (other: string): boolean => other.startsWith('.') || (isPython && rootOf(other, others) !== undefined);
  const pathOf = (from: string, other: string): string =>
    isPython && !other.startsWith('.')
      ? `${rootOf(other, others) ?? ''}${other.replaceAll('.', '/')}`
      : resolved(from, other, isPython);
  if (names.length === 0 || (isPath(module) ? isUsual(last) || OTHER_KIND.test(module) : isPython)) return false;
  const target = pathOf(file, module);
  const above = folderOf(target);
  if (isPath(module) && !others.some(({ path }) => path !== file && folderOf(path) === above)) return false;
  const isSame = (from: string, other: string): boolean => {
    const [one, two] = [resolved(file, module, isPython), resolved(from, other, isPython)];
    // An absolute module of Python may be below any folder.
    return one === two || (isPython && (hasEnd(one, two) || hasEnd(two, one)));
  };
  /** By name, where the project has it from. */
  const found = new Map(names.map((name) => [name, new Set<string>()]));
  for (const { path, text } of others) {
    // One file may have the module as a folder.
    if (`/${path}`.includes(`/${target}/`) || path.startsWith(`${target}.`)) return false;
    const mayHave = names.some((name) => text.includes(name));
    if (!mayHave && !text.includes(last)) continue;
    for (const binding of bindingsIn(text, isPython)) {
      if (isSame(path, binding.module)) return false;
      // A path with a name of its own, as in `tsconfig.json`, may be this one.
      if (isPath(module) && !isPath(binding.module) && lastOf(binding.module) === last) return false;
      const other = pathOf(path, binding.module);
      const isBeside = folderOf(path) === folderOf(file);
      const counts = isPath(binding.module)
        ? isPath(module) &&
          other !== modulePath(file) &&
          !isUsual(lastOf(other)) &&
          !isPart(other, target) &&
          !isIn(target, other) &&
          !isIn(folderOf(other), above) &&
          (isBeside || nameOf(other) !== nameOf(target))
        : !isPython && (!isPath(module) || isNear(folderOf(path), folderOf(file)));
      if (counts) for (const name of binding.names) found.get(name)?.add(other);
    }
    const own = modulePath(path);
    const mayDefine =
      isPath(module) && path !== file && mayHave && nameOf(own) !== nameOf(target) && !isPart(own, target);
    if (mayDefine && !isIn(folderOf(path), above))
      for (const [name, places] of found) if (defines(text, name, isPython)) places.add(own);
  }
  // A name that several modules have is usual here. A folder passes on what its files have.
  return [...found.values()].some(
    (places) => [...places].filter((one) => ![...places].some((other) => isIn(one, other))).length === 1,
  );
}

/** The path of a file as modules name it. */
const modulePath = (path: string): string =>
  withoutEnding(path)
    .replace(/\.pyi?$/, '')
    .replace(/\/(index|__init__)$/, '');

/** Of a path without its ending. */
const nameOf = (path: string): string => path.split('/').at(-1) ?? '';

/** Whether one of two files is a part of the other, as `tensor-impl` of `tensor`. */
const isPart = (one: string, other: string): boolean =>
  ['-', '_', '.'].some((mark) => one.startsWith(other + mark) || other.startsWith(one + mark));

/** Without the ending of a script, or what a bundler is told about it. */
export const withoutEnding = (path: string): string => path.replace(/\?.*$/, '').replace(/(\.d)?\.[cm]?[jt]sx?$/, '');

/** Modules that many folders have, or that pass on what others define. */
const USUAL = new Set(
  `index main mod internal internals exports public api core base common shared lib util utils helper helpers type types
  typings interfaces model models schema schemas constant constants config settings version error errors exceptions compat
  _compat state store routes router logger context hook hooks actions reducer reducers style styles theme test tests
  fixtures mocks conftest`.split(/\s+/),
);
const isUsual = (last: string): boolean => last === '' || USUAL.has(last) || last.startsWith('exports');
/** Files that are no source text. */
const OTHER_KIND =
  /\.(json5?|vue|svelte|astro|css|scss|sass|less|svg|png|html|graphql|gql|wasm|node|ya?ml|mdx?|txt)(\?.*)?$/;

/** The path of a module's file without its ending, or the name of a package. */
function resolved(file: string, module: string, isPython: boolean): string {
  if (isPython) {
    const [, dots = '', rest = ''] = /^(\.*)(.*)$/.exec(module) ?? [];
    if (dots === '') return module.replaceAll('.', '/');
    return joined(file, `${dots.slice(1).replaceAll('.', '../')}./${rest.replaceAll('.', '/')}`);
  }
  return module.startsWith('.') ? modulePath(joined(file, module)) : packageOf(module);
}

/** What is before the path of an absolute module of Python. Undefined if the project has no such folder. */
function rootOf(module: string, files: readonly KnownFile[]): string | undefined {
  const folder = `/${/^\w*/.exec(module)?.[0]}/`;
  const path = files.map((file) => `/${file.path}`).find((each) => each.includes(folder));
  return path?.slice(1, path.lastIndexOf(folder) + 1);
}

const lastOf = (module: string): string =>
  module
    .replace(/\.[cm]?[jt]sx?$/, '')
    .split(/[./]/)
    .at(-1) ?? '';

const folderOf = (path: string): string => path.split('/').slice(0, -1).join('/');

const isIn = (path: string, folder: string): boolean =>
  path !== folder && (folder === '' || path.startsWith(`${folder}/`));

const isNear = (one: string, other: string): boolean => one === other || isIn(one, other) || isIn(other, one);

/** Whether a file defines a name for others. */
function defines(text: string, name: string, isPython: boolean): boolean {
  const word = name.replaceAll('$', '\\$');
  const pattern = isPython
    ? `^(?:(?:async )?def|class) ${word}\\b|^${word} *[:=]`
    : `^export (?:default |declare |abstract |async )*(?:const|let|var|function\\*?|class|interface|type|enum) ${word}(?![\\w$])`;
  return new RegExp(pattern, 'm').test(text);
}

const hasEnd = (path: string, end: string): boolean => path === end || path.endsWith(`/${end}`);

/** Whether a file is known and has none of these names. */
function lacksNames(known: readonly KnownFile[], names: string): boolean {
  const [only] = known;
  if (known.length !== 1 || only === undefined || only.isCut || only.text.trim() === '') return false;
  // Names that come from elsewhere.
  if (/\b(export|import) \*|\bexports\b|export =|__getattr__|globals\(\)/.test(only.text)) return false;
  return names
    .split(',')
    .map((name) => /^\s*(?:type\s+)?([\p{L}_$][\p{L}\p{N}_$]*)/u.exec(name)?.[1])
    .some((name) => name !== undefined && name !== 'default' && !only.text.includes(name));
}

/**
 * Whether a text between quotes may be only the beginning of a module's name.
 * @param whole the text with what stands before it
 */
export const mayBeJoined = (whole: string, behind: string): boolean =>
  /^\s*(?:\+|\.\s*concat\b|<<)/.test(behind) || (whole.includes('(') && behind.trim() === '');

/** A module's path relative to a file's folder, as documents are named. */
export function joined(file: string, module: string): string {
  const parts = file.split('/').slice(0, -1);
  for (const part of module.split('/'))
    if (part === '..') parts.pop();
    else if (part !== '.') parts.push(part);
  return parts.join('/');
}
