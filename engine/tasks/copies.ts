/**
 * Judges lines that stand elsewhere word for word: whether a comment says what another one says, and whether code is
 * that of another function. Reads lines. Knows no tree.
 */
import { type CopiedFrom, headerAbove, isBlockEnd, isComment, placesOf } from '../text/copy/copiedLines.ts';
import {
  allWords,
  areAlike,
  areOpposite,
  haveOtherTypes,
  isPreparation,
  nameIn,
  nameWords,
  parametersIn,
} from './alike.ts';

/** A comment or line with fewer words may be equal by chance. */
const MIN_WORDS = 3;
/** Other files in which a comment is usual. */
const MIN_FILES = 2;
/** Lines that are a copy if they follow each other at one other place. */
const MIN_RUN = 3;
/** Lines that a function of another name may have in common, and then goes on in its own way. */
const MAX_ALIKE = 4;
/** A text between quotes with so many words is a sentence. */
const MIN_SENTENCE = 5;
/** Methods that many classes have, each for its own members. */
const USUAL = /^(__(?!init|new|post_init|call|enter|exit)\w+__|toString|toJSON|valueOf|inspect)$/;
/** Each class has its own, and sets its own members there. */
const MAKER = /^(constructor|__init__)$/;
const CLASS =
  /^[ \t]*(?:[^'"`\n]*=\s*)?(?:(?:export|default|abstract|declare|final|public|private)\s+)*class\s+([\w$]+)/gm;
const GUARD = /^(if|unless|guard|assert)\b/;
const DIRECTIVE =
  /@\w|\b(disable|enable|noqa|ignore|pylint|pragma|copyright|licensed?|governed|spdx|safety)\b|:$|^[:>]/i;

/** Whether line `i` is a comment, or text of a docstring that the lines above it open. */
export function isProse(lines: readonly string[], i: number): boolean {
  const above = lines.slice(0, i).join('\n');
  const opened = ['"""', "'''"].some((quote) => above.split(quote).length % 2 === 0);
  return opened || isComment((lines[i] as string).trim());
}

/** Whether a comment says what another one says. Tags, directives and licenses are the same everywhere. */
export function isCopiedProse(line: string, texts: readonly string[], header: string | undefined): boolean {
  if (wordsIn(line) < MIN_WORDS || DIRECTIVE.test(line)) return false;
  const name = header && nameIn(header);
  // A function of the same name, as in another class, is described alike.
  const places = placesOf([line], texts).filter(
    ({ text, at }) => name === undefined || nameIn(headerAbove(text, at) ?? '') !== name,
  );
  const isHere = places.some(({ text }) => text === texts[0] || text === texts[1]);
  // A text that several other files share is usual, for example a license.
  return places.length > 0 && (isHere || new Set(places.map(({ text }) => text)).size < MIN_FILES);
}

/** Whether a comment begins with the name of what stands below it, as in Go. */
export function isAbout(line: string, below: string): boolean {
  const name = /[\p{L}_$][\p{L}\p{N}_$]{2,}/u.exec(line)?.[0];
  const [next = ''] = below.trimStart().split('\n', 1);
  return name !== undefined && hasWord(next, name);
}

const wordsIn = (line: string): number => line.match(/\p{L}{2,}/gu)?.length ?? 0;

/** Whether lines up to `i` are the lines of one other function, whose name is about something else. */
export function isForeign(lines: readonly string[], i: number, header: string, texts: readonly string[]): boolean {
  const line = (lines[i] as string).trim();
  if (/^[)\]}]+[;,]?$/.test(line)) return false;
  const code = lines
    .slice(0, i + 1)
    .map((text) => text.trim())
    .filter((text) => text !== '');
  const whole = placesOf(code, texts);
  // A copy may begin with a line of the model's own.
  const places = whole.length > 0 || code.length < MIN_RUN ? whole : placesOf(code.slice(-MIN_RUN), texts);
  // What several functions have is usual here. A copy of a file is no other function.
  const headers = new Set(places.map(({ text, at }, n) => headerAbove(text, at) ?? n));
  if (headers.size !== 1) return false;
  const [{ text, at }] = places as [CopiedFrom];
  const other = headerAbove(text, at);
  if (hasStrangeMember(line, places, texts)) return true;
  // A function of this name on another object.
  if (other !== undefined && haveOtherTypes(line, header, other, /^this$/)) return true;
  if (setsAnotherClass(line, header, texts)) return true;
  const otherName = other && nameIn(other);
  const isNamedOtherwise = otherName !== undefined && otherName !== nameIn(header);
  if (isNamedOtherwise && usesItself(line, header, texts) && !recurs(code, header)) return true;
  const isUsual = places.length === 1 && USUAL.test(nameIn(header) ?? '');
  const isOpposite = other !== undefined && areOpposite(header, other);
  if (other !== undefined && !isOpposite && !isUsual && areAlike(header, other))
    return isNamedOtherwise && (code.length > MAX_ALIKE || isAboutName(line, otherName, header));
  if (isOpposite && isPreparation(code, header)) return false;
  // A condition for doing something is mostly wrong for undoing it.
  if (code.length > 1 || (isOpposite && GUARD.test(line))) return true;
  if (wordsIn(line) < MIN_WORDS) return false;
  if (other !== undefined && haveOtherTypes(line, header, other)) return true;
  const endsThere = other !== undefined && isBlockEnd(text, at);
  return endsThere || !parametersIn(header).some((name) => hasWord(line, name));
}

