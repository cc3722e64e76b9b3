/**
 * Summaries for suite `quality`: a function or method whose documentation comment is taken out of its file; what the product's
 * summary says of it is compared with the comment's first sentence. Pure.
 */
import type { Node, Tree } from 'web-tree-sitter';
import { shuffled } from '../eval/holes.ts';
import { named, unwrapped } from '../eval/questions.ts';
import type { Random } from '../../support/engine/workload.ts';

export interface QualitySummary {
  readonly name: string;
  /** The file without the comment. */
  readonly text: string;
  /** Of the function in it. */
  readonly start: number;
  readonly end: number;
  /** The comment's first sentence. */
  readonly reference: string;
}

const WORDS = { least: 4, most: 40 };
const FUNCTION =
  /^(function_declaration|generator_function_declaration|function_definition|method_definition|arrow_function|function_expression)$/;

interface Documented {
  name: string;
  node: Node;
  comment: Node;
}

/** All of one text in random order. */
export function summariesOf(tree: Tree, text: string, random: Random): QualitySummary[] {
  const all = documentedIn(tree.rootNode).flatMap(({ name, node, comment }): QualitySummary[] => {
    const reference = firstSentence(comment.text);
    const numWords = reference.split(/\s+/).length;
    if (/^(constructor|__\w+__)$/.test(name) || numWords < WORDS.least || numWords > WORDS.most) return [];
    // With its line, so that nothing shows where it stood.
    const from = text.lastIndexOf('\n', comment.startIndex - 1) + 1;
    const to = text.indexOf('\n', comment.endIndex) + 1;
    if (
      to === 0 ||
      text.slice(from, comment.startIndex).trim() !== '' ||
      text.slice(comment.endIndex, to).trim() !== ''
    )
      return [];
    const without = text.slice(0, from) + text.slice(to);
    // Overloads and copies say the same.
    if (plain(without).includes(plain(reference))) return [];
    const moved = (at: number): number => (at <= from ? at : at - (to - from));
    return [{ name, text: without, start: moved(node.startIndex), end: moved(node.endIndex), reference }];
  });
  return shuffled(
    all.filter(({ name }) => all.filter((other) => other.name === name).length === 1),
    random,
  );
}

const plain = (text: string): string =>
  text
    .replace(/[^\w]+/g, ' ')
    .toLowerCase()
    .trim();

function documentedIn(root: Node): Documented[] {
  const found: Documented[] = [];
  const visit = (node: Node): void => {
    const about = unwrapped(node);
    const name = about.childForFieldName('name')?.text;
    if (/^(abstract_)?class_(declaration|definition)$/.test(about.type)) {
      for (const member of named(about.childForFieldName('body'))) visit(member);
      return;
    }
    const code = about.type === 'variable_declarator' ? about.childForFieldName('value') : about;
    if (name === undefined || !code || !FUNCTION.test(code.type)) return;
    const comment = code.type === 'function_definition' ? docString(code) : commentBefore(node);
    if (comment) found.push({ name, node, comment });
  };
  for (const node of named(root)) visit(node);
  return found;
}

/** The first statement of a body that goes on after it. */
function docString(node: Node): Node | undefined {
  const [first, second] = named(node.childForFieldName('body'));
  return second && first?.type === 'expression_statement' && first.firstNamedChild?.type === 'string'
    ? first
    : undefined;
}

function commentBefore(node: Node): Node | undefined {
  const before = node.previousNamedSibling;
  return before?.type === 'comment' && before.text.startsWith('/**') ? before : undefined;
}

/** Of a documentation comment of either language, without its marks, before its first tag and its first blank line; empty where there is none. */
export function firstSentence(comment: string): string {
  const inside = comment.startsWith('/*')
    ? comment.replace(/^\/\*+|\*+\/$/g, '')
    : comment.replace(/^\w*("""|'''|["'])|("""|'''|["'])$/g, '');
  const lines = inside
    .split('\n')
    .map((line) => (comment.startsWith('/*') ? line.replace(/^\s*\* ?/, '') : line).trim());
  const from = lines.findIndex((line) => line !== '');
  const paragraph: string[] = [];
  for (const line of from < 0 ? [] : lines.slice(from)) {
    if (line === '' || /^(@|:\w+|\.\. |```|[-*] )/.test(line)) break;
    paragraph.push(line);
  }
  const text = paragraph.join(' ').replace(/\s+/g, ' ').trim();
  return /^.*?[.!?](?=\s+[A-Z`]|$)/.exec(text)?.[0] ?? text;
}

/** The words of a name: what a summary has to be better than. */
export function wordsOfName(name: string): string {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .replaceAll('_', ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .toLowerCase();
}
