/**
 * Reads questions with one exact answer off a syntax tree: parameters, return types, parameter types and defaults, base
 * classes, owner classes, lines of definitions. Uses the wording that the built-in model was trained on. Pure.
 */
import type { Node, Tree } from 'web-tree-sitter';

export const QUESTION_KINDS = ['parameters', 'returns', 'type', 'default', 'base', 'owner', 'where'] as const;
type QuestionKind = (typeof QUESTION_KINDS)[number];

export interface Question {
  readonly kind: QuestionKind;
  readonly text: string;
  /** The whole answer in the wording of the training data. */
  readonly answer: string;
  /** Text that every right answer contains. */
  readonly core: string;
}

interface Parameter {
  name: string;
  type?: string;
  otherwise?: string;
}

export interface Definition {
  name: string;
  /** The class, for a method. */
  owner?: string;
  /** The line in the file, without indentation. */
  line: string;
  /** Absent if the parameters have no plain names, as with destructuring. */
  parameters?: Parameter[];
  returns?: string;
  bases: string[];
}

/** Longer ones do not make short answers. */
const MAX_TYPE = 60;
const MAX_VALUE = 40;
const MAX_LINE = 140;

/** @param tree the tree of `text` in TypeScript, JavaScript or Python. Other languages give no questions. */
export function questionsOf(tree: Tree, text: string): Question[] {
  const definitions = definitionsIn(tree.rootNode, text);
  const once = definitions.filter(
    ({ name }) =>
      !/^(constructor|__\w+__)$|#/.test(name) && definitions.filter((other) => other.name === name).length === 1,
  );
  return once.flatMap(questionsAbout);
}

