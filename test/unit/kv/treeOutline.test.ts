/** The radix tree in the monitor: all tokens are shown, in a bounded number of nodes, with the names of file blocks. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Block, outline } from '../../../engine/kv/treeOutline.ts';
import { RadixTree } from '../../../engine/kv/radixTree.ts';
import { KvStore } from '../../../engine/kv/store.ts';
import type { TreeNode } from '../../../engine/protocol/stats.ts';
import { ask, drain, harness, tokens } from '../../support/engine/harness.ts';
import { fakeShape } from '../../support/engine/fakeRunner.ts';

const newTree = (): RadixTree => new RadixTree(new KvStore(fakeShape()));

function put(tree: RadixTree, tokenIds: number[], tag = ''): void {
  const match = tree.match(tokenIds);
  let last = match.nodes.at(-1) ?? tree.root;
  if (match.lastLength < last.tokenIds.length) last = tree.split(last, match.lastLength);
  const rest = tokenIds.slice(match.numTokens);
  if (rest.length > 0) tree.insert(last, rest, new Int32Array(rest.length)).tag = tag;
}

const block = (path: string, tokenIds: number[], numHeaderTokens = 2): Block => ({
  docId: `file:///${path}`,
  path,
  tokenIds,
  numHeaderTokens,
});
const flat = (nodes: TreeNode[]): TreeNode[] => nodes.flatMap((node) => [node, ...flat(node.children)]);
/** A tree in one line: "a.ts 4 [chat 2]". */
const shown = (nodes: TreeNode[]): string =>
  nodes.map((n) => `${n.label || n.kind} ${n.tokens}${n.children.length ? ` [${shown(n.children)}]` : ''}`).join(', ');

test('the outline names the node of a file block; nodes below it belong to requests', () => {
  const tree = newTree();
  put(tree, [1, 2, 3, 4], 'idle');
  put(tree, [1, 2, 3, 4, 5, 6], 'chat');
  put(tree, [1, 2, 3, 4, 7], 'completion');
  expect(shown(outline(tree, [block('a.ts', [1, 2, 3, 4])], 0))).toBe('a.ts 4 [chat 2, completion 1]');
});

test('the outline splits a prompt computed in one piece into the file and the question', () => {
  const tree = newTree();
  put(tree, [1, 2, 3, 4, 5, 6], 'chat');
  const [file] = outline(tree, [block('a.ts', [1, 2, 3, 4])], 0);
  expect(shown([file!])).toBe('a.ts 4 [chat 2]');
  expect(file!.children[0]).toMatchObject({ kind: 'request', docId: 'file:///a.ts' });
});

test('the common prefix of two files is shown as the header; a file with only that cached has no node', () => {
  const tree = newTree();
  put(tree, [1, 2, 10, 11, 12]);
  put(tree, [1, 2, 20, 21]);
  const blocks = [block('a.ts', [1, 2, 10, 11, 12]), block('b.ts', [1, 2, 20, 21]), block('c.ts', [1, 2, 30], 2)];
  expect(shown(outline(tree, blocks, 0))).toBe('header 2 [a.ts 3, b.ts 2]');
});

test('any tree is described whole, in at most 200 nodes', () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 12 }), { maxLength: 400 }),
      (sequences) => {
        const tree = newTree();
        for (const sequence of sequences) put(tree, sequence);
        const nodes = flat(
          outline(
            tree,
            sequences.slice(0, 5).map((ids, i) => block(`${i}.ts`, ids, 1)),
            0,
          ),
        );
        expect(nodes.length).toBeLessThanOrEqual(200);
        expect(nodes.reduce((sum, node) => sum + node.tokens, 0)).toBe(tree.numTokens);
      },
    ),
    { numRuns: 60 },
  );
});

test('the outline of a very large tree is cut, and the omitted nodes are counted', () => {
  const tree = newTree();
  for (let i = 0; i < 5000; i++) put(tree, [i, 1, 2]);
  const nodes = flat(outline(tree, [], 0));
  expect(nodes.length).toBeLessThanOrEqual(200);
  expect(nodes.reduce((sum, node) => sum + node.tokens, 0)).toBe(15_000);
  expect(nodes.reduce((sum, node) => sum + node.runs, 0)).toBe(5000);
});

test('the outline says which class computed a node, what runs, and what is pinned', async () => {
  const { engine, clock } = harness({ slots: 512 });
  const file = tokens(40, 3);
  ask(engine, file, { priority: 'idle', maxTokens: 0 });
  await drain(engine);
  engine.blocks.pin('file:///a.ts', file);
  clock.now = 2000;
  const running = ask(engine, [...file, 1, 2, 3], { priority: 'chat', maxTokens: 50 });
  for (let i = 0; i < 4; i++) await engine.step();
  const [node] = engine.blocks.outline([{ docId: 'file:///a.ts', path: 'a.ts', tokenIds: file, numHeaderTokens: 4 }]);
  expect(node).toMatchObject({
    kind: 'file',
    label: 'a.ts',
    tokens: 40,
    tier: 'pool',
    inUse: true,
    pinned: true,
    idleMs: 0,
  });
  expect(node!.children).toMatchObject([{ kind: 'request', label: 'chat', inUse: true, pinned: false }]);
  engine.abort(running.sequence.id);
  await drain(engine);
  clock.now = 9000;
  expect(engine.blocks.outline([])[0]).toMatchObject({ inUse: false, idleMs: 7000 });
});
