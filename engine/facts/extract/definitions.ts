/** Reads the definitions of a file: functions, classes, members, types and variables. Does not walk the tree. */
import type { Node } from 'web-tree-sitter';
import { type Returns, type ReturnStatements, headOf, heritageOf, type Parameter, parametersOf } from './members.ts';
import { type Comments, type Doc, docstringOf } from './comments.ts';
import type { EntryKind } from './entries.ts';
import { isRequire } from './modules.ts';
import { CLASSES, FUNCTIONS, namesIn, PATTERNS, type Place, present, typeText } from './tree.ts';

type DefinitionKind = 'function' | 'method' | 'accessor' | 'class' | 'type' | 'namespace' | 'value' | EntryKind;

export interface Definition {
  kind: DefinitionKind;
  name: string;
  /** The class, interface or object that contains it as a member. */
  owner?: string;
  /** Inside a function or a namespace, so other files cannot see it. */
  local: boolean;
  /** For a type that is an interface or an enum, and a key that is a table of TOML. */
  word?: 'interface' | 'enum' | 'table';
  /** Declared with `const`; in Python, named in capitals. */
  constant?: true;
  /** Offsets of the declaration without its body. */
  head?: { from: number; to: number };
  /** Line of the name, from 1. */
  line: number;
  /** Only for functions, methods and accessors. */
  parameters?: Parameter[];
  /** The declared return type as written. */
  returns?: string;
  /** The values of its `return` statements. Undefined without a body. */
  given?: Returns | undefined;
  /** The comment above it, or its docstring. */
  doc?: Doc | undefined;
  /** Only for classes. */
  bases?: string[];
  interfaces?: string[];
  /** The tree has errors in the declaration. Errors in the body do not count. */
  broken: boolean;
  /** The tree has errors in the declaration or the body. */
  brokenInside: boolean;
  /** Offsets of its beginning and of the beginning of its owner. They distinguish definitions of one name. */
  at?: number;
  /** Offset of its end. */
  end?: number;
  ownerAt?: number;
  /** Offset of the innermost function around it. */
  functionAt?: number;
  /** It is a function or class that is the value of a variable or field. */
  held?: true;
  /** Only for an entry of a data file: 0 at the top level. */
  depth?: number;
}

const MEMBERS =
  /^(method_definition|method_signature|abstract_method_signature|public_field_definition|field_definition|property_signature|pair)$/;

/** Members belong to the definition that contains them, because several definitions may have one name. */
export const isMemberOf = (member: Definition, { name, at }: Definition): boolean =>
  member.owner === name && (member.ownerAt === undefined || member.ownerAt === at);

/** Finds the members of a definition without a search through all, or what stands in a namespace. */
export function contentsOf(all: readonly Definition[], ofSpaces: boolean): (one: Definition) => Definition[] {
  if (ofSpaces) return (space) => all.filter((each) => isInNamespace(each, space));
  const byOwner = new Map<string | undefined, Definition[]>();
  for (const each of all) {
    const known = byOwner.get(each.owner) ?? [];
    known.push(each);
    byOwner.set(each.owner, known);
  }
  return (one) => (byOwner.get(one.name) ?? []).filter((each) => isMemberOf(each, one));
}

/** Functions of a namespace are no methods. It is not their owner. */
const isInNamespace = ({ at = 0, owner, functionAt = -1 }: Definition, space: Definition): boolean =>
  owner === undefined && space.at !== undefined && at > space.at && at < (space.end ?? 0) && functionAt < space.at;

/** In most languages, a constructor has the name of its class. */
const isConstructor = ({ name, owner }: Definition): boolean =>
  name === 'constructor' || name === '__init__' || name === owner;

/** The constructors of a class. Of overloads only the last, and without any the class itself, if all is read of the language. */
export function constructorsOf(one: Definition, all: readonly Definition[], partial: boolean): Definition[] {
  const constructors = all.filter((each) => isMemberOf(each, one) && isConstructor(each));
  return partial ? constructors : [constructors.at(-1) ?? one];
}

/** Without constructors that have the name of a class among them. */
export const withoutConstructors = (all: readonly Definition[]): Definition[] =>
  all.filter((each) => !all.some((one) => one.kind === 'class' && isMemberOf(each, one) && isConstructor(each)));

/** Whether definitions of one name are one function with several signatures. Only the last may have a body. */
export const areOverloads = (all: readonly Definition[]): boolean =>
  all.length > 1 &&
  all.every(({ parameters, given, ownerAt }, i) => {
    const isLast = i === all.length - 1;
    return parameters && (isLast || !given) && ownerAt === all[0]?.ownerAt;
  });

