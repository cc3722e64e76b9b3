/**
 * Finds members in new text that their object does not have, where the file tells what the object is: a literal, a
 * declared type, a class of the file. The name must be declared once. In doubt finds nothing.
 */
import { linesWith, occurrences } from './occurrences.ts';
import type { Scopes } from './scopes.ts';
import type { NewText } from './visibleNames.ts';

/** Methods of Python's types, by `dir` of Python 3.11 without names that begin with an underscore. */
const PYTHON: Readonly<Record<string, string>> = {
  list: 'append clear copy count extend index insert pop remove reverse sort',
  dict: 'clear copy fromkeys get items keys pop popitem setdefault update values',
  set:
    'add clear copy difference difference_update discard intersection intersection_update isdisjoint issubset ' +
    'issuperset pop remove symmetric_difference symmetric_difference_update union update',
  str:
    'capitalize casefold center count encode endswith expandtabs find format format_map index isalnum isalpha isascii ' +
    'isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip ' +
    'maketrans partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split ' +
    'splitlines startswith strip swapcase title translate upper zfill',
};
const PYTHON_NAMES: Readonly<Record<string, string>> = { List: 'list', Dict: 'dict', Set: 'set' };
const SCRIPT_NAMES: Readonly<Record<string, string>> = {
  string: 'String',
  ReadonlyArray: 'Array',
  ReadonlyMap: 'Map',
  ReadonlySet: 'Set',
};
/** Their members are known, because this program runs in the same language. */
const SCRIPT_TYPES = new Set(['Array', 'Map', 'Set', 'String']);
const MEMBER = /(?<![\p{L}\p{N}_$)\].?])([\p{L}_$][\p{L}\p{N}_$]*)\??\.([\p{L}_$][\p{L}\p{N}_$]*)/gu;
/** What stands behind a name that is written or declared. */
const WRITTEN = /^\s*(=(?![=>])|:(?!:)|[-+*/|&?]{1,2}=|,[^()]*=(?!=))/;

/** Members in new text that their object does not have, as `object.member`. */
export function unknownMembers({ scopes, grammar, text, start, end, others }: NewText): string[] {
  const isScript = /^(javascript|typescript|tsx)$/.test(grammar);
  if (!isScript && grammar !== 'python') return [];
  // The object may be before the new text.
  const from = text.lastIndexOf('\n', start - 1) + 1;
  return [...text.slice(from, end).matchAll(MEMBER)].flatMap(({ 0: whole, 1: object = '', 2: member = '', index }) => {
    const at = from + index;
    const use = at + whole.length <= start ? undefined : scopes.at(at);
    if (!use?.isName || use.isBroken || WRITTEN.test(text.slice(at + whole.length, end + 20))) return [];
    const declared = declarationOf(scopes, text, object, use.functions, isScript);
    if (declared === undefined) return [];
    const type = isScript ? scriptType(declared) : pythonType(declared);
    const has =
      type === undefined ? undefined : membersOf(type, isScript, text.slice(0, start) + text.slice(end), others);
    return has?.(member) === false ? [`${object}.${member}`] : [];
  });
}

