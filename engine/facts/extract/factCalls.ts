/** Where a file calls something by a name, or makes an instance of it. What it is called by otherwise, a variable that holds it for instance, is not seen. Pure. */
import type { Node } from 'web-tree-sitter';

export interface Call {
  /** As it is called, without what it belongs to. */
  name: string;
  /** Something stands before a dot: `JSON.parse` is not the `parse` that a file imports. */
  member?: true;
  /** What stands right before the dot, where that is a name. */
  on?: string;
  /** Of the name, from 1. */
  line: number;
}

export const SCRIPT_CALLS = ['call_expression', 'new_expression'];
export const PYTHON_CALLS = ['call'];

/** Undefined for what is called without a name. */
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

/** `load!(…)`; and the tree has `await load<Row>(…)` as a call of `await load`. */
function bare(called: Node | null): Node | null {
  let inside = called;
  while (
    inside &&
    /^(await_expression|non_null_expression|parenthesized_expression|instantiation_expression)$/.test(inside.type)
  )
    inside = inside.firstNamedChild;
  return inside;
}
