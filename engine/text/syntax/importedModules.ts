/**
 * Finds imports in new text that the project contradicts: a package that it does not have, or a name that the imported
 * file does not contain. In doubt finds nothing.
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
/** Longer lines are generated. In characters. */
const MAX_LINE = 500;

/**
 * Whether a line imports something that does not exist.
 * @param file path of the file
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
    const path = module.replace(/^\.+/, '').replaceAll('.', '/');
    return lacksNames(
      others.filter((other) => hasEnd(other.path.replace(/\.pyi?$/, ''), path)),
      names,
    );
  }
  if (!/^(javascript|typescript|tsx)$/.test(grammar) || !STATEMENT.test(line)) return false;
  const module = MODULE.exec(line)?.[2];
  if (module === undefined) return false;
  if (module.startsWith('.')) {
    const [, imported, required] = NAMES.exec(line) ?? [];
    const stem = joined(file, module).replace(/\.[cm]?[jt]sx?$/, '');
    const known = others.filter(({ path }) => path.replace(/(\.d)?\.[cm]?[jt]sx?$/, '') === stem);
    const names = imported ?? required;
    return names !== undefined && lacksNames(known, names);
  }
  // Other forms are names of a bundler, or paths of the project.
  if (packages === undefined || isBuiltin(module) || !/^(@[\w.-]+\/)?[a-z\d][\w.-]*(\/|$)/.test(module)) return false;
  const name = packageOf(module);
  const types = `@types/${name.replace('@', '').replace('/', '__')}`;
  const [scope = ''] = name.split('/');
  return !packages.some(
    (other) => other === name || other === types || (name.startsWith('@') && other.startsWith(`${scope}/`)),
  );
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
