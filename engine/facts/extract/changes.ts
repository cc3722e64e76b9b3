/**
 * Reads from any syntax tree where names are written, what is thrown, and the functions and classes around them. Does
 * not follow values: a thrown variable is named as it stands there.
 */
import type { Node, Tree } from 'web-tree-sitter';
import {
  CLASSES,
  classAt,
  type Definer,
  FIELDS,
  FUNCTIONS,
  fieldsAt,
  functionAt,
  hasNamelessType,
  lineOf,
  type Named,
  OTHERS,
  otherAt,
  set,
} from './named.ts';
import { bare, namesOf } from './targets.ts';
import { present } from './tree.ts';

interface Write {
  /** Without `$`, `@` or an object before it. */
  name: string;
  /** From 1. */
  line: number;
  /** The innermost named function around it, with its class, or the class. */
  within?: string;
  /** `first`: it gives a new variable or field its first value. */
  how: 'first' | 'assigned' | 'deleted';
  /** The target as written, if it is a part of the name, or of another object than the function's own. */
  as?: string;
}

interface Throw {
  /** The class or variable after `throw`. Undefined for another value, or none. */
  name?: string;
  line: number;
  within?: string;
  /** In a function without a name inside `within`. */
  inner: boolean;
}

export interface Changes {
  writes: Write[];
  throws: Throw[];
  named: Named[];
}

/** Nodes that give their name to the function that is their value. */
const HOLDERS = set(`
  variable_declarator pair public_field_definition field_definition assignment_expression assignment init_declarator
`);
/** The fields that hold what is written, by the type of the node. */
const WRITES: Readonly<Record<string, string>> = {
  ...fields('left', 'assignment_expression augmented_assignment_expression assignment augmented_assignment'),
  ...fields('left', 'assignment_statement operator_assignment compound_assignment_expr for_in_statement'),
  ...fields('argument', 'update_expression'),
  ...fields('', 'inc_statement dec_statement post_increment_expression post_decrement_expression'),
  ...fields('', 'pre_increment_expression pre_decrement_expression delete_statement'),
  named_expression: 'name',
  variable_assignment: 'name',
};
const DECLARES: Readonly<Record<string, string>> = {
  ...fields('name', 'variable_declarator var_spec const_spec static_item const_item'),
  ...fields('name', 'public_field_definition property_element enhanced_for_statement'),
  ...fields('left', 'short_var_declaration range_clause for_statement foreach_statement'),
  ...fields('declarator', 'init_declarator for_range_loop'),
  ...fields('pattern', 'let_declaration for_expression'),
  field_definition: 'property',
  as_pattern: 'alias',
};
/** Declarations that may stand without a value. */
const MAY_LACK_VALUE = set(`
  variable_declarator var_spec const_spec static_item const_item public_field_definition property_element
  let_declaration field_definition
`);
/** Python and shells have no declarations: these give a value as an assignment does. */
const LIKE_ASSIGNMENTS = set('for_statement as_pattern');
const MAY_CHANGE = set('postfix_unary_expression prefix_unary_expression unary_expression');
const CHANGING = /^(?:\+\+|--|delete)$/;
/** Of a shell. */
const ARITHMETIC = set('test_command arithmetic_expansion');
const THROWS = set('throw_statement throw_expression raise_statement flow_control_statement assert_statement');
/** Calls that throw, by their node and the field of their name. */
const THROWING: Readonly<Record<string, readonly [field: string, names: RegExp]>> = {
  call_expression: ['function', /^panic$/],
  call: ['method', /^(raise|fail)$/],
  macro_invocation: ['macro', /^(panic|unreachable|unimplemented|todo|bail)$/],
};

function fields(field: string, types: string): Record<string, string> {
  return Object.fromEntries(types.split(' ').map((type) => [type, field]));
}

/** Everything that the tree writes, throws and names. Walks with a cursor in linear time. */
export function changesOf(tree: Tree, grammar: string): Changes {
  const found: Changes = { writes: [], throws: [], named: [] };
  const isRuby = grammar === 'ruby';
  const cursor = tree.walk();
  const places: Definer[] = [{ inner: false }];
  try {
    for (;;) {
      const place = places.at(-1) as Definer;
      const type = cursor.nodeType;
      const isVisited = cursor.nodeIsNamed && (isRead(type) || (isRuby && type === 'identifier'));
      const below = isVisited ? visit(cursor.currentNode, place, found) : { ...place, held: undefined };
      if (cursor.gotoFirstChild()) {
        places.push(below);
        continue;
      }
      while (!cursor.gotoNextSibling()) {
        if (!cursor.gotoParent()) return found;
        places.pop();
      }
    }
  } finally {
    cursor.delete();
  }
}

const SETS = [FUNCTIONS, CLASSES, FIELDS, OTHERS, THROWS, MAY_CHANGE, HOLDERS, ARITHMETIC];
const TABLES = [WRITES, DECLARES, THROWING];
const isRead = (type: string): boolean =>
  SETS.some((types) => types.has(type)) || TABLES.some((types) => Object.hasOwn(types, type));

