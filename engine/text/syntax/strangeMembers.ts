/**
 * Finds members in new text that no open text and no object of the language has, of objects that the file makes without
 * anything of a package. In doubt finds nothing.
 */
import { bodyAt, isSelf, MEMBER, membersOf, WRITTEN } from './memberNames.ts';
import { isMemberOfLanguage } from './moduleMembers.ts';
import { linesWith, occurrences } from './occurrences.ts';
import type { NewText } from './visibleNames.ts';

/** Members in new text that no text here and no object of the language has, as `object.member`. */
export function strangeMembers({ scopes, grammar, text, start, end }: NewText, others: readonly string[]): string[] {
  const isScript = /^(javascript|typescript|tsx)$/.test(grammar);
  if (!isScript && grammar !== 'python') return [];
  const from = text.lastIndexOf('\n', start - 1) + 1;
  const old = text.slice(0, start) + text.slice(end);
  return [...text.slice(from, end).matchAll(MEMBER)].flatMap(({ 0: whole, 1: object = '', 2: member = '', index }) => {
    const at = from + index;
    if (at + whole.length <= start || isMemberOfLanguage(member, isScript)) return [];
    const behind = text.slice(at + whole.length, end + 20);
    if (WRITTEN.test(behind) || !(scopes.at(at).isName || isSelf(object, isScript))) return [];
    if (!isOfFile(old, object, isScript) || [old, ...others].some((other) => occurrences(other, member)?.length !== 0))
      return [];
    return [`${object}.${member}`];
  });
}

/** A value that tells what it is made of: `new Name(..)`, `name(..)`, an array or an object in one line. */
const MADE = /^(?:new\s+)?([\p{L}_$][\p{L}\p{N}_$]*)(?:<[^()]*>)?\(([^()]*)\);?$|^[[{].*[\]}];?$/u;
/** Functions that are followed to see what a name is. */
const MAX_DEPTH = 3;

/** Whether a name is only a variable that the functions and classes of the file make, without anything of a package. */
function isOfFile(text: string, name: string, isScript: boolean, depth = 0): boolean {
  const word = name.replaceAll('$', '\\$');
  const lines = linesWith(text, name);
  const parameter = new RegExp(`[(,]\\s*\\W*${word}\\s*[,):=?].*(\\{|=>|:)\\s*$`);
  const assigned = new RegExp(`(?:^|[\\s({])${word}\\s*(?::[^=]+)?=(?![=>])\\s*(.*)$`);
  const values = lines.flatMap(
    (line) =>
      assigned
        .exec(line)?.[1]
        ?.replace(/\s*(\/\/|#).*$/, '')
        .trim() ?? [],
  );
  if (values.length === 0 || lines.some((line) => parameter.test(line) || IMPORTED.test(line))) return false;
  return values.every((value) => isMadeHere(text, value, isScript, depth));
}

const IMPORTED = /\b(import|from|require|await|for|with|as|catch|except)\b/;

function isMadeHere(text: string, value: string, isScript: boolean, depth: number): boolean {
  const made = MADE.exec(value);
  if (!made || depth > MAX_DEPTH || /\.\.\.|\*\*|\bthis\b|\bself\b/.test(value)) return false;
  const [, maker, rest = value] = made;
  const words =
    rest.replace(/(['"`])[^'"`]*\1/g, '').match(/(?<![\p{L}\p{N}_$.])[\p{L}_$][\p{L}\p{N}_$]*(?!\s*:)/gu) ?? [];
  return (
    words.every(
      (word) => /^(true|false|null|undefined|None|True|False)$/.test(word) || isOfFile(text, word, isScript, depth + 1),
    ) &&
    (maker === undefined || isMaker(text, maker, isScript, depth))
  );
}

/** Whether a function or class is the file's own and gives nothing of a package. */
function isMaker(text: string, name: string, isScript: boolean, depth: number): boolean {
  const header = new RegExp(
    `^([ \\t]*)(?:export |default |async )*(?:function|class|def)\\s+${name.replaceAll('$', '\\$')}\\b(.*)$`,
    'gm',
  );
  const [found, ...more] = [...text.matchAll(header)];
  if (!found || more.length > 0 || /\bextends\b|\bclass\b.*\(\w/.test(found[0])) return false;
  if (/^\s*(export |default )*class\b/.test(found[0])) return membersOf(name, isScript, text, []) !== undefined;
  const body = bodyAt(text, found.index, found[1] ?? '');
  // The value of these is made by the language, or by what is above.
  if (/\basync\b|\bfunction\s*\*|\byield\b/.test(body) || /@.*\n$/.test(text.slice(0, found.index))) return false;
  return [...body.matchAll(/\breturn\b\s*(.*)$/gm)].every(([, value = '']) =>
    isMadeHere(text, value.trim(), isScript, depth + 1),
  );
}
