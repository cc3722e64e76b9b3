/** Tells whether a value is made only of what the file itself has: nothing of a package, a parameter or the browser. */
import type { Node } from 'web-tree-sitter';
import { familyOf } from './classFamily.ts';
import { declarationsOf, OWNERS, returnsOf, valueIn } from './declarations.ts';
import { MAX_DEPTH, type ObjectTypes } from './objectTypes.ts';

const SIMPLE =
  /^(number|integer|float|string|template_string|regex|true|false|null|none|undefined|comment|property_identifier)$/;
const COMPOSED = /^(array|object|list|tuple|set|dictionary|pair|arguments|argument_list|parenthesized_expression)$/;

export function isMadeHere(types: ObjectTypes, node: Node, depth = 0): boolean {
  if (depth > MAX_DEPTH) return false;
  const areMade = (nodes: readonly (Node | null)[], from = depth + 1): boolean =>
    nodes.every((part) => !part || isMadeHere(types, part, from));
  if (SIMPLE.test(node.type)) return true;
  if (COMPOSED.test(node.type)) return areMade(node.namedChildren, depth);
  if (/identifier$/.test(node.type)) {
    // A written type may have more than its value.
    const values =
      declarationsOf(types.scopes, node)?.map((one) => (one.childForFieldName('type') ? undefined : valueIn(one))) ??
      [];
    return values.some(Boolean) && values.every((value) => value !== undefined) && areMade(values);
  }
  const maker = node.childForFieldName('function') ?? node.childForFieldName('constructor');
  const [made, ...more] = (maker?.type === 'identifier' && declarationsOf(types.scopes, maker)) || [];
  if (!made || more.length > 0 || !areMade([node.childForFieldName('arguments')])) return false;
  if (OWNERS.test(made.type)) return familyOf(types, made, []) !== undefined;
  const returned = returnsOf(valueIn(made) ?? made);
  return returned !== undefined && areMade(returned);
}
