/**
 * Reads the names of packages from the files in which projects of Python list them. Reads only what is needed of their
 * formats. In doubt finds more names. Does not read the disk.
 */

/** What a file lists. Undefined if it names another list, which is not read. */
export function listedIn(file: string, text: string): string[] | undefined {
  if (file === 'pyproject.toml') return inToml(text);
  if (file === 'setup.cfg') return inConfiguration(text);
  if (file === 'setup.py') return inScript(text);
  return inRequirements(text, file.includes('/'));
}

/** Files that list packages, but are not read. */
export const isOtherList = (name: string): boolean => /^(Pipfile|conda.*\.ya?ml|environment.*\.ya?ml)$/.test(name);

const isRequirements = (name: string): boolean => /requirements.*\.(txt|in)$/.test(name);

export const isList = (name: string): boolean =>
  /^(pyproject\.toml|setup\.cfg|setup\.py)$/.test(name) || isRequirements(name);

/** As in `name[extra]>=1.0`. */
const nameIn = (text: string): string[] => /^\s*([A-Za-z][\w.-]*)/.exec(text)?.slice(1) ?? [];

/** @param inFolder whether all files beside it are read */
function inRequirements(text: string, inFolder: boolean): string[] | undefined {
  const names: string[] = [];
  for (const whole of text.split(/\r?\n/)) {
    const line = whole.replace(/(^|\s)#.*/, '').trim();
    const [, other] = /^(?:-r|--requirement)[\s=]*(\S+)/.exec(line) ?? [];
    if (other !== undefined) {
      if (!/^(?:\.{1,2}\/)?(?:requirements\/)?[\w.-]+$/.test(other) || !(inFolder || /requirements/.test(other)))
        return undefined;
    } else if (/^-(?:e|-editable)|^[\w+]+:\/\/|^git\+|^[./]/.test(line)) {
      const place = line.replace(/^-\S+\s+/, '');
      const path = place.replace(/[#?;].*$/, '').replace(/(?:\.git)?(?:@[^/]*)?\/?$/, '');
      names.push(...nameIn(/[#&]egg=([\w.-]+)/.exec(place)?.[1] ?? path.split('/').at(-1) ?? ''));
    } else names.push(...nameIn(line));
  }
  return names;
}

const LISTS = new RegExp(
  String.raw`^(?:project\.(?:optional-)?dependencies|dependency-groups|tool\.flit\.metadata\.requires(?:-extra)?|` +
    String.raw`tool\.(?!(?:poetry|pixi)\.).*dependencies)(?:\.|$)`,
);
const KEYS = /^tool\.(?:poetry|pixi)\.(?:.+\.)?(?:dev-|pypi-)?dependencies\.([\w-]+)/;
const TOKEN = /"((?:[^"\\]|\\.)*)"|'([^']*)'|#.*|[[\]]/g;

function inToml(text: string): string[] | undefined {
  const names: string[] = [];
  let isElsewhere = false;
  let section = '';
  let path = '';
  let depth = 0;
  for (const line of text.split(/\r?\n/)) {
    const header = /^\s*\[\[?\s*([^[\]]+?)\s*\]\]?\s*(?:#.*)?$/.exec(line)?.[1];
    if (depth === 0 && header !== undefined) {
      section = header.replaceAll(/["'\s]/g, '');
      path = section;
      names.push(...(KEYS.exec(section)?.slice(1) ?? []));
      continue;
    }
    const [start = '', key] = /^\s*((?:[\w.-]+|"[^"]*"|'[^']*')+)\s*=/.exec(line) ?? [];
    const isKey = depth === 0 && key !== undefined;
    if (isKey) {
      path = `${section}.${key.replaceAll(/["']/g, '')}`.replace(/^\./, '');
      names.push(...(KEYS.exec(path)?.slice(1) ?? []));
    }
    for (const [token, double, single] of line.slice(isKey ? start.length : 0).matchAll(TOKEN)) {
      if (token === '[') depth++;
      else if (token === ']') depth--;
      const value = double ?? single ?? '';
      if (LISTS.test(path)) names.push(...nameIn(value));
      if (path === 'project.dynamic' && value === 'dependencies') isElsewhere = true;
    }
  }
  return isElsewhere ? undefined : names.filter((name) => name !== 'python');
}

/** When a package is needed. */
const MARKER = /^\s*(?:python_(?:full_)?version|sys_platform|platform_\w+|os_name|implementation_name|extra)\b/;

function inConfiguration(text: string): string[] | undefined {
  const names: string[] = [];
  let section = '';
  let key = '';
  for (const line of text.split(/\r?\n/)) {
    if (/^\s*[#;]/.test(line)) continue;
    const header = /^\[(.+)\]/.exec(line)?.[1];
    if (header !== undefined) {
      section = header;
      key = '';
      continue;
    }
    const [, begun, first] = /^([\w.:-]+)\s*=\s*(.*)$/.exec(line) ?? [];
    if (begun !== undefined) key = begun;
    const isRequired = section === 'options' && /^(?:install|setup|tests)_requires?$/.test(key);
    if (!isRequired && section !== 'options.extras_require') continue;
    const values = first ?? line;
    if (/^\s*(?:file|attr):/.test(values)) return undefined;
    names.push(
      ...values
        .split(';')
        .filter((part) => !MARKER.test(part))
        .flatMap(nameIn),
    );
  }
  return names;
}

/** All texts of a script that lists packages. They may be in variables. Undefined if it does not write the list itself. */
function inScript(text: string): string[] | undefined {
  const lists = [...text.matchAll(/\b(?:install_requires|extras_require)\b["'\]]*\s*[=:]\s*(\w*)/g)];
  if (!/\b(?:install_requires|extras_require)\b/.test(text)) return [];
  const isWritten = ([, name]: RegExpMatchArray): boolean =>
    name === '' || new RegExp(`^[ \\t]*${name}\\s*(?::[^=\\n]*)?=\\s*[[({]`, 'm').test(text);
  const isRead = /\b(?:open|read_text|readlines|parse_requirements)\(/.test(text);
  if (lists.length === 0 || !lists.every(isWritten) || (isRead && !/\binstall_requires\s*=\s*\[/.test(text)))
    return undefined;
  return [...text.matchAll(/(["'])([^"'\n]+)\1/g)].flatMap(([, , value = '']) => nameIn(value));
}
