/**
 * Tells whether the `<` before a cursor begins a tag. Otherwise it begins type arguments, or compares. Reads the tree
 * where a language has both.
 */
import type { Tree } from 'web-tree-sitter';

const WITHOUT_TAGS = /^(typescript|java|rust|cpp|c-sharp|go|python)$/;
const WITH_TREE = /^(tsx|javascript)$/;
/** Files of tags, and of scripts between two of them. */
const MARKUP = /\.(vue|svelte|astro|html?)$/;

/**
 * Undefined if nothing tells, as in comments.
 * @param tree of `lf`, if there is one
 */
export function beginsTag(
  { path, lf }: { path: string; lf: string },
  offset: number,
  grammar: string | undefined,
  tree: Tree | undefined,
): boolean | undefined {
  if (grammar === undefined) return MARKUP.test(path) ? isOutsideScript(path, lf.slice(0, offset)) : undefined;
  if (tree && WITHOUT_TAGS.test(grammar)) return false;
  if (!tree || !WITH_TREE.test(grammar)) return undefined;
  const at = lf.lastIndexOf('<', offset - 1);
  if (at < 0 || at < lf.lastIndexOf('\n', offset - 1)) return undefined;
  const rule = tree.rootNode.descendantForIndex(at, at + 1)?.parent?.type ?? '';
  if (rule.startsWith('jsx_')) return true;
  return /^(binary_expression|type_\w+)$/.test(rule) || /[\w)\]]/.test(lf[at - 1] ?? '') ? false : undefined;
}

/** Undefined at the beginning of a line of a script, which the tag may end. */
function isOutsideScript(path: string, above: string): boolean | undefined {
  const isInside =
    (path.endsWith('.astro') && above.startsWith('---') && !above.includes('\n---')) ||
    above.lastIndexOf('<script') > above.lastIndexOf('</script');
  if (!isInside) return true;
  return /^\s*<[^<>]*$/.test(above.slice(above.lastIndexOf('\n') + 1)) ? undefined : false;
}
