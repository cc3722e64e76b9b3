/**
 * Finds members in new text that their object does not have, where the file tells what the object is: a literal, a
 * declared type, a class of the file. The name must be declared once. In doubt finds nothing.
 */
import { moduleMembers, NEWER } from './moduleMembers.ts';
import { linesWith, occurrences } from './occurrences.ts';
import type { Scope, Scopes } from './scopes.ts';
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
/** An object and its member, in a text. */
export const MEMBER = /(?<![\p{L}\p{N}_$)\].?])([\p{L}_$][\p{L}\p{N}_$]*)\??\.([\p{L}_$][\p{L}\p{N}_$]*)/gu;
/** The object that a method belongs to. */
export const isSelf = (name: string, isScript: boolean): boolean =>
  isScript ? name === 'this' : /^(self|cls)$/.test(name);
/** What stands behind a name that is written or declared. */
export const WRITTEN = /^\s*(=(?![=>])|:(?!:)|[-+*/|&?]{1,2}=|,[^()]*=(?!=))/;

/** Members in new text that their object does not have, as `object.member`. */
export function unknownMembers({ scopes, grammar, text, start, end, others }: NewText): string[] {
  const isScript = /^(javascript|typescript|tsx)$/.test(grammar);
  if (!isScript && grammar !== 'python') return [];
  const old = text.slice(0, start) + text.slice(end);
  // The object may be before the new text.
  const from = text.lastIndexOf('\n', start - 1) + 1;
  return [...text.slice(from, end).matchAll(MEMBER)].flatMap(({ 0: whole, 1: object = '', 2: member = '', index }) => {
    const at = from + index;
    const use = at + whole.length <= start ? undefined : scopes.at(at);
    if (!use || use.isBroken || WRITTEN.test(text.slice(at + whole.length, end + 20))) return [];
    if (isSelf(object, isScript)) {
      const has = ownMembers(scopes, use, { text, old, others, isScript });
      return has?.(member) === false ? [`${object}.${member}`] : [];
    }
    if (!use.isName) return [];
    const isUnknown = moduleMembers(object, old, grammar)?.(member) === false;
    if (isUnknown && !old.includes(`${object}.${member}`) && !isHidden(scopes, text, object, use.functions))
      return [`${object}.${member}`];
    const declared = declarationOf(scopes, text, object, use.functions, isScript);
    if (declared === undefined) return [];
    const type = isScript ? scriptType(declared) : pythonType(declared);
    const has = type === undefined ? undefined : membersOf(type, isScript, old, others);
    return has?.(member) === false ? [`${object}.${member}`] : [];
  });
}

