/** Finds the comment or docstring of a definition or a file, and its first paragraph. */
import type { Node } from 'web-tree-sitter';
import { firstCode } from './tree.ts';

/** As it stands in the text, with its marks. */
export interface Doc {
  from: number;
  to: number;
  docstring?: true;
}

interface Comment extends Doc {
  row: number;
  /** Up to the end of its line, and those right above it are one with it. */
  isLine: boolean;
  /** Nothing follows on its last line. */
  isAlone: boolean;
}

/** They speak to tools, and may stand between a comment and what it is about. */
const DIRECTIVE =
  /^(?:\/\/|\/\*+|#)\s*(?:\/\s*<|eslint|tslint|jshint|biome-|prettier-|@ts-|istanbul|[cv]8 ignore|webpack|@__PURE__|#?(?:end)?region|type:|noqa|pylint|pragma|mypy|pyright|fmt:|isort|ruff|nosec)/i;

export class Comments {
  readonly #lines: readonly string[];
  /** By the row of their end, of those that stand at the beginning of their line. */
  readonly #comments = new Map<number, Comment>();
  /** Lines of decorators and directives alone: the row of the end to that of the beginning. */
  readonly #between = new Map<number, number>();

  constructor(lines: readonly string[]) {
    this.#lines = lines;
  }

  /** A comment or a decorator; those above a definition have to come before it. */
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

  /** Right above what begins in `row`, from 0, at `index` of the text, or before it on its line. */
  above(row: number, index: number): Doc | undefined {
    const beside = this.#comments.get(row);
    if (beside && beside.to <= index) return { from: beside.from, to: beside.to };
    let top = row;
    for (let start = this.#between.get(top - 1); start !== undefined; start = this.#between.get(top - 1)) top = start;
    const last = this.#comments.get(top - 1);
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
}

/** Of a Python function or class. */
export function docstringOf(definition: Node): Doc | undefined {
  const first = firstCode(definition.childForFieldName('body'));
  const string = first?.type === 'expression_statement' ? first.namedChild(0) : null;
  return string?.type === 'string' ? { from: string.startIndex, to: string.endIndex, docstring: true } : undefined;
}

/** A longer paragraph is cut, at the end of a sentence if there is one. */
const MAX_PARAGRAPH = 600;

/** A comment that begins a file, with nothing that it could be about right below it but an import, or a module's docstring. */
const SCRIPT_HEAD =
  /^(?:#![^\n]*\n)?\s*(\/\*[\s\S]*?\*\/|\/\/[^\n]*(?:\n\/\/[^\n]*)*)[ \t]*\n(?=\s*\n|import\b|(?:const|let|var)\b[^\n]*\brequire\(|['"]use )/;
const PYTHON_HEAD = /^(?:#[^\n]*\n|[ \t]*\n)*([rRuU]?("{3}|'{3})[\s\S]*?\2)/;

/** The first paragraph of what a file says of itself; undefined where it says nothing. */
export function headComment(text: string, isPython: boolean): string | undefined {
  const written = (isPython ? PYTHON_HEAD : SCRIPT_HEAD).exec(text)?.[1];
  return written === undefined
    ? undefined
    : firstParagraph(written, { from: 0, to: written.length, ...(isPython ? { docstring: true } : {}) });
}

/** About a file as a whole, of lawyers, or what is still to be done: nothing that says what a definition does. */
const OTHERWISE =
  /copyright|spdx-license|@license|@file\b|@fileoverview|@module\b|@packagedocumentation|^\W*(?:todo|fixme|xxx|hack)\b/i;
/** Rules between parts of a file, or code that is not in use. */
const RULE = /[-=*#~_/]{3,}/;
const CODE =
  /[;{}]$|^(?:const|let|var|return|if|for|while|import|from|def|class|function|export|await|print)\b.*[({=:;]/;

/** On one line; undefined where it says nothing about what it stands above. @param written with its marks */
export function firstParagraph(written: string, { docstring }: Doc): string | undefined {
  if (!docstring && OTHERWISE.test(written)) return undefined;
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
      (RULE.test(paragraph) || CODE.test(paragraph) || !/\s/.test(paragraph)))
  )
    return undefined;
  return cut(paragraph);
}

/** What tells of parameters and results, in the ways of JSDoc, Sphinx and Google, or shows how it is used. */
const BLOCK_TAG =
  /^(?:@\w|:\w+[^:]*:|>>>|```|(?:Args|Arguments|Parameters|Params|Returns|Yields|Raises|Examples?|Notes?|Attributes):?$)/;

/** Behind a description on the same line. */
const INLINE_TAG = / @(?:param|returns?|throws|example|deprecated|internal|private|type)\b.*$/;

function cut(paragraph: string): string {
  if (paragraph.length <= MAX_PARAGRAPH) return paragraph;
  const start = paragraph.slice(0, MAX_PARAGRAPH);
  const end = Math.max(start.lastIndexOf('. '), start.lastIndexOf('! '), start.lastIndexOf('? '));
  return `${end > 0 ? start.slice(0, end + 1) : start.slice(0, start.lastIndexOf(' '))} …`;
}
