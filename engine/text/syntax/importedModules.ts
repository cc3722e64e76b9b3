/**
 * Finds imports in new text that the project contradicts: a package that it does not have, or a name that the imported
 * file does not contain. In doubt finds nothing.
 */
import { isBuiltin } from 'node:module';

export interface KnownFile {
  path: string;
  text: string;
}

const MODULE = /(?:\bfrom\s+|\bimport\s+|\brequire\(\s*|\bimport\(\s*)(['"])([^'"\n]+)\1/g;

/**
 * Whether a line imports something that does not exist.
 * @param rest the other lines of the file
 * @param packages names of the packages that the project has; undefined if they are not known
 */
export function isWrongImport(
  grammar: string,
  written: string,
  { path: file, text: rest }: KnownFile,
  others: readonly KnownFile[],
  packages: readonly string[] | undefined,
): boolean {
  if (grammar === 'python') {
    const [, module, names] = /^\s*from\s+(\.*[\w.]+)\s+import\s+\(?([\w, ]+)/.exec(written) ?? [];
    if (module === undefined || names === undefined) return false;
    const path = `${module.replace(/^\.+/, '').replaceAll('.', '/')}`;
    const known = others.filter((other) => {
      const stem = other.path.replace(/\.pyi?$/, '');
      return hasEnd(stem, path) || hasEnd(stem, `${path}/__init__`);
    });
    return lacksNames(known, names);
  }
  if (!/^(javascript|typescript|tsx)$/.test(grammar)) return false;
  return [...written.matchAll(MODULE)].some(({ 2: module = '' }) => {
    if (module.startsWith('.')) {
      const names = /\{([^{}]*)\}/.exec(written)?.[1];
      const stem = joined(file, module).replace(/\.[cm]?[jt]sx?$/, '');
      const known = others.filter(({ path }) => {
        const other = path.replace(/\.[cm]?[jt]sx?$/, '');
        return other === stem || other === `${stem}/index`;
      });
      return names !== undefined && lacksNames(known, names);
    }
    if (isBuiltin(module) || /^[#~/@]\/|^[#~]|:/.test(module)) return false;
    const name = packageOf(module);
    if (packages?.some((other) => other === name || other === `@types/${name}`)) return false;
    const imported = [{ text: rest }, ...others].flatMap((other) =>
      [...other.text.matchAll(MODULE)].flatMap(({ 2: used = '' }) =>
        used.startsWith('.') || isBuiltin(used) ? [] : [packageOf(used)],
      ),
    );
    return !imported.includes(name) && (packages !== undefined || imported.length > 0);
  });
}

const packageOf = (module: string): string => module.split('/', module.startsWith('@') ? 2 : 1).join('/');

const hasEnd = (path: string, end: string): boolean => path === end || path.endsWith(`/${end}`);

/** Whether a file is known and has none of these names. */
function lacksNames(known: readonly KnownFile[], names: string): boolean {
  const [only] = known;
  if (known.length !== 1 || only === undefined || /^\s*(export \*|from \S+ import \*)/m.test(only.text)) return false;
  return names
    .split(',')
    .map((name) => /^\s*(?:type\s+)?([\p{L}_$][\p{L}\p{N}_$]*)/u.exec(name)?.[1])
    .some(
      (name) =>
        name !== undefined &&
        !new RegExp(`(?<![\\p{L}\\p{N}_$])${name.replaceAll('$', '\\$')}(?![\\p{L}\\p{N}_$])`, 'u').test(only.text),
    );
}

/** A module's path relative to a file's folder, as documents are named. */
function joined(file: string, module: string): string {
  const parts = file.split('/').slice(0, -1);
  for (const part of module.split('/'))
    if (part === '..') parts.pop();
    else if (part !== '.') parts.push(part);
  return parts.join('/');
}
