/**
 * Facts that stand in a file, read off its syntax tree: what it imports, what it defines, where, with which parameters. Of
 * TypeScript, JavaScript and Python; other languages have no facts. What a tree with errors may have got wrong is marked, not guessed. Pure.
 */
import type { Node, Tree } from 'web-tree-sitter';
import { Comments, type Doc, docstringOf } from './factDocs.ts';
import { type Exports, ExportStatements } from './factExports.ts';
import { type Import, isRequire, pythonImports, required, scriptImport } from './factImports.ts';
import { firstCode, namesIn, oneLine, PATTERNS, present, typeText } from './factNodes.ts';
import { CLASSES, FUNCTIONS, type Place, walk } from './factPlaces.ts';
import { type Returns, ReturnStatements } from './factReturns.ts';

export interface Parameter {
  /** With the dots or stars of one that takes the rest; a pattern as it stands for one that is taken apart. */
  name: string;
  type?: string;
  value?: string;
}

type DefinitionKind = 'function' | 'method' | 'accessor' | 'class' | 'type' | 'namespace' | 'value';

export interface Definition {
  kind: DefinitionKind;
  name: string;
  /** The class, interface or object that it is a member of. */
  owner?: string;
  /** Inside a function: no part of what the file defines for others. */
  local: boolean;
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
  /** A function or a class that a variable holds. */
  held?: true;
  /** What it is assigned to has a type of its own. */
  annotated?: true;
}

export interface Facts {
  imports: Import[];
  /** Modules that something is exported from without being imported. */
  reexports: Import[];
  definitions: Definition[];
  exports: Exports;
  /** Of variables and parameters in functions. */
  localNames: Set<string>;
  /** The tree has errors somewhere: lists of all that the file has may be short of something. */
  broken: boolean;
  /** There is no code in it, but there may be comments. */
  blank: boolean;
}

const SCRIPT = ['javascript', 'typescript', 'tsx'];
const MEMBERS = /^(method_definition|method_signature|abstract_method_signature|public_field_definition|field_definition|property_signature|pair)$/;
const SCRIPT_TYPES = [
  'function_declaration', 'generator_function_declaration', 'function_signature', 'method_definition', 'method_signature', 'abstract_method_signature', 'class_declaration',
  'abstract_class_declaration', 'interface_declaration', 'type_alias_declaration', 'enum_declaration', 'variable_declarator', 'public_field_definition', 'field_definition', 'property_signature', 'pair', 'assignment_expression', 'internal_module', 'module', 'export_statement',
  'comment', 'decorator', 'return_statement', 'yield_expression',
];
const PYTHON_TYPES = ['function_definition', 'class_definition', 'assignment', 'decorated_definition', 'comment', 'return_statement', 'yield'];
const SCRIPT_IMPORTS = ['import_statement', 'call_expression'];
const PYTHON_IMPORTS = ['import_statement', 'import_from_statement', 'future_import_statement'];

/** @param tree of `text`. Undefined for a grammar whose facts are not known. */
export function factsOf(tree: Tree, grammar: string, text: string): Facts | undefined {
  const isPython = grammar === 'python';
  if (!isPython && !SCRIPT.includes(grammar)) return undefined;
  const lines = text.split('\n');
  const reading: Reading = { lines, comments: new Comments(lines), returns: new ReturnStatements() };
  const exports = new ExportStatements(text, isPython);
  const facts: Facts = { imports: [], reexports: [], definitions: [], exports: exports.found, localNames: new Set(), broken: tree.rootNode.hasError, blank: firstCode(tree.rootNode) === null };
  const types = new Set([...(isPython ? [...PYTHON_TYPES, ...PYTHON_IMPORTS] : [...SCRIPT_TYPES, ...SCRIPT_IMPORTS]), ...exports.types]);
  walk(tree, types, (node, place) => {
    const { type } = node;
    if (type === 'comment' || type === 'decorator') return reading.comments.add(node);
    if (/^(return_statement|yield|yield_expression)$/.test(type)) return reading.returns.add(node, place);
    exports.read(node, place);
    if (exports.types.includes(type)) return;
    if (isPython && PYTHON_IMPORTS.includes(type)) facts.imports.push(...pythonImports(node, place));
    else if (type === 'import_statement') facts.imports.push(...scriptImport(node, place));
    else if (type === 'call_expression') facts.imports.push(...required(node, place));
    else {
      if (type === 'export_statement') facts.reexports.push(...scriptImport(node, place));
      const found = definitionsAt(node, place, reading);
      facts.definitions.push(...found);
      for (const name of localsAt(node, place)) facts.localNames.add(name);
      for (const { name } of found.flatMap(({ parameters = [] }) => parameters)) facts.localNames.add(name.replace(/^(?:\.\.\.|\*+)/, ''));
    }
  });
  exports.end();
  facts.imports.sort((a, b) => a.line - b.line);
  return facts;
}

