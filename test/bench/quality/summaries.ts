/**
 * Makes summary tasks for suite `quality`: removes the documentation comment of a function or method from its file. The
 * product's summary is compared with the first sentence of this comment. Pure.
 */
import type { Node, Tree } from 'web-tree-sitter';
import { shuffled } from '../eval/holes.ts';
import { named, unwrapped } from '../eval/questions.ts';
import type { Random } from '../../support/engine/workload.ts';

export interface QualitySummary {
  readonly name: string;
  /** The file without the comment. */
  readonly text: string;
  /** Range of the function in `text`. */
  readonly start: number;
  readonly end: number;
  /** The first sentence of the comment. */
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

/** All tasks of a text in random order. */
export function summariesOf(tree: Tree, text: string, random: Random): QualitySummary[] {
  const all = documentedIn(tree.rootNode).flatMap(({ name, node, comment }): QualitySummary[] => {
    const reference = firstSentence(comment.text);
    const numWords = reference.split(/\s+/).length;
    if (/^(constructor|__\w+__)$/.test(name) || numWords < WORDS.least || numWords > WORDS.most) return [];
    // Also removes the line, so that nothing shows where the comment was.
    const from = text.lastIndexOf('\n', comment.startIndex - 1) + 1;
    const to = text.indexOf('\n', comment.endIndex) + 1;
    if (
      to === 0 ||
      text.slice(from, comment.startIndex).trim() !== '' ||
      text.slice(comment.endIndex, to).trim() !== ''
    )
      return [];
    const without = text.slice(0, from) + text.slice(to);
    // Overloads and copies may repeat the comment.
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

/** The string statement at the start of a body, if the body has further statements. */
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

/**
 * First sentence of a documentation comment in either language, without comment marks, up to the first tag or blank
 * line. Empty if there is none.
 */
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

/** The words of a name. A summary must be better than these. */
export function wordsOfName(name: string): string {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .replaceAll('_', ' ')
    .replace(/\s+/g, ' ')
    .trim()
    .toLowerCase();
}