/** The first definition of each name, because overloads and accessors count once. */
export function firsts<T extends Pick<Definition, 'name'> & Partial<Definition>>(some: readonly T[]): T[] {
  const seen = new Set<string>();
  return some.filter(({ name, owner, ownerAt, functionAt, local, depth }) => {
    const { size } = seen;
    // The member of a namespace is no function of the file.
    return seen.add(`${owner}.${name} ${ownerAt} ${functionAt} ${local}`).size > size || depth !== undefined;
  });
}

/** State of a walk over the tree. */
export interface Reading {
  text: string;
  comments: Comments;
  returns: ReturnStatements;
}

/** The names of variables that a node inside a function declares. */
export function localsAt(node: Node, place: Place): string[] {
  if (!place.local || !/^(variable_declarator|assignment)$/.test(node.type)) return [];
  const name = node.childForFieldName('name') ?? node.childForFieldName('left');
  return name
    ? (PATTERNS.test(name.type) ? namesIn(name) : name.type === 'identifier' ? [name] : []).map((part) => part.text)
    : [];
}

export function definitionsAt(node: Node, place: Place, reading: Reading): Definition[] {
  if (node.type === 'export_statement') return unnamed(node, place, reading);
  if (node.type === 'decorated_definition') return [];
  const name =
    node.childForFieldName('name') ??
    node.childForFieldName('property') ??
    node.childForFieldName('key') ??
    node.childForFieldName('left');
  // `const { a } = require('a')` is an import.
  if (!name || name.isMissing || (node.type === 'variable_declarator' && isRequire(node.childForFieldName('value'))))
    return [];
  if (!PATTERNS.test(name.type)) return [definition(node, name, place, reading)].filter((found) => found !== undefined);
  if (!/^(variable_declarator|assignment)$/.test(node.type) || place.local) return [];
  const { owner, ownerAt } = place;
  return namesIn(name).map((part) => ({
    kind: 'value',
    name: part.text,
    local: false,
    ...(owner === undefined ? {} : { owner, ownerAt }),
    line: lineOf(part),
    broken: isBroken(place, [name]),
    brokenInside: node.hasError,
    ...(isConstant(node, part.text, place, reading) ? { constant: true } : {}),
    doc: docOf(node, place, reading),
  }));
}

const lineOf = (node: Node): number => node.startPosition.row + 1;

const isBroken = ({ broken }: Place, parts: readonly (Node | null)[]): boolean =>
  broken || parts.some((part) => part?.hasError);

/** Whether it is declared with `const`, or in Python named in capitals. */
function isConstant(node: Node, name: string, { head }: Place, { text }: Reading): boolean {
  if (node.type === 'assignment') return /^_*[A-Z][A-Z\d_]*$/.test(name);
  return (
    node.type === 'variable_declarator' &&
    head !== undefined &&
    /^(?:export\s+)?(?:declare\s+)?const\s/.test(text.slice(head.at, head.at + 60))
  );
}

/** A docstring comes first, because comments above it are about the implementation. */
function docOf(node: Node, { head }: Place, { comments }: Reading): Doc | undefined {
  const { row } = node.startPosition;
  // In `const a = 1,` other variables may follow on the next lines.
  const start = head && (node.type !== 'variable_declarator' || head.row === row) ? head : { row, at: node.startIndex };
  return (
    (/^(function|class)_definition$/.test(node.type) ? docstringOf(node) : undefined) ??
    comments.above(start.row, start.at)
  );
}

