/**
 * Makes questions with an answer in the file for suite `quality`: those of test/bench/eval/questions.ts, imports,
 * members and names that do not exist. Judges the names in an answer and not its wording, so that better models, or
 * ones helped by the syntax tree, may answer in other words. Pure.
 */
import type { Node, Tree } from 'web-tree-sitter';
import {
  definitionsIn,
  judged,
  listed,
  named,
  type Question,
  QUESTION_KINDS as READ_OFF,
  questionsOf,
} from '../eval/questions.ts';
import { shuffled } from '../eval/holes.ts';
import { below, type Random } from '../../support/engine/workload.ts';

export const QUESTION_KINDS = ['imports', 'members', 'missing', ...READ_OFF] as const;
export type QuestionKind = (typeof QUESTION_KINDS)[number];

export interface QualityQuestion {
  readonly kind: QuestionKind;
  readonly text: string;
  readonly answer: string;
  readonly right: (given: string) => boolean;
}

/** Any assistant shortens longer lists. */
const MAX_NAMES = 8;
/** An answer may name these members and computed properties as methods, or leave them out. */
const SPECIAL = /^(constructor|__\w+__|#\w+|\[.*\])$/;

/**
 * All questions about a text, in random order within each kind.
 * @param elsewhere names that other files define.
 */
export function qualityQuestions(
  tree: Tree,
  file: { path: string; text: string },
  elsewhere: readonly string[],
  random: Random,
): QualityQuestion[] {
  const { text } = file;
  const read = questionsOf(tree, text).map(
    (question): QualityQuestion => ({
      ...question,
      right: (given) =>
        judged(question, given).right ||
        (question.kind === 'where' && namesLine(text, question.core.slice(1, -1), given)) ||
        isInDeclaration(question, given),
    }),
  );
  const all: QualityQuestion[] = [
    ...read,
    ...importsOf(tree, file),
    ...membersOf(tree, text),
    ...missing(file, elsewhere, random),
  ];
  return QUESTION_KINDS.flatMap((kind) =>
    shuffled(
      all.filter((question) => question.kind === kind),
      random,
    ),
  );
}

function importsOf(tree: Tree, { path, text }: { path: string; text: string }): QualityQuestion[] {
  const modules = [...new Set(named(tree.rootNode).flatMap(modulesIn))].filter((name) => text.includes(name));
  if (modules.length === 0 || modules.length > MAX_NAMES) return [];
  // An answer may include or leave out modules that only functions or blocks import.
  const deeper = tree.rootNode.descendantsOfType(IMPORTING).flatMap((node) => (node ? modulesIn(node) : []));
  return [
    {
      kind: 'imports',
      text: 'Which modules does this file import?',
      answer: `This file imports ${listed(modules)}.`,
      right: (given) => namesAll(given, modules, (name) => path.endsWith(name) || deeper.includes(name)),
    },
  ];
}

const IMPORTING = ['import_statement', 'import_from_statement', 'lexical_declaration', 'variable_declaration'];

/** Modules that one statement imports. */
function modulesIn(node: Node): string[] {
  if (node.type === 'future_import_statement') return ['__future__'];
  if (node.type === 'import_from_statement') return [node.childForFieldName('module_name')!.text];
  if (node.type === 'import_statement') {
    const source = node.childForFieldName('source');
    if (source) return [source.text.slice(1, -1)];
    return named(node)
      .map((part) => (part.type === 'aliased_import' ? part.childForFieldName('name')! : part))
      .filter(({ type }) => type === 'dotted_name')
      .map((part) => part.text);
  }
  if (!/^(lexical|variable)_declaration$/.test(node.type)) return [];
  const values = named(node).map((declarator) => declarator.childForFieldName('value')?.text ?? '');
  return values.flatMap((value) => /^require\((['"])([^'"]+)\1\)/.exec(value)?.[2] ?? []);
}

function membersOf(tree: Tree, text: string): QualityQuestion[] {
  const definitions = definitionsIn(tree.rootNode, text);
  return [...new Set(definitions.flatMap(({ owner }) => owner ?? []))].flatMap((owner): QualityQuestion[] => {
    const members = definitions.filter((definition) => definition.owner === owner);
    const mayBe = (name: string): boolean =>
      SPECIAL.test(name) ||
      members.some((member) => member.name === name && new RegExp(`\\b[gs]et ${name}\\(`).test(member.line));
    const names = [...new Set(members.map(({ name }) => name))].filter((name) => !mayBe(name));
    if (names.length === 0 || names.length > MAX_NAMES) return [];
    return [
      {
        kind: 'members',
        text: `Which methods does \`${owner}\` have?`,
        answer: `\`${owner}\` has ${listed(names)}.`,
        // The classes that it extends are no methods.
        right: (given) =>
          namesAll(given.replace(/ Base classes of [\s\S]*$/, ''), names, (name) => name === owner || mayBe(name)),
      },
    ];
  });
}

function missing(
  { path, text }: { path: string; text: string },
  elsewhere: readonly string[],
  random: Random,
): QualityQuestion[] {
  const names = elsewhere.filter((name) => !text.includes(name));
  if (names.length === 0) return [];
  const name = names[below(random, names.length)]!;
  return [
    {
      kind: 'missing',
      text: `Where is \`${name}\` defined?`,
      answer: `There is no \`${name}\` in ${path}.`,
      right: denies,
    },
  ];
}

/**
 * Whether an answer quotes the declaration that says it: a signature with the parameters, with the type or with the
 * default, or a method behind the name of its class.
 */
function isInDeclaration({ kind, text, core }: Question, given: string): boolean {
  const codes = [...given.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code.replace(/\s+/g, ''));
  const [first = '', second = ''] = [...text.matchAll(/`([^`]+)`/g)].map(([, name]) => name);
  const wanted = [...core.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name.replace(/\s+/g, ''));
  if (kind === 'owner') return codes.some((code) => code === `${wanted[0]}.${first}`);
  const name = kind === 'parameters' ? first : second;
  const signature = codes.find(
    (code) => code.includes(`${name}(`) || code.includes(`${name}<`) || code.includes(`${name}=`),
  );
  if (signature === undefined) return false;
  if (kind === 'type') return [':', '?:'].some((mark) => signature.includes(`${first}${mark}${wanted[0]}`));
  if (kind === 'default') return signature.includes(`=${wanted[0]}`);
  if (kind !== 'parameters') return false;
  return wanted.length === 0
    ? signature.includes('()')
    : wanted.every((each) => signature.split(/[^\w$]+/).includes(each));
}

/** Whether an answer gives all names and no others in backticks. `may` allows further names. */
export function namesAll(given: string, names: readonly string[], may: (name: string) => boolean): boolean {
  const quoted = [...given.matchAll(/`([^`\n]+)`/g)].map(([, name]) =>
    name!.replace(/^['"]|['"]$/g, '').replace(/\(\)$/, ''),
  );
  const said =
    quoted.length > 0 ? quoted : (given.match(/[^\s,;'"()]+/g) ?? []).map((word) => word.replace(/[.:]$/, ''));
  return (
    names.every((name) => said.includes(name)) &&
    (quoted.length === 0 || quoted.every((name) => names.includes(name) || may(name)))
  );
}

/** Whether an answer denies that the name exists. */
export function denies(given: string): boolean {
  return /\b(no|not|nowhere|never|neither|cannot)\b|n't\b/i.test(given.replace(/`[^`]*`/g, ''));
}

/** Whether an answer names this line, as in "line 12". Lines count from 1. */
function namesLine(text: string, line: string, given: string): boolean {
  const at = text.split('\n').findIndex((other) => other.trim() === line);
  return at >= 0 && new RegExp(`\\bline ${at + 1}\\b`, 'i').test(given);
}

/** Names that a text defines. Questions about other files use them as missing names. */
export function namesDefined(tree: Tree, text: string): string[] {
  return definitionsIn(tree.rootNode, text)
    .map(({ name }) => name)
    .filter((name) => name.length > 5 && !SPECIAL.test(name));
}
