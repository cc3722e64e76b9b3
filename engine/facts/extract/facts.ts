/**
 * Reads the facts of a TypeScript, JavaScript or Python file from its syntax tree: definitions, imports, exports,
 * calls, fields; of other languages functions, classes, calls and changes. Marks what errors make uncertain. Does not guess.
 */
import type { Tree } from 'web-tree-sitter';
import type { SourceDocument } from '../../text/syntax/sourceDocument.ts';
import type { Syntax } from '../../text/syntax/syntax.ts';
import { grammarFor } from '../../text/syntax/syntaxTrees.ts';
import {
  type Call,
  callAt,
  PYTHON_CALLS,
  ReturnStatements,
  SCRIPT_CALLS,
  assignedField,
  type Field,
  parameterFields,
} from './members.ts';
import { Comments } from './comments.ts';
import { entriesOf } from './entries.ts';
import { type Definition, definitionsAt, localsAt, type Reading } from './definitions.ts';
import { type Exports, ExportStatements, type Import, pythonImports, required, scriptImport } from './modules.ts';
import { type Changes, changesOf } from './changes.ts';
import type { Named } from './named.ts';
import { callsIn } from './calls.ts';
import { walk } from './tree.ts';

export interface Facts {
  imports: Import[];
  /** Modules of `export … from`. */
  reexports: Import[];
  definitions: Definition[];
  exports: Exports;
  calls: Call[];
  /** Fields that are assigned instead of declared. */
  fields: Field[];
  /** Variables and parameters of functions. */
  localNames: Set<string>;
  /** What is assigned and thrown. */
  changes: Changes;
  /** Only functions, classes, calls and changes are known. */
  partial: boolean;
  /** Of a data file, such as JSON. Only definitions are known. */
  isData?: true;
  /** The tree has errors, so lists may be incomplete. */
  broken: boolean;
}

/** The facts of a file without a syntax tree. */
export const NO_FACTS: Facts = {
  imports: [],
  reexports: [],
  definitions: [],
  exports: { named: [], passedOn: [], isPython: false, unclear: true },
  calls: [],
  fields: [],
  localNames: new Set(),
  changes: { writes: [], throws: [], named: [] },
  partial: true,
  broken: false,
};

const SCRIPT = ['javascript', 'typescript', 'tsx'];
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
/** Types of nodes that are visited but never define anything. */
const NO_DEFINITIONS = [...PYTHON_CALLS, 'new_expression', 'augmented_assignment_expression'];
const PYTHON_IMPORTS = ['import_statement', 'import_from_statement', 'future_import_statement'];

/** Whether the facts of a file's language are known. */
export function hasFacts(file: { path: string; language?: string | undefined }): boolean {
  const grammar = grammarFor(file);
  return grammar !== undefined && (grammar === 'python' || SCRIPT.includes(grammar));
}

/** The facts of a document. Undefined without a tree, or for a grammar whose facts are not known. */
export function readFacts(syntax: Syntax, doc: SourceDocument): Facts | undefined {
  return syntax.read(doc, factsOf);
}

/** The entries of a data file as definitions. Undefined for a file of another kind. */
export function dataFacts(doc: SourceDocument): Facts | undefined {
  const definitions = entriesOf(doc)?.map(
    ({ isTable, ...entry }): Definition => ({
      ...entry,
      ...(isTable ? { word: 'table' } : {}),
      ...{ local: false, broken: false, brokenInside: false },
    }),
  );
  return definitions && { ...NO_FACTS, definitions, partial: false, isData: true };
}

/** @param tree of `text`. Undefined for a grammar whose facts are not known. */
function factsOf(tree: Tree, grammar: string, text: string): Facts | undefined {
  const isPython = grammar === 'python';
  if (grammar === 'css') return undefined;
  const changes = changesOf(tree, grammar);
  if (!isPython && !SCRIPT.includes(grammar)) return partialFacts(changes, callsIn(tree), tree.rootNode.hasError);
  const reading: Reading = { text, comments: new Comments(text.split('\n')), returns: new ReturnStatements() };
  const exports = new ExportStatements(text, isPython);
  const facts: Facts = {
    imports: [],
    reexports: [],
    definitions: [],
    exports: exports.found,
    calls: [],
    fields: [],
    localNames: new Set(),
    changes,
    partial: false,
    broken: tree.rootNode.hasError,
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

/** The innermost named function or class around a call, with its class. Undefined at the level of the file. */
export function callerOf(call: Call, { definitions }: Facts): string | undefined {
  const around = definitions
    .filter(({ kind, parameters }) => /^(?:class|function|method)$/.test(kind) || parameters !== undefined)
    .filter(({ at, end }) => at !== undefined && end !== undefined && at <= call.at && call.at < end);
  const [inner] = around.sort((a, b) => (b.at ?? 0) - (a.at ?? 0));
  return inner && (inner.owner === undefined ? inner.name : `${inner.owner}.${inner.name}`);
}

/** Whether a definition has no owner, or one in another file: most languages let methods stand apart from their class. */
export function topOf({ definitions, partial }: Facts): (each: Definition) => boolean {
  const classes = new Set(definitions.filter(({ kind }) => kind === 'class').map(({ name }) => name));
  return ({ owner }) => owner === undefined || (partial && !classes.has(owner));
}

/** The functions and classes of a tree, what it calls, and the names that it assigns. */
function partialFacts(changes: Changes, calls: Call[], broken: boolean): Facts {
  const { named, writes } = changes;
  const withBody = new Set(named.flatMap((each) => (each.isPrototype ? [] : each.name)));
  return {
    ...NO_FACTS,
    definitions: named
      .filter(({ isPrototype, name }) => !isPrototype || !withBody.has(name))
      .map((each) => definitionOf(each, broken)),
    calls,
    localNames: new Set(writes.map(({ name }) => name)),
    changes,
    broken,
  };
}

const definitionOf = ({ isPrototype: _, ...named }: Named, broken: boolean): Definition => ({
  ...named,
  broken: false,
  brokenInside: broken,
});
