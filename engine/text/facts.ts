/**
 * Facts that stand in a file, read off its syntax tree: what it imports, what it defines, where, with which parameters. Of
 * TypeScript, JavaScript and Python; other languages have no facts. What a tree with errors may have got wrong is marked, not guessed. Pure.
 */
import type { Node, Tree } from 'web-tree-sitter';

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
  /** The tree has errors somewhere: lists of all that the file has may be short of something. */
  broken: boolean;
}

const SCRIPT = ['javascript', 'typescript', 'tsx'];
const FUNCTIONS = /^(function_declaration|generator_function_declaration|function_signature|method_definition|method_signature|abstract_method_signature|function_definition|arrow_function|function_expression|generator_function|lambda)$/;
const CLASSES = /^(class|class_declaration|abstract_class_declaration|class_definition|interface_declaration)$/;
const MEMBERS = /^(method_definition|method_signature|abstract_method_signature|public_field_definition|field_definition|property_signature|pair)$/;
const SCRIPT_TYPES = [
  'function_declaration', 'generator_function_declaration', 'function_signature', 'method_definition', 'method_signature', 'abstract_method_signature', 'class_declaration',
  'abstract_class_declaration', 'interface_declaration', 'type_alias_declaration', 'enum_declaration', 'variable_declarator', 'public_field_definition', 'field_definition', 'property_signature', 'pair', 'assignment_expression', 'internal_module', 'module', 'export_statement',
];
const PYTHON_TYPES = ['function_definition', 'class_definition', 'assignment'];

/** @param tree of `text`. Undefined for a grammar whose facts are not known. */
export function factsOf(tree: Tree, grammar: string, text: string): Facts | undefined {
  const root = tree.rootNode;
  const lines = text.split('\n');
  const of = (types: string[]): Node[] => present(root.descendantsOfType(types));
  const definitions = (types: string[]) => of(types).flatMap((node) => definitionsAt(node, lines));
  if (grammar === 'python') return { imports: of(['import_statement', 'import_from_statement', 'future_import_statement']).flatMap(pythonImports), reexports: [], definitions: definitions(PYTHON_TYPES), broken: root.hasError };
  if (!SCRIPT.includes(grammar)) return undefined;
  const imports = [...of(['import_statement']).flatMap(scriptImport), ...of(['call_expression']).flatMap(required)].sort((a, b) => a.line - b.line);
  return { imports, reexports: of(['export_statement']).flatMap(scriptImport), definitions: definitions(SCRIPT_TYPES), broken: root.hasError };
}

function definitionsAt(node: Node, lines: readonly string[]): Definition[] {
  if (node.type === 'export_statement') return unnamed(node, lines);
  const name = node.childForFieldName('name') ?? node.childForFieldName('property') ?? node.childForFieldName('key') ?? node.childForFieldName('left');
  // `const { a } = require('a')` imports.
  if (!name || name.isMissing || (node.type === 'variable_declarator' && isRequire(node.childForFieldName('value')))) return [];
  if (!PATTERNS.test(name.type)) return [definition(node, name, lines)].filter((found) => found !== undefined);
  if (!/^(variable_declarator|assignment)$/.test(node.type) || placeOf(node).local) return [];
  return namesIn(name).map((part) => ({ kind: 'value', name: part.text, local: false, ...whereIs(part, lines), broken: isBroken(node, [name]), brokenInside: node.hasError }));
}

const whereIs = (name: Node, lines: readonly string[]) => ({ line: name.startPosition.row + 1, text: (lines[name.startPosition.row] ?? '').trim() });

function isBroken(node: Node, parts: readonly (Node | null)[]): boolean {
  for (let up = node.parent; up; up = up.parent) if (up.type === 'ERROR') return true;
  return parts.some((part) => part?.hasError);
}

const PATTERNS = /^(object_pattern|array_pattern|pattern_list|tuple_pattern|list_pattern)$/;

/** What a pattern gives names to. */
function namesIn(pattern: Node): Node[] {
  if (/^(identifier|shorthand_property_identifier_pattern)$/.test(pattern.type)) return [pattern];
  const part = pattern.type === 'pair_pattern' ? pattern.childForFieldName('value') : /assignment_pattern$/.test(pattern.type) ? pattern.childForFieldName('left') : undefined;
  if (part) return namesIn(part);
  return PATTERNS.test(pattern.type) || /^(rest_pattern|list_splat_pattern)$/.test(pattern.type) ? present(pattern.namedChildren).flatMap(namesIn) : [];
}

function definition(node: Node, name: Node, lines: readonly string[]): Definition | undefined {
  const [called, on] = nameOf(name);
  if (called === undefined) return undefined;
  const value = node.childForFieldName('value') ?? node.childForFieldName('right');
  // A type annotation without a value is where a Python name is declared; an assignment elsewhere changes what is defined already.
  const about = FUNCTIONS.test(node.type) || CLASSES.test(node.type) || !value || !(FUNCTIONS.test(value.type) || CLASSES.test(value.type)) ? node : value;
  const place = placeOf(node);
  const owner = on ?? place.owner;
  // One of a class without a name is nobody's, and a method all the same.
  const kind = kindOf(about, owner !== undefined || (place.local && MEMBERS.test(node.type)));
  if (kind === 'value' && (place.local || !/^(variable_declarator|public_field_definition|field_definition|property_signature|assignment)$/.test(node.type))) return undefined;
  const parts = [name, ...['parameters', 'parameter', 'return_type'].map((field) => about.childForFieldName(field))];
  const found: Definition = { kind, name: called, local: place.local, ...whereIs(name, lines), broken: isBroken(node, parts), brokenInside: node.hasError };
  if (owner !== undefined) found.owner = owner;
  return described(found, about);
}

