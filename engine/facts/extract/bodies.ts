/**
 * Reads function bodies: what they call by name, and the values they return or yield. Does not see calls through a
 * variable of another name.
 */
import type { Node } from 'web-tree-sitter';
import { firstCode, type Place, present } from './tree.ts';

export interface Call {
  /** Without its object. */
  name: string;
  /** Called on an object: `JSON.parse` is not the `parse` that a file imports. */
  member?: true;
  /** The name right before the dot, if it is a name. */
  on?: string;
  /** Line of the name, from 1. */
  line: number;
}

export const SCRIPT_CALLS = ['call_expression', 'new_expression'];
export const PYTHON_CALLS = ['call'];

/** Undefined if what is called has no name. */
export function callAt(node: Node): Call | undefined {
  const called = bare(node.childForFieldName('function') ?? node.childForFieldName('constructor'));
  if (!called || called.isMissing) return undefined;
  if (called.type === 'identifier') return { name: called.text, line: called.startPosition.row + 1 };
  const name = called.childForFieldName('property') ?? called.childForFieldName('attribute');
  if (!name || name.isMissing) return undefined;
  const object = called.childForFieldName('object');
  const on = object?.childForFieldName('property') ?? object?.childForFieldName('attribute') ?? object;
  return {
    name: name.text,
    line: name.startPosition.row + 1,
    member: true,
    ...(on && /identifier$/.test(on.type) ? { on: on.text } : {}),
  };
}

/** Unwraps `load!(…)` and `(load)(…)`. The tree has `await load<Row>(…)` as a call of `await load`. */
function bare(called: Node | null): Node | null {
  let inside = called;
  while (
    inside &&
    /^(await_expression|non_null_expression|parenthesized_expression|instantiation_expression)$/.test(inside.type)
  )
    inside = inside.firstNamedChild;
  return inside;
}

/** Where a returned value stands in the text. */
export interface Given {
  /** From 1. */
  line: number;
  from: number;
  to: number;
}

export interface Returns {
  /** `values` are those that it yields. */
  generator: boolean;
  async: boolean;
  values: Given[];
  /** Line of the first `return` without a value, from 1. */
  bare?: number;
}

const ABSTRACT = /^@(?:[\w.]*\.)?(?:abstract\w*|overload)\b/;

/** Collects `return` and `yield` by the offset of their function, which must be added before them. */
export class ReturnStatements {
  readonly #functions = new Map<number, Returns & { returned: Given[]; yielded: Given[] }>();

  /** Filled while the function's body is walked. Undefined for abstract functions and stubs. */
  of(about: Node, { parent }: Place): Returns | undefined {
    const body = about.childForFieldName('body');
    if (
      !body ||
      isStub(body) ||
      (parent?.type === 'decorated_definition' &&
        present(parent.namedChildren).some(({ type, text }) => type === 'decorator' && ABSTRACT.test(text)))
    )
      return undefined;
    const returned: Given[] = [];
    const yielded: Given[] = [];
    const words = present(about.children)
      .filter(({ isNamed }) => !isNamed)
      .map(({ type }) => type);
    const generator = words.includes('*');
    const found = {
      generator,
      async: words.includes('async'),
      values: generator ? yielded : returned,
      returned,
      yielded,
    };
    if (!/^(statement_block|block)$/.test(body.type)) returned.push(given(body));
    this.#functions.set(about.startIndex, found);
    return found;
  }

  /** Adds a `return` or `yield` to the function around it. */
  add(node: Node, { functionAt }: Place): void {
    const found = functionAt === undefined ? undefined : this.#functions.get(functionAt);
    if (!found || !node.isNamed) return;
    const value = firstCode(node);
    if (node.type === 'return_statement') {
      if (value) found.returned.push(given(value));
      else found.bare ??= node.startPosition.row + 1;
      return;
    }
    Object.assign(found, { generator: true, values: found.yielded });
    // `yield* each` is quoted whole.
    if (value)
      found.yielded.push(
        node.children.some((child) => child?.type === '*' || child?.type === 'from') ? given(node) : given(value),
      );
  }
}

/** Without the parentheses around it. */
function given(value: Node): Given {
  const inside = value.type === 'parenthesized_expression' && value.namedChildCount === 1 ? value.namedChild(0) : null;
  const { startIndex, endIndex, startPosition } = inside ?? value;
  return { line: startPosition.row + 1, from: startIndex, to: endIndex };
}

/** A Python body that is only `...` or `raise NotImplementedError`. */
function isStub(body: Node): boolean {
  if (body.type !== 'block' || body.namedChildCount > 4) return false;
  const code = present(body.namedChildren).filter(
    (child) =>
      child.type !== 'comment' && !(child.type === 'expression_statement' && child.namedChild(0)?.type === 'string'),
  );
  return code.length === 1 && (code[0]?.text === '...' || /^raise NotImplementedError\b/.test(code[0]?.text ?? ''));
}