/**
 * Whether a line of another function calls or makes what is written here. There it is no recursion. A method of this name
 * on another object is another function.
 */
function usesItself(line: string, header: string, [above = '']: readonly string[]): boolean {
  const own = MAKER.test(nameIn(header) ?? '') ? [...above.matchAll(CLASS)].at(-1)?.[1] : nameIn(header);
  if (own === undefined) return false;
  const word = own.replaceAll('$', '\\$');
  const isOwn = '(?<![\\p{L}\\p{N}_$])(?<!(?<!\\b(?:this|self|cls))(?:\\.|->|::))';
  return new RegExp(`${isOwn}${word}\\(|<${word}(?![\\p{L}\\p{N}_$])`, 'u').test(line);
}

/** Whether the last line calls this function for a part of what it is given: for a member, or for what a loop goes over. */
function recurs(code: readonly string[], header: string): boolean {
  const [name = '', parameters] = [nameIn(header), parametersIn(header)];
  const [, object = '', member] =
    new RegExp(`(?<![\\w$])${name.replaceAll('$', '\\$')}\\(([\\w$]+)(\\??[.[])?`).exec(code.at(-1)!) ?? [];
  if (parameters.includes(object)) return member !== undefined;
  const isLoop = (line: string): boolean => /^for\b|=>/.test(line) && hasWord(line, object);
  return object !== '' && code.some((line) => isLoop(line) && parameters.some((each) => hasWord(line, each)));
}

/** Whether a line has a name about what another function is named for, and this one is not. */
function isAboutName(line: string, otherName: string, header: string): boolean {
  const stem = (word: string): string => word.replace(/(?<=..)s$/, '');
  const here = allWords(header).map(stem);
  const only = nameWords(otherName).filter((word) => !here.includes(stem(word)));
  return allWords(line).some((word) => only.some((one) => stem(one) === stem(word)));
}

/**
 * Whether a copied line of a constructor says what another class is: it sets a member to a text, or one that this file
 * does not name, and uses no parameter.
 */
function setsAnotherClass(line: string, header: string, [above = '', below = '']: readonly string[]): boolean {
  if (!MAKER.test(nameIn(header) ?? '')) return false;
  const [, member, value] = /^(?:this|self)\.([\w$#]+)\s*=(?!=)\s*(.+?);?$/.exec(line) ?? [];
  if (member === undefined || value === undefined || parametersIn(header).some((name) => hasWord(value, name)))
    return false;
  return /^(['"`])[^'"`]*\p{L}[^'"`]*\1$/u.test(value) || !(hasWord(above, member) || hasWord(below, member));
}

/** Whether a line of one other file uses a member of its own object that this file does not name. */
function hasStrangeMember(line: string, places: readonly CopiedFrom[], texts: readonly string[]): boolean {
  const [above = '', below = '', ...others] = texts;
  if (places.some(({ text }) => text === above || text === below)) return false;
  return [...line.matchAll(/\b(?:this|self|cls)\.(#?[\p{L}_$][\p{L}\p{N}_$]*)/gu)].some(
    ([, name = '']) =>
      !above.includes(name) && !below.includes(name) && others.filter((text) => text.includes(name)).length < MIN_FILES,
  );
}

/**
 * Whether a line has a sentence between quotes that stands in one other file, as the message of another error. A function
 * of the same name may say the same.
 */
export function hasCopiedSentence(line: string, header: string, texts: readonly string[]): boolean {
  const [above = '', below = '', ...others] = texts;
  return [...line.matchAll(/(['"`])([^'"`\n]+)\1/g)].some(([sentence, , text = '']) => {
    if (wordsIn(text) < MIN_SENTENCE || above.includes(sentence) || below.includes(sentence)) return false;
    const [only, ...more] = others.filter((other) => other.includes(sentence));
    if (only === undefined || more.length > 0) return false;
    const name = nameIn(header);
    return name === undefined || !only.includes(`${name}(`);
  });
}

/** Whether a line of a function begins the same function, or declares what the file has outside of functions. */
export function repeatsOutside(line: string, header: string, lf: string): boolean {
  if (line === header && !line.startsWith('.')) return true;
  return (
    /^(const|let|var)\s.*;$/.test(line) && [line, `export ${line}`].some((one) => `\n${lf}`.includes(`\n${one}\n`))
  );
}

/** Whether a statement of a function calls the same function, with the same arguments. That never ends. */
export function callsItself(line: string, header: string): boolean {
  const name = nameIn(header);
  // A method may call a function of its name.
  if (name === undefined || !/\b(function|def|fn|func)\b|=>/.test(header) || /\b(self|cls|this)\b/.test(header))
    return false;
  const parameters = /\(([^()]*)\)/.exec(header)?.[1]?.split(',') ?? [];
  const names = parameters.map((one) => /[\p{L}_$][\p{L}\p{N}_$]*/u.exec(one)?.[0] ?? '');
  const call = `${name}(${names.join(', ')})`;
  const at = line.indexOf(call);
  return at >= 0 && !/[\w$.]$/.test(line.slice(0, at)) && !/^(if|for|while|unless)\b|[?|&]|=>|\blambda\b/.test(line);
}

const hasWord = (line: string, word: string): boolean => line.split(/[^\p{L}\p{N}_$]+/u).includes(word);