function definition(node: Node, name: Node, place: Place, reading: Reading): Definition | undefined {
  const [called, on] = nameOf(name);
  if (called === undefined) return undefined;
  const value = node.childForFieldName('value') ?? node.childForFieldName('right');
  // If a function or class is assigned, it is the definition. Otherwise the assignment is.
  const about =
    FUNCTIONS.test(node.type) ||
    CLASSES.test(node.type) ||
    !value ||
    !(FUNCTIONS.test(value.type) || CLASSES.test(value.type))
      ? node
      : value;
  const owner = on ?? place.owner;
  // Other files cannot see parts of a type without a name.
  const isPart = owner === undefined && /^(property|method)_signature$/.test(node.type);
  // A method of a class without a name has no owner.
  const kind = isProperty(place)
    ? 'accessor'
    : kindOf(about, owner !== undefined || isPart || (place.local && MEMBERS.test(node.type)));
  if (
    kind === 'value' &&
    (place.local ||
      !/^(variable_declarator|public_field_definition|field_definition|property_signature|assignment)$/.test(node.type))
  )
    return undefined;
  const parts = [name, ...['parameters', 'parameter', 'return_type'].map((field) => about.childForFieldName(field))];
  const found: Definition = {
    kind,
    name: called,
    local: place.local || isPart,
    line: lineOf(name),
    broken: isBroken(place, parts),
    brokenInside: node.hasError,
    at: about.startIndex,
    end: about.endIndex,
    head: headOf(node, about),
    doc: docOf(node, place, reading),
  };
  if (isConstant(node, called, place, reading)) found.constant = true;
  if (/^(interface|enum)_declaration$/.test(about.type))
    found.word = about.type === 'enum_declaration' ? 'enum' : 'interface';
  if (owner !== undefined) found.owner = owner;
  if (on === undefined && place.ownerAt !== undefined) found.ownerAt = place.ownerAt;
  if (place.functionAt !== undefined) found.functionAt = place.functionAt;
  if (about !== node && /^(variable_declarator|assignment|public_field_definition|field_definition)$/.test(node.type))
    found.held = true;
  return described(found, about, place, reading);
}

/** The name of `export default function () {}` is `default`. */
function unnamed(node: Node, place: Place, reading: Reading): Definition[] {
  const value = node.childForFieldName('value');
  if (!value || !(FUNCTIONS.test(value.type) || CLASSES.test(value.type)) || value.childForFieldName('name')) return [];
  const parts = ['parameters', 'parameter', 'return_type'].map((field) => value.childForFieldName(field));
  const found: Definition = {
    kind: kindOf(value, false),
    name: 'default',
    local: false,
    line: lineOf(node),
    broken: isBroken(place, parts),
    brokenInside: node.hasError,
    at: value.startIndex,
    end: value.endIndex,
    doc: docOf(node, place, reading),
  };
  return [described(found, value, place, reading)];
}

/** Adds parameters and return type, or base classes. */
function described(found: Definition, about: Node, place: Place, { returns: statements }: Reading): Definition {
  const callable = FUNCTIONS.test(about.type);
  if (callable) {
    found.parameters = parametersOf(about, found.owner !== undefined);
    found.given = statements.of(about, place);
  }
  const returns = typeText(about.childForFieldName('return_type'));
  if (callable && returns !== undefined) found.returns = returns;
  if (CLASSES.test(about.type)) {
    const { bases, interfaces, broken } = heritageOf(about);
    Object.assign(found, { bases, interfaces, broken: found.broken || broken });
  }
  return found;
}

/** The name, and the owner, as in `Store.prototype.flush = …`. */
function nameOf(node: Node): [string | undefined, string?] {
  if (/^(identifier|type_identifier|property_identifier|private_property_identifier|number)$/.test(node.type))
    return [node.text];
  if (node.type === 'string') return [node.text.slice(1, -1)];
  // As written, for example `[Symbol.iterator]`.
  if (node.type === 'computed_property_name') return [node.text];
  if (node.type !== 'member_expression') return [undefined];
  const [object, property] = [node.childForFieldName('object')?.text ?? '', node.childForFieldName('property')?.text];
  if (/^(module\.)?exports$|^(module)$/.test(object)) return object === 'module' ? [undefined] : [property];
  const owner = /^([\w$]+)(?:\.prototype)?$/.exec(object)?.[1];
  return owner === undefined || owner === 'this' ? [undefined] : [property, owner];
}

function kindOf(node: Node, isMember: boolean): DefinitionKind {
  if (/^(internal_module|module)$/.test(node.type)) return 'namespace';
  if (/^(type_alias_declaration|enum_declaration|interface_declaration)$/.test(node.type)) return 'type';
  if (CLASSES.test(node.type)) return 'class';
  if (!FUNCTIONS.test(node.type)) return 'value';
  if (!isMember) return 'function';
  return /^method_(definition|signature)$/.test(node.type) &&
    node.children.some((child) => child?.type === 'get' || child?.type === 'set')
    ? 'accessor'
    : 'method';
}

/** Whether it is a Python method with `@property`. */
const isProperty = ({ parent }: Place): boolean =>
  parent?.type === 'decorated_definition' &&
  present(parent.namedChildren).some(
    (child) => child.type === 'decorator' && /^@(?:[\w.]*property|[\w.]+\.(?:setter|deleter))\b/.test(child.text),
  );
