/**
 * Finds imports in new text that the project contradicts: a package that it does not have, a name that the imported file
 * does not contain, or that the project imports from elsewhere. In doubt finds nothing.
 */
import { isBuiltin } from 'node:module';

export interface KnownFile {
  path: string;
  text: string;
}

const STATEMENT =
  /^\s*(?:import\b|export\b[^'"]*\bfrom\b|\}\s*from\b|(?:const|let|var)\b[^'"]*=\s*(?:await\s+)?(?:require|import)\()/;
const MODULE = /(?:\bfrom\s+|\bimport\s+|\brequire\(\s*|\bimport\(\s*)(['"])([^'"\n]+)\1/;
/** Names between the brackets of an import, or of a `require` whose result is taken apart. */
const NAMES =
  /^\s*import\s+(?:type\s+)?(?:[\w$]+\s*,\s*)?\{([^{}]*)\}\s*from\b|^\s*(?:const|let|var)\s*\{([^{}]*)\}\s*=\s*require\(/;
/** What an import binds, and from where. */
const IMPORTS = /\b(?:import|export)\s+(?:type\s+)?([\w$*{},\s]+?)\s+from\s*(['"])([^'"\n]+)\2/g;
const REQUIRES = /\b(?:const|let|var)\s+([\w$]+|\{[\w$,:\s]*\})\s*=\s*require\((['"])([^'"\n]+)\2/g;
const PYTHON_IMPORTS = /^[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]*\)|[\w, \t]+)/gm;
/** Longer lines are generated. In characters. */
const MAX_LINE = 500;

/**
 * Whether a line imports something that does not exist.
 * @param line the statement, in one line
 * @param file path of the file
 * @param others further files; the file itself may be one of them
 * @param packages names of the packages that the project has; undefined if they are not known
 */
export function isWrongImport(
  grammar: string,
  line: string,
  file: string,
  others: readonly KnownFile[],
  packages: readonly string[] | undefined,
): boolean {
  if (line.length > MAX_LINE) return false;
  if (grammar === 'python') {
    const [, module, names] = /^\s*from\s+(\.+\w[\w.]*|\w+(?:\.\w+)+)\s+import\s+\(?([\w, ]+)/.exec(line) ?? [];
    if (module === undefined || names === undefined) return false;
    const path = resolved(file, module, true);
    const isIt = (other: string): boolean => (module.startsWith('.') ? other === path : hasEnd(other, path));
    const known = others.filter((other) => isIt(other.path.replace(/(\/__init__)?\.pyi?$/, '')));
    return known.length > 0 ? lacksNames(known, names) : isElsewhere(module, namesOf(names), file, others, true);
  }
  if (!/^(javascript|typescript|tsx)$/.test(grammar) || !STATEMENT.test(line)) return false;
  const module = MODULE.exec(line)?.[2];
  if (module === undefined) return false;
  const [, imported, required] = NAMES.exec(line) ?? [];
  const bound = bindingsIn(line, false).flatMap(({ names }) => names);
  if (module.startsWith('.')) {
    const stem = joined(file, module).replace(/\.[cm]?[jt]sx?$/, '');
    const known = others.filter(({ path }) => path.replace(/(\.d)?\.[cm]?[jt]sx?$/, '') === stem);
    if (known.length === 0) return isElsewhere(module, bound, file, others, false);
    const names = imported ?? required;
    return names !== undefined && lacksNames(known, names);
  }
  // Other forms are names of a bundler, or paths of the project.
  if (isBuiltin(module) || !/^(@[\w.-]+\/)?[a-z\d][\w.-]*(\/|$)/.test(module)) return false;
  if (packages === undefined) return isElsewhere(module, bound, file, others, false);
  const name = packageOf(module);
  const types = `@types/${name.replace('@', '').replace('/', '__')}`;
  const [scope = ''] = name.split('/');
  return !packages.some(
    (other) => other === name || other === types || (name.startsWith('@') && other.startsWith(`${scope}/`)),
  );
}

interface Binding {
  module: string;
  names: string[];
}

/** The imports of a text. */
function bindingsIn(text: string, isPython: boolean): Binding[] {
  if (isPython)
    return [...text.matchAll(PYTHON_IMPORTS)].map(([, module = '', names = '']) => ({ module, names: namesOf(names) }));
  return [IMPORTS, REQUIRES].flatMap((pattern) =>
    [...text.matchAll(pattern)].map(([, names = '', , module = '']) => ({ module, names: namesOf(names) })),
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
 * files exports them, or imports them.
 */
function isElsewhere(
  module: string,
  names: readonly string[],
  file: string,
  others: readonly KnownFile[],
  isPython: boolean,
): boolean {
  const [last = ''] = /[\w$-]+(?=(\.[cm]?[jt]sx?)?$)/.exec(module) ?? [];
  const target = resolved(file, module, isPython);
  let found = false;
  for (const { path, text } of others) {
    // One file may have the module as a folder.
    if (path.includes(`${target}/`) || path.startsWith(`${target}.`)) return false;
    const mayHave = names.some((name) => text.includes(name));
    if (!mayHave && !text.includes(last)) continue;
    for (const binding of bindingsIn(text, isPython)) {
      if (resolved(path, binding.module, isPython) === target) return false;
      found ||= binding.names.some((name) => names.includes(name));
    }
    found ||= path !== file && mayHave && names.some((name) => defines(text, name, isPython));
  }
  return found;
}

/** The path of a module's file without its ending, or the name of a package. */
function resolved(file: string, module: string, isPython: boolean): string {
  if (isPython) {
    const [, dots = '', rest = ''] = /^(\.*)(.*)$/.exec(module) ?? [];
    if (dots === '') return module.replaceAll('.', '/');
    return joined(file, `${dots.slice(1).replaceAll('.', '../')}./${rest.replaceAll('.', '/')}`);
  }
  return module.startsWith('.') ? joined(file, module).replace(/(\/index)?(\.[cm]?[jt]sx?)?$/, '') : packageOf(module);
}

/** Whether a file defines a name for others. */
function defines(text: string, name: string, isPython: boolean): boolean {
  const word = name.replaceAll('$', '\\$');
  const pattern = isPython
    ? `^(?:(?:async )?def|class) ${word}\\b|^${word} *[:=]`
    : `^export (?:default |declare |abstract |async )*(?:const|let|var|function\\*?|class|interface|type|enum) ${word}(?![\\w$])`;
  return new RegExp(pattern, 'm').test(text);
}

const packageOf = (module: string): string => module.split('/', module.startsWith('@') ? 2 : 1).join('/');

const hasEnd = (path: string, end: string): boolean => path === end || path.endsWith(`/${end}`);

/** Whether a file is known and has none of these names. */
function lacksNames(known: readonly KnownFile[], names: string): boolean {
  const [only] = known;
  if (known.length !== 1 || only === undefined || only.text.trim() === '') return false;
  // Names that come from elsewhere.
  if (/\b(export|import) \*|\bexports\b|export =|__getattr__|globals\(\)/.test(only.text)) return false;
  return names
    .split(',')
    .map((name) => /^\s*(?:type\s+)?([\p{L}_$][\p{L}\p{N}_$]*)/u.exec(name)?.[1])
    .some((name) => name !== undefined && name !== 'default' && !only.text.includes(name));
}

/** A module's path relative to a file's folder, as documents are named. */
function joined(file: string, module: string): string {
  const parts = file.split('/').slice(0, -1);
  for (const part of module.split('/'))
    if (part === '..') parts.pop();
    else if (part !== '.') parts.push(part);
  return parts.join('/');
}
