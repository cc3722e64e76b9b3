/**
 * Finds the nodes of a syntax tree that declare a name or give it a value, in scripts and Python. Does not tell what the
 * value is (objectTypes.ts).
 */
import type { Node } from 'web-tree-sitter';
import { occurrences } from './occurrences.ts';
import type { Scopes } from './scopes.ts';

const NAMES = /^(identifier|type_identifier|shorthand_property_identifier_pattern)$/;
/** Rules whose names are only used. */
const USES = new RegExp(
  '^(member_expression|attribute|arguments|argument_list|call|call_expression|new_expression|keyword_argument|' +
    'generic_type|export_specifier|jsx_\\w+)$',
);
/** Assignments that declare no name, and may be for a name of another function. */
const ASSIGNMENTS = /^(assignment_expression|augmented_assignment(_expression)?)$/;
/** What gives a value to its left side. */
const WRITES = /^((augmented_)?assignment(_expression)?|for_(in_)?statement|for_in_clause)$/;
/** What has members that are written in its body. */
export const OWNERS =
  /^(class|class_declaration|abstract_class_declaration|class_definition|interface_declaration|enum_declaration|object|object_type)$/;

/**
 * The nodes that declare a name or give it a value, of those that a place may mean. Empty for a name that comes from
 * elsewhere. Undefined if that is not certain.
 */
export function declarationsOf(scopes: Scopes, name: Node): Node[] | undefined {
  const { functions } = scopes.at(name.startIndex);
  const found: Node[] = [];
  const places = occurrences(scopes.text, name.text);
  for (const at of places ?? []) {
    const node = scopes.nodeAt(at, at + name.text.length);
    const parent = node?.parent;
    if (!parent || !NAMES.test(node.type) || USES.test(parent.type)) continue;
    const scope = scopes.at(at);
    if (scope.isBroken || /^(global|nonlocal)_statement$/.test(parent.type)) return undefined;
    const isAssigned = ASSIGNMENTS.test(parent.type) && parent.startIndex === at;
    if (!isAssigned && !scope.declares && !isNameOf(node, parent) && !isImported(node, parent)) continue;
    const inner = scope.functions.at(-1);
    const isVisible = inner === undefined || functions.includes(inner);
    // A name in the body of a class is its member.
    const around = parent.type === 'function_definition' ? scope.ownerAt : scope.classAt;
    const isMember = around >= 0 && !OWNERS.test(parent.type);
    if (isAssigned || (isVisible && !isMember)) found.push(parent);
  }
  return places && found;
}

const isNameOf = (node: Node, parent: Node): boolean =>
  ['name', 'alias'].some((field) => parent.childForFieldName(field)?.startIndex === node.startIndex);

function isImported(node: Node, { type, parent, startIndex }: Node): boolean {
  if (type !== 'dotted_name') return type === 'import_clause' || type === 'namespace_import';
  const module = parent?.childForFieldName('module_name')?.startIndex;
  return (
    /^import_(from_)?statement$/.test(parent?.type ?? '') && module !== startIndex && startIndex === node.startIndex
  );
}

/** Whether a member is given a value. */
export function isWritten(access: Node): boolean {
  let part = access;
  while (part.parent && /pattern/.test(part.parent.type)) part = part.parent;
  const { parent } = part;
  return WRITES.test(parent?.type ?? '') && parent?.childForFieldName('left')?.startIndex === part.startIndex;
}

/** The value of a declaration or assignment. Undefined if the node is neither, or its value is another one's part. */
export function valueIn(node: Node): Node | null | undefined {
  if (node.type === 'variable_declarator') return node.childForFieldName('value');
  return /^assignment(_expression)?$/.test(node.type) ? node.childForFieldName('right') : undefined;
}

/** The values that a function returns. Undefined if its result is not what its statements return. */
export function returnsOf(node: Node): (Node | null)[] | undefined {
  const body = node.childForFieldName('body');
  const isPlain =
    /^(function_(declaration|expression|definition)|arrow_function)$/.test(node.type) &&
    node.firstChild?.type !== 'async' &&
    node.parent?.type !== 'decorated_definition';
  if (!body || !isPlain || body.descendantsOfType('yield').length > 0) return undefined;
  if (!/block$/.test(body.type)) return [body];
  return body.descendantsOfType('return_statement').map((statement) => statement?.namedChild(0) ?? null);
}
