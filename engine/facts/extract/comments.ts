/** Finds the comment or docstring of a definition or a file, and its first paragraph. Does not interpret comments. */
import type { Node } from 'web-tree-sitter';
import { grammarFor } from '../../text/syntax/syntaxTrees.ts';
import { firstCode } from './tree.ts';

/** Offsets of a comment in the text, including its comment marks. */
export interface Doc {
  from: number;
  to: number;
  docstring?: true;
}

interface Comment extends Doc {
  row: number;
  /** A line comment. Adjacent line comments form one comment. */
  isLine: boolean;
  /** Nothing follows the comment on its last line. */
  isAlone: boolean;
}

/** Comments for tools. They may be between a comment and its definition. */
const DIRECTIVES = [
  /\/\s*<|eslint|tslint|jshint|biome-|prettier-|@ts-|istanbul/,
  /[cv]8 ignore|webpack|@__PURE__|#?(?:end)?region|type:|noqa|pylint|pragma|mypy|pyright|fmt:|isort|ruff|nosec/,
];
const DIRECTIVE = new RegExp(String.raw`^(?://|/\*+|#)\s*(?:${DIRECTIVES.map(({ source }) => source).join('|')})`, 'i');

export class Comments {
  readonly #lines: readonly string[];
  /** Comments at the beginning of a line, by their last row. */
  readonly #comments = new Map<number, Comment>();
  /** First row of decorators and directives on lines of their own, by their last row. */
  readonly #between = new Map<number, number>();

  constructor(lines: readonly string[]) {
    this.#lines = lines;
  }

