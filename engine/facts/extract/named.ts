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
  /** It is a function of C or C++ without its body. */
  isPrototype?: true;
}

/** The function and class around a node. */
export interface Definer {
  owner?: string | undefined;
  within?: string | undefined;
  inner: boolean;
  /** Inside a class without a name. */
  nameless?: true;
  /** The name for the function or struct right below. */
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
  struct_item enum_item enum_variant union_specifier union_item type_spec class_statement annotation_type_declaration
`);
/** Members without a body, of structs, classes and interfaces. */
export const FIELDS = set(`
  field_declaration method_elem method_spec function_signature_item property_declaration constant_declaration
  event_field_declaration event_declaration class_property_definition annotation_type_element_declaration
  ordered_field_declaration_list declaration call
`);
/** What contains members of something else than the class around it. */
export const OTHERS = set(`
  object_creation_expression anonymous_class enum_constant friend_declaration type_definition
`);

export const lineOf = (node: Node): number => node.startPosition.row + 1;

/** @param name whose line is that of the definition. Attributes may stand above it. */
const placeOf = (node: Node, name: Node = node) => ({
  line: lineOf(name),
  at: node.startIndex,
  end: node.endIndex,
  head: scriptHead(node) ?? headOf(node, node),
});

/** In PowerShell the parameters may stand at the beginning of the body. */
function scriptHead(node: Node): Named['head'] | undefined {
  const block = present(node.namedChildren).find(({ type }) => type === 'script_block');
  const parameters = present(block?.namedChildren).find(({ type }) => type === 'param_block');
  return block && { from: node.startIndex, to: parameters?.endIndex ?? block.startIndex };
}

/** Members without a body, and outside of a class the functions of C and C++ without one. */
export function fieldsAt(node: Node, { owner, within, nameless }: Definer): Named[] {
  const { type } = node;
  if (within !== undefined || nameless || (owner === undefined && type !== 'declaration')) return [];
  const member = { local: false, ...(owner === undefined ? {} : { owner }) };
  if (type === 'call')
    return attributesOf(node).map((each) => ({
      ...{ kind: 'value', name: each.text.replace(/^:/, ''), ...member, ...placeOf(node, each) },
    }));
  // The fields of a tuple have the names 0, 1 and so on.
  if (type === 'ordered_field_declaration_list')
    return present(node.childrenForFieldName('type')).map((each, i) => ({
      ...{ kind: 'value', name: `${i}`, ...member, ...placeOf(each) },
    }));
  const isField =
    /^(?:\w*field_declaration|(?:property|constant|event)_declaration|class_property_definition|declaration)$/;
  return declaredBy(node).flatMap(([name, isFunction]) => {
    if (owner === undefined && !isFunction) return [];
    const kind = owner === undefined ? 'function' : isField.test(type) && !isFunction ? 'value' : 'method';
    const prototype = owner === undefined ? ({ isPrototype: true } as const) : {};
    return [{ kind, name: nameIn(name), ...member, ...prototype, ...placeOf(node, name) }];
  });
}

/** The symbols in `attr_reader :name, :size` of Ruby. */
const attributesOf = (node: Node): Node[] =>
  /^attr_(?:reader|writer|accessor)$/.test(node.childForFieldName('method')?.text ?? '')
    ? present(node.childForFieldName('arguments')?.namedChildren).filter(({ type }) => type === 'simple_symbol')
    : [];

/** The fields that the parameters of a record or of a constructor of PHP declare. */
function parameterFields(node: Node, owner: string, isField: (parameter: Node) => boolean): Named[] {
  const list =
    node.childForFieldName('parameters') ??
    present(node.namedChildren).find(({ type }) => type === 'parameter_list') ??
    null;
  return present(list?.namedChildren)
    .filter(isField)
    .flatMap((parameter) =>
      declaredBy(parameter).map(([name]) => ({
        ...{ kind: 'value', name: bare(name.text), owner, local: false, ...placeOf(parameter, name) },
      })),
    );
}

const DECLARATORS = /declarator$|^(?:variable_declaration|property_element|operator_cast)$/;
const isName = ({ type }: Node): boolean =>
  /(?:^|_)identifier$|^(?:variable_name|variable|operator_name|destructor_name|operator_cast)$/.test(type);

/** `operator bool` of `operator bool() const`, and else the name as written. */
const nameIn = (node: Node): string =>
  bare(node.type === 'operator_cast' ? node.text.replace(/\s*\(.*$/s, '') : node.text);

/** The names in a declaration of a member, and whether they are those of functions. */
function declaredBy(node: Node, isFunction = false): [name: Node, isFunction: boolean][] {
  if (isName(node)) return [[node, isFunction || node.type === 'operator_cast']];
  const parts = ['name', 'declarator'].flatMap((field) => present(node.childrenForFieldName(field)));
  const inner = parts.length > 0 ? parts : present(node.namedChildren).filter(({ type }) => DECLARATORS.test(type));
  // C# gives the name of a variable no field, and PowerShell that of a property.
  const isFirst = /^(?:variable_declarator|class_property_definition)$/.test(node.type);
  const found = inner.length > 0 ? inner : isFirst ? present(node.namedChildren).filter(isName).slice(0, 1) : [];
  // In `int (*f)(int)`, what is in brackets points to a function.
  const isPointer = node.type === 'parenthesized_declarator' && node.namedChild(0)?.type === 'pointer_declarator';
  return found.flatMap((part) => declaredBy(part, !isPointer && (isFunction || node.type === 'function_declarator')));
}

export function functionAt(node: Node, place: Definer, found: Named[]): Definer {
  const { name: own, owner = place.owner, at } = functionName(node) ?? { name: place.held };
  if (own === undefined) return { ...place, inner: place.within !== undefined, held: undefined };
  const isLocal = place.within !== undefined || place.nameless === true;
  const isMethod = owner !== undefined && !isLocal;
  found.push({
    kind: isMethod ? 'method' : 'function',
    name: own,
    ...(isMethod ? { owner } : {}),
    local: isLocal,
    ...placeOf(node, at ?? node),
  });
  if (isMethod) found.push(...parameterFields(node, owner, ({ type }) => type === 'property_promotion_parameter'));
  return { within: isMethod ? `${owner}.${own}` : own, inner: false };
}

interface FunctionName {
  name: string;
  /** The class, if the function stands outside of it. */
  owner?: string | undefined;
  at?: Node;
}

function functionName(node: Node): FunctionName | undefined {
  const at = node.childForFieldName('name');
  if (at) {
    const receiver = node.childForFieldName('receiver')?.text ?? '';
    const owner = /^\(\s*(?:[\p{L}\w]+(?:\s+|(?=\*)))?\*?\s*([\p{L}\w]+)/u.exec(receiver)?.[1];
    return { name: `${node.type === 'destructor_declaration' ? '~' : ''}${bare(at.text)}`, owner, at };
  }
  const declarator = node.type === 'lambda_expression' ? null : node.childForFieldName('declarator');
  if (declarator) return declaredName(declarator);
  const plain = present(node.namedChildren).find(({ type }) => type === 'function_name' || type === 'simple_name');
  return plain && { name: plain.text, at: plain };
}

/** The name in a declarator of C or C++, as `put` of `Box` in `&Box<T>::put(T item)`. */
function declaredName(declarator: Node): FunctionName {
  let at = declarator;
  let owner: string | undefined;
  for (;;) {
    const scope = at.type === 'qualified_identifier' ? at.childForFieldName('scope') : null;
    if (scope) owner = (scope.childForFieldName('name') ?? scope).text;
    const inner = scope
      ? at.childForFieldName('name')
      : /^(?:pointer|reference|function|parenthesized|attributed)_declarator$/.test(at.type)
        ? (at.childForFieldName('declarator') ?? at.namedChild(at.namedChildCount - 1))
        : at.type === 'template_function'
          ? at.childForFieldName('name')
          : null;
    if (!inner) return { name: nameIn(at), owner, at };
    at = inner;
  }
}

export function classAt(node: Node, place: Definer, found: Named[]): Definer {
  const { type } = node;
  // The fields of a variant are not those of the enum.
  if (type === 'enum_variant') return { ...place, owner: undefined, held: undefined };
  const name =
    node.childForFieldName('name') ??
    node.childForFieldName('type') ??
    present(node.namedChildren).find((each) => each.type === 'simple_name');
  const own = name?.text ?? (/_specifier$/.test(type) ? place.held : undefined);
  // These need no body: `struct Unit;`, `record Point(int X);` and `type ID int`.
  const isWhole =
    /^(?:impl_item|class_statement|struct_item|record_declaration)$/.test(type) ||
    (type === 'type_spec' && node.childForFieldName('type') !== null);
  if (own === undefined || !(isWhole || node.childForFieldName('body'))) return { ...place, held: undefined };
  const local = place.within !== undefined || place.nameless === true;
  if (type !== 'impl_item') found.push({ kind: 'class', name: own, local, ...placeOf(node, name ?? node) });
  const owner = own.replace(/<.*$/s, '');
  if (type === 'record_declaration') found.push(...parameterFields(node, owner, () => true));
  return { ...place, owner, within: undefined, inner: false, nameless: undefined, held: undefined };
}

/** The place of what is in one of `OTHERS`. */
export function otherAt(node: Node, place: Definer): Definer {
  const { owner, within = owner } = place;
  // `typedef struct { int x; } Point` names the struct at its end.
  if (node.type === 'type_definition') return { ...place, held: node.childForFieldName('declarator')?.text };
  if (node.type === 'friend_declaration') return { ...place, owner: undefined, held: undefined };
  const hasBody = present(node.namedChildren).some(({ type }) => /^(?:class_body|declaration_list)$/.test(type));
  return hasBody
    ? { ...place, owner: undefined, within, nameless: true, held: undefined }
    : { ...place, held: undefined };
}

/** Whether a field has a struct without a name as its type, whose fields are not those of the class. */
export const hasNamelessType = (node: Node): boolean => {
  const type = node.type === 'field_declaration' ? node.childForFieldName('type') : null;
  return (
    /_specifier$/.test(type?.type ?? '') && !type?.childForFieldName('name') && !!node.childForFieldName('declarator')
  );
};