/** What stands behind the only declaration of a name; undefined if there are more, or it is not visible. */
function declarationOf(
  scopes: Scopes,
  text: string,
  name: string,
  functions: readonly number[],
  isScript: boolean,
): string | undefined {
  const places = occurrences(text, name);
  if (places === undefined) return undefined;
  // In Python the name of a type may be used as an object.
  if (!isScript && PYTHON[name] !== undefined && !places.some((at) => scopes.at(at).declares)) return `: ${name}\n`;
  let found: string | undefined;
  for (const at of places) {
    const scope = scopes.at(at);
    if (!scope.isName) continue;
    const behind = text.slice(at + name.length, text.indexOf('\n', at) + 1 || undefined).slice(0, 300);
    const line = text.slice(text.lastIndexOf('\n', at - 1) + 1, at);
    const isWritten =
      scope.declares ||
      WRITTEN.test(behind) ||
      /\b(import|from|as|case|class|def|catch)\b[^=]*$|\bfor\b(?!.*\b(in|of)\b)[^=]*$/.test(line);
    // A colon also ends the head of a block, or a key.
    const isColon = /^\s*:/.test(behind) && !scope.declares;
    if (!isWritten || (isColon && (isScript || !/(^|[(,])\s*$/.test(line)))) continue;
    const inner = scope.functions.at(-1);
    const isVisible = inner === undefined || functions.includes(inner);
    // Parts of patterns, and names that are written twice, may be anything.
    if (found !== undefined || !isVisible || !/(^|[(,]|\b(const|let|var|readonly|public|private))\s*$/.test(line))
      return undefined;
    found = behind;
  }
  return found;
}

/** @param behind what follows the declared name */
function scriptType(behind: string): string | undefined {
  const [, type, value] =
    /^\??\s*(?::\s*([\w$]+(?:<[^;(){}=|&]*>)?(?:\[\])*)\s*(?=[,)=;\n]))?\s*(?:=\s*([^;\n]*))?/.exec(behind) ?? [];
  if (type !== undefined) {
    if (type.endsWith('[]')) return 'Array';
    const name = /^[\w$]+/.exec(type)?.[0] ?? '';
    return SCRIPT_NAMES[name] ?? name;
  }
  if (value === undefined || /^\s*:/.test(behind)) return undefined;
  if (/^\[[^\]]*\]$/.test(value)) return 'Array';
  if (/^(['"`])[^'"`]*\1$/.test(value)) return 'String';
  return /^new\s+([\w$]+)(?:<[^()]*>)?\([^()]*\)$/.exec(value)?.[1];
}

function pythonType(behind: string): string | undefined {
  const [, type, value = ''] =
    /^\s*(?::\s*(\w+)(?:\[[^\n\]|]*\])?\s*(?=[,)=\n]))?\s*(?:=(?!=)\s*([^\n]*))?/.exec(behind) ?? [];
  if (type !== undefined) return PYTHON_NAMES[type] ?? type;
  if (/^\s*:/.test(behind)) return undefined;
  if (/^\[[^\]]*\]$/.test(value)) return 'list';
  if (value === '{}') return 'dict';
  if (/^[rRuU]?(['"])[^'"]*\1$/.test(value)) return 'str';
  return /^(\w+)\([^()]*\)$/.exec(value)?.[1];
}

/** Whether a type has a member. Undefined for a type that is not known, or that may have more. */
function membersOf(
  type: string,
  isScript: boolean,
  text: string,
  others: readonly string[],
): ((member: string) => boolean) | undefined {
  const isExtended = (other: string): boolean =>
    linesWith(other, type).some((line) =>
      /\bimport\b|\bfrom\b|\bdeclare\b|\binterface\b|\bsetattr\b|prototype|\bassign\b|__dict__/.test(line),
    );
  if (isExtended(text) || (isScript && others.some((other) => other.includes(`${type}.prototype.`)))) return undefined;
  const header = linesWith(text, type).filter((line) =>
    new RegExp(`^\\s*(export |default )*class\\s+${type}\\b`).test(line),
  );
  if (header.length === 0) {
    if (!isScript && PYTHON[type] !== undefined) {
      const names = new Set(PYTHON[type].split(' '));
      return (member) => names.has(member) || member.startsWith('__');
    }
    if (!isScript || !SCRIPT_TYPES.has(type)) return undefined;
    const { prototype } = (globalThis as unknown as Record<string, { prototype: object }>)[type] as {
      prototype: object;
    };
    return (member) => member in prototype;
  }
  const [line] = header as [string];
  const isPlain = isScript ? /class\s+[\w$]+(<[\w, ]+>)?\s*\{$/ : /class\s+\w+(\((object)?\))?:$/;
  const at = text.indexOf(line);
  if (header.length > 1 || !isPlain.test(line.trimEnd()) || /@[^\n]*\n\s*$/.test(text.slice(Math.max(0, at - 200), at)))
    return undefined;
  const body = bodyAt(text, at, /^\s*/.exec(line)?.[0] ?? '');
  // A class that answers for any name.
  if (/__getattr|__slots__|__dict__|setattr|\[\w+:\s*string\]|Proxy|assign/.test(body)) return undefined;
  const names = new Set(body.match(/[\p{L}_$][\p{L}\p{N}_$]*/gu));
  const isWrittenOutside = (member: string): boolean => new RegExp(`\\b\\w+\\.${member}\\s*=(?!=)`).test(text);
  return (member) =>
    names.has(member) || member.startsWith('__') || member in Object.prototype || isWrittenOutside(member);
}

/** The lines of a class: up to the first one that is not indented more. */
function bodyAt(text: string, start: number, indent: string): string {
  const lines = text.slice(start).split('\n');
  const end = lines.findIndex(
    (line, i) => i > 0 && /^\s*[}\w@]/.test(line) && !line.startsWith(`${indent} `) && !line.startsWith(`${indent}\t`),
  );
  return lines.slice(0, end < 0 ? undefined : end).join('\n');
}
