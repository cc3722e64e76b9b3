/** Reads the definitions of a file: functions, classes, their members, types and variables. */
import type { Node } from 'web-tree-sitter';
import type { Returns, ReturnStatements } from './bodies.ts';
import { type Comments, type Doc, docstringOf } from './comments.ts';
import { isRequire } from './imports.ts';
import { headOf, heritageOf, type Parameter, parametersOf } from './members.ts';
import { CLASSES, FUNCTIONS, namesIn, PATTERNS, type Place, present, typeText } from './tree.ts';

type DefinitionKind = 'function' | 'method' | 'accessor' | 'class' | 'type' | 'namespace' | 'value';

export interface Definition {
  kind: DefinitionKind;
  name: string;
  /** The class, interface or object that it is a member of. */
  owner?: string;
  /** Inside a function or a namespace: no part of what the file defines for others. */
  local: boolean;
  /** What the language calls it, of types. */
  word?: 'interface' | 'enum';
  /** By `const`, or in Python in capitals. */
  constant?: true;
  async?: true;
  /** From what says what it is to where its body begins, in the text. */
  head?: { from: number; to: number };
  /** Of its name, from 1. */
  line: number;
  /** That line, without indentation. */
  text: string;
  /** Of functions, methods and accessors. */
  parameters?: Parameter[];
  /** As it is written; undefined where nothing is. */
  returns?: string;
  /** What its statements give; undefined where there is no body to tell. */
  given?: Returns | undefined;
  /** The comment above it, or its docstring. */
  doc?: Doc | undefined;
  /** Of classes. */
  bases?: string[];
  interfaces?: string[];
  /** The tree has errors in what is said here. Errors in a function's body are none of it. */
  broken: boolean;
  /** The tree has errors anywhere in it: its members may be others. */
  brokenInside: boolean;
  /** Where it begins in the text, and where what it is a member of does, which tells two of one name apart. */
  at?: number;
  ownerAt?: number;
  /** Where the innermost function around begins. */
  functionAt?: number;
  /** A function or a class that a variable or a field holds. */
  held?: true;
  /** What it is assigned to has a type of its own. */
  annotated?: true;
}

const MEMBERS =
  /^(method_definition|method_signature|abstract_method_signature|public_field_definition|field_definition|property_signature|pair)$/;
/** What a walk has come by so far. */
export interface Reading {
  text: string;
  lines: readonly string[];
  comments: Comments;
  returns: ReturnStatements;
}

/** Names of variables inside a function. */
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
  // `const { a } = require('a')` imports.
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
    ...whereIs(part, reading.lines),
    broken: isBroken(place, [name]),
    brokenInside: node.hasError,
    ...(isConstant(node, part.text, place, reading) ? { constant: true } : {}),
    doc: docOf(node, place, reading),
  }));
}

const whereIs = (name: Node, lines: readonly string[]) => ({
  line: name.startPosition.row + 1,
  text: (lines[name.startPosition.row] ?? '').trim(),
});

const isBroken = ({ broken }: Place, parts: readonly (Node | null)[]): boolean =>
  broken || parts.some((part) => part?.hasError);

/** In Python a matter of custom. */
function isConstant(node: Node, name: string, { head }: Place, { text }: Reading): boolean {
  if (node.type === 'assignment') return /^_*[A-Z][A-Z\d_]*$/.test(name);
  return (
    node.type === 'variable_declarator' &&
    head !== undefined &&
    /^(?:export\s+)?(?:declare\s+)?const\s/.test(text.slice(head.at, head.at + 60))
  );
}

/** A docstring goes before comments: they are about how it is written. */
function docOf(node: Node, { head }: Place, { comments }: Reading): Doc | undefined {
  const { row } = node.startPosition;
  // `const a = 1,` may have more below it.
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
  // A type annotation without a value is where a Python name is declared; an assignment elsewhere changes what is defined already.
  const about =
    FUNCTIONS.test(node.type) ||
    CLASSES.test(node.type) ||
    !value ||
    !(FUNCTIONS.test(value.type) || CLASSES.test(value.type))
      ? node
      : value;
  const owner = on ?? place.owner;
  // A part of a type without a name of its own: nothing that the file defines for others.
  const isPart = owner === undefined && /^(property|method)_signature$/.test(node.type);
  // One of a class without a name is nobody's, and a method all the same.
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
    ...whereIs(name, reading.lines),
    broken: isBroken(place, parts),
    brokenInside: node.hasError,
    at: about.startIndex,
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
  if (about !== node && node.childForFieldName('type')) found.annotated = true;
  return described(found, about, place, reading);
}

/** `export default function () {}` is called `default`. */
function unnamed(node: Node, place: Place, reading: Reading): Definition[] {
  const value = node.childForFieldName('value');
  if (!value || !(FUNCTIONS.test(value.type) || CLASSES.test(value.type)) || value.childForFieldName('name')) return [];
  const parts = ['parameters', 'parameter', 'return_type'].map((field) => value.childForFieldName(field));
  const found: Definition = {
    kind: kindOf(value, false),
    name: 'default',
    local: false,
    ...whereIs(node, reading.lines),
    broken: isBroken(place, parts),
    brokenInside: node.hasError,
    at: value.startIndex,
    doc: docOf(node, place, reading),
  };
  return [described(found, value, place, reading)];
}

/** With what follows a function's or a class's name. */
function described(found: Definition, about: Node, place: Place, { returns: statements }: Reading): Definition {
  const callable = FUNCTIONS.test(about.type);
  if (callable) {
    found.parameters = parametersOf(about, found.owner !== undefined);
    found.given = statements.of(about, place);
    if (about.children.some((child) => child?.type === 'async')) found.async = true;
  }
  const returns = typeText(about.childForFieldName('return_type'));
  if (callable && returns !== undefined) found.returns = returns;
  if (CLASSES.test(about.type)) {
    const { bases, interfaces, broken } = heritageOf(about);
    Object.assign(found, { bases, interfaces, broken: found.broken || broken });
  }
  return found;
}

/** A plain name, and for `Store.prototype.flush = …` whose it is. */
function nameOf(node: Node): [string | undefined, string?] {
  if (/^(identifier|type_identifier|property_identifier|private_property_identifier|number)$/.test(node.type))
    return [node.text];
  if (node.type === 'string') return [node.text.slice(1, -1)];
  // `[Symbol.iterator]`, as it is written.
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

/** In Python, a method that is read like a variable. */
const isProperty = ({ parent }: Place): boolean =>
  parent?.type === 'decorated_definition' &&
  present(parent.namedChildren).some(
    (child) => child.type === 'decorator' && /^@(?:[\w.]*property|[\w.]+\.(?:setter|deleter))\b/.test(child.text),
  );
