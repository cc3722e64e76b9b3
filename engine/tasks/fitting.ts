/**
 * Decides where a completion stops to fit its place. Small models copy: a body with names that do not exist here, or a
 * comment or declaration that stands elsewhere in the file. Reads whole lines. Runs nothing.
 */
import { MAX_COPIED } from '../protocol/tasks.ts';
import type { SourceDocument } from '../text/syntax/sourceDocument.ts';
import { headerAbove, headerBefore, placesOf } from '../text/copy/copiedLines.ts';
import { type Scope, Scopes } from '../text/syntax/scopes.ts';
import type { PlaceSyntax } from '../text/syntax/syntax.ts';
import { isWrongImport, type KnownFolders } from '../text/syntax/importedModules.ts';
import { isMissingPath } from '../text/syntax/importedPaths.ts';
import { unknownMembers } from '../text/syntax/memberNames.ts';
import { grammarFor } from '../text/syntax/syntaxTrees.ts';
import { invisibleNames } from '../text/syntax/visibleNames.ts';
import { isCallback, nameIn } from './alike.ts';
import {
  callsItself,
  hasCopiedSentence,
  isAbout,
  isCopiedProse,
  isForeign,
  isProse,
  repeatsOutside,
} from './copies.ts';

/** Longer files are generated, or data. They are not searched. In characters. */
const MAX_SEARCHED = 200_000;
/** The part of a block's header that is read. In characters. */
const MAX_HEADER = 500;
const TYPE = /^(export |default |abstract |public |private |pub )*(class|interface|type|enum|struct|trait)\s+\w/;
const TEST_TITLE = /^(it|test|describe|suite|specify|context)(\.\w+)?\(\s*(['"`]).{3,}\3\s*,/;
/** The header of a function in a language with braces. */
const FUNCTION = /^(?!.*\b(class|interface|object)\b).*\)[^()]*\{$/;
/** The header of a function that has a name. Blocks of control, calls with a block, and macros look alike. */
const NAMED_FUNCTION = [
  /^(?:async\s+)?def\s/,
  /^(?:[\w()]+\s+)*(?:function\*?|func|fun|fn)\s+(?:\([^()]*\)\s*)?\w.*\)[^()]*\{$/,
  /^(?:export\s+)?(?:const|let|var)\s+[\w$]+\s*(?::.*)?=.*=>\s*\{$/,
  // Modifiers or types stand before the name.
  new RegExp(
    '^(?!(?:await|case|const|defer|else|go|guard|let|new|return|throw|using|val|var|yield)\\b)' +
      '(?:[\\w$:.?*&<>,[\\]~]+\\s+)+[*&]*[\\w$:~#]+\\s*\\(.*\\)[^()]*\\{$',
  ),
];
/** Only in scripts: in other languages it may be a call with a block. */
const METHOD = /^(?!(?:if|for|while|switch|catch|with)\b)#?[\w$]+\s*\(.*\)[^()]*\{$/;
/** Where the comment of a whole definition begins, or a line that only such a comment has. */
const DOC = /^(\/\*\*$|(\/\*)?\*+\s*@(param|returns?|private|protected|public|template|memberof|override)\b)/;
const IMPORTS = /\b(import|from|require(_relative)?|mod|vi|jest)\b/;
/** In Rust, what may say where a module is, or that it is not always needed. */
const ATTRIBUTE = /^\s*#\[/;
/** Files with scripts in them. */
const SCRIPTED = /\.(vue|svelte|astro)$/;

export interface Fitting {
  /** The file's text with LF line ends, and the cursor. */
  doc: SourceDocument;
  offset: number;
  place: PlaceSyntax | undefined;
  others: readonly SourceDocument[];
  /** Packages that the project has. Undefined if they are not known. */
  packages: readonly string[] | undefined;
  /** What folders of the project hold. */
  folders?: KnownFolders | undefined;
  /** Whether the user asked for the completion. Then names that are only unlikely may stand in it. */
  isAsked?: boolean;
}

/**
 * Returns a function that finds where the first line begins that does not fit. It returns undefined if all fit, and
 * takes whole lines. A line is judged by the ones before it, so a longer text gives the same result.
 */
export function fits({
  doc,
  offset,
  place,
  others,
  packages,
  folders = {},
  isAsked = false,
}: Fitting): (written: string) => number | undefined {
  const { lf } = doc;
  if (lf.length > MAX_SEARCHED) return () => undefined;
  const texts = others.map((other) => other.lf.slice(0, MAX_SEARCHED));
  const grammar = grammarFor(doc) ?? '';
  const lineStart = lf.lastIndexOf('\n', offset - 1) + 1;
  const before = lf.slice(lineStart, offset);
  const [after = ''] = lf.slice(offset).split('\n', 1);
  const isNewLine = before.trim() === '' && place?.inText !== true;
  const above = (isNewLine ? headerAbove(lf, lineStart) : headerBefore(lf, offset))?.slice(0, MAX_HEADER);
  // Equal lines in other blocks are normal.
  const isBody = above !== undefined && nameIn(above) !== undefined && !above.endsWith('(');
  const header = isBody ? above : undefined;
  // Without the cursor's line.
  const around = [lf.slice(0, lineStart), lf.slice(offset + after.length), ...texts];
  const language = /^(javascript|typescript|tsx)$/.test(grammar) || SCRIPTED.test(doc.fullPath) ? 'script' : grammar;
  const importsWrongly = (head: string, lines: readonly string[], i: number, tail: string): boolean => {
    const added = lines[i] as string;
    if (!IMPORTS.test(head + added) || ATTRIBUTE.test(lines[i - 1] ?? '')) return false;
    const file = doc.fullPath;
    const known = [doc, ...others].map((other) => ({
      path: other.fullPath,
      text: other.lf,
      isCut: other.text.length === MAX_COPIED,
    }));
    const begun = /^\s*\}\s*from\b/.test(head) ? statementAbove(lf, lineStart) : '';
    const isWrong = (written: string): boolean =>
      isWrongImport(grammar, begun + written + tail, file, { others: known, packages, folders }) ||
      isMissingPath(language, { written: begun + written, rest: tail, file, others: known, folders });
    return isWrong(head + added) && !isWrong(head);
  };
  /** Whether line `i` of `lines` fits behind the ones before it. */
  const fitsAt = (lines: readonly string[], i: number, from: number): boolean => {
    const line = (lines[i] as string).trim();
    if (line === '') return true;
    const written = lines.slice(0, i + 1).join('\n');
    const isStart = isNewLine || i > 0;
    // The first line of a function is not the comment of a definition.
    if (i === 0 && isNewLine && header !== undefined && FUNCTION.test(header) && DOC.test(line)) return false;
    // A comment that the user has begun is judged with its beginning and its end.
    const prose = place?.inText ? withEnds(lines, before, after) : lines;
    const comment = (prose[i] as string).trim();
    if ((isStart || place?.inText) && isProse(prose, i))
      return !isCopiedProse(comment, around, header) || isAbout(comment, lf.slice(offset));
    if (isStart && header !== undefined && repeatsOutside(line, header, lf)) return false;
    if (isStart && repeatsDeclaration(doc.lf, offset, lines, i, place)) return false;
    if (i > 0 && repeatsItself([before + (lines[0] as string), ...lines.slice(1, i + 1)], language)) return false;
    const [start, end] = [offset + from, offset + written.length];
    const isUnfit = read(lf, place, written, (scopes, before) => {
      const added = { scopes, grammar, text: scopes.text, start, end, others: texts };
      if (invisibleNames(added).length > 0) return true;
      return unknownMembers({ ...added, before, offset, everywhere: isAsked ? undefined : texts }).length > 0;
    });
    const [head, tail] = [i === 0 ? before : '', i === lines.length - 1 ? after : ''];
    if (importsWrongly(head, lines, i, tail)) return false;
    if (header !== undefined && isFirst(lines, i) && callsItself(line, header)) return false;
    if (header !== undefined && isStart && hasCopiedSentence(line, header, around)) return false;
    return !isUnfit && (header === undefined || !isForeign(lines, i, header, around));
  };
  /** Lines that were found to fit. Each further line is judged once. */
  let known = '';
  return (written) => {
    const lines = written.split('\n');
    const isLonger = known !== '' && written.startsWith(`${known}\n`);
    let from = isLonger ? known.length + 1 : 0;
    for (let i = isLonger ? known.split('\n').length : 0; i < lines.length; i++) {
      if (!fitsAt(lines, i, from)) return from;
      from += (lines[i] as string).length + 1;
    }
    known = written;
    return undefined;
  };
}

/** The lines with what stands before and behind the cursor. */
const withEnds = (lines: readonly string[], before: string, after: string): string[] =>
  lines.map((line, i) => (i === 0 ? before : '') + line + (i === lines.length - 1 ? after : ''));

/** Whether only prose stands above line `i`. */
const isFirst = (lines: readonly string[], i: number): boolean =>
  lines.slice(0, i).every((line, at) => line.trim() === '' || isProse(lines, at));

/** The lines above the end of an import or export on several lines, as one line. */
function statementAbove(lf: string, lineStart: number): string {
  const at = Math.max(lf.lastIndexOf('\nimport ', lineStart - 1) + 1, lf.lastIndexOf('\nexport ', lineStart - 1) + 1);
  const lines = lf.slice(at, lineStart);
  return lines.length > MAX_HEADER || /['"();]/.test(lines) ? '' : lines.replaceAll('\n', ' ');
}

function read<T>(
  lf: string,
  place: PlaceSyntax | undefined,
  written: string,
  reader: (scopes: Scopes, before: Scopes) => T,
): T | undefined {
  return place?.withText(written, (tree, text, old) =>
    Scopes.read(tree, text, (scopes) => Scopes.read(old, lf, (before) => reader(scopes, before))),
  );
}

/** Whether a function, type or test is defined again that stands in the file with the same line. */
function repeatsDeclaration(
  lf: string,
  offset: number,
  lines: readonly string[],
  i: number,
  place: PlaceSyntax | undefined,
): boolean {
  const line = (lines[i] as string).trim();
  const isTest = TEST_TITLE.test(line);
  if (!isTest && !/[{:]$/.test(line)) return false;
  // A function that is an argument has no name.
  if (!isTest && isCallback(line)) return false;
  const opener = openerOf(lf, offset);
  // With an attribute above or another condition around, it is another variant.
  const places = placesOf([line], [lf]).filter(
    ({ at }) => !/^\s*(@|#)/.test(lineBefore(lf, at)) && (isTest || i > 0 || openerOf(lf, at) === opener),
  );
  if (places.length === 0) return false;
  // Inside a class or function that the completion begins there may be another one with this line.
  const indent = lf.slice(lf.lastIndexOf('\n', offset - 1) + 1, offset);
  if (i > 0 && lines[i] !== indent + line) return false;
  const repeats = read(lf, place, '', (scopes) => {
    const here = scopes.at(offset);
    return places.some(({ at }) => {
      const start = lf.indexOf(line, at);
      if (TYPE.test(line)) {
        const other = scopes.at(Math.max(0, start - 1));
        return other.classAt === here.classAt && other.functions.at(-1) === here.functions.at(-1);
      }
      const other = functionOn(scopes, line, start);
      if (!other) return false;
      // A suite inside the one with its title.
      if (isTest && here.functions.includes(other.functions.at(-1) as number)) return true;
      return other.ownerAt === here.classAt && other.functions.at(-2) === here.functions.at(-1);
    });
  });
  return repeats === true;
}

/** Whether the last of these lines begins a function, type or test that begins above in the same block. */
function repeatsItself(lines: readonly string[], language: string): boolean {
  const line = (lines.at(-1) as string).trimEnd();
  const code = line.trimStart();
  const isFunction = NAMED_FUNCTION.some((form) => form.test(code)) || (language === 'script' && METHOD.test(code));
  if (!TEST_TITLE.test(code) && !TYPE.test(code) && (!isFunction || isCallback(code))) return false;
  const depth = line.length - code.length;
  if (isVariant(lines.slice(0, -1), depth)) return false;
  for (let i = lines.length - 2; i >= 0; i--) {
    const above = (lines[i] as string).trimEnd();
    if (above === line) return true;
    if (above !== '' && above.search(/\S/) < depth) return false;
  }
  return false;
}

/** Whether an attribute, decorator or directive stands above a definition. Comments may be between. */
function isVariant(above: readonly string[], depth: number): boolean {
  const line = above.findLast((each) => {
    const at = each.search(/\S/);
    return at >= 0 && at <= depth && !/^\s*(\/[/*]|\*|[)\]]+$)/.test(each);
  });
  return line !== undefined && /^\s*[@#]/.test(line);
}

/** Where the line begins that is above the one at an offset and indented less, or -1. */
function openerOf(text: string, at: number): number {
  let end = at;
  let indent: number | undefined;
  while (end >= 0) {
    const start = end === 0 ? 0 : text.lastIndexOf('\n', end - 1) + 1;
    const line = text.slice(start, end);
    const depth = /^[ \t]*/.exec(line)?.[0].length ?? 0;
    if (indent === undefined) indent = /^[ \t]*/.exec(text.slice(start, start + MAX_HEADER))?.[0].length ?? 0;
    else if (line.trim() !== '' && depth < indent) return start;
    end = start - 1;
  }
  return -1;
}

function lineBefore(text: string, at: number): string {
  return text.slice(text.lastIndexOf('\n', at - 2) + 1, Math.max(0, at - 1));
}

/** The scope inside the function whose header is the line at an offset. */
function functionOn(scopes: Scopes, line: string, at: number): Scope | undefined {
  const inside = scopes.at(at + line.length - 1);
  const opened = inside.functions.at(-1) ?? -1;
  return opened >= at ? inside : undefined;
}
