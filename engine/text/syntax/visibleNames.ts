/**
 * Finds names in new text that only another function or another file declares. Code that is copied from there does not
 * fit. Knows only some names of the language: a name that is declared nowhere may be used.
 */
import { isBrowserName } from './browserNames.ts';
import { isLetter, linesWith, occurrences } from './occurrences.ts';
import type { Scope, Scopes } from './scopes.ts';

/** Languages whose declarations are all read. In others a field is used like a variable. */
const READ = /^(javascript|typescript|tsx|python|go)$/;
const NAME = /[\p{L}_$][\p{L}\p{N}_$]*/gu;
/** Names of languages, browsers and test runners that a function may also declare. */
const KNOWN = new Set(
  `document window navigator location history localStorage event name expect test it describe vi jest beforeEach
   afterEach exports module require arguments abs all any ascii bin bool bytes callable chr cmp compile complex dict dir
   divmod enumerate eval exec file filter float format frozenset getattr globals hasattr hash help hex id input int
   isinstance issubclass iter len list locals map max memoryview min next object oct open ord pow print property range
   repr reversed round set setattr slice sorted str sum super tuple type vars zip append cap clear close copy delete
   error iota make new nil panic println real recover string true false`.split(/\s+/),
);

/** Rules of Python that may become a comprehension while they have one part. */
const SINGLE = /^(list|set|dictionary|parenthesized_expression|argument_list)$/;
/** What stands around a parameter if the tree takes it for a value. */
const PATTERNS = /^(sequence_expression|object|array|pair|assignment_expression|spread_element)$/;
/** A line with names alone. It may belong to a list of exports. */
const LISTED = /^\s*(?:(?:type )?[\w$]+(?: as [\w$]+)?(?:,\s*|\s*(?=\}|$)))+(?:\}.*)?$/;
/** Exceptions of Python. */
const EXCEPTION =
  /^(?:[A-Z]\w*(?:Error|Warning)|(?:Base)?Exception(?:Group)?|KeyboardInterrupt|Stop(?:Async)?Iteration)$/;

/** What gives `this` a value or a type inside it: functions but those with an arrow, classes, and members of interfaces. */
const GIVES_THIS = /^(function|generator_function|method_definition|class|\w*_signature|type_predicate|ERROR)/;
const MODULE = /^(?:import|export)\b/m;

/** A file with new text at [start, end), and what is known around it. */
export interface NewText {
  scopes: Scopes;
  grammar: string;
  /** Of the file, with the new text. */
  text: string;
  start: number;
  end: number;
  /** Texts of other files. */
  others: readonly string[];
}

/** The names that new text uses and that are declared, but not visible there. */
export function invisibleNames({ scopes, grammar, text, start, end, others }: NewText): string[] {
  if (!READ.test(grammar)) return [];
  const isPython = grammar === 'python';
  const isScript = grammar !== 'python' && grammar !== 'go';
  const checked = new Set<string>();
  // The new text may complete a word.
  let from = start;
  while (isLetter(text[from - 1])) from--;
  return [...text.slice(from, end).matchAll(NAME)].flatMap(({ 0: name, index }) => {
    const at = from + index;
    if (isScript && name === 'this' && hasNoThis(scopes, text, at)) return [name];
    if (checked.has(name) || KNOWN.has(name) || EXCEPTION.test(name) || name in globalThis) return [];
    if (isScript && isBrowserName(name)) return [];
    const use = scopes.at(at);
    if (!use.isName) return [];
    checked.add(name);
    // In unfinished code nothing tells a declaration from a use.
    if (use.declares || use.isBroken || bindsHere(text, at, name) || mayBeBound(scopes, at, end, isPython)) return [];
    const isVisible = isVisibleAt({ scopes, text, isPython }, use, name, (place) => place >= from && place < end, at);
    return isVisible === false ||
      (isVisible === undefined && (isLocalOf(others, name) || (!isPython && isPrivateOf(others, name))))
      ? [name]
      : [];
  });
}

/** Whether `this` is undefined at an offset: in a module, in no class and in no function but those with an arrow. */
function hasNoThis(scopes: Scopes, text: string, at: number): boolean {
  const found = scopes.nodeAt(at);
  if (found?.type !== 'this' || !MODULE.test(text)) return false;
  for (let node = found.parent; node; node = node.parent) if (GIVES_THIS.test(node.type)) return false;
  return true;
}

