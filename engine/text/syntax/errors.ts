/** Finds errors in a part of a syntax tree. */
import type { Tree } from 'web-tree-sitter';

/** Whether something in [from, to] is an error, or missing. An error that begins there may be longer. */
export function hasErrorIn(tree: Tree, from: number, to: number): boolean {
  if (!tree.rootNode.hasError) return false;
  const cursor = tree.walk();
  try {
    for (;;) {
      if (cursor.startIndex > to) return false;
      const { currentNode: node } = cursor;
      const isInside = cursor.endIndex >= from && node.hasError;
      if (isInside && (node.isMissing || (node.isError && cursor.startIndex >= from))) return true;
      if (isInside && cursor.gotoFirstChild()) continue;
      while (!cursor.gotoNextSibling()) if (!cursor.gotoParent()) return false;
    }
  } finally {
    cursor.delete();
  }
}
