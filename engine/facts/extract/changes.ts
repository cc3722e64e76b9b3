/**
 * Reads from any syntax tree where names are written, what is thrown, and the functions and classes around them. Does
 * not follow values: a thrown variable is named as it stands there.
 */
import type { Node, Tree } from 'web-tree-sitter';
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

export interface Named {
  kind: 'function' | 'method' | 'class';
  name: string;
  owner?: string;
  /** Inside a function. */
  local: boolean;
  /** Of its beginning, from 1. */
  line: number;
}

export interface Changes {
  writes: Write[];
  throws: Throw[];
  named: Named[];
}

const set = (types: string): ReadonlySet<string> => new Set(types.trim().split(/\s+/));

const FUNCTIONS = set(`
  function_declaration generator_function_declaration function_definition function_expression generator_function
  arrow_function lambda lambda_expression method_definition method_declaration constructor_declaration
  compact_constructor_declaration local_function_statement func_literal function_item closure_expression method
  singleton_method anonymous_function anonymous_function_creation_expression function_statement
  class_method_definition operator_declaration destructor_declaration
`);
const CLASSES = set(`
  class_declaration abstract_class_declaration class class_definition class_specifier struct_specifier
  struct_declaration record_declaration interface_declaration enum_declaration trait_declaration trait_item impl_item
  struct_item enum_item type_spec class_statement
`);
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

interface Place {
  owner?: string | undefined;
  within?: string | undefined;
  inner: boolean;
  /** The name for the function right below. */
  held?: string | undefined;
}

/** Everything that the tree writes, throws and names. Walks with a cursor in linear time. */
export function changesOf(tree: Tree, grammar: string): Changes {
  const found: Changes = { writes: [], throws: [], named: [] };
  const isRuby = grammar === 'ruby';
  const cursor = tree.walk();
  const places: Place[] = [{ inner: false }];
  try {
    for (;;) {
      const place = places.at(-1) as Place;
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

const SETS = [FUNCTIONS, CLASSES, THROWS, MAY_CHANGE, HOLDERS, ARITHMETIC];
const TABLES = [WRITES, DECLARES, THROWING];
const isRead = (type: string): boolean =>
  SETS.some((types) => types.has(type)) || TABLES.some((types) => Object.hasOwn(types, type));

/** Reads one node. Returns the place of its children. */
function visit(node: Node, place: Place, found: Changes): Place {
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
  if (FUNCTIONS.has(type)) return functionAt(node, place, found);
  if (CLASSES.has(type)) return classAt(node, place, found);
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

function functionAt(node: Node, place: Place, found: Changes): Place {
  const [own, owner = place.owner] = functionName(node) ?? [place.held];
  if (own === undefined) return { ...place, inner: place.within !== undefined, held: undefined };
  const name = owner === undefined || place.within !== undefined ? own : `${owner}.${own}`;
  const isMethod = owner !== undefined && place.within === undefined;
  found.named.push({
    kind: isMethod ? 'method' : 'function',
    name: own,
    ...(isMethod ? { owner } : {}),
    local: place.within !== undefined,
    line: lineOf(node),
  });
  return { within: name, inner: false };
}

/** The name of a function, and of its class if it stands outside the class. */
function functionName(node: Node): [name: string, owner?: string] | undefined {
  const name = node.childForFieldName('name');
  if (name) {
    const owner = /^\(\s*\w*\s*\*?\s*(\w+)/.exec(node.childForFieldName('receiver')?.text ?? '')?.[1];
    return owner === undefined ? [bare(name.text)] : [bare(name.text), owner];
  }
  let declarator = node.type === 'lambda_expression' ? null : node.childForFieldName('declarator');
  while (declarator && /^(pointer|reference|function|parenthesized)_declarator$/.test(declarator.type))
    declarator = declarator.childForFieldName('declarator') ?? declarator.namedChild(declarator.namedChildCount - 1);
  if (declarator) {
    const parts = declarator.text.split('::');
    return parts.length > 1 ? [parts.at(-1) as string, parts.at(-2) as string] : [declarator.text];
  }
  const plain = present(node.namedChildren).find(({ type }) => type === 'function_name' || type === 'simple_name');
  return plain && [plain.text];
}

function classAt(node: Node, place: Place, found: Changes): Place {
  const name =
    node.childForFieldName('name') ??
    node.childForFieldName('type') ??
    present(node.namedChildren).find(({ type }) => type === 'simple_name');
  const hasBody = node.type === 'impl_item' || node.type === 'class_statement' || node.childForFieldName('body');
  const isGoType =
    node.type === 'type_spec' && /^(struct|interface)_type$/.test(node.childForFieldName('type')?.type ?? '');
  if (!name || !(hasBody || isGoType)) return { ...place, held: undefined };
  const local = place.within !== undefined;
  if (node.type !== 'impl_item') found.named.push({ kind: 'class', name: name.text, local, line: lineOf(node) });
  return { ...place, owner: name.text.replace(/<.*$/s, ''), within: undefined, inner: false, held: undefined };
}

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

const lineOf = (node: Node): number => node.startPosition.row + 1;
