/**
 * Whether a module that a script names can come from one of the project's packages. A bundler may give names to folders
 * and files, so other scripts are asked for such names. In doubt a module is known.
 */
import { isBuiltin } from 'node:module';

interface Script {
  path: string;
  text: string;
}

/** Modules of Node that older versions do not have. */
const NEW_BUILTIN = /^node:(sea|sqlite|test|quic|\w+\/\w+)$/;
const SCHEME = /^([a-z][a-z\d+.-]+):/;
const KNOWN_SCHEMES =
  /^(node|bun|deno|npm|jsr|https?|data|file|blob|virtual|astro|cloudflare|workerd|electron|resource|chrome)$/;
/** Scripts with imports of packages, below which nothing is known of a project's habits. */
const MIN_SCRIPTS = 3;

/** Whether it has the name of a package, or of a part of one. Other forms are names of a bundler, or paths. */
export const isPackage = (module: string): boolean =>
  !isBuiltin(module) && /^(@[\w.-]+\/)?[a-z\d][\w.-]*(\/|$)/.test(module);

export const packageOf = (module: string): string => module.split('/', module.startsWith('@') ? 2 : 1).join('/');

/**
 * @param packages names of the packages that the project has
 * @param folders by path, the names of what they hold
 */
export function isUnknownPackage(
  module: string,
  packages: readonly string[],
  others: readonly Script[],
  folders: Readonly<Record<string, readonly string[]>>,
): boolean {
  const [, scheme] = SCHEME.exec(module) ?? [];
  if (scheme === 'node') return !isBuiltin(module) && !NEW_BUILTIN.test(module);
  if (scheme !== undefined)
    return !KNOWN_SCHEMES.test(scheme) && !others.some(({ text }) => hasQuoted(text, `${scheme}:`));
  // A bundler may make a style sheet.
  if (!isPackage(module) || /^[\w.-]+\.css$/.test(module)) return false;
  const name = packageOf(module);
  const types = `@types/${name.replace('@', '').replace('/', '__')}`;
  const [scope = '', ownName = ''] = name.split('/');
  const isKnown = packages.some(
    (other) =>
      other === name ||
      other === types ||
      // Parts of one project.
      (name.startsWith('@') && (other.startsWith(`${scope}/`) || scope === `@${other}`)),
  );
  if (isKnown) return false;
  // A bundler may give a name to a folder.
  const alias = ownName === '' ? name : scope;
  const folder = alias.replace('@', '');
  if (packages.includes(folder) || others.some(({ text }) => hasQuoted(text, alias, '/') || hasQuoted(text, alias, '')))
    return false;
  const isFolder =
    others.some(({ path }) => `/${path}`.includes(`/${folder}/`)) ||
    Object.values(folders).some((names) => names.includes(`${folder}/`));
  return !isFolder || !mayNameFolders(packages, others);
}

/** Whether scripts import folders of the project by name. Undecided, they may, too. */
function mayNameFolders(packages: readonly string[], others: readonly Script[]): boolean {
  const folders = new Set(others.flatMap(({ path }) => path.split('/').slice(0, -1)));
  const all = others.map(({ text }) =>
    [...text.matchAll(/\b(?:from|import|require\()\s*(['"])([@\w][^'"\n]*)\1/g)].map(([, , module = '']) => module),
  );
  if (all.filter((modules) => modules.length > 0).length < MIN_SCRIPTS) return true;
  return all.flat().some((module) => {
    const [first = ''] = module.replace('@', '').split('/', 1);
    return folders.has(first) && !packages.includes(packageOf(module)) && !isBuiltin(module);
  });
}

/** Whether a text has a string that begins so, or is so if the end is given as ''. */
const hasQuoted = (text: string, begin: string, end?: string): boolean =>
  ["'", '"'].some((quote) => text.includes(quote + begin + (end === '' ? quote : (end ?? ''))));