function questionsAbout({ name, owner, line, parameters, returns, bases }: Definition): Question[] {
  const n = `\`${name}\``;
  const questions: Question[] = [];
  const add = (kind: QuestionKind, text: string, answer: (core: string) => string, core: string): void =>
    void questions.push({ kind, text, answer: answer(core), core });
  if (parameters) {
    add(
      'parameters',
      `What parameters does ${n} take?`,
      (core) => `${n} takes ${core}.`,
      parameters.length ? listed(parameters.map((parameter) => parameter.name)) : 'no parameters',
    );
    for (const { name: p, type, otherwise } of parameters) {
      if (type !== undefined && type.length < MAX_TYPE)
        add('type', `What is the type of \`${p}\` in ${n}?`, (core) => `\`${p}\` has the type ${core}.`, `\`${type}\``);
      if (otherwise !== undefined && otherwise.length < MAX_VALUE)
        add(
          'default',
          `What is the default value of \`${p}\` in ${n}?`,
          (core) => `\`${p}\` defaults to ${core}.`,
          `\`${otherwise}\``,
        );
    }
  }
  if (returns !== undefined && returns.length <= MAX_TYPE && !/[{=;]/.test(returns))
    add('returns', `What is the return type of ${n}?`, (core) => `${n} returns ${core}.`, `\`${returns}\``);
  if (bases.length) add('base', `What is the base class of ${n}?`, (core) => `${n} extends ${core}.`, listed(bases));
  if (owner !== undefined)
    add('owner', `Which class does ${n} belong to?`, (core) => `${n} is a method of ${core}.`, `\`${owner}\``);
  if (line.length <= MAX_LINE)
    add('where', `Where is ${n} defined?`, (core) => `${n} is defined here: ${core}`, `\`${line}\``);
  return questions;
}

/** "`a`, `b` and `c`". Needs at least one name. */
export function listed(names: readonly string[]): string {
  const quoted = names.map((name) => `\`${name}\``);
  return quoted.length === 1 ? quoted[0]! : `${quoted.slice(0, -1).join(', ')} and ${quoted.at(-1)}`;
}

/** Treats both kinds of quotes alike. The training data came from a printer that prefers single quotes. */
const plain = (text: string): string => text.replaceAll('"', "'").trim();

export function judged(
  { answer, core }: Pick<Question, 'answer' | 'core'>,
  given: string,
): { exact: boolean; right: boolean } {
  return { exact: plain(given) === plain(answer), right: plain(given).includes(plain(core)) };
}

/** Top-level functions and classes of the file, and the methods of those classes. */
export function definitionsIn(root: Node, text: string): Definition[] {
  const found: Definition[] = [];
  const visit = (node: Node, owner?: string): void => {
    const about = unwrapped(node);
    const name = about.childForFieldName('name')?.text;
    if (name === undefined) return;
    if (/^(abstract_)?class_(declaration|definition)$/.test(about.type)) {
      found.push({ name, line: lineOf(about, text), bases: basesOf(about) });
      for (const member of named(about.childForFieldName('body'))) visit(member, name);
      return;
    }
    const of = about.type === 'variable_declarator' ? about.childForFieldName('value') : about;
    if (
      !of ||
      !/^(function_declaration|generator_function_declaration|method_definition|abstract_method_signature|function_definition|arrow_function|function_expression)$/.test(
        of.type,
      )
    )
      return;
    found.push({
      name,
      owner,
      line: lineOf(about, text),
      parameters: parametersOf(of, owner !== undefined),
      returns: typeText(of.childForFieldName('return_type')),
      bases: [],
    });
  };
  for (const node of named(root)) visit(node);
  return found;
}

/** The declaration inside an export or a decorator, or the first name of a declaration. Otherwise the node itself. */
export function unwrapped(node: Node): Node {
  if (node.type === 'export_statement') return unwrappedOr(node.childForFieldName('declaration'), node);
  if (node.type === 'decorated_definition') return unwrappedOr(node.childForFieldName('definition'), node);
  if (node.type === 'lexical_declaration')
    return named(node).find(({ type }) => type === 'variable_declarator') ?? node;
  return node;
}

const unwrappedOr = (node: Node | null, otherwise: Node): Node => (node ? unwrapped(node) : otherwise);

export const named = (node: Node | null): Node[] => (node ? node.namedChildren.filter((child) => child !== null) : []);

/** The line with the definition's name. */
function lineOf(node: Node, text: string): string {
  const at = node.childForFieldName('name')!.startIndex;
  const end = text.indexOf('\n', at);
  return text.slice(text.lastIndexOf('\n', at - 1) + 1, end < 0 ? text.length : end).trim();
}

function basesOf(node: Node): string[] {
  const python = node.childForFieldName('superclasses');
  if (python)
    return named(python)
      .filter(({ type }) => type !== 'keyword_argument' && type !== 'comment')
      .map((base) => base.text);
  const heritage = named(named(node).find(({ type }) => type === 'class_heritage') ?? null);
  // JavaScript has no `implements` and therefore no clause around the base class.
  const first = heritage.find(({ type }) => type !== 'implements_clause' && type !== 'comment');
  const base = first?.type === 'extends_clause' ? first.childForFieldName('value') : first;
  return base ? [base.text] : [];
}

function parametersOf(node: Node, isMethod: boolean): Parameter[] | undefined {
  const parameters: Parameter[] = [];
  // `x => ...` has a single parameter without brackets.
  const only = node.childForFieldName('parameter');
  for (const [i, child] of (only ? [only] : named(node.childForFieldName('parameters'))).entries()) {
    if (/separator|comment/.test(child.type)) continue;
    const pattern =
      child.childForFieldName('pattern') ??
      child.childForFieldName('name') ??
      (child.type === 'typed_parameter' ? child.firstNamedChild : child);
    if (!pattern || !/^(identifier|this|rest_pattern|list_splat_pattern|dictionary_splat_pattern)$/.test(pattern.type))
      return undefined;
    const name = pattern.text;
    if (name === 'this' || (i === 0 && isMethod && (name === 'self' || name === 'cls'))) continue;
    parameters.push({
      name,
      type: typeText(child.childForFieldName('type')),
      otherwise: oneLine(child.childForFieldName('value')?.text),
    });
  }
  return parameters;
}

const oneLine = (text: string | undefined): string | undefined => text?.replace(/\s+/g, ' ');

/** The type without the colon of its annotation. */
const typeText = (node: Node | null): string | undefined => oneLine(node?.text.replace(/^:\s*/, ''));