/** What a walk has come by so far. */
interface Reading {
  lines: readonly string[];
  comments: Comments;
  returns: ReturnStatements;
}

/** Names of variables inside a function. */
function localsAt(node: Node, place: Place): string[] {
  if (!place.local || !/^(variable_declarator|assignment)$/.test(node.type)) return [];
  const name = node.childForFieldName('name') ?? node.childForFieldName('left');
  return name ? (PATTERNS.test(name.type) ? namesIn(name) : name.type === 'identifier' ? [name] : []).map((part) => part.text) : [];
}

function definitionsAt(node: Node, place: Place, reading: Reading): Definition[] {
  if (node.type === 'export_statement') return unnamed(node, place, reading);
  if (node.type === 'decorated_definition') return [];
  const name = node.childForFieldName('name') ?? node.childForFieldName('property') ?? node.childForFieldName('key') ?? node.childForFieldName('left');
  // `const { a } = require('a')` imports.
  if (!name || name.isMissing || (node.type === 'variable_declarator' && isRequire(node.childForFieldName('value')))) return [];
  if (!PATTERNS.test(name.type)) return [definition(node, name, place, reading)].filter((found) => found !== undefined);
  if (!/^(variable_declarator|assignment)$/.test(node.type) || place.local) return [];
  return namesIn(name).map((part) => ({ kind: 'value', name: part.text, local: false, ...whereIs(part, reading.lines), broken: isBroken(place, [name]), brokenInside: node.hasError, doc: docOf(node, place, reading) }));
}

const whereIs = (name: Node, lines: readonly string[]) => ({ line: name.startPosition.row + 1, text: (lines[name.startPosition.row] ?? '').trim() });

const isBroken = ({ broken }: Place, parts: readonly (Node | null)[]): boolean => broken || parts.some((part) => part?.hasError);

/** A docstring goes before comments: they are about how it is written. */
function docOf(node: Node, { head }: Place, { comments }: Reading): Doc | undefined {
  const { row } = node.startPosition;
  // `const a = 1,` may have more below it.
  const start = head && (node.type !== 'variable_declarator' || head.row === row) ? head : { row, at: node.startIndex };
  return (/^(function|class)_definition$/.test(node.type) ? docstringOf(node) : undefined) ?? comments.above(start.row, start.at);
}

function definition(node: Node, name: Node, place: Place, reading: Reading): Definition | undefined {
  const [called, on] = nameOf(name);
  if (called === undefined) return undefined;
  const value = node.childForFieldName('value') ?? node.childForFieldName('right');
  // A type annotation without a value is where a Python name is declared; an assignment elsewhere changes what is defined already.
  const about = FUNCTIONS.test(node.type) || CLASSES.test(node.type) || !value || !(FUNCTIONS.test(value.type) || CLASSES.test(value.type)) ? node : value;
  const owner = on ?? place.owner;
  // One of a class without a name is nobody's, and a method all the same.
  const kind = isProperty(place) ? 'accessor' : kindOf(about, owner !== undefined || (place.local && MEMBERS.test(node.type)));
  if (kind === 'value' && (place.local || !/^(variable_declarator|public_field_definition|field_definition|property_signature|assignment)$/.test(node.type))) return undefined;
  const parts = [name, ...['parameters', 'parameter', 'return_type'].map((field) => about.childForFieldName(field))];
  const found: Definition = { kind, name: called, local: place.local, ...whereIs(name, reading.lines), broken: isBroken(place, parts), brokenInside: node.hasError, at: about.startIndex, doc: docOf(node, place, reading) };
  if (owner !== undefined) found.owner = owner;
  if (on === undefined && place.ownerAt !== undefined) found.ownerAt = place.ownerAt;
  if (place.functionAt !== undefined) found.functionAt = place.functionAt;
  if (about !== node && /^(variable_declarator|assignment)$/.test(node.type)) found.held = true;
  if (about !== node && node.childForFieldName('type')) found.annotated = true;
  return described(found, about, place, reading);
}

