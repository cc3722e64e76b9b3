/** Reads the calls in the syntax tree of a language other than TypeScript, JavaScript and Python. Reads nothing else. */
import type { Tree } from 'web-tree-sitter';
import type { Call } from './members.ts';
import { bare } from './targets.ts';
import { oneLine, walk } from './tree.ts';

/** The fields of a call that hold the called name, by the type of its node. */
const CALLS: Readonly<Record<string, string>> = {
  call_expression: 'function',
  invocation_expression: 'function',
  function_call_expression: 'function',
  method_invocation: 'name',
  member_call_expression: 'name',
  nullsafe_member_call_expression: 'name',
  scoped_call_expression: 'name',
  call: 'method',
  macro_invocation: 'macro',
  command: 'name',
  invokation_expression: '',
  object_creation_expression: 'type',
  composite_literal: 'type',
};
const TYPES: ReadonlySet<string> = new Set(Object.keys(CALLS));
/** The last name of what is called, and the name right before it, as in `a.b.save<T>`. */
const CALLED =
  /(?:^|([\p{L}_$][\p{L}\p{N}_$]*)?\s*(\.|->|::|\?\.|\?->|\\)\s*)([\p{L}_$][\p{L}\p{N}_$-]*[!?]?)(?:\s*(?:::)?<[^()]*>)?$/u;
/** Longer code before a call is a chain of calls. Only its end is read. In characters. */
const MAX_CALLED = 200;

/** The calls of functions that have a name. */
export function callsIn(tree: Tree): Call[] {
  const calls: Call[] = [];
  walk(tree, TYPES, (node) => {
    // PowerShell gives the parts of a call no fields.
    const isScript = node.type === 'invokation_expression';
    const field = CALLS[node.type] || 'name';
    const called = isScript
      ? node.namedChild(1)
      : (node.childForFieldName(field) ?? node.childForFieldName('command_name'));
    if (!called || called.isMissing) return;
    const object = isScript
      ? node.namedChild(0)
      : (node.childForFieldName('object') ?? node.childForFieldName('receiver') ?? node.childForFieldName('scope'));
    const written = oneLine(called.text.slice(-MAX_CALLED));
    const [, before, dot, name] = CALLED.exec(written) ?? [];
    if (name === undefined) return;
    const on = before ?? /^\[?([\p{L}_$@][\p{L}\p{N}_$]*)\]?$/u.exec(object?.text ?? '')?.[1];
    // A path, as in `geometry::area`, is no object.
    const isMember = object ? true : dot !== undefined && dot !== '::' && dot !== '\\';
    calls.push({
      name,
      line: called.endPosition.row + 1,
      at: called.endIndex - 1,
      ...(isMember ? { member: true } : {}),
      ...(on === undefined ? {} : { on: bare(on) }),
    });
  });
  return calls;
}
