/** Syntax trees of the suite's texts, and what several of its samplers need: numbers by name, parts of a file. */
import { type Node, Parser, type Tree } from 'web-tree-sitter';
import { type Grammars, grammarFor } from '../../../engine/text/syntax/syntaxTrees.ts';
import { type Random, seededRandom } from '../../support/engine/workload.ts';

/** The same numbers for the same seed and names, whatever else is sampled. */
export function randomOf(seed: number, ...names: readonly string[]): Random {
  let hash = 0x811c9dc5 ^ seed;
  for (const character of names.join('\0')) hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193);
  return seededRandom(hash);
}

/** What `read` finds in a text's tree. @throws Error where the grammar cannot be loaded: then nothing could be sampled. */
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

/** Whether the character at an offset is of a node of such a type, or of something inside one. */
export function isInside(tree: Tree, offset: number, type: RegExp): boolean {
  for (let node: Node | null = tree.rootNode.descendantForIndex(offset, offset + 1); node; node = node.parent)
    if (type.test(node.type)) return true;
  return false;
}

/** Characters of a part: some 1,200 tokens, so that any model's block holds it whole. */
const PART = 4000;
const LEAST = 400;

/** A file in parts that are cut where something at its own level begins; longer pieces, and what is left over, are left out. */
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

/** One of each list in turn, until there are `count` or none is left. */
export function inTurn<T>(lists: readonly (readonly T[])[], count: number): T[] {
  const taken: T[] = [];
  for (let round = 0; taken.length < count && lists.some(({ length }) => length > round); round++) {
    for (const { [round]: item } of lists) if (item !== undefined && taken.length < count) taken.push(item);
  }
  return taken;
}