/** Whether the line at a name imports or binds names in a way that the tree does not tell. */
function bindsHere(text: string, at: number, name: string): boolean {
  const start = text.lastIndexOf('\n', at - 1) + 1;
  const line = text.slice(start, text.indexOf('\n', at) + 1 || undefined);
  if (/^\s*(import|export|from|global|nonlocal|case|type)\b|\bimport\(|\bas\s*\(|:=/.test(line)) return true;
  // The field of a class or structure, or an assignment outside of functions.
  return new RegExp(`^\\s*${name.replaceAll('$', '\\$')}\\s*[:=]`).test(line) || /\bfor\b|\bcatch\b/.test(line);
}

/**
 * Whether what follows an unfinished text may make a name a key, or bind it: with brackets that become those of an arrow
 * function or of a comprehension.
 */
function mayBeBound(scopes: Scopes, at: number, end: number, isPython: boolean): boolean {
  const name = scopes.nodeAt(at);
  const mayBeKey = name?.type.startsWith('shorthand') || (isPython && name?.parent?.type === 'argument_list');
  if (mayBeKey && name?.endIndex === end) return true;
  let isPattern = !isPython;
  for (let node = name; node?.parent; node = node.parent) {
    const { type, endIndex, namedChildCount, parent } = node.parent;
    if (endIndex > end && isPython && SINGLE.test(type) && namedChildCount === 1) return true;
    if (endIndex > end && isPattern && (type.startsWith('parenthesized') || parent?.firstChild?.text === 'async'))
      return true;
    isPattern &&= PATTERNS.test(type);
  }
  return false;
}

/** Undefined if no old text has the name. `isNew`: whether a place is in the new text. */
function isVisibleAt(
  { scopes, text, isPython }: { scopes: Scopes; text: string; isPython: boolean },
  use: Scope,
  name: string,
  isNew: (at: number) => boolean,
  near: number,
): boolean | undefined {
  const places = occurrences(text, name);
  if (places === undefined) return true;
  const [first, ...further] = places;
  const above = further.filter((at) => at < near).reverse();
  const old: Scope[] = [];
  const declaring = new Set<number>();
  // An import comes first, a parameter right above.
  for (const at of [...(first === undefined ? [] : [first]), ...above, ...further.filter((place) => place >= near)]) {
    const scope = scopes.at(at);
    if (!scope.isName) {
      // The last part of an imported path, as in Go.
      if (/["/]$/.test(text.slice(Math.max(0, at - 1), at)) && text[at + name.length] === '"') return true;
      continue;
    }
    const inner = scope.functions.at(-1);
    if (scope.declares && inner === undefined) return true;
    if (scope.declares && inner !== undefined) {
      if (use.functions.includes(inner)) return true;
      declaring.add(inner);
    }
    if (isNew(at)) continue;
    // An import, or a name of the file. What the tree says to be a function's own is not the file's.
    if (inner === undefined || scope.isBroken) return true;
    if (isPython && !scope.declares && bindsHere(text, at, name)) return true;
    old.push(scope);
  }
  if (old.length === 0) return undefined;
  // Used where no function declares it: a name of the language or of a library.
  return old.some(({ functions }) => !functions.some((at) => declaring.has(at)));
}

/** Whether other files have a name, as a variable or parameter of their functions only. */
function isLocalOf(others: readonly string[], name: string): boolean {
  const word = name.replaceAll('$', '\\$');
  const variable = new RegExp(
    `^\\s+(const|let|var)\\s+(${word}(?![\\w$])|[\\[{][^=]*(?<![\\w$:])${word}(?![\\w$])[^=]*[\\]}]\\s*=)`,
  );
  const assigned = new RegExp(`^\\s+([\\w ]+, *)*${word} *(, *[\\w ]+)*(:=|=(?!=))`);
  const noHeader = '(?!\\s*(?:except|if|elif|while|with|return|assert)\\b)';
  const parameter = new RegExp(`^${noHeader}.*[(,] *(\\*{1,2})?${word} *([:?=][^(),]*)?[,)].*(\\{|=>|:)\\s*$`);
  // At the beginning of a line it belongs to the file, and a definition may be imported.
  const whole = `(?<![\\w$.])${word}(?![\\w$])`;
  const ofFile = new RegExp(
    `^\\S.*${whole}|\\b(interface|type|class|function|func|def|enum|namespace|import|from)\\b.*${whole}`,
  );
  const lines = others.flatMap((text) => linesWith(text, name));
  const isLocal = (line: string): boolean => variable.test(line) || assigned.test(line) || parameter.test(line);
  return lines.some(isLocal) && !lines.some((line) => ofFile.test(line) && !parameter.test(line));
}

/** Whether one other module has a name outside of functions and does not export it. Several may follow a habit. */
function isPrivateOf(others: readonly string[], name: string): boolean {
  const word = `${name.replaceAll('$', '\\$')}(?![\\w$])`;
  const declared = new RegExp(`^(?:const|let|var|(?:async )?function\\*?|class) ${word}`);
  const known = new RegExp(`\\b(?:export|exports|import|require|declare|global\\w*|window|self|document)\\b.*${word}`);
  const modules = others.filter((text) => text.includes(name));
  const lines = modules.map((text) => linesWith(text, name));
  if (lines.filter((some) => some.some((line) => declared.test(line))).length !== 1) return false;
  return (
    !lines.flat().some((line) => known.test(line) || LISTED.test(line)) &&
    modules.every((text) => /^(?:import|export)\b/m.test(text))
  );
}