  /** Adds a comment or a decorator. Must be called for those above a definition before `above`. */
  add(node: Node): void {
    const { startPosition: start, endPosition: end } = node;
    if ((this.#lines[start.row] ?? '').slice(0, start.column).trim() !== '') return;
    const isAlone = (this.#lines[end.row] ?? '').slice(end.column).trim() === '';
    const isComment = node.type === 'comment';
    if (!isComment || DIRECTIVE.test(node.text)) {
      if (isAlone) this.#between.set(end.row, start.row);
    } else
      this.#comments.set(end.row, {
        from: node.startIndex,
        to: node.endIndex,
        row: start.row,
        isLine: !node.text.startsWith('/*'),
        isAlone,
      });
  }

  /**
   * The comment right above a definition, or before it on its line.
   * @param row of the definition, from 0
   * @param index offset of the definition in the text
   */
  above(row: number, index: number): Doc | undefined {
    const beside = this.#comments.get(row);
    if (beside && beside.to <= index) return { from: beside.from, to: beside.to };
    let top = row;
    for (let start = this.#between.get(top - 1); start !== undefined; start = this.#between.get(top - 1)) top = start;
    const last = this.#comments.get(top - 1) ?? this.#aboveBlank(top - 1);
    if (!last?.isAlone) return undefined;
    let first = last;
    for (
      let before = this.#comments.get(first.row - 1);
      last.isLine && before?.isLine;
      before = this.#comments.get(first.row - 1)
    )
      first = before;
    return { from: first.from, to: last.to };
  }

  /** A documentation comment of a member, which may be apart from it. At the top level it may be about the file. */
  #aboveBlank(row: number): Comment | undefined {
    const isBlank = this.#lines[row]?.trim() === '';
    const comment = isBlank ? this.#comments.get(row - 1) : undefined;
    return comment && /^\s+\/\*\*/.test(this.#lines[comment.row] ?? '') ? comment : undefined;
  }
}

/** Lines of a comment, of an attribute or of an annotation. */
const COMMENT_LINE = /^\s*(?:\/\/|\/\*|\*|#(?!\s*(?:include|define|if|ifdef|ifndef|else|endif|pragma|undef)\b|\[))/;
const ATTRIBUTE = /^\s*(?:#\[|@\w|\[\w)/;

/** The first paragraph of the comment right above a row, in any language with `//`, `/*` or `#`. @param row from 0 */
function commentAbove(lines: readonly string[], row: number): string | undefined {
  let end = row;
  while (end > 0 && ATTRIBUTE.test(lines[end - 1] ?? '')) end--;
  let start = end;
  while (start > 0 && COMMENT_LINE.test(lines[start - 1] ?? '')) start--;
  const written = lines.slice(start, end).join('\n').trim();
  return written === '' ? undefined : firstParagraph(written, { from: 0, to: written.length });
}

/** The first paragraph of the comment of a definition. @param isPartial whether the facts have no comments */
export function commentOf(
  { doc, kind, at = 0 }: { doc?: Doc | undefined; kind: string; at?: number },
  isPartial: boolean,
  text: string,
): string | undefined {
  if (isPartial) return commentAbove(text.split('\n'), text.slice(0, at).split('\n').length - 1);
  // A comment at the top of a file describes the file, not a value below it.
  return !doc || (doc.from === 0 && kind === 'value') ? undefined : firstParagraph(text.slice(doc.from, doc.to), doc);
}

/** The docstring of a Python function or class. */
export function docstringOf(definition: Node): Doc | undefined {
  const first = firstCode(definition.childForFieldName('body'));
  const string = first?.type === 'expression_statement' ? first.namedChild(0) : null;
  return string?.type === 'string' ? { from: string.startIndex, to: string.endIndex, docstring: true } : undefined;
}

/** A longer paragraph is cut, if possible at the end of a sentence. */
const MAX_PARAGRAPH = 600;

/** A comment at the top of a file that is not about a definition right below it, or a module's docstring. */
const HEAD_COMMENT = /^(?:#![^\n]*\n)?\s*(\/\*[\s\S]*?\*\/|\/\/[^\n]*(?:\n\/\/[^\n]*)*)/;
const BELOW_HEAD = /[ \t]*\n(?=\s*\n|import\b|(?:const|let|var)\b[^\n]*\brequire\(|['"]use )/;
const SCRIPT_HEAD = new RegExp(HEAD_COMMENT.source + BELOW_HEAD.source);
const PYTHON_HEAD = /^(?:#[^\n]*\n|[ \t]*\n)*([rRuU]?("{3}|'{3})[\s\S]*?\2)/;

/** The first paragraph of the comment about the file. Undefined if there is none. */
export function headComment(text: string, isPython: boolean): string | undefined {
  const written = (isPython ? PYTHON_HEAD : SCRIPT_HEAD).exec(text)?.[1];
  return written === undefined
    ? undefined
    : firstParagraph(written, { from: 0, to: written.length, ...(isPython ? { docstring: true } : {}) });
}

/** Comments about licences, whole files, or open work. They do not describe a definition. */
const NO_DESCRIPTION =
  /copyright|spdx-license|@license|@file\b|@fileoverview|@module\b|@packagedocumentation|^\W*(?:todo|fixme|xxx|hack)\b/i;
/** Lines that separate parts of a file. */
const RULE = /[-=*#~_/]{3,}/;
/** Code that is commented out. */
const CODE =
  /[;{}]$|^(?:const|let|var|return|if|for|while|import|from|def|class|function|export|await|print)\b.*[({=:;]/;

/** The first paragraph as one line. Undefined if it describes nothing. @param written with comment marks */
function firstParagraph(written: string, { docstring }: Doc): string | undefined {
  if (!docstring && NO_DESCRIPTION.test(written)) return undefined;
  const isBlock = written.startsWith('/*');
  const bare = docstring
    ? /^[rRuU]?("""|'''|"|')(.*)\1$/s.exec(written)?.[2]
    : isBlock
      ? written.replace(/^\/\*+!?|\**\*\/$/g, '')
      : written;
  if (bare === undefined) return undefined;
  const lines = bare
    .split('\n')
    .map((line) =>
      (docstring
        ? line
        : isBlock
          ? line.replace(/^\s*(?:\*+(?=\s|$)|\*(?!\*))/, '')
          : line.replace(/^\s*(?:\/\/+!?|#+[:!]?)/, '')
      ).trim(),
    );
  const described = lines.findIndex((line) => /^@(?:description|desc|summary)\b/.test(line));
  const from = described < 0 ? lines.findIndex((line) => line !== '') : described;
  const rest = lines
    .slice(Math.max(0, from))
    .map((line, i) => (i === 0 ? line.replace(/^@(?:description|desc|summary)\b\s*/, '') : line));
  const end = rest.findIndex((line, i) => line === '' || BLOCK_TAG.test(line) || (i > 0 && /^[-=~]{3,}$/.test(line)));
  const paragraph = rest
    .slice(0, end < 0 ? undefined : end)
    .join(' ')
    .replace(
      /\{@link(?:code|plain)?\s+([^}|\s]+)(?:[|\s]+([^}]+))?\}/g,
      (_, target: string, label?: string) => label?.trim() ?? target,
    )
    .replace(/\s+/g, ' ')
    .replace(INLINE_TAG, '')
    .trim();
  if (
    !/\p{L}{2}/u.test(paragraph) ||
    (!docstring &&
      !written.startsWith('/**') &&
      (RULE.test(paragraph) || CODE.test(paragraph) || !/\s|\.$/.test(paragraph)))
  )
    return undefined;
  return cut(paragraph);
}

/** The start of parameters, results or examples in the styles of JSDoc, Sphinx and Google. */
const BLOCK_TAG =
  /^(?:@\w+(?![\w-]*\/)|:\w+[^:]*:|>>>|```|(?:Args|Arguments|Parameters|Params|Returns|Yields|Raises|Examples?|Notes?|Attributes):?$)/;

/** A tag after a description on the same line. */
const INLINE_TAG = / @(?:param|returns?|throws|example|deprecated|internal|private|type)\b.*$/;

function cut(paragraph: string): string {
  if (paragraph.length <= MAX_PARAGRAPH) return paragraph;
  const start = paragraph.slice(0, MAX_PARAGRAPH);
  const end = Math.max(start.lastIndexOf('. '), start.lastIndexOf('! '), start.lastIndexOf('? '));
  return `${end > 0 ? start.slice(0, end + 1) : start.slice(0, start.lastIndexOf(' '))} …`;
}

const HASHES = /^(?:python|ruby|bash|powershell)$/;
const BY_SLASHES = /^\s*(\/\*[\s\S]*?\*\/|\/\/[^\n]*(?:\n[ \t]*\/\/[^\n]*)*)/;
const BY_HASHES = /^\s*(#(?!!)[^\n]*(?:\n[ \t]*#[^\n]*)*)/;
const DOCSTRING =
  /^(?:\s*@[^\n]*\n)*\s*(?:async\s+)?(?:def|class)\b[^\n(:]*(?:\([\s\S]*?\))?[^\n]*?:[ \t]*(?:#[^\n]*)?\n\s*([rRuU]?("{3}|'{3})[\s\S]*?\2)/;

/** The first paragraph of the comment before the code, or of the docstring of a Python definition. */
export function leadingComment(code: string, path: string): string | undefined {
  const grammar = grammarFor({ path });
  const text = code.replaceAll('\r\n', '\n');
  if (grammar === undefined || grammar === 'css') return undefined;
  const docstring = grammar === 'python' ? DOCSTRING.exec(text)?.[1] : undefined;
  if (docstring !== undefined) return firstParagraph(docstring, { from: 0, to: docstring.length, docstring: true });
  const [written, comment = ''] = (HASHES.test(grammar) ? BY_HASHES : BY_SLASHES).exec(text) ?? [];
  // A comment alone is all that is selected.
  return written === undefined ? undefined : firstParagraph(comment, { from: 0, to: comment.length });
}