/** `export default function () {}` is called `default`. */
function unnamed(node: Node, place: Place, reading: Reading): Definition[] {
  const value = node.childForFieldName('value');
  if (!value || !(FUNCTIONS.test(value.type) || CLASSES.test(value.type)) || value.childForFieldName('name')) return [];
  const parts = ['parameters', 'parameter', 'return_type'].map((field) => value.childForFieldName(field));
  const found: Definition = { kind: kindOf(value, false), name: 'default', local: false, ...whereIs(node, reading.lines), broken: isBroken(place, parts), brokenInside: node.hasError, at: value.startIndex, doc: docOf(node, place, reading) };
  return [described(found, value, place, reading)];
}

/** With what follows a function's or a class's name. */
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

/** A plain name, and for `Store.prototype.flush = …` whose it is. */
function nameOf(node: Node): [string | undefined, string?] {
  if (/^(identifier|type_identifier|property_identifier|private_property_identifier|number)$/.test(node.type)) return [node.text];
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
  return node.type === 'method_definition' && node.children.some((child) => child?.type === 'get' || child?.type === 'set') ? 'accessor' : 'method';
}

/** In Python, a method that is read like a variable. */
const isProperty = ({ parent }: Place): boolean => parent?.type === 'decorated_definition' && present(parent.namedChildren).some((child) => child.type === 'decorator' && /^@(?:[\w.]*property|[\w.]+\.(?:setter|deleter))\b/.test(child.text));

function parametersOf(node: Node, isMember: boolean): Parameter[] {
  const one = node.childForFieldName('parameter');
  const parameters = one ? [one] : present(node.childForFieldName('parameters')?.namedChildren).filter(({ type }) => !/separator|comment/.test(type));
  return parameters.flatMap((child, i): Parameter[] => {
    const pattern = child.childForFieldName('pattern') ?? child.childForFieldName('name') ?? child.childForFieldName('left') ?? (child.type === 'typed_parameter' ? child.firstNamedChild : child);
    const name = oneLine((pattern ?? child).text);
    if (name === 'this' || (i === 0 && isMember && (name === 'self' || name === 'cls'))) return [];
    const [type, value] = [typeText(child.childForFieldName('type')), child.childForFieldName('value') ?? child.childForFieldName('right')];
    return [{ name, ...(type === undefined ? {} : { type }), ...(value ? { value: oneLine(value.text) } : {}) }];
  });
}

function heritageOf(node: Node): { bases: string[]; interfaces: string[]; broken: boolean } {
  const python = node.childForFieldName('superclasses');
  if (python) return { bases: present(python.namedChildren).filter(({ type }) => type !== 'keyword_argument' && type !== 'comment').map(({ text }) => oneLine(text)), interfaces: [], broken: python.hasError };
  const clauses = present(node.namedChildren).flatMap((child) => (child.type === 'class_heritage' ? present(child.namedChildren) : child.type === 'extends_type_clause' ? [child] : []));
  const bases = clauses.filter(({ type }) => type !== 'implements_clause' && type !== 'comment').flatMap((clause) => {
    if (clause.type === 'extends_clause') return [clause.childForFieldName('value') ?? clause];
    return clause.type === 'extends_type_clause' ? present(clause.namedChildren) : [clause];
  });
  const interfaces = clauses.filter(({ type }) => type === 'implements_clause').flatMap((clause) => present(clause.namedChildren));
  return { bases: bases.map(({ text }) => oneLine(text)), interfaces: interfaces.map(({ text }) => oneLine(text)), broken: clauses.some((clause) => clause.hasError) };
}
