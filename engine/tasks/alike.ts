/**
 * Tells from the headers of two functions whether one may be written like the other. Reads single lines. Knows no tree.
 */

/** Words of names that do not tell what a function is about. */
const GENERAL = new Set(['get', 'set', 'is', 'has', 'to', 'on', 'do', 'of', 'by', 'for', 'from', 'with', 'and', 'the']);
/** The beginning of a function that is an argument, as in `useEffect(() => {`. */
const CALLBACK =
  /^(return\s+|await\s+)?[\w$.:]+!?\((.*,\s*)?(async\s*)?((\(.*\)|[\w$]+)\s*=>|\|.*\||func(tion)?\b.*)\s*\{$/;
const DECLARES = /^(export|default|const|let|var|def|function|func|fn|async|public|private|static)\b/;
const TEST = /^(it|test|describe|suite|specify|context|(before|after)(Each|All))\b/;

/** What one function does, the other undoes, or does for something else. */
const OPPOSITES: readonly (readonly string[])[] = `
  open/close start/stop start/end begin/end start/finish enable/disable show/hide set/get in/out on/off to/from
  encode/decode encrypt/decrypt compress/decompress serialize/deserialize load/save load/dump read/write
  connect/disconnect acquire/release allocate/free alloc/free increment/decrement inc/dec up/down next/previous next/prev
  first/last min/max expand/collapse undo/redo enter/exit enter/leave login/logout push/pull import/export before/after
  accept/reject resolve/reject pause/resume init/dispose setup/teardown upload/download send/receive enqueue/dequeue
  focus/blur grow/shrink increase/decrease parse/stringify parse/format parse/serialize left/right top/bottom
  horizontal/vertical row/column rows/columns width/height ascending/descending asc/desc multiply/divide
  add/subtract plus/minus union/intersection success/error success/failure request/response lower/upper
  ${pairs('add insert append push unshift create set attach register', 'remove delete clear pop shift destroy reset detach')}
  ${pairs('get find fetch', 'remove delete clear add append create update')}`
  .trim()
  .split(/\s+/)
  .map((pair) => pair.split('/'));

/** All pairs of words of two lists, as text. */
function pairs(some: string, others: string): string {
  return some
    .split(' ')
    .flatMap((one) => others.split(' ').map((other) => `${one}/${other}`))
    .join(' ');
}

/** A header of Go without the object of the method, which has brackets, too. */
const withoutReceiver = (header: string): string => header.replace(/\bfunc\s*\([^()]*\)\s*(?=\w+\s*[([])/, 'func ');

/** What is between the brackets of a function's header, without `self` and what takes any arguments. */
const parameterList = (header: string): string | undefined =>
  /\(([^()]*)\)/
    .exec(withoutReceiver(header))?.[1]
    ?.replace(/^\s*(?:self|cls)\b(?:\s*:[^,]*)?\s*,?/, '')
    .replace(/(?:\*{1,2}|\.{3})\w+(?:\s*:[^,]*)?(?:,|$)/g, '')
    .replace(/\s+/g, ' ')
    .trim();

/** The names between the brackets of a function's header, also those of types. */
export const parametersIn = (header: string): string[] =>
  /\([^()]*\)|[\w$]+\s*=>/
    .exec(withoutReceiver(header))?.[0]
    .match(/[\p{L}_$][\p{L}\p{N}_$]*/gu)
    ?.filter((name) => !/^(self|cls|this)$/.test(name)) ?? [];

/** The result in Go and Rust, where none is written for none. */
function resultIn(header: string): string | undefined {
  const plain = withoutReceiver(header);
  if (!/\b(?:func|fn)\s/.test(plain) || !plain.endsWith('{') || plain.includes('->')) return undefined;
  const [, result = ''] = /\)\s*(\([^()]*\)|[\w.*[\]{}]*)\s*\{$/.exec(plain) ?? [];
  return result.replace(/\s+/g, '') || 'nothing';
}

/** The types that a function's header gives to its parameters, by name, and to its result, as \`return\`. */
function typesIn(header: string): Map<string, string> {
  const types = new Map<string, string>();
  const written = resultIn(header);
  if (written !== undefined) types.set('return', written);
  let depth = 0;
  let part = '';
  const rest = header.slice(header.indexOf('('));
  for (let i = 0; i < rest.length; i++) {
    const character = rest[i] as string;
    if ('([{<'.includes(character)) depth++;
    else if (')]}'.includes(character) || (character === '>' && !/[=-]/.test(rest[i - 1] ?? ''))) depth--;
    if (depth > 1 || (depth === 1 && !'(,'.includes(character))) part += character;
    else {
      const [, name, type] = /^\(?\s*([\w$]+)\??\s*:\s*([^=]+)/.exec(part) ?? [];
      if (name !== undefined) types.set(name, (type as string).replace(/\s+/g, ''));
      part = '';
    }
    if (depth > 0) continue;
    const result = /^\)\s*(?::|->)\s*(.+?)\s*(?:[{:]|=>)$/.exec(rest.slice(i))?.[1];
    if (result !== undefined) types.set('return', result.replace(/\s+/g, ''));
    break;
  }
  return types;
}

/** Whether a line names a parameter that two headers give another type, or returns what they give another type. */
export function haveOtherTypes(line: string, one: string, other: string, names?: RegExp): boolean {
  const [types, otherTypes] = [typesIn(one), typesIn(other)];
  return line
    .split(/[^\p{L}\p{N}_$]+/u)
    .some(
      (word) =>
        types.has(word) &&
        otherTypes.has(word) &&
        types.get(word) !== otherTypes.get(word) &&
        (names === undefined || names.test(word)),
    );
}

/** Parameters of two or more names and types say more than `(req, res)`. */
const TYPED = /(?::|[\w>\]]\s+\w).*,/;

/** Whether two functions have the same name, names with a common word, or the same parameters with types. */
export function areAlike(one: string, other: string): boolean {
  // What a function is called with does not tell what it is about.
  if ([one, other].some((header) => isCallback(header) && !TEST.test(header)))
    return parametersIn(one).length > 0 && String(parametersIn(one)) === String(parametersIn(other));
  const [list, otherList] = [parameterList(one), parameterList(other)];
  if (one === other || (list === otherList && list !== undefined && TYPED.test(list))) return true;
  const [name, otherName] = [nameIn(one), nameIn(other)];
  if (name === undefined || otherName === undefined) return false;
  const words = nameWords(otherName);
  return name === otherName || nameWords(name).some((word) => words.includes(word));
}

/** Whether the name of one function says the opposite of the other's, as `lock` and `unlock`, or `add` and `remove`. */
export function areOpposite(one: string, other: string): boolean {
  const [words, otherWords] = [one, other].map((header) => allWords(nameIn(header) ?? '')) as [string[], string[]];
  const onlyIn = (list: readonly string[], word: string, rest: readonly string[]): boolean =>
    list.includes(word) && !rest.includes(word);
  return (
    OPPOSITES.some(([a = '', b = '']) =>
      [
        [a, b],
        [b, a],
      ].some(([x = '', y = '']) => onlyIn(words, x, otherWords) && onlyIn(otherWords, y, words)),
    ) || [words, otherWords].some((list) => list.some((word) => undoes(word, list === words ? otherWords : words)))
  );
}

/** Names in conditions that say nothing of what a function does. */
const CHECKS = new Set(
  `if unless guard assert not and or is in typeof instanceof isinstance undefined null None true false True False string
   number boolean object function str int float bool bytes list dict set tuple len Array Number String Buffer isArray
   isInteger isFinite isNaN length throw new raise return Error TypeError RangeError ValueError`.split(/\s+/),
);

/**
 * Whether lines only look up what a function is about, or check its parameters and what they looked up. A function and
 * its opposite begin with the same ones.
 */
export function isPreparation(lines: readonly string[], header: string): boolean {
  const known = new Set([...CHECKS, ...parametersIn(header)]);
  let isChecked = false;
  return lines.every((line) => {
    const declared = /^(?:(?:const|let|var)\s+)?([\w$]+)(?:\s*:[^=]+)?\s*=(?![=>])/.exec(line)?.[1];
    if (declared !== undefined) known.add(declared);
    else if (/^(if|unless|guard|assert)\b/.test(line)) {
      const [condition = ''] = line.replace(/(['"`])[^'"`]*\1/g, '').split(/\b(?:throw|raise|return)\b/);
      isChecked = (condition.match(/\.?[\p{L}_$][\p{L}\p{N}_$]*/gu) ?? []).every((name) =>
        known.has(name.replace(/^\./, '')),
      );
      return isChecked;
    } else return isChecked && /^(throw|raise|return;?$|\})/.test(line);
    return true;
  });
}

/** Whether a word is another one with `un`, `dis` or `de` before it. */
const undoes = (word: string, others: readonly string[]): boolean =>
  others.some((other) => other.length > 2 && ['un', 'dis', 'de'].some((prefix) => word === prefix + other));

/**
 * The name before a function that is assigned or the value of a property: `a.b = function (`, `b: T = (`,
 * `'b': (`, `a.b = c.b || function (`.
 */
const ASSIGNED = new RegExp(
  `^(?:(?:export|default|public|private|protected|static|readonly|override)\\s+)*(?:[\\w$]+\\.)*['"]?([\\w$]+)['"]?` +
    '\\s*(?::[^=(]*)?[=:]\\s*(?:[\\w$.]+\\s*(?:\\|\\||\\?\\?)\\s*)?(?:async\\s*)?(?:function\\b|\\(|[\\w$]+\\s*=>)',
);
const NO_NAME = /^(if|for|while|switch|catch|match|with|elif|function|return|await|assert|raise|throw)$/;

export function nameIn(header: string): string | undefined {
  const plain = withoutReceiver(header);
  const name = (/\b(?:const|let|var|def|function\*?|fn|func)\s+([\w$]+)/.exec(plain) ??
    ASSIGNED.exec(plain) ??
    /([\w$]+)\s*(?:<[^()]*>)?\(/.exec(plain))?.[1];
  return name === undefined || NO_NAME.test(name) ? undefined : name;
}

/** The words of all names in a text, in small letters. */
export const allWords = (name: string): string[] =>
  (name.match(/\p{Lu}?\p{Ll}+|\p{Lu}+(?!\p{Ll})/gu) ?? []).map((word) => word.toLowerCase());

/** The words that tell what a name is about. */
export const nameWords = (name: string): string[] => allWords(name).filter((word) => !GENERAL.has(word));

export const isCallback = (line: string): boolean => CALLBACK.test(line) && !DECLARES.test(line);
