/**
 * Parses texts for suite `quality`, and has helpers of its samplers: random numbers by name, parts of a file, turns.
 */
import { type Node, Parser, type Tree } from 'web-tree-sitter';
import { type Grammars, grammarFor } from '../../../engine/text/syntax/syntaxTrees.ts';
import { type Random, seededRandom } from '../../support/engine/workload.ts';

/** Random numbers for a seed and names. They do not depend on other samples. */
export function randomOf(seed: number, ...names: readonly string[]): Random {
  let hash = 0x811c9dc5 ^ seed;
  for (const character of names.join('\0')) hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193);
  return seededRandom(hash);
}

/**
 * Parses a text and returns what `read` finds in its tree.
 * @throws Error if the grammar cannot be loaded, because then nothing could be sampled.
 */
export async function withTree<T>(grammars: Grammars, path: string, text: string, read: (tree: Tree) => T): Promise<T> {
  const grammar = grammarFor({ path });
  if (grammar !== undefined) await grammars.load(grammar);
  const language = grammar === undefined ? undefined : grammars.get(grammar);
  if (!language) throw new Error(`${path}: its grammar cannot be loaded; has the project been built (npm run build)?`);
  const parser = new Parser().setLanguage(language);
  const tree = parser.parse(text);
  try {
    if (!tree) throw new Error(`${path} cannot be parsed`);
    return read(tree);
  } finally {
    tree?.delete();
    parser.delete();
  }
}

/** Whether the character at an offset is inside a node of such a type. */
export function isInside(tree: Tree, offset: number, type: RegExp): boolean {
  for (let node: Node | null = tree.rootNode.descendantForIndex(offset, offset + 1); node; node = node.parent)
    if (type.test(node.type)) return true;
  return false;
}

/** Characters of a part, about 1,200 tokens, so that the file block of any model holds it whole. */
const PART = 4000;
const LEAST = 400;

/** Splits a file into parts at top-level definitions. Leaves out longer pieces and short remainders. */
export function partsOf(text: string): string[] {
  const parts: string[] = [];
  let part = '';
  for (const piece of [...text.split(/(?<=\n\n)(?=[^\s})\]])/), '']) {
    if (piece === '' || part.length + piece.length > PART) {
      if (part.length >= LEAST) parts.push(part);
      part = piece.length > PART ? '' : piece;
    } else part += piece;
  }
  return parts;
}

/** Takes one item of each list in turn, until there are `count` or none is left. */
export function inTurn<T>(lists: readonly (readonly T[])[], count: number): T[] {
  const taken: T[] = [];
  for (let round = 0; taken.length < count && lists.some(({ length }) => length > round); round++) {
    for (const { [round]: item } of lists) if (item !== undefined && taken.length < count) taken.push(item);
  }
  return taken;
}
