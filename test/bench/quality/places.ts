/**
 * Finds the places of suite `places` with TypeScript's parser: bodies of functions, and what stands between quotes, in
 * attributes, patterns and type arguments. Also says which function a line is of. Asks no model.
 */
import ts from 'typescript';
import { shuffled } from '../eval/holes.ts';
import type { Random } from '../../support/engine/workload.ts';

export const LITERAL_KINDS = ['string', 'template', 'expression', 'attribute', 'pattern', 'types'] as const;
type PlaceKind = 'body' | (typeof LITERAL_KINDS)[number];

export interface EmptiedPlace {
  readonly kind: PlaceKind;
  /** The file without `taken`, which was at `offset`. */
  readonly text: string;
  readonly offset: number;
  readonly taken: string;
  /** Name of the function whose body was taken. Undefined for a literal and for a function without a name. */
  readonly name?: string | undefined;
}

const MAX_BODY = { lines: 25, characters: 1500 };
const MIN_BODY_LINES = 2;
const MAX_LITERAL = 80;

export function parsed(file: string, text: string): ts.SourceFile {
  const kind = file.endsWith('.tsx')
    ? ts.ScriptKind.TSX
    : /\.[cm]?ts$/.test(file)
      ? ts.ScriptKind.TS
      : ts.ScriptKind.JSX;
  return ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true, kind);
}

/** Number of errors that the parser finds. */
export function numErrors(file: string, text: string): number {
  // The parser keeps its errors in a member that the package's types do not have.
  return (parsed(file, text) as unknown as { parseDiagnostics: unknown[] }).parseDiagnostics.length;
}

/** Lines without indentation, and without blank ones. */
export const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');

/** All places of a file in random order. */
export function placesIn(file: string, text: string, random: Random): EmptiedPlace[] {
  const found: EmptiedPlace[] = [];
  const put = (kind: PlaceKind, start: number, end: number, name?: string): void => {
    found.push({
      kind,
      offset: start,
      taken: text.slice(start, end),
      text: text.slice(0, start) + text.slice(end),
      name,
    });
  };
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body && ts.isBlock(node.body)) {
      const inner = text.slice(node.body.getStart() + 1, node.body.end - 1);
      const numLines = linesOf(inner).length;
      const fits = numLines >= MIN_BODY_LINES && numLines <= MAX_BODY.lines && inner.length <= MAX_BODY.characters;
      const start = node.body.getStart() + 1 + inner.length - inner.trimStart().length;
      if (fits && /^[ \t]*\n/.test(inner)) put('body', start, start + inner.trim().length, nameOf(node));
    }
    for (const [kind, start, end] of literalsOf(node, text)) {
      const taken = text.slice(start, end);
      if (taken !== '' && taken.length <= MAX_LITERAL && !taken.includes('\n')) put(kind, start, end);
    }
    ts.forEachChild(node, visit);
  };
  visit(parsed(file, text));
  return shuffled(found, random);
}

type Range = readonly [kind: PlaceKind, start: number, end: number];

/** What can be emptied directly in a node. */
function literalsOf(node: ts.Node, text: string): Range[] {
  const [start, end] = [node.getStart(), node.end];
  if (ts.isStringLiteral(node)) return [[ts.isJsxAttribute(node.parent) ? 'attribute' : 'string', start + 1, end - 1]];
  if (ts.isNoSubstitutionTemplateLiteral(node)) return [['template', start + 1, end - 1]];
  if (ts.isTemplateExpression(node))
    return [
      ['template', node.head.getStart() + 1, node.head.end - 2],
      ...node.templateSpans.flatMap(({ expression, literal }): Range[] => [
        ['expression', expression.getStart(), expression.end],
        ['template', literal.getStart() + 1, literal.end - (text[literal.end - 1] === '`' ? 1 : 2)],
      ]),
    ];
  if (ts.isJsxAttribute(node) && node.initializer && ts.isJsxExpression(node.initializer))
    return [['attribute', node.initializer.getStart() + 1, node.initializer.end - 1]];
  if (ts.isRegularExpressionLiteral(node)) return [['pattern', start + 1, text.lastIndexOf('/', end - 1)]];
  const { typeArguments, typeParameters } = node as {
    typeArguments?: ts.NodeArray<ts.Node>;
    typeParameters?: ts.NodeArray<ts.Node>;
  };
  const list = typeArguments ?? typeParameters;
  return list && text[list.pos - 1] === '<' ? [['types', list.pos, text.indexOf('>', list.end)]] : [];
}

/** The name of the innermost function around an offset. Undefined if there is none, or if it has no name. */
export function functionAround(file: ts.SourceFile, offset: number): string | undefined {
  let name: string | undefined;
  const visit = (node: ts.Node): void => {
    if (offset < node.pos || offset >= node.end) return;
    if (ts.isFunctionLike(node)) name = nameOf(node);
    ts.forEachChild(node, visit);
  };
  visit(file);
  return name;
}

/** The function's own name, or the name of what it is assigned to. */
function nameOf(node: ts.SignatureDeclaration): string | undefined {
  if (ts.isConstructorDeclaration(node)) return 'constructor';
  if (node.name) return node.name.getText();
  const { parent } = node;
  if (ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent) || ts.isPropertyDeclaration(parent))
    return parent.name.getText();
  if (ts.isBinaryExpression(parent)) return /[\w$]+$/.exec(parent.left.getText())?.[0];
  return undefined;
}
