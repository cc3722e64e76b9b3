/**
 * Finds names in new text that only another function or another file declares. Code that is copied from there does not
 * fit. Does not know what a library or the language declares: a name that is declared nowhere may be used.
 */
import type { Scope, Scopes } from './scopes.ts';

/** A name that occurs more often is taken as visible. */
const MAX_OCCURRENCES = 100;

/**
 * The names that new text at [start, end) uses and that are declared, but not visible there.
 * @param text with the new text
 * @param others texts of other files
 */
export function invisibleNames(
  scopes: Scopes,
  text: string,
  start: number,
  end: number,
  others: readonly string[],
): string[] {
  const checked = new Set<string>();
  // The new text may complete a word.
  let from = start;
  while (isLetter(text[from - 1])) from--;
  return [...text.slice(from, end).matchAll(NAME)].flatMap(({ 0: name, index }) => {
    const use = checked.has(name) ? undefined : scopes.at(from + index);
    if (!use?.isName) return [];
    checked.add(name);
    const isVisible = isVisibleAt(scopes, use, occurrences(text, name, start), (at) => at >= from && at < end);
    return isVisible === false || (isVisible === undefined && isLocalOf(others, name)) ? [name] : [];
  });
}

/** Undefined if no old text has the name. `isNew`: whether a place is in the new text. */
function isVisibleAt(
  scopes: Scopes,
  use: Scope,
  places: readonly number[],
  isNew: (at: number) => boolean,
): boolean | undefined {
  if (places.length >= MAX_OCCURRENCES) return true;
  const old: Scope[] = [];
  const declaring = new Set<number>();
  for (const at of places) {
    const scope = scopes.at(at);
    if (!scope.isName) continue;
    const inner = scope.functions.at(-1);
    if (scope.declares && inner !== undefined) {
      if (use.functions.includes(inner)) return true;
      declaring.add(inner);
    }
    if (isNew(at)) continue;
    // An import, or a name of the file.
    if (inner === undefined) return true;
    old.push(scope);
  }
  if (old.length === 0) return undefined;
  // Used where no function declares it: a name of the language or of a library.
  return old.some(({ functions }) => !functions.some((at) => declaring.has(at)));
}

const NAME = /[\p{L}_$][\p{L}\p{N}_$]*/gu;

/** Offsets of a whole word, at most MAX_OCCURRENCES: the first one, the others before `near` from there up, the rest. */
function occurrences(text: string, name: string, near: number): number[] {
  const found: number[] = [];
  for (let at = text.indexOf(name); at >= 0 && found.length < MAX_OCCURRENCES; at = text.indexOf(name, at + 1))
    if (!isLetter(text[at - 1]) && !isLetter(text[at + name.length])) found.push(at);
  const [first, ...further] = found;
  const above = further.filter((at) => at < near).reverse();
  return first === undefined ? [] : [first, ...above, ...further.filter((at) => at >= near)];
}

const isLetter = (character: string | undefined): boolean =>
  character !== undefined && /[\p{L}\p{N}_$]/u.test(character);

/** Whether other files have a name, as a variable or parameter of their functions only. */
function isLocalOf(others: readonly string[], name: string): boolean {
  const withName = others.filter((text) => text.includes(name));
  if (withName.length === 0 || !/^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(name)) return false;
  const word = `(?<![\\p{L}\\p{N}_$.])${name.replaceAll('$', '\\$')}(?![\\p{L}\\p{N}_$])`;
  const declared = new RegExp(
    [
      `^[ \\t]+.*\\b(const|let|var|val|auto|mut|for)\\b[^=;\\n]*${word}`,
      `^[ \\t]+([\\w ,]*, *)?${word}[\\w ,]*(:=|=(?!=))`,
      `[(,] *(\\.{3}|\\*{1,2})?${word} *([:?=][^(),\\n]*)?[,)].*(\\{|=>|:|->)[ \\t]*$`,
    ].join('|'),
    'mu',
  );
  // At the beginning of a line it belongs to the file, also in an import or as a name that others may import.
  const ofFile = new RegExp(`^(\\S.*\\b(const|let|var|import|use|from|include)\\b.*${word}|${word} *[:=])`, 'mu');
  return withName.some((text) => declared.test(text)) && !withName.some((text) => ofFile.test(text));
}