/** Reads one node. Returns the place of its children. */
function visit(node: Node, place: Definer, found: Changes): Definer {
  const { type } = node;
  const { within = place.owner, inner } = place;
  const at = { line: lineOf(node), ...(within === undefined ? {} : { within }) };
  // Ruby's bare `raise` is a name.
  if (type === 'identifier') {
    if (node.endIndex - node.startIndex === 5 && node.text === 'raise' && node.parent?.type === 'body_statement')
      found.throws.push({ ...at, inner });
    return place;
  }
  if (ARITHMETIC.has(type)) {
    for (const name of arithmetic(node.text)) found.writes.push({ name, how: 'assigned', ...at });
    return place;
  }
  const thrown = thrownBy(node);
  if (thrown) found.throws.push({ ...at, inner, ...thrown });
  const targets = writtenBy(node);
  for (const { target, how } of targets)
    for (const { name, ...as } of namesOf(target))
      if (name.text !== '') found.writes.push({ name: bare(name.text), how, ...at, line: lineOf(name), ...as });
  if (FIELDS.has(type)) found.named.push(...fieldsAt(node, place));
  if (OTHERS.has(type)) return otherAt(node, place);
  if (hasNamelessType(node)) return { ...place, owner: undefined, held: undefined };
  if (FUNCTIONS.has(type)) return functionAt(node, place, found.named);
  if (CLASSES.has(type)) return classAt(node, place, found.named);
  const [held] = HOLDERS.has(type) ? targetOf(node).flatMap(namesOf) : [];
  return { ...place, held: held && bare(held.name.text) };
}

/** The names that `((total += 1))` of a shell writes. The tree has such code as words. */
const arithmetic = (text: string): string[] =>
  /^\$?\(\(/.test(text)
    ? [...text.matchAll(/\b([A-Za-z_]\w*)\s*(?:\+\+|--|[-+*/%&|^]?=(?!=))|(?:\+\+|--)\s*([A-Za-z_]\w*)/g)].map(
        ([, behind, before]) => behind ?? before ?? '',
      )
    : [];

/** What a declaration or pair names. */
const targetOf = (node: Node): Node[] =>
  present([
    node.childForFieldName(WRITES[node.type] ?? DECLARES[node.type] ?? 'key') ?? node.childForFieldName('name'),
  ]);

function thrownBy(node: Node): { name?: string } | undefined {
  const { type } = node;
  if (type === 'flow_control_statement' && node.child(0)?.type !== 'throw') return undefined;
  // That of Java ends with a semicolon, and throws only where it is switched on.
  if (type === 'assert_statement') return node.lastChild?.type === ';' ? undefined : { name: 'AssertionError' };
  if (THROWS.has(type)) return thrownName(node.namedChild(0));
  const [field = '', names] = THROWING[type] ?? [];
  if (!names?.test(node.childForFieldName(field)?.text ?? '') || node.childForFieldName('receiver')) return undefined;
  return type === 'call' ? thrownName(node.childForFieldName('arguments')?.namedChild(0) ?? null) : {};
}

/** The class that is made, or the variable. */
function thrownName(value: Node | null): { name?: string } {
  const [error] = value?.childForFieldName('arguments')?.namedChildren ?? [];
  if (error && value?.childForFieldName('function')?.text === 'Object.assign') return thrownName(error);
  const made =
    value?.childForFieldName('constructor') ??
    value?.childForFieldName('type') ??
    value?.childForFieldName('function') ??
    (value?.childForFieldName('method')?.text === 'new' ? value.childForFieldName('receiver') : null) ??
    (/^object_creation_expression$/.test(value?.type ?? '') ? value?.namedChild(0) : null) ??
    value;
  if (value?.type === 'pipeline') {
    const name = /^\[([\w.]+)\]::new\b/.exec(value.text)?.[1];
    return name === undefined ? {} : { name };
  }
  const written = made?.text ?? '';
  const name = /^[$@]?[\p{L}_][\p{L}\p{N}_$]*(?:(?:\.|::|\\)[\p{L}_][\p{L}\p{N}_$]*)*$/u.test(written)
    ? written.split(/\.|::|\\/).at(-1)
    : undefined;
  return name === undefined || name === 'this' ? {} : { name: bare(name) };
}

/** The nodes that a node writes. */
function writtenBy(node: Node): { target: Node; how: Write['how'] }[] {
  const { type } = node;
  if (MAY_CHANGE.has(type)) {
    const target = node.childForFieldName('argument') ?? node.namedChild(0);
    const [word] = [node.child(0), node.child(node.childCount - 1)].filter((each) => CHANGING.test(each?.type ?? ''));
    return target && word ? [{ target, how: word.type === 'delete' ? 'deleted' : 'assigned' }] : [];
  }
  const declares = !Object.hasOwn(WRITES, type);
  const field = WRITES[type] ?? DECLARES[type];
  if (field === undefined) return [];
  const written =
    node.childForFieldName(field || 'argument') ?? (declares ? node.childForFieldName('name') : node.namedChild(0));
  const target = type === 'for_statement' ? (written ?? node.childForFieldName('variable')) : written;
  if (!target || (declares && MAY_LACK_VALUE.has(type) && !hasValue(node, target))) return [];
  // `x: int` in a Python class or function declares no value.
  if (type === 'assignment' && !node.childForFieldName('right')) return [];
  const how = declares && !LIKE_ASSIGNMENTS.has(type) ? 'first' : 'assigned';
  return [{ target, how: type === 'delete_statement' ? 'deleted' : how }];
}

/** C# writes the value of a variable without a field. */
const hasValue = (node: Node, target: Node): boolean =>
  (node.childForFieldName('value') ?? node.childForFieldName('default_value')) !== null ||
  present(node.namedChildren).some(
    ({ id, type }) =>
      id !== target.id && node.type === 'variable_declarator' && /expression|literal|^identifier$/.test(type),
  );