/** `export default function () {}` is called `default`. */
function unnamed(node: Node, lines: readonly string[]): Definition[] {
  const value = node.childForFieldName('value');
  if (!value || !(FUNCTIONS.test(value.type) || CLASSES.test(value.type)) || value.childForFieldName('name')) return [];
  const parts = ['parameters', 'parameter', 'return_type'].map((field) => value.childForFieldName(field));
  return [described({ kind: kindOf(value, false), name: 'default', local: false, ...whereIs(node, lines), broken: isBroken(node, parts), brokenInside: node.hasError }, value)];
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

/** What a definition stands in. */
function placeOf(node: Node): { owner?: string; local: boolean } {
  let owner: string | undefined;
  for (let up = node.parent; up; up = up.parent) {
    if (FUNCTIONS.test(up.type)) return { ...(owner === undefined ? {} : { owner }), local: true };
    // Of what stands deeper only the nearest one is the owner.
    if (owner !== undefined || !(CLASSES.test(up.type) || up.type === 'object')) continue;
    owner = (up.childForFieldName('name') ?? up.parent?.childForFieldName('name') ?? up.parent?.childForFieldName('left') ?? up.parent?.childForFieldName('key'))?.text.replace(/\.prototype$/, '');
    // What a module exports in an object is the file's own.
    if (owner !== undefined && /^(module\.)?exports$/.test(owner)) return { local: false };
    // What an object without a name has, an argument for instance, is nobody's.
    if (owner === undefined || !/^[\p{L}\w$]+$/u.test(owner)) return { local: true };
  }
  return { ...(owner === undefined ? {} : { owner }), local: false };
}

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
function scriptImport(node: Node): Import[] {
  const source = node.childForFieldName('source') ?? present(node.namedChildren).find(({ type }) => type === 'import_require_clause')?.childForFieldName('source');
  if (source?.type !== 'string') return [];
  const names = present(node.descendantsOfType(['identifier', 'import_specifier'])).flatMap((part) => {
    if (part.type === 'import_specifier') return [(part.childForFieldName('alias') ?? part.childForFieldName('name'))?.text ?? ''];
    return part.parent?.type === 'import_specifier' ? [] : [part.text];
  });
  return [{ module: source.text.slice(1, -1), line: node.startPosition.row + 1, names, top: node.parent?.type === 'program' }];
}

/** `require('…')` and `import('…')`. */
function required(node: Node): Import[] {
  const argument = moduleOf(node);
  if (!argument) return [];
  const declarator = node.parent?.type === 'variable_declarator' ? node.parent : undefined;
  const name = declarator?.childForFieldName('name');
  const names = name ? present(name.descendantsOfType(['identifier', 'shorthand_property_identifier_pattern'])).map(({ text }) => text) : [];
  return [{ module: argument.text.slice(1, -1), line: node.startPosition.row + 1, names, top: !placeOf(node).local && !inBlock(node) }];
}

function moduleOf(call: Node): Node | undefined {
  const argument = call.childForFieldName('arguments')?.firstNamedChild;
  return /^(require|import)$/.test(call.childForFieldName('function')?.text ?? '') && argument?.type === 'string' ? argument : undefined;
}

const isRequire = (value: Node | null): boolean => value?.type === 'call_expression' && value.childForFieldName('function')?.text === 'require' && moduleOf(value) !== undefined;

const inBlock = (node: Node): boolean => {
  for (let up = node.parent; up; up = up.parent) if (up.type === 'statement_block') return true;
  return false;
};

function pythonImports(node: Node): Import[] {
  const line = node.startPosition.row + 1;
  const top = node.parent?.type === 'module';
  const parts = present(node.childrenForFieldName('name'));
  const nameIn = (part: Node): string => (part.childForFieldName('alias') ?? part).text;
  if (node.type === 'import_statement') return parts.map((part) => ({ module: (part.type === 'aliased_import' ? (part.childForFieldName('name') ?? part) : part).text, line, names: [nameIn(part)], top }));
  const module = node.type === 'future_import_statement' ? '__future__' : node.childForFieldName('module_name')?.text;
  return module === undefined ? [] : [{ module, line, names: parts.map(nameIn), top }];
}

const present = (nodes: readonly (Node | null)[] | undefined): Node[] => (nodes ?? []).filter((node) => node !== null);

const oneLine = (text: string): string => text.replace(/\s+/g, ' ');

/** Without the colon that an annotation begins with. */
const typeText = (node: Node | null): string | undefined => (node ? oneLine(node.text.replace(/^:\s*/, '')) : undefined);
