/**
 * Finds members in new text that their object does not have, where the file tells what the object is: a literal, a
 * declared type, a class of the file or of another one. In doubt finds nothing.
 */
import type { Scopes } from './scopes.ts';

/** Methods of Python's types, by `dir` of Python 3.13 without names that begin with an underscore. */
const PYTHON: Readonly<Record<string, string>> = {
  list: 'append clear copy count extend index insert pop remove reverse sort',
  dict: 'clear copy fromkeys get items keys pop popitem setdefault update values',
  set:
    'add clear copy difference difference_update discard intersection intersection_update isdisjoint issubset ' +
    'issuperset pop remove symmetric_difference symmetric_difference_update union update',
  tuple: 'count index',
  str:
    'capitalize casefold center count encode endswith expandtabs find format format_map index isalnum isalpha isascii ' +
    'isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip ' +
    'maketrans partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split ' +
    'splitlines startswith strip swapcase title translate upper zfill',
};
/** Names of such types in annotations and calls. */
const PYTHON_NAMES: Readonly<Record<string, string>> = {
  List: 'list',
  Dict: 'dict',
  Set: 'set',
  Tuple: 'tuple',
  sorted: 'list',
};
const SCRIPT_NAMES: Readonly<Record<string, string>> = {
  string: 'String',
  number: 'Number',
  boolean: 'Boolean',
  ReadonlyArray: 'Array',
  ReadonlyMap: 'Map',
  ReadonlySet: 'Set',
};
/** Objects of the language whose members are known, because this program runs in it. */
const SCRIPT_OBJECTS = new Set(['Array', 'JSON', 'Math', 'Number', 'Object', 'Promise', 'Reflect', 'String', 'Symbol']);
const SCRIPT_TYPES = new Set([
  ...['Array', 'Boolean', 'Date', 'Map', 'Number', 'Promise', 'RegExp', 'Set', 'String', 'WeakMap', 'WeakSet'],
]);
const MEMBER = /(?<![\p{L}\p{N}_$)\].?])([\p{L}_$][\p{L}\p{N}_$]*)\??\.([\p{L}_$][\p{L}\p{N}_$]*)/gu;
/** Lines before the first use that are searched for a declaration. In characters. */
const MAX_SEARCHED = 20_000;

/**
 * @param text with new text at [start, end)
 * @param others texts of other files
 */
export function unknownMembers(
  scopes: Scopes,
  grammar: string,
  text: string,
  start: number,
  end: number,
  others: readonly string[],
): string[] {
  const isScript = /^(javascript|typescript|tsx)$/.test(grammar);
  if (!isScript && grammar !== 'python') return [];
  // The object may be before the new text.
  const from = text.lastIndexOf('\n', start - 1) + 1;
  return [...text.slice(from, end).matchAll(MEMBER)].flatMap(({ 0: whole, 1: object = '', 2: member = '', index }) => {
    const at = from + index;
    if (at + whole.length <= start || !scopes.at(at).isName) return [];
    // An assignment makes the member.
    if (/^\s*(=(?!=)|:(?!:))/.test(text.slice(at + whole.length))) return [];
    const above = text.slice(Math.max(0, at - MAX_SEARCHED), at);
    const types = isScript ? scriptTypes(above, object) : pythonTypes(above, object);
    const known = types.map((type) => membersOf(type, isScript, [text.slice(0, start) + text.slice(end), ...others]));
    return known.length > 0 && known.every((has) => has?.(member) === false) ? [`${object}.${member}`] : [];
  });
}

