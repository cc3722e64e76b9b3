/** Reads syntax trees: a walk that knows the class and function around each node, and helpers for names and texts. */
import type { Node, Tree } from 'web-tree-sitter';

export const FUNCTIONS =
  /^(function_declaration|generator_function_declaration|function_signature|method_definition|method_signature|abstract_method_signature|function_definition|arrow_function|function_expression|generator_function|lambda)$/;
export const CLASSES = /^(class|class_declaration|abstract_class_declaration|class_definition|interface_declaration)$/;

export interface Place {
  /** The class, interface or object that it is a member of, and where that begins in the text; what a prototype has begins elsewhere than its class. */
  owner?: string;
  ownerAt?: number | undefined;
  /** Inside a function or a namespace, or of something without a name. */
  local: boolean;
  inFunction: boolean;
  inBlock: boolean;
  /** The tree did not make out what stands here. */
  broken: boolean;
  /** The node right above; itself where its type is one of those visited. */
  parentType: string;
  parent: Node | null;
  /** Where the innermost function around begins in the text. */
  functionAt?: number | undefined;
  /** Where the class begins that `this` is of, if it surely is of one. */
  thisAt?: number | undefined;
  /** Where the statement begins that is this node alone, with `export`, `const` or decorators before it; undefined for what is none. */
  head?: Start | undefined;
}

interface Start {
  /** From 0. */
  row: number;
  /** In the text. */
  at: number;
}

/** What may stand before a definition. */
const STATEMENTS =
  /^(export_statement|lexical_declaration|variable_declaration|ambient_declaration|expression_statement|decorated_definition)$/;

/** In Python `self` is a variable like others. */
const KEEPS_THIS = /^(arrow_function|function_definition|lambda)$/;

/** Each node of these types, what stands above before what stands below. */
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

/** @param start of functions and of what may stand before a definition */
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
  // What a type of a member has, `on: { click: string }` for instance.
  if (type === 'object_type' && !CLASSES.test(place.parentType)) return { ...here, local, thisAt: place.thisAt };
  // Python's `module` is the file.
  if (type === 'internal_module' || (type === 'module' && place.parentType !== '')) return { ...here, local: true };
  if (!node || !(CLASSES.test(type) || type === 'object'))
    return { ...here, local, thisAt: place.thisAt, ...(owner === undefined ? {} : { owner, ownerAt }) };
  const { parent } = place;
  const named = (
    node.childForFieldName('name') ??
    parent?.childForFieldName('name') ??
    parent?.childForFieldName('left') ??
    parent?.childForFieldName('key')
  )?.text;
  const name = named?.replace(/\.prototype$/, '');
  // What a module exports in an object is the file's own.
  if (name !== undefined && /^(module\.)?exports$/.test(name)) return { ...here, local: false };
  // What an object without a name has, an argument for instance, is nobody's.
  if (name === undefined || !/^[\p{L}\w$]+$/u.test(name)) return { ...here, local: true };
  return { ...here, owner: name, ownerAt: name === named ? node.startIndex : undefined, local: inFunction };
}

export const PATTERNS = /^(object_pattern|array_pattern|pattern_list|tuple_pattern|list_pattern)$/;

export const present = (nodes: readonly (Node | null)[] | undefined): Node[] =>
  (nodes ?? []).filter((node) => node !== null);

export const oneLine = (text: string): string => text.replace(/\s+/g, ' ');

/** Without the colon that an annotation begins with. */
export const typeText = (node: Node | null): string | undefined =>
  node ? oneLine(node.text.replace(/^:\s*/, '')) : undefined;

/** What may stand between any two nodes; in Python the end of a line that goes on is one. */
export const NO_CODE = /^(comment|line_continuation)$/;

/** The first that is no comment; one by one, as a body may have thousands. */
export function firstCode(node: Node | null): Node | null {
  let child = node?.namedChild(0) ?? null;
  for (let i = 1; child && NO_CODE.test(child.type); i++) child = node?.namedChild(i) ?? null;
  return child;
}

/** What a pattern gives names to. */
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

/** Of a plain string, as it is written; undefined for any other node. */
export function stringText(node: Node | null | undefined): string | undefined {
  return node?.type === 'string' ? /^[rRuU]?(['"])([^\\]*)\1$/s.exec(node.text)?.[2] : undefined;
}
