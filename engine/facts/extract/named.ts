/** Reads the functions, classes and fields that the nodes of any syntax tree define. Does not walk the tree. */
import type { Node } from 'web-tree-sitter';
import { headOf } from './members.ts';
import { bare } from './targets.ts';
import { present } from './tree.ts';

export interface Named {
  kind: 'function' | 'method' | 'class' | 'value';
  name: string;
  owner?: string;
  /** Inside a function. */
  local: boolean;
  /** Of its beginning, from 1. */
  line: number;
  /** Offsets of its beginning and end. */
  at: number;
  end: number;
  /** Offsets of the declaration without its body. */
  head: { from: number; to: number };
}

/** The function and class around a node. */
export interface Definer {
  owner?: string | undefined;
  within?: string | undefined;
  inner: boolean;
  /** The name for the function right below. */
  held?: string | undefined;
}

export const set = (types: string): ReadonlySet<string> => new Set(types.trim().split(/\s+/));

export const FUNCTIONS = set(`
  function_declaration generator_function_declaration function_definition function_expression generator_function
  arrow_function lambda lambda_expression method_definition method_declaration constructor_declaration
  compact_constructor_declaration local_function_statement func_literal function_item closure_expression method
  singleton_method anonymous_function anonymous_function_creation_expression function_statement
  class_method_definition operator_declaration destructor_declaration
`);
export const CLASSES = set(`
  class_declaration abstract_class_declaration class class_definition class_specifier struct_specifier
  struct_declaration record_declaration interface_declaration enum_declaration trait_declaration trait_item impl_item
  struct_item enum_item enum_variant type_spec class_statement
`);
/** Members without a body, of structs, classes and interfaces. */
export const FIELDS = set(`
  field_declaration method_elem method_spec function_signature_item property_declaration
`);

export const lineOf = (node: Node): number => node.startPosition.row + 1;

/** @param name whose line is that of the definition. Attributes may stand above it. */
const placeOf = (node: Node, name: Node = node) => ({
  line: lineOf(name),
  at: node.startIndex,
  end: node.endIndex,
  head: headOf(node, node),
});

/** None outside of a class. */
export function fieldsAt(node: Node, { owner, within }: Definer): Named[] {
  if (owner === undefined || within !== undefined) return [];
  const isField = /^(?:field|property)_declaration$/.test(node.type);
  return declaredBy(node).map(([name, isFunction]) => ({
    kind: isField && !isFunction ? 'value' : 'method',
    name: bare(name.text),
    owner,
    local: false,
    ...placeOf(node, name),
  }));
}

const DECLARATORS = /declarator$|^(?:variable_declaration|property_element)$/;
const isName = ({ type }: Node): boolean => /(?:^|_)identifier$|^variable_name$/.test(type);

/** The names in a declaration of a member, and whether they are those of functions. */
function declaredBy(node: Node, isFunction = false): [name: Node, isFunction: boolean][] {
  if (isName(node)) return [[node, isFunction]];
  const parts = ['name', 'declarator'].flatMap((field) => present(node.childrenForFieldName(field)));
  const inner = parts.length > 0 ? parts : present(node.namedChildren).filter(({ type }) => DECLARATORS.test(type));
  // C# gives the name of a variable no field.
  const found =
    inner.length > 0 ? inner : node.type === 'variable_declarator' ? present([node.namedChild(0)]).filter(isName) : [];
  return found.flatMap((part) => declaredBy(part, isFunction || node.type === 'function_declarator'));
}

export function functionAt(node: Node, place: Definer, found: Named[]): Definer {
  const [own, owner = place.owner] = functionName(node) ?? [place.held];
  if (own === undefined) return { ...place, inner: place.within !== undefined, held: undefined };
  const name = owner === undefined || place.within !== undefined ? own : `${owner}.${own}`;
  const isMethod = owner !== undefined && place.within === undefined;
  found.push({
    kind: isMethod ? 'method' : 'function',
    name: own,
    ...(isMethod ? { owner } : {}),
    local: place.within !== undefined,
    ...placeOf(node, node.childForFieldName('name') ?? node),
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

export function classAt(node: Node, place: Definer, found: Named[]): Definer {
  // The fields of a variant are not those of the enum.
  if (node.type === 'enum_variant') return { ...place, owner: undefined, held: undefined };
  const name =
    node.childForFieldName('name') ??
    node.childForFieldName('type') ??
    present(node.namedChildren).find(({ type }) => type === 'simple_name');
  const hasBody = node.type === 'impl_item' || node.type === 'class_statement' || node.childForFieldName('body');
  const isGoType =
    node.type === 'type_spec' && /^(struct|interface)_type$/.test(node.childForFieldName('type')?.type ?? '');
  if (!name || !(hasBody || isGoType)) return { ...place, held: undefined };
  const local = place.within !== undefined;
  if (node.type !== 'impl_item') found.push({ kind: 'class', name: name.text, local, ...placeOf(node, name) });
  return { ...place, owner: name.text.replace(/<.*$/s, ''), within: undefined, inner: false, held: undefined };
}