/** The types that a script's text declares for a name; undefined for an unknown one. */
function scriptTypes(above: string, name: string): (string | undefined)[] {
  const word = name.replaceAll('$', '\\$');
  const declared = new RegExp(
    `(?:(?:const|let|var)\\s+${word}|[(,]\\s*(?:(?:public|private|protected|readonly)\\s+)*${word}\\??(?=\\s*:))` +
      `\\s*(?::\\s*([^=,;(){}<]+(?:<[^;(){}\\n]*?>)?(?:\\[\\])*))?(?:=\\s*([^;\\n]*))?`,
    'g',
  );
  const found = [...above.matchAll(declared)];
  if (found.length === 0) return SCRIPT_OBJECTS.has(name) ? [`object ${name}`] : [];
  return found.map(([, type, value]) => {
    if (type !== undefined) return scriptType(type.trim());
    if (value === undefined) return undefined;
    if (/^\[[^\]]*\]$|^\[$/.test(value)) return 'Array';
    if (/^(['"`])[^'"`]*\1$/.test(value)) return 'String';
    return /^new\s+([\w$]+)(?:<[^()]*>)?\([^()]*\)$/.exec(value)?.[1];
  });
}

function scriptType(type: string): string | undefined {
  if (/\[\]$/.test(type) && !type.includes('|')) return 'Array';
  const name = /^([\w$]+)(<.*>)?$/.exec(type)?.[1];
  return name === undefined ? undefined : (SCRIPT_NAMES[name] ?? name);
}

function pythonTypes(above: string, name: string): (string | undefined)[] {
  const declared = new RegExp(
    `(?:^[ \\t]*${name}|[(,]\\s*${name}(?=\\s*:))[ \\t]*(?::\\s*([\\w.]+)(?:\\[[^\\n]*?\\])?\\s*)?(?:=(?!=)[ \\t]*([^\\n]*))?`,
    'gm',
  );
  const found = [...above.matchAll(declared)].filter(([, type, value]) => type !== undefined || value !== undefined);
  // The variable of a loop or of a comprehension, and a parameter without a type.
  const isBound = new RegExp(
    `\\bfor\\s(?:(?!\\sin\\s)[^\\n])*\\b${name}\\b|\\bas\\s+\\(?${name}\\b|` +
      `\\bdef\\b[^\\n]*[(,]\\s*\\*{0,2}${name}\\s*[,)=]|\\blambda\\b[^:\\n]*\\b${name}\\b`,
  ).test(above);
  if (found.length === 0 && !isBound) return PYTHON[name] === undefined ? [] : [name];
  if (isBound) return [undefined];
  return found.map(([, type, value = '']) => {
    if (type !== undefined) return PYTHON_NAMES[type] ?? type;
    if (/^\[[^\]]*\]$|^\[$/.test(value)) return 'list';
    if (value === '{}') return 'dict';
    if (/^[rRuU]?(['"])[^'"]*\1$/.test(value)) return 'str';
    const called = /^([\w]+)\([^()]*\)$/.exec(value)?.[1];
    return called === undefined ? undefined : (PYTHON_NAMES[called] ?? called);
  });
}

/** Whether a type has a member. Undefined for a type that is not known, or that inherits. */
function membersOf(
  type: string | undefined,
  isScript: boolean,
  texts: readonly string[],
): ((member: string) => boolean) | undefined {
  if (type === undefined) return undefined;
  if (!isScript && PYTHON[type] !== undefined) {
    const names = new Set(PYTHON[type].split(' '));
    return (member) => names.has(member) || member.startsWith('__');
  }
  if (isScript && (type.startsWith('object ') || SCRIPT_TYPES.has(type))) {
    const of = (globalThis as Record<string, unknown>)[type.replace('object ', '')];
    const value = type.startsWith('object ') ? of : (of as { prototype?: unknown } | undefined)?.prototype;
    return value === undefined || value === null ? undefined : (member) => member in Object(value);
  }
  const header = new RegExp(
    `^([ \\t]*)(?:export |default |abstract |declare )*class\\s+${type.replaceAll('$', '\\$')}\\b(.*)$`,
    'm',
  );
  const bodies = texts.flatMap((text) => {
    const found = header.exec(text);
    return found ? [{ head: found[2] ?? '', body: bodyAt(text, found.index, found[1] ?? '') }] : [];
  });
  const [one] = bodies;
  if (bodies.length !== 1 || one === undefined) return undefined;
  if (isScript ? /\bextends\b/.test(one.head) : /\((?!\s*(object)?\s*\))/.test(one.head)) return undefined;
  // A class that answers for any name, or that others write into.
  if (/__getattr__|__slots__|\[\w+:\s*string\]|new Proxy/.test(one.body)) return undefined;
  const names = new Set(one.body.match(/[\p{L}_$][\p{L}\p{N}_$]*/gu));
  return (member) => names.has(member) || member.startsWith('__') || member in Object.prototype;
}

/** The lines of a class: up to the first one that is not indented more. */
function bodyAt(text: string, start: number, indent: string): string {
  const lines = text.slice(start).split('\n');
  const end = lines.findIndex(
    (line, i) => i > 0 && /\S/.test(line) && !line.startsWith(`${indent} `) && !line.startsWith(`${indent}\t`),
  );
  return lines.slice(0, end < 0 ? undefined : end).join('\n');
}
