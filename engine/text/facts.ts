/**
 * Facts that stand in a file, read off its syntax tree: what it imports, what it defines, where, with which parameters. Of
 * TypeScript, JavaScript and Python; other languages have no facts. What a tree with errors may have got wrong is marked, not guessed. Pure.
 */
import type { Node, Tree } from 'web-tree-sitter';
import { CLASSES, FUNCTIONS, type Place, walk } from './factPlaces.ts';

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
  /** What it is assigned to has a type of its own. */
  annotated?: true;
}

export interface Import {
  module: string;
  line: number;
  /** As they are called here. */
  names: string[];
  /** On the file's own level. */
  top: boolean;
}

export interface Facts {
  imports: Import[];
  /** Modules that something is exported from without being imported. */
  reexports: Import[];
  definitions: Definition[];
  /** Of variables and parameters in functions. */
  localNames: Set<string>;
  /** The tree has errors somewhere: lists of all that the file has may be short of something. */
  broken: boolean;
}

const SCRIPT = ['javascript', 'typescript', 'tsx'];
const MEMBERS = /^(method_definition|method_signature|abstract_method_signature|public_field_definition|field_definition|property_signature|pair)$/;
const SCRIPT_TYPES = [
  'function_declaration', 'generator_function_declaration', 'function_signature', 'method_definition', 'method_signature', 'abstract_method_signature', 'class_declaration',
  'abstract_class_declaration', 'interface_declaration', 'type_alias_declaration', 'enum_declaration', 'variable_declarator', 'public_field_definition', 'field_definition', 'property_signature', 'pair', 'assignment_expression', 'internal_module', 'module', 'export_statement',
];
const PYTHON_TYPES = ['function_definition', 'class_definition', 'assignment', 'decorated_definition'];
const SCRIPT_IMPORTS = ['import_statement', 'call_expression'];
const PYTHON_IMPORTS = ['import_statement', 'import_from_statement', 'future_import_statement'];

/** @param tree of `text`. Undefined for a grammar whose facts are not known. */
export function factsOf(tree: Tree, grammar: string, text: string): Facts | undefined {
  const isPython = grammar === 'python';
  if (!isPython && !SCRIPT.includes(grammar)) return undefined;
  const lines = text.split('\n');
  const facts: Facts = { imports: [], reexports: [], definitions: [], localNames: new Set(), broken: tree.rootNode.hasError };
  walk(tree, new Set(isPython ? [...PYTHON_TYPES, ...PYTHON_IMPORTS] : [...SCRIPT_TYPES, ...SCRIPT_IMPORTS]), (node, place) => {
    if (isPython && PYTHON_IMPORTS.includes(node.type)) facts.imports.push(...pythonImports(node, place));
    else if (node.type === 'import_statement') facts.imports.push(...scriptImport(node, place));
    else if (node.type === 'call_expression') facts.imports.push(...required(node, place));
    else {
      if (node.type === 'export_statement') facts.reexports.push(...scriptImport(node, place));
      const found = definitionsAt(node, place, lines);
      facts.definitions.push(...found);
      for (const name of localsAt(node, place)) facts.localNames.add(name);
      for (const { name } of found.flatMap(({ parameters = [] }) => parameters)) facts.localNames.add(name.replace(/^(?:\.\.\.|\*+)/, ''));
    }
  });
  facts.imports.sort((a, b) => a.line - b.line);
  return facts;
}

/** Names of variables inside a function. */
function localsAt(node: Node, place: Place): string[] {
  if (!place.local || !/^(variable_declarator|assignment)$/.test(node.type)) return [];
  const name = node.childForFieldName('name') ?? node.childForFieldName('left');
  return name ? (PATTERNS.test(name.type) ? namesIn(name) : name.type === 'identifier' ? [name] : []).map((part) => part.text) : [];
}

function definitionsAt(node: Node, place: Place, lines: readonly string[]): Definition[] {
  if (node.type === 'export_statement') return unnamed(node, place, lines);
  if (node.type === 'decorated_definition') return [];
  const name = node.childForFieldName('name') ?? node.childForFieldName('property') ?? node.childForFieldName('key') ?? node.childForFieldName('left');
  // `const { a } = require('a')` imports.
  if (!name || name.isMissing || (node.type === 'variable_declarator' && isRequire(node.childForFieldName('value')))) return [];
  if (!PATTERNS.test(name.type)) return [definition(node, name, place, lines)].filter((found) => found !== undefined);
  if (!/^(variable_declarator|assignment)$/.test(node.type) || place.local) return [];
  return namesIn(name).map((part) => ({ kind: 'value', name: part.text, local: false, ...whereIs(part, lines), broken: isBroken(place, [name]), brokenInside: node.hasError }));
}

const whereIs = (name: Node, lines: readonly string[]) => ({ line: name.startPosition.row + 1, text: (lines[name.startPosition.row] ?? '').trim() });

const isBroken = ({ broken }: Place, parts: readonly (Node | null)[]): boolean => broken || parts.some((part) => part?.hasError);

const PATTERNS = /^(object_pattern|array_pattern|pattern_list|tuple_pattern|list_pattern)$/;

