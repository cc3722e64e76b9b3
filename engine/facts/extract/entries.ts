/**
 * Reads what SQL, YAML, JSON, TOML and Markdown files define, line by line: tables, keys, headings. These have no
 * grammar. Does not check that a file is valid, and reads nothing but names.
 */
import { grammarFor } from '../../text/syntax/syntaxTrees.ts';

export type EntryKind = 'table' | 'view' | 'index' | 'trigger' | 'function' | 'type' | 'key' | 'heading';

export interface Entry {
  kind: EntryKind;
  name: string;
  /** From 1. */
  line: number;
  /** 0 at the top level. */
  depth: number;
  /** A table of TOML. */
  isTable?: true;
}

const FORMATS: Readonly<Record<string, readonly string[]>> = {
  sql: ['sql', 'ddl', 'psql', 'mysql', 'postgres'],
  yaml: ['yaml', 'yml', 'dockercompose'],
  json: ['json', 'jsonc', 'json5'],
  toml: ['toml'],
  markdown: ['md', 'markdown', 'mdx'],
};
const READ: Readonly<Record<string, (lines: readonly string[]) => Entry[]>> = {
  sql: sqlEntries,
  yaml: yamlEntries,
  json: jsonEntries,
  toml: tomlEntries,
  markdown: headings,
};

/** The entries of a file. Undefined for a file of another kind. */
export function entriesOf(file: { path: string; language?: string | undefined; lf: string }): Entry[] | undefined {
  if (grammarFor(file) !== undefined) return undefined;
  const name = file.path.slice(file.path.lastIndexOf('/') + 1);
  const called = file.language ?? (name.includes('.') ? name.slice(name.lastIndexOf('.') + 1).toLowerCase() : '');
  const [format] = Object.entries(FORMATS).find(([id, names]) => id === called || names.includes(called)) ?? [];
  return format === undefined ? undefined : READ[format]?.(file.lf.split('\n'));
}

const SQL_NAME = String.raw`((?:[\w$]+|"[^"]+"|\x60[^\x60]+\x60|\[[^\]]+\])(?:\s*\.\s*(?:[\w$]+|"[^"]+"|\x60[^\x60]+\x60|\[[^\]]+\]))*)`;
const CREATE = new RegExp(
  String.raw`^\s*create\s+(?:or\s+(?:replace|alter)\s+)?(?:(?:global|local|temp|temporary|unlogged|unique|external|` +
    String.raw`materialized|recursive|foreign|virtual|clustered|nonclustered|definer\s*=\s*\S+)\s+)*` +
    String.raw`(table|view|index|trigger|function|procedure|type)\s+(?:concurrently\s+)?(?:if\s+not\s+exists\s+)?${SQL_NAME}`,
  'i',
);

