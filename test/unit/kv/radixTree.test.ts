import fc from 'fast-check';
import { expect, test } from 'vitest';
import { endIndex, pathTo, RadixTree, type RadixNode } from '../../../engine/kv/radixTree.ts';
import { KvStore } from '../../../engine/kv/store.ts';
import { fakeShape } from '../../support/engine/fakeRunner.ts';

const newTree = (): RadixTree => new RadixTree(new KvStore(fakeShape()));

/** Adds a sequence whose token at position i has slot base + i. */
function put(tree: RadixTree, tokenIds: number[], base: number): void {
  const match = tree.match(tokenIds);
  let last = match.nodes.at(-1) ?? tree.root;
  if (match.lastLength < last.tokenIds.length) last = tree.split(last, match.lastLength);
  const rest = tokenIds.slice(match.numTokens);
  if (rest.length > 0)
    tree.insert(
      last,
      rest,
      Int32Array.from(rest, (_, i) => base + match.numTokens + i),
    );
}

function slotsAlong(tree: RadixTree, tokenIds: number[]): number[] {
  const { nodes, numTokens } = tree.match(tokenIds);
  return nodes.flatMap((node) => [...node.slots!]).slice(0, numTokens);
}

test('a run is split where two sequences part', () => {
  const tree = newTree();
  put(tree, [1, 2, 3, 4], 0);
  put(tree, [1, 2, 5], 10);
  expect([...tree.nodes()].map((node) => node.tokenIds).sort()).toEqual([[1, 2], [3, 4], [5]]);
  expect(slotsAlong(tree, [1, 2, 3, 4])).toEqual([0, 1, 2, 3]);
  expect(slotsAlong(tree, [1, 2, 5, 9])).toEqual([0, 1, 12]);
  expect(tree.match([2]).numTokens).toBe(0);
  expect(tree.match([1, 2, 3, 4], 1)).toMatchObject({ numTokens: 1, lastLength: 1 });
});

test("split keeps the lower part's identity, references and rows", () => {
  const tree = newTree();
  const node = tree.insert(tree.root, [1, 2, 3], Int32Array.from([7, 8, 9]));
  Object.assign(node, { refCount: 2, lastUse: 5, pinned: true });
  const upper = tree.split(node, 1);
  expect(pathTo(node)).toEqual([upper, node]);
  expect(upper).toMatchObject({
    tokenIds: [1],
    refCount: 2,
    lastUse: 5,
    pinned: true,
    slots: Int32Array.from([7]),
    startIndex: 0,
  });
  expect(node).toMatchObject({ tokenIds: [2, 3], refCount: 2, slots: Int32Array.from([8, 9]), startIndex: 1 });
  expect(endIndex(node)).toBe(3);
  expect(() => tree.remove(upper)).toThrow('unreferenced leaf');
});

test('property: the longest match is that of a list of all sequences', () => {
  const sequence = fc.array(fc.nat(2), { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(fc.array(sequence, { maxLength: 20 }), sequence, (sequences, query) => {
      const tree = newTree();
      for (const [i, tokenIds] of sequences.entries()) put(tree, tokenIds, i * 100);
      const common = (a: number[], b: number[]): number => {
        let n = 0;
        while (n < a.length && n < b.length && a[n] === b[n]) n++;
        return n;
      };
      expect(tree.match(query).numTokens).toBe(Math.max(0, ...sequences.map((s) => common(s, query))));
      const seen = new Set<number>();
      for (const node of tree.nodes()) {
        const parent: RadixNode = node.parent!;
        expect(node.startIndex).toBe(endIndex(parent));
        expect(parent.children.get(node.tokenIds[0]!)).toBe(node);
        for (const [i, slot] of node.slots!.entries()) {
          expect(slot % 100).toBe(node.startIndex + i);
          expect(seen.has(slot)).toBe(false);
          seen.add(slot);
        }
      }
    }),
    { seed: 12 },
  );
});

test('a pruned node matches only as a whole, may have a sibling with the same first tokens, and is never split', () => {
  const tree = newTree();
  const pruned = tree.insert(tree.root, [1, 2, 3, 4], Int32Array.from([0, 1]));
  tree.prune(pruned, 'kvzip');
  const below = tree.insert(pruned, [5], Int32Array.from([2]));
  expect(tree.match([1, 2, 3]).numTokens).toBe(0);
  expect(tree.match([1, 2, 3, 4], 3).numTokens).toBe(0);
  expect(tree.match([1, 2, 3, 4, 5, 6]).nodes).toEqual([pruned, below]);
  expect(tree.match([1, 2, 3, 4, 5], 5, tree.root, false).numTokens).toBe(0);
  expect(() => tree.split(pruned, 2)).toThrow('cannot be split');

  // An edited text, as far as the two agree less than the pruned one is long.
  const edited = tree.insert(tree.root, [1, 2, 9], Int32Array.from([3, 4, 5]));
  expect(tree.match([1, 2, 9, 9]).nodes).toEqual([edited]);
  expect(tree.match([1, 2, 3, 4, 5]).nodes).toEqual([pruned, below]);
  // The same text, computed anew, is preferred.
  tree.remove(edited);
  const exact = tree.insert(tree.root, [1, 2, 3, 4, 5], Int32Array.from([3, 4, 5, 6, 7]));
  expect(tree.match([1, 2, 3, 4]).nodes).toEqual([exact]);
  // Also where it has been split, and less far than it goes.
  const upper = tree.split(exact, 2);
  expect(tree.match([1, 2, 3, 4, 5]).nodes).toEqual([upper, exact]);
  tree.insert(below, [6, 7], Int32Array.from([8, 9]));
  expect(tree.match([1, 2, 3, 4, 5, 6]).nodes.slice(0, 2)).toEqual([pruned, below]);
  // Several may begin alike.
  tree.remove(exact);
  tree.prune(upper, 'kvzip');
  expect(tree.match([1, 2, 3]).nodes).toEqual([upper]);
  expect(tree.match([1, 2, 3, 4]).nodes).toEqual([pruned]);
  tree.remove(upper);
  expect(tree.match([1, 2, 3]).numTokens).toBe(0);
});

test('after a split each half keeps the codec history of its own rows, and so do appended rows', () => {
  const tree = newTree();
  const lower = tree.insert(tree.root, [1, 2, 3, 4, 5, 6, 7], Int32Array.from([0, 1, 2, 3, 4, 5, 6]));
  lower.lossy = [
    { from: 1, to: 5, codec: 'nvfp4' },
    { from: 6, to: 7, codec: 'int4-kivi' },
  ];
  const upper = tree.split(lower, 4);
  expect([upper.lossy, lower.lossy]).toEqual([
    [{ from: 1, to: 4, codec: 'nvfp4' }],
    [
      { from: 0, to: 1, codec: 'nvfp4' },
      { from: 2, to: 3, codec: 'int4-kivi' },
    ],
  ]);
  tree.extendStored(lower, [8, 9, 10], { numTokens: 6, numRows: 6, bytes: 0, blocks: [] }, [
    { from: 0, to: 1, codec: 'int4-kivi' },
    { from: 2, to: 3, codec: 'nvfp4' },
  ]);
  expect(lower.lossy).toEqual([
    { from: 0, to: 1, codec: 'nvfp4' },
    { from: 2, to: 4, codec: 'int4-kivi' },
    { from: 5, to: 6, codec: 'nvfp4' },
  ]);
});
