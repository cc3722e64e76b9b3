/**
 * Tells from a syntax tree what an object is: by the types and values of its declarations, and by what functions of the
 * file return. In doubt it tells nothing. Does not know what a type has (ownMembers.ts, languageMembers.ts).
 */
import type { Node } from 'web-tree-sitter';
import { declarationsOf, OWNERS, returnsOf, valueIn } from './declarations.ts';
import { isLanguageObject } from './languageMembers.ts';
import { FUNCTIONS, type Scopes } from './scopes.ts';

/** What an object is. */
export interface ObjectType {
  kind: 'module' | 'itself' | 'instance';
  /** The name of a module or of a type of the language, or the class, interface, enum or literal of the file. */
  of: string | Node;
}

/** Names that are followed to see what a name is. */
export const MAX_DEPTH = 4;
/** What the language makes of an expression or a written type. */
const LITERALS: Readonly<Record<string, string>> = {
  array: 'Array',
  array_type: 'Array',
  template_string: 'String',
  list: 'list',
  list_comprehension: 'list',
  dictionary: 'dict',
  dictionary_comprehension: 'dict',
  set: 'set',
  set_comprehension: 'set',
};
/** Types of the language by other names. */
const ALIASES: Readonly<Record<string, string>> = {
  string: 'String',
  number: 'Number',
  ReadonlyArray: 'Array',
  ReadonlyMap: 'Map',
  ReadonlySet: 'Set',
};
const TYPING: Readonly<Record<string, string>> = { List: 'list', Dict: 'dict', Set: 'set' };
const NOTHING = /^(null|undefined|none)$/;

export class ObjectTypes {
  readonly scopes: Scopes;
  readonly isScript: boolean;

  constructor(scopes: Scopes, isScript: boolean) {
    this.scopes = scopes;
    this.isScript = isScript;
  }

  /** What an expression gives, or what a written type describes. */
  of(node: Node | null | undefined, depth = 0): ObjectType | undefined {
    if (!node || depth > MAX_DEPTH) return undefined;
    const literal = LITERALS[node.type] ?? this.#textType(node);
    if (literal !== undefined) return { kind: 'instance', of: literal };
    const { firstNamedChild } = node;
    switch (node.type) {
      case 'identifier':
        return this.named(node, depth);
      case 'object':
      case 'object_type':
        return { kind: 'instance', of: node };
      case 'class':
        return { kind: 'itself', of: node };
      case 'new_expression':
        return instance(this.named(node.childForFieldName('constructor'), depth));
      case 'call':
      case 'call_expression':
        return this.#called(node, depth);
      case 'parenthesized_expression':
        return this.of(firstNamedChild, depth);
      case 'type':
      case 'type_annotation':
      case 'readonly_type':
      case 'generic_type':
        return isName(firstNamedChild) ? instance(this.named(firstNamedChild, depth)) : this.of(firstNamedChild, depth);
      default:
        return undefined;
    }
  }