function sqlEntries(lines: readonly string[]): Entry[] {
  const code = withoutComments(lines);
  return code.flatMap((line, i): Entry[] => {
    if (!/\bcreate\b/i.test(line)) return [];
    // The name may stand on one of the next lines.
    const [, word = '', name = ''] =
      CREATE.exec(
        code
          .slice(i, i + 3)
          .join('\n')
          .replace(/^.*?(?=\bcreate\b)/i, ''),
      ) ?? [];
    // An index without a name is followed by the word `ON`.
    if (word === '' || /^on$/i.test(name)) return [];
    const kind = word.toLowerCase() === 'procedure' ? 'function' : (word.toLowerCase() as EntryKind);
    return [{ kind, name: name.replace(/["\x60[\]]/g, '').replace(/\s*\.\s*/g, '.'), line: i + 1, depth: 0 }];
  });
}

/** Between dollar signs stands the body of a function, or with `DO` code that runs at once. */
const DOLLARS = /(\bdo\s+(?:language\s+\w+\s+)?)?(\$(?:[A-Za-z_]\w*)?\$)[\s\S]*?(?:\2|$)/gi;

/** Blanks SQL comments, strings and bodies of functions, so that no word in them counts. */
function withoutComments(lines: readonly string[]): string[] {
  const blank = (text: string): string => text.replace(/[^\n]/g, ' ');
  return lines
    .join('\n')
    .replace(/--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|'(?:[^']|'')*(?:'|$)/g, blank)
    .replace(DOLLARS, (body, runs) => (runs === undefined ? blank(body) : body))
    .split('\n');
}

const YAML_KEY =
  /^(\s*(?:-\s+)*)("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#'"&*!|>%@`[\]{},-][^#:]*?|-[^\s#:][^#:]*?)\s*:(?=\s|$)(.*)$/;

/** Keys of block mappings. Keys in `{…}` and in block texts are not read. */
function yamlEntries(lines: readonly string[]): Entry[] {
  const entries: Entry[] = [];
  /** Indentations of the keys around. */
  let around: number[] = [];
  let textIndent: number | undefined;
  for (const [i, line] of lines.entries()) {
    const indent = line.length - line.trimStart().length;
    if (line.trim() === '' || line.trimStart().startsWith('#')) continue;
    if (textIndent !== undefined && indent > textIndent) continue;
    textIndent = undefined;
    if (/^(?:---|\.\.\.)(?:\s|$)/.test(line)) {
      around = [];
      continue;
    }
    const [, before = '', key = '', value = ''] = YAML_KEY.exec(line) ?? [];
    if (/(?:^|[\s:-])[|>][-+\d]*\s*(?:#.*)?$/.test(line)) textIndent = indent;
    if (key === '') continue;
    around = around.filter((each) => each < before.length);
    entries.push({ kind: 'key', name: key.replace(/^(['"])(.*)\1$/, '$2'), line: i + 1, depth: around.length });
    around.push(before.length);
    if (/^\s*["'][^"']*$/.test(value)) textIndent = indent;
  }
  return entries;
}

/** Keys of objects that do not stand in an array. */
function jsonEntries(lines: readonly string[]): Entry[] {
  const entries: Entry[] = [];
  const open: string[] = [];
  for (const [i, line] of lines.entries()) {
    const tokens = line.matchAll(/"((?:[^"\\]|\\.)*)"(\s*:)?|\/\/.*$|[{}[\]]/g);
    for (const [token, text = '', colon] of tokens) {
      if (token === '{' || token === '[') open.push(token);
      else if (token === '}' || token === ']') open.pop();
      else if (colon !== undefined && !open.includes('['))
        entries.push({ kind: 'key', name: text, line: i + 1, depth: Math.max(0, open.length - 1) });
    }
  }
  return entries;
}

const TOML_TEXT = /"""|'''/g;

/** Tables, and the keys in them. */
function tomlEntries(lines: readonly string[]): Entry[] {
  let inTable = 0;
  const tables = new Set<string>();
  let inText = false;
  return lines.flatMap((line, i): Entry[] => {
    const wasText = inText;
    if ((line.match(TOML_TEXT)?.length ?? 0) % 2 === 1) inText = !inText;
    if (wasText) return [];
    const table = /^\s*\[{1,2}\s*([^\]]+?)\s*\]{1,2}\s*(?:#.*)?$/.exec(line)?.[1];
    if (table !== undefined) {
      // Under the longest table above that it is part of.
      const depth = [...tables].filter((each) => table.startsWith(`${each}.`)).length;
      tables.add(table);
      inTable = depth + 1;
      return [{ kind: 'key', name: table, line: i + 1, depth, isTable: true }];
    }
    const key = /^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=/.exec(line)?.[1];
    return key === undefined ? [] : [{ kind: 'key', name: key.replace(/["']/g, ''), line: i + 1, depth: inTable }];
  });
}

/** Headings outside code blocks and comments: after `#`, or above a line of `=` or `-`. */
function headings(lines: readonly string[]): Entry[] {
  let fence: string | undefined;
  let inComment = false;
  let inFrontMatter = lines[0]?.trim() === '---';
  return lines.flatMap((line, i): Entry[] => {
    if (inFrontMatter) {
      inFrontMatter = i === 0 || !/^(?:---|\.\.\.)\s*$/.test(line);
      return [];
    }
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence !== undefined) {
      if (mark?.startsWith(fence) && /^\s*[`~]+\s*$/.test(line)) fence = undefined;
      return [];
    }
    if (!inComment && mark !== undefined) {
      fence = mark;
      return [];
    }
    const wasComment = inComment;
    const at = line.lastIndexOf('<!--');
    inComment = at >= 0 || wasComment ? line.indexOf('-->', Math.max(0, at)) < 0 : false;
    const [, marks = '', written = ''] = wasComment
      ? []
      : (/^ {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$/.exec(line) ?? []);
    const under = wasComment || inComment ? undefined : underlined(lines, i);
    if (under !== undefined) return [{ kind: 'heading', name: line.trim(), line: i + 1, depth: under }];
    const title = written.replace(/<!--.*?-->/g, '').trim();
    return title === '' ? [] : [{ kind: 'heading', name: title, line: i + 1, depth: marks.length - 1 }];
  });
}

/** The depth of a heading of one line that the next line underlines. Undefined for any other line. */
function underlined(lines: readonly string[], at: number): number | undefined {
  const mark = /^ {0,3}(=+|-+)[ \t]*$/.exec(lines[at + 1] ?? '')?.[1];
  const [above = '', line = ''] = [at > 0 ? lines[at - 1] : '', lines[at]];
  // Not a list, a quote, a table or code. A paragraph of several lines is no name.
  if (mark === undefined || !/^ {0,3}[^\s#>|`~<*+-]/.test(line) || /^ {0,3}\d+[.)]\s/.test(line)) return undefined;
  return above.trim() === '' || /^ {0,3}#{1,6}\s|^ {0,3}(?:=+|-+)\s*$/.test(above)
    ? mark.startsWith('=')
      ? 0
      : 1
    : undefined;
}
