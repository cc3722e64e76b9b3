/**
 * Every cursor of a syntax tree is deleted. With web-tree-sitter 0.27.1, garbage collection of one that is not deleted
 * frees memory that belongs to something else.
 */
import { afterEach, beforeAll, expect, it, vi } from 'vitest';
import { Tree, TreeCursor } from 'web-tree-sitter';
import { readFacts } from '../../../../engine/facts/extract/facts.ts';
import { fits } from '../../../../engine/tasks/fitting.ts';
import { outlinesOf } from '../../../../engine/text/syntax/outline.ts';
import { SourceDocument } from '../../../../engine/text/syntax/sourceDocument.ts';
import { type PlaceSyntax, Syntax } from '../../../../engine/text/syntax/syntax.ts';
import { Grammars } from '../../../../engine/text/syntax/syntaxTrees.ts';

const grammars = new Grammars();
beforeAll(() => grammars.load('typescript'));
afterEach(() => vi.restoreAllMocks());

const BEFORE = 'class Store {\n  size = 0;\n  grow(by: number): number {\n    ';
const FILE = new SourceDocument('a', 'src/a.ts', `${BEFORE}\n  }\n}\n`);

function counted() {
  const [walk, free] = [vi.spyOn(Tree.prototype, 'walk'), vi.spyOn(TreeCursor.prototype, 'delete')];
  return () => ({ numMade: walk.mock.calls.length, numFreed: free.mock.calls.length });
}

it.each<[string, (syntax: Syntax) => unknown]>([
  [
    'a completion is checked',
    (syntax) => {
      const place = syntax.at(FILE, BEFORE.length) as PlaceSyntax;
      const check = fits({ doc: FILE, offset: BEFORE.length, place, others: [], packages: undefined });
      return [check('this.size += by;\n    return this.size;'), check('this.length += by;')];
    },
  ],
  ['facts are read', (syntax) => readFacts(syntax, FILE)],
  ['an outline is made', (syntax) => syntax.read(FILE, (tree) => outlinesOf(tree, FILE.lf))],
])('%s', async (_, work) => {
  const syntax = new Syntax(grammars);
  await syntax.prepare(FILE);
  const count = counted();
  work(syntax);
  const { numMade, numFreed } = count();
  expect(numMade).toBeGreaterThan(0);
  expect(numFreed).toBe(numMade);
});