  /** What a name stands for. */
  named(name: Node | null, depth = 0): ObjectType | undefined {
    if (!isName(name)) return undefined;
    const found = declarationsOf(this.scopes, name);
    const of = ALIASES[name.text] ?? name.text;
    if (found?.length === 0) return isLanguageObject(of, this.isScript) ? { kind: 'itself', of } : undefined;
    const told = found?.filter((node) => node.childForFieldName('type') || !isNothing(valueIn(node)));
    return same(told?.map((node) => this.#declared(node, name.text, depth + 1)));
  }

  /** The class that `this`, `self` or `cls` belongs to. */
  self(node: Node): ObjectType | undefined {
    const { scopes } = this;
    const { functions, classAt, ownerAt } = scopes.at(node.startIndex);
    let owner = classFrom(scopes, classAt) ?? classFrom(scopes, ownerAt);
    for (let i = functions.length - 1; !owner && i > 0; i--) {
      // Other functions have a `this` of their own.
      if (!/^(arrow_function|lambda)$/.test(scopes.nodeFrom(functions[i]!, FUNCTIONS)?.type ?? '')) return undefined;
      owner = classFrom(scopes, scopes.at(functions[i - 1]!).ownerAt);
    }
    const member = owner?.childForFieldName('body')?.namedChildren.find((part) => part.endIndex > node.startIndex);
    const isStatic = member?.type === 'class_static_block' || member?.children.some(({ type }) => type === 'static');
    return owner && { kind: isStatic || node.text === 'cls' ? 'itself' : 'instance', of: owner };
  }

  #textType(node: Node): string | undefined {
    if (node.type === 'predefined_type') return ALIASES[node.text];
    // A type may be written in quotes.
    if (node.type !== 'string' || node.parent?.type === 'type') return undefined;
    if (this.isScript) return 'String';
    return /b/i.test(node.firstChild?.text ?? '') ? undefined : 'str';
  }

  /** What a node says about the name that it declares or gives a value. */
  #declared(node: Node, name: string, depth: number): ObjectType | undefined {
    if (OWNERS.test(node.type)) return { kind: 'itself', of: node };
    const written = node.childForFieldName('type') ?? valueIn(node);
    if (written) return this.of(written, depth);
    if (node.type !== 'type_alias_declaration') return imported(node, name);
    const of = node.childForFieldName('value');
    return of?.type === 'object_type' ? { kind: 'itself', of } : undefined;
  }

  /** What a call of a name gives. */
  #called(node: Node, depth: number): ObjectType | undefined {
    const callee = node.childForFieldName('function');
    const found = callee?.type === 'identifier' ? declarationsOf(this.scopes, callee) : undefined;
    if (!callee || !found) return undefined;
    if (this.isScript && found.length === 0 && callee.text === 'require')
      return moduleIn(node.childForFieldName('arguments')?.firstNamedChild);
    const [one] = found;
    const made = found.length === 1 && one ? (valueIn(one) ?? one) : undefined;
    const returned = made && returnsOf(made);
    if (!returned) return this.isScript ? undefined : instance(this.named(callee, depth));
    const type = made.childForFieldName('return_type');
    if (type) return this.of(type, depth);
    return same(returned.filter((value) => !isNothing(value)).map((value) => this.of(value, depth + 1)));
  }
}

const isName = (node: Node | null): node is Node => /^(type_)?identifier$/.test(node?.type ?? '');

const instance = (type: ObjectType | undefined): ObjectType | undefined =>
  type?.kind === 'itself' && !(typeof type.of === 'object' && type.of.type === 'enum_declaration')
    ? { kind: 'instance', of: type.of }
    : undefined;

const isNothing = (value: Node | null | undefined): boolean => value === null || NOTHING.test(value?.type ?? '');

/** The type that all of these are. */
function same(types: readonly (ObjectType | undefined)[] = []): ObjectType | undefined {
  const placeOf = (type: ObjectType | undefined) => (typeof type?.of === 'object' ? type.of.startIndex : type?.of);
  const [first, ...more] = types;
  return more.every((type) => type?.kind === first?.kind && placeOf(type) === placeOf(first)) ? first : undefined;
}

function classFrom(scopes: Scopes, at: number): Node | undefined {
  const owner = at < 0 ? undefined : scopes.nodeFrom(at, OWNERS);
  return owner && /class/.test(owner.type) ? owner : undefined;
}

/** The module that an import gives to a name, or the type of Python that it gives another name. */
function imported(node: Node, name: string): ObjectType | undefined {
  const { type, parent } = node;
  if (type === 'import_clause') return moduleIn(parent?.childForFieldName('source'));
  if (type === 'namespace_import') return moduleIn(parent?.parent?.childForFieldName('source'));
  if (parent?.type === 'import_statement')
    return { kind: 'module', of: (node.childForFieldName('name') ?? node.firstNamedChild ?? node).text };
  const of = type === 'dotted_name' ? TYPING[name] : undefined;
  return of === undefined ? undefined : { kind: 'itself', of };
}

const moduleIn = (path: Node | null | undefined): ObjectType | undefined =>
  path?.type === 'string' ? { kind: 'module', of: path.text.slice(1, -1) } : undefined;
