/**
 * Facts that stand in a file, read off its syntax tree: what it imports, what it defines, where, with which parameters. Of
 * TypeScript, JavaScript and Python; other languages have no facts. What a tree with errors may have got wrong is marked, not guessed. Pure.
 */
import type { Node, Tree } from 'web-tree-sitter';
import { type Call, callAt, PYTHON_CALLS, SCRIPT_CALLS } from './factCalls.ts';
import { Comments, type Doc, docstringOf } from './factDocs.ts';
import { type Exports, ExportStatements } from './factExports.ts';
import { assignedField, type Field, parameterFields } from './factFields.ts';
import { type Import, isRequire, pythonImports, required, scriptImport } from './factImports.ts';
import { firstCode, namesIn, PATTERNS, present, typeText } from './factNodes.ts';
import { CLASSES, FUNCTIONS, type Place, walk } from './factPlaces.ts';
import { type Returns, ReturnStatements } from './factReturns.ts';
import { headOf, heritageOf, type Parameter, parametersOf } from './factSignatures.ts';
import type { SourceDocument } from '../../text/syntax/sourceDocument.ts';
import type { Syntax } from '../../text/syntax/syntax.ts';
import { grammarFor } from '../../text/syntax/syntaxGrammars.ts';

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

export interface Facts {
  imports: Import[];
  /** Modules that something is exported from without being imported. */
  reexports: Import[];
  definitions: Definition[];
  exports: Exports;
  calls: Call[];
  /** Of classes, besides what is defined in them as members, and of anything else that has a name. */
  fields: Field[];
  /** Of variables and parameters in functions. */
  localNames: Set<string>;
  /** The tree has errors somewhere: lists of all that the file has may be short of something. */
  broken: boolean;
  /** There is no code in it, but there may be comments. */
  blank: boolean;
}

const SCRIPT = ['javascript', 'typescript', 'tsx'];
const MEMBERS =
  /^(method_definition|method_signature|abstract_method_signature|public_field_definition|field_definition|property_signature|pair)$/;
const SCRIPT_TYPES = [
  'function_declaration',
  'generator_function_declaration',
  'function_signature',
  'method_definition',
  'method_signature',
  'abstract_method_signature',
  'class_declaration',
  'abstract_class_declaration',
  'interface_declaration',
  'type_alias_declaration',
  'enum_declaration',
  'variable_declarator',
  'public_field_definition',
  'field_definition',
  'property_signature',
  'pair',
  'assignment_expression',
  'internal_module',
  'module',
  'export_statement',
  'comment',
  'decorator',
  'return_statement',
  'yield_expression',
  'augmented_assignment_expression',
];
const PYTHON_TYPES = [
  'function_definition',
  'class_definition',
  'assignment',
  'decorated_definition',
  'comment',
  'return_statement',
  'yield',
];
const SCRIPT_IMPORTS = ['import_statement'];
/** Read for other things than what they define. */
const NO_DEFINITIONS = [...PYTHON_CALLS, 'new_expression', 'augmented_assignment_expression'];
const PYTHON_IMPORTS = ['import_statement', 'import_from_statement', 'future_import_statement'];

/** Whether the facts of a file's language are known. */
export function hasFacts(file: { path: string; language?: string | undefined }): boolean {
  const grammar = grammarFor(file);
  return grammar !== undefined && (grammar === 'python' || SCRIPT.includes(grammar));
}

/** The facts of a document. Undefined where it has no tree, or a grammar whose facts are not known. */
export function readFacts(syntax: Syntax, doc: SourceDocument): Facts | undefined {
  return syntax.read(doc, factsOf);
}

/** @param tree of `text`. Undefined for a grammar whose facts are not known. */
function factsOf(tree: Tree, grammar: string, text: string): Facts | undefined {
  const isPython = grammar === 'python';
  if (!isPython && !SCRIPT.includes(grammar)) return undefined;
  const lines = text.split('\n');
  const reading: Reading = { text, lines, comments: new Comments(lines), returns: new ReturnStatements() };
  const exports = new ExportStatements(text, isPython);
  const facts: Facts = {
    imports: [],
    reexports: [],
    definitions: [],
    exports: exports.found,
    calls: [],
    fields: [],
    localNames: new Set(),
    broken: tree.rootNode.hasError,
    blank: firstCode(tree.rootNode) === null,
  };
  const types = new Set([
    ...(isPython
      ? [...PYTHON_TYPES, ...PYTHON_IMPORTS, ...PYTHON_CALLS]
      : [...SCRIPT_TYPES, ...SCRIPT_IMPORTS, ...SCRIPT_CALLS]),
    ...exports.types,
  ]);
  walk(tree, types, (node, place) => {
    const { type } = node;
    if (type === 'comment' || type === 'decorator') return reading.comments.add(node);
    if (/^(return_statement|yield|yield_expression)$/.test(type)) return reading.returns.add(node, place);
    if (SCRIPT_CALLS.includes(type) || PYTHON_CALLS.includes(type))
      facts.calls.push(...[callAt(node)].filter((call) => call !== undefined));
    if (/^(?:augmented_)?assignment(_expression)?$/.test(type)) facts.fields.push(...assignedField(node, place));
    if (type === 'method_definition') facts.fields.push(...parameterFields(node, place));
    exports.read(node, place);
    if (exports.types.includes(type) || NO_DEFINITIONS.includes(type)) return;
    if (isPython && PYTHON_IMPORTS.includes(type)) facts.imports.push(...pythonImports(node, place));
    else if (type === 'import_statement') facts.imports.push(...scriptImport(node, place));
    else if (type === 'call_expression') facts.imports.push(...required(node, place));
    else {
      if (type === 'export_statement') facts.reexports.push(...scriptImport(node, place));
      const found = definitionsAt(node, place, reading);
      facts.definitions.push(...found);
      for (const name of localsAt(node, place)) facts.localNames.add(name);
      for (const { name } of found.flatMap(({ parameters = [] }) => parameters))
        facts.localNames.add(name.replace(/^(?:\.\.\.|\*+)/, ''));
    }
  });
  exports.end();
  facts.imports.sort((a, b) => a.line - b.line);
  return facts;
}

/** What a walk has come by so far. */
interface Reading {
  text: string;
  lines: readonly string[];
  comments: Comments;
  returns: ReturnStatements;
}

/** Names of variables inside a function. */
function localsAt(node: Node, place: Place): string[] {
  if (!place.local || !/^(variable_declarator|assignment)$/.test(node.type)) return [];
  const name = node.childForFieldName('name') ?? node.childForFieldName('left');
  return name
    ? (PATTERNS.test(name.type) ? namesIn(name) : name.type === 'identifier' ? [name] : []).map((part) => part.text)
    : [];
}

function definitionsAt(node: Node, place: Place, reading: Reading): Definition[] {
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
