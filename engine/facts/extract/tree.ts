/** Walks syntax trees with the class and function around each node, and reads names and texts. Does not read facts. */
import type { Node, Tree } from 'web-tree-sitter';

const ofTypes = (types: string): RegExp => new RegExp(`^(?:${types.trim().split(/\s+/).join('|')})$`);

export const FUNCTIONS = ofTypes(`
  function_declaration generator_function_declaration function_signature
  method_definition method_signature abstract_method_signature function_definition
  arrow_function function_expression generator_function lambda
`);
export const CLASSES = /^(class|class_declaration|abstract_class_declaration|class_definition|interface_declaration)$/;

export interface Place {
  /** The class, interface or object around the node, and its offset. Undefined offset for members of a prototype. */
  owner?: string;
  ownerAt?: number | undefined;
  /** Inside a function, a namespace, or an object without a name. */
  local: boolean;
  inFunction: boolean;
  inBlock: boolean;
  /** Inside a syntax error. */
  broken: boolean;
  /** The parent. `parent` is null if its type is not visited. */
  parentType: string;
  parent: Node | null;
  /** Offset of the innermost function around it. */
  functionAt?: number | undefined;
  /** Offset of the class that `this` belongs to, if that is certain. */
  thisAt?: number | undefined;
  /** Beginning of the statement that contains only this definition, with `export`, `const` or decorators. */
  head?: Start | undefined;
}

interface Start {
  /** From 0. */
  row: number;
  /** In the text. */
  at: number;
}

/** Statements that may contain a definition. */
const STATEMENTS =
  /^(export_statement|lexical_declaration|variable_declaration|ambient_declaration|expression_statement|decorated_definition)$/;

/** Functions that keep the `this` of the code around them. In Python `self` is an ordinary variable. */
const KEEPS_THIS = /^(arrow_function|function_definition|lambda)$/;

/**
 * Visits each node of these types, parents before children. Walks with a cursor in linear time. Asking a node for its
 * parent searches from the root, which takes seconds in a long chain of calls.
 */
export function walk(tree: Tree, types: ReadonlySet<string>, visit: (node: Node, place: Place) => void): void {
  const cursor = tree.walk();
  const places: Place[] = [
    { local: false, inFunction: false, inBlock: false, broken: false, parentType: '', parent: null },
  ];
  try {
    for (;;) {
      const place = places.at(-1) as Place;
      const type = cursor.nodeType;
      const visited = types.has(type);
      const node = visited || CLASSES.test(type) || type === 'object' ? cursor.currentNode : null;
      if (visited) visit(node as Node, place);
      const start =
        FUNCTIONS.test(type) || STATEMENTS.test(type)
          ? { row: cursor.startPosition.row, at: cursor.startIndex }
          : undefined;
      if (cursor.gotoFirstChild()) {
        places.push(below(place, type, node, visited, start));
        continue;
      }
      while (!cursor.gotoNextSibling()) {
        if (!cursor.gotoParent()) return;
        places.pop();
      }
    }
  } finally {
    cursor.delete();
  }
}

/** The place of the children of a node. @param start of functions, and of statements that may contain a definition */
function below(place: Place, type: string, node: Node | null, visited: boolean, start?: Start): Place {
  const { owner, ownerAt, local, inFunction, functionAt } = place;
  const here = {
    inFunction,
    functionAt,
    inBlock: place.inBlock || type === 'statement_block',
    broken: place.broken || type === 'ERROR',
    parentType: type,
    parent: visited ? node : null,
  };
  if (FUNCTIONS.test(type))
    return {
      ...here,
      local: true,
      inFunction: true,
      functionAt: start?.at,
      thisAt: owner === undefined ? (KEEPS_THIS.test(type) ? place.thisAt : undefined) : ownerAt,
    };
  if (STATEMENTS.test(type))
    return {
      ...here,
      local,
      thisAt: place.thisAt,
      head: place.head ?? start,
      ...(owner === undefined ? {} : { owner, ownerAt }),
    };
  // The parts of a member's type, as in `on: { click: string }`, have no owner.
  if (type === 'object_type' && !CLASSES.test(place.parentType)) return { ...here, local, thisAt: place.thisAt };
  // In Python, `module` is the whole file.
  if (type === 'internal_module' || (type === 'module' && place.parentType !== '')) return { ...here, local: true };
  if (!node || !(CLASSES.test(type) || type === 'object'))
    return { ...here, local, thisAt: place.thisAt, ...(owner === undefined ? {} : { owner, ownerAt }) };
  const { parent } = place;
  const isDefault = CLASSES.test(type) && place.parentType === 'export_statement';
  const named = (
    node.childForFieldName('name') ??
    parent?.childForFieldName('name') ??
    parent?.childForFieldName('left') ??
    parent?.childForFieldName('key')
  )?.text;
  const name = named?.replace(/\.prototype$/, '') ?? (isDefault ? 'default' : undefined);
  // Members of `module.exports = { … }` count as top-level definitions.
  if (name !== undefined && /^(module\.)?exports$/.test(name)) return { ...here, local: false };
  // Members of an object without a name, such as an argument, have no owner.
  if (name === undefined || !/^[\p{L}\w$]+$/u.test(name)) return { ...here, local: true };
  return {
    ...here,
    owner: name,
    ownerAt: named === undefined || name === named ? node.startIndex : undefined,
    local: inFunction,
  };
}

export const PATTERNS = /^(object_pattern|array_pattern|pattern_list|tuple_pattern|list_pattern)$/;

export const present = (nodes: readonly (Node | null)[] | undefined): Node[] =>
  (nodes ?? []).filter((node) => node !== null);

export const oneLine = (text: string): string => text.replace(/\s+/g, ' ');

/** The type without the colon before it. */
export const typeText = (node: Node | null): string | undefined =>
  node ? oneLine(node.text.replace(/^:\s*/, '')) : undefined;

/** Nodes that may be anywhere. */
export const NO_CODE = /^(comment|line_continuation)$/;

/** The first child that is no comment. Reads one child at a time, because a body may have thousands. */
export function firstCode(node: Node | null): Node | null {
  let child = node?.namedChild(0) ?? null;
  for (let i = 1; child && NO_CODE.test(child.type); i++) child = node?.namedChild(i) ?? null;
  return child;
}

/** The names that a pattern binds. */
export function namesIn(pattern: Node): Node[] {
  if (/^(identifier|shorthand_property_identifier_pattern)$/.test(pattern.type)) return [pattern];
  const part =
    pattern.type === 'pair_pattern'
      ? pattern.childForFieldName('value')
      : /assignment_pattern$/.test(pattern.type)
        ? pattern.childForFieldName('left')
        : undefined;
  if (part) return namesIn(part);
  return PATTERNS.test(pattern.type) || /^(rest_pattern|list_splat_pattern)$/.test(pattern.type)
    ? present(pattern.namedChildren).flatMap(namesIn)
    : [];
}

/** The content of a string without escapes. Undefined for any other node. */
export function stringText(node: Node | null | undefined): string | undefined {
  return node?.type === 'string' ? /^[rRuU]?(['"])([^\\]*)\1$/s.exec(node.text)?.[2] : undefined;
}
