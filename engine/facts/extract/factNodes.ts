/** What is read off single nodes of a syntax tree, wherever they stand: names, texts on one line. Pure. */
import type { Node } from 'web-tree-sitter';

export const PATTERNS = /^(object_pattern|array_pattern|pattern_list|tuple_pattern|list_pattern)$/;

export const present = (nodes: readonly (Node | null)[] | undefined): Node[] =>
  (nodes ?? []).filter((node) => node !== null);

export const oneLine = (text: string): string => text.replace(/\s+/g, ' ');

/** Without the colon that an annotation begins with. */
export const typeText = (node: Node | null): string | undefined =>
  node ? oneLine(node.text.replace(/^:\s*/, '')) : undefined;

/** What may stand between any two nodes; in Python the end of a line that goes on is one. */
export const NO_CODE = /^(comment|line_continuation)$/;

/** The first that is no comment; one by one, as a body may have thousands. */
export function firstCode(node: Node | null): Node | null {
  let child = node?.namedChild(0) ?? null;
  for (let i = 1; child && NO_CODE.test(child.type); i++) child = node?.namedChild(i) ?? null;
  return child;
}

/** What a pattern gives names to. */
export function namesIn(pattern: Node): Node[] {
  if (/^(identifier|shorthand_property_identifier_pattern)$/.test(pattern.type)) return [pattern];
  const part =
    pattern.type === 'pair_pattern'
      ? pattern.childForFieldName('value')
      : /assignment_pattern$/.test(pattern.type)
        ? pattern.childForFieldName('left')
        : undefined;
  if (part) return namesIn(part);
  return PATTERNS.test(pattern.type) || /^(rest_pattern|list_splat_pattern)$/.test(pattern.type)
    ? present(pattern.namedChildren).flatMap(namesIn)
    : [];
}

/** Of a plain string, as it is written; undefined for any other node. */
export function stringText(node: Node | null | undefined): string | undefined {
  return node?.type === 'string' ? /^[rRuU]?(['"])([^\\]*)\1$/s.exec(node.text)?.[2] : undefined;
}
