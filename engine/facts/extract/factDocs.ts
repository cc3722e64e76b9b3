/**
 * The comment above a definition, or its docstring: where it stands. What it says is made out where that is asked for. Pure.
 */
import type { Node } from 'web-tree-sitter';
import { firstCode } from './factNodes.ts';

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