/** What a pattern gives names to. */
function namesIn(pattern: Node): Node[] {
  if (/^(identifier|shorthand_property_identifier_pattern)$/.test(pattern.type)) return [pattern];
  const part = pattern.type === 'pair_pattern' ? pattern.childForFieldName('value') : /assignment_pattern$/.test(pattern.type) ? pattern.childForFieldName('left') : undefined;
  if (part) return namesIn(part);
  return PATTERNS.test(pattern.type) || /^(rest_pattern|list_splat_pattern)$/.test(pattern.type) ? present(pattern.namedChildren).flatMap(namesIn) : [];
}

function definition(node: Node, name: Node, place: Place, lines: readonly string[]): Definition | undefined {
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
  const found: Definition = { kind, name: called, local: place.local, ...whereIs(name, lines), broken: isBroken(place, parts), brokenInside: node.hasError, at: about.startIndex };
  if (owner !== undefined) found.owner = owner;
  if (on === undefined && place.ownerAt !== undefined) found.ownerAt = place.ownerAt;
  if (about !== node && node.childForFieldName('type')) found.annotated = true;
  return described(found, about);
}

/** `export default function () {}` is called `default`. */
function unnamed(node: Node, place: Place, lines: readonly string[]): Definition[] {
  const value = node.childForFieldName('value');
  if (!value || !(FUNCTIONS.test(value.type) || CLASSES.test(value.type)) || value.childForFieldName('name')) return [];
  const parts = ['parameters', 'parameter', 'return_type'].map((field) => value.childForFieldName(field));
  return [described({ kind: kindOf(value, false), name: 'default', local: false, ...whereIs(node, lines), broken: isBroken(place, parts), brokenInside: node.hasError, at: value.startIndex }, value)];
}

/** With what follows a function's or a class's name. */
function described(found: Definition, about: Node): Definition {
  const callable = FUNCTIONS.test(about.type);
  if (callable) found.parameters = parametersOf(about, found.owner !== undefined);
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
  if (/^(identifier|type_identifier|property_identifier|private_property_identifier)$/.test(node.type)) return [node.text];
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

/** An import, or an export from another module. */
function scriptImport(node: Node, { parentType }: Place): Import[] {
  const source = node.childForFieldName('source') ?? present(node.namedChildren).find(({ type }) => type === 'import_require_clause')?.childForFieldName('source');
  if (source?.type !== 'string') return [];
  const specifiers = present(node.descendantsOfType(['import_specifier']));
  const taken = new Set(specifiers.flatMap((part) => present(part.namedChildren)).map(({ id }) => id));
  const names = [
    ...specifiers.map((part) => (part.childForFieldName('alias') ?? part.childForFieldName('name'))?.text ?? ''),
    ...present(node.descendantsOfType(['identifier'])).filter(({ id }) => !taken.has(id)).map(({ text }) => text),
  ];
  return [{ module: source.text.slice(1, -1), line: node.startPosition.row + 1, names, top: parentType === 'program' }];
}

/** `require('…')` and `import('…')`. */
function required(node: Node, { parent, local, inBlock }: Place): Import[] {
  const argument = moduleOf(node);
  if (!argument) return [];
  const name = parent?.type === 'variable_declarator' ? parent.childForFieldName('name') : undefined;
  const names = name ? present(name.descendantsOfType(['identifier', 'shorthand_property_identifier_pattern'])).map(({ text }) => text) : [];
  return [{ module: argument.text.slice(1, -1), line: node.startPosition.row + 1, names, top: !local && !inBlock }];
}

function moduleOf(call: Node): Node | undefined {
  const argument = call.childForFieldName('arguments')?.firstNamedChild;
  return /^(require|import)$/.test(call.childForFieldName('function')?.text ?? '') && argument?.type === 'string' ? argument : undefined;
}

const isRequire = (value: Node | null): boolean => value?.type === 'call_expression' && value.childForFieldName('function')?.text === 'require' && moduleOf(value) !== undefined;

function pythonImports(node: Node, { parentType }: Place): Import[] {
  const line = node.startPosition.row + 1;
  const top = parentType === 'module';
  const parts = present(node.childrenForFieldName('name'));
  const nameIn = (part: Node): string => (part.childForFieldName('alias') ?? part).text;
  if (node.type === 'import_statement') return parts.map((part) => ({ module: (part.type === 'aliased_import' ? (part.childForFieldName('name') ?? part) : part).text, line, names: [nameIn(part)], top }));
  const module = node.type === 'future_import_statement' ? '__future__' : node.childForFieldName('module_name')?.text;
  if (module === undefined) return [];
  // `from . import views` is about a module of the package.
  if (/^\.+$/.test(module) && parts.length > 0) return parts.map((part) => ({ module: `${module}${(part.childForFieldName('name') ?? part).text}`, line, names: [nameIn(part)], top }));
  return [{ module, line, names: parts.map(nameIn), top }];
}

const present = (nodes: readonly (Node | null)[] | undefined): Node[] => (nodes ?? []).filter((node) => node !== null);

const oneLine = (text: string): string => text.replace(/\s+/g, ' ');

/** Without the colon that an annotation begins with. */
const typeText = (node: Node | null): string | undefined => (node ? oneLine(node.text.replace(/^:\s*/, '')) : undefined);