/** Whether a name of the file's own is visible at a place and hides a module or global object. */
function isHidden(scopes: Scopes, text: string, name: string, functions: readonly number[]): boolean {
  return (occurrences(text, name) ?? []).some((at) => {
    const { declares, functions: around } = scopes.at(at);
    const inner = around.at(-1);
    const isModule = /^\s*(=\s*)?require\(/.test(text.slice(at + name.length, at + name.length + 20));
    return declares && !isModule && (inner === undefined || functions.includes(inner));
  });
}

/** What the class around a function has, if it has no other members. */
function ownMembers(
  scopes: Scopes,
  { functions, ownerAt }: Scope,
  { text, old, others, isScript }: { text: string; old: string; others: readonly string[]; isScript: boolean },
): ((member: string) => boolean) | undefined {
  let classAt = ownerAt;
  // Inside functions that have the `this` of the method around them.
  for (let i = functions.length - 1; classAt < 0 && i > 0; i--) {
    if (!isScript || /^(async\s+)?function\b/.test(text.slice(functions[i], (functions[i] ?? 0) + 20)))
      return undefined;
    classAt = scopes.at(functions[i - 1] as number).ownerAt;
  }
  const type =
    classAt < 0 ? undefined : /^(?:abstract\s+)?class\s+([\w$]+)/.exec(text.slice(classAt, classAt + 200))?.[1];
  if (type === undefined || membersOf(type, isScript, old, others) === undefined) return undefined;
  const method = text.slice(functions.at(-1), (functions.at(-1) ?? 0) + 80);
  const isStatic = isScript ? /^[\w\s]*\bstatic\b/.test(method) : /^def\s+\w+\(\s*cls\b/.test(method);
  return (member) => {
    const name = member.replaceAll('$', '\\$');
    const own = (isScript ? scriptMember(name) : pythonMember(name)).join('|');
    const isWritten = `\\w\\.${name}\\s*(?:=(?!=)|[,:][^()\\n]*=(?!=))`;
    return (
      new RegExp(`${own}|${isWritten}`, 'm').test(old) ||
      member.startsWith('__') ||
      member in (isStatic ? Function : Object).prototype ||
      (isStatic && /^(prototype|mro)$/.test(member))
    );
  };
}

/** Patterns of the places where a class or its methods have a member. */
const scriptMember = (name: string): string[] => [
  `\\b(?:this|self)[?!]?\\.${name}(?![\\w$])`,
  // A method or a field, also behind decorators and modifiers.
  `(?:^|;)[ \\t]*(?:@.*\\s)?(?:[a-z]+\\s+)*[*]?${name}\\s*[?!]?\\s*[(:=;<\\n]`,
  // A parameter of the constructor.
  `\\b(?:public|private|protected|readonly|override)\\s+${name}\\b`,
  `['"]${name}['"]`,
];
const pythonMember = (name: string): string[] => [
  `\\b(?:self|cls)\\.${name}\\b`,
  `\\bdef\\s+${name}\\b`,
  // In the body of the class, alone or with others.
  `^[ \\t]+(?:\\w+\\s*[,=]\\s*)*${name}\\s*[:=,]`,
  `['"]${name}['"]`,
];

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
export function membersOf(
  type: string,
  isScript: boolean,
  text: string,
  others: readonly string[],
): ((member: string) => boolean) | undefined {
  const name = type.replaceAll('$', '\\$');
  // Also a class that a function changes, as in `inherits(Name, Base)`, or that another one has as one of its bases.
  const isChanged = new RegExp(
    `\\.prototype\\b|\\b(import|from|declare|interface|setattr|assign)\\b|__dict__|(?<!\\bclass\\s+\\w*)[\\w$]\\(\\s*${name}\\s*[,)]|` +
      `(?<![\\w$.])${name}\\.[\\w$]+\\s*=(?![=>])|\\bclass\\s+\\w+\\((.*,\\s*${name}\\b|${name}\\s*,)`,
  );
  // Another file may have the members that a base class calls.
  const isChangedThere = new RegExp(
    `(?<![\\w$.])${name}\\.([\\w$]+\\s*=(?![=>])|prototype\\b)|\\binterface\\s+${name}\\b|\\bextends\\s+${name}\\b|` +
      `\\bclass\\s+\\w+\\(.*\\b${name}\\b`,
  );
  const has = (texts: readonly string[], pattern: RegExp): boolean =>
    texts.some((other) => linesWith(other, type).some((line) => pattern.test(line)));
  if (has([text], isChanged) || has(others, isChangedThere) || /mixin/i.test(type)) return undefined;
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
    return (member) => member in prototype || NEWER.has(member);
  }
  const [line] = header as [string];
  const isPlain = isScript ? /class\s+[\w$]+(<[\w, ]+>)?\s*\{$/ : /class\s+\w+(\((object)?\))?:$/;
  const at = text.indexOf(line);
  // A decorator may end on a line of its own.
  const isDecorated = /(^|\n)[ \t]*@[^\n]*\n\s*$|\)\n[ \t]*$/.test(text.slice(Math.max(0, at - 200), at));
  if (header.length > 1 || !isPlain.test(line.trimEnd()) || isDecorated) return undefined;
  const body = bodyAt(text, at, /^\s*/.exec(line)?.[0] ?? '');
  // A class that answers for any name.
  if (/__getattr|__slots__|__dict__|setattr|\bvars\(|\[\w+:\s*[\w$]+\]|Proxy|assign|\bthis\[|defineProp/.test(body))
    return undefined;
  if (/\b\w*(mixin|extend|inherit|apply|call)\w*\(\s*(this|self)\b/i.test(body)) return undefined;
  const names = new Set(body.match(/[\p{L}_$][\p{L}\p{N}_$]*/gu));
  const isWrittenOutside = (member: string): boolean => new RegExp(`\\b\\w+\\.${member}\\s*=(?!=)`).test(text);
  return (member) =>
    names.has(member) || member.startsWith('__') || member in Object.prototype || isWrittenOutside(member);
}

/** The lines of a class: up to the first one that is not indented more. */
export function bodyAt(text: string, start: number, indent: string): string {
  const lines = text.slice(start).split('\n');
  const end = lines.findIndex(
    (line, i) => i > 0 && /^\s*[}\w@]/.test(line) && !line.startsWith(`${indent} `) && !line.startsWith(`${indent}\t`),
  );
  return lines.slice(0, end < 0 ? undefined : end).join('\n');
}
