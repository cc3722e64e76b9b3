/** Which run goes first: never one before another that goes on from it, and by policy what is worth least. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Clock } from '../../engine/cache/eviction/clock.ts';
import { type Eviction, evictionOrder, firstToGo } from '../../engine/cache/eviction/eviction.ts';
import { Lru } from '../../engine/cache/eviction/lru.ts';
import { ReuseTimes } from '../../engine/cache/eviction/reuseTimes.ts';
import { Utility } from '../../engine/cache/eviction/utility.ts';
import { PrefixTree, type TreeNode } from '../../engine/cache/prefixTree.ts';
import { KvStore } from '../../engine/cache/store.ts';
import { laneIds } from '../../engine/laneIds.ts';
import { fakeShape } from '../engine/fakeRunner.ts';
import { replayCache } from '../bench/eviction/evictionBench.ts';
import { cacheTrace } from '../bench/eviction/cacheTrace.ts';
import { readSession } from '../bench/session.ts';

const POLICIES: [string, () => Eviction][] = [['lru', () => new Lru()], ['clock', () => new Clock()], ['utility', () => new Utility(16)]];
const newTree = (): PrefixTree => new PrefixTree(new KvStore(fakeShape()));

function add(tree: PrefixTree, parent: TreeNode, numTokens: number, fields: Partial<TreeNode> = {}): TreeNode {
  const node = tree.insert(parent, Array.from({ length: numTokens }, (_, i) => tree.numRuns * 1000 + i), new Int32Array(numTokens));
  return Object.assign(node, fields);
}

function order(tree: PrefixTree, eviction: Eviction, now: number): TreeNode[] {
  return [...tree.nodes()].sort(evictionOrder(tree, eviction, now));
}

test.each(POLICIES)('%s: in any tree a run goes after all that go on from it, pinned ones last', (_, make) => {
  fc.assert(
    fc.property(fc.array(fc.record({ parent: fc.nat(), tokens: fc.integer({ min: 1, max: 50 }), use: fc.nat(100_000), pinned: fc.boolean(), tag: fc.constantFrom('chat', 'completion', 'idle') }), { minLength: 1, maxLength: 20 }), fc.array(fc.nat()), (runs, hits) => {
      const tree = newTree();
      const eviction = make();
      const nodes = [tree.root];
      for (const { parent, tokens, use, pinned, tag } of runs) {
        const node = add(tree, nodes[parent % nodes.length]!, tokens, { pinned, tag });
        // As in use: whoever uses a run uses what it stands on, and pins are of prefixes.
        for (let n: TreeNode | null = node; n; n = n.parent) {
          n.lastUse = Math.max(n.lastUse, use);
          n.pinned ||= pinned;
        }
        nodes.push(node);
      }
      for (const hit of hits) eviction.hit(nodes[1 + (hit % runs.length)]!, hit % 5000);
      const gone = new Set<TreeNode>();
      for (const node of order(tree, eviction, 200_000)) {
        for (const child of node.children.values()) expect(gone.has(child)).toBe(true);
        gone.add(node);
      }
      const sorted = order(tree, eviction, 200_000);
      expect(sorted.findIndex(({ pinned }) => pinned)).toBe(sorted.some(({ pinned }) => pinned) ? sorted.filter(({ pinned }) => !pinned).length : -1);
      expect(firstToGo(tree.nodes(), evictionOrder(tree, eviction, 200_000), () => true)).toBe(sorted[0]);
    }),
  );
});

test('LRU: what was used longest ago goes first', () => {
  const tree = newTree();
  const [a, b, c] = [30, 10, 20].map((lastUse) => add(tree, tree.root, 5, { lastUse }));
  expect(order(tree, new Lru(), 100)).toEqual([b, c, a]);
});

test('clock: in the order in which they came, but for one that was found since the hand passed it', () => {
  const tree = newTree();
  const clock = new Clock();
  const [a, b, c, d] = Array.from({ length: 4 }, () => add(tree, tree.root, 5));
  // They take their places as they are seen.
  for (const node of [a, b, c, d]) clock.worth(node!);
  expect(order(tree, clock, 0)).toEqual([a, b, c, d]);
  clock.hit(a!);
  expect(order(tree, clock, 0)).toEqual([b, c, d, a]);
  tree.remove(b!);
  clock.gone(b!);
  // The hand stands behind b, and has passed a: its chance is used up.
  expect(order(tree, clock, 0)).toEqual([c, d, a]);
});

test('utility: what is never found again goes before what is, however young it is; deep and compressed runs are worth more', () => {
  const tree = newTree();
  const utility = new Utility(16);
  const now = 100_000;
  const typed = add(tree, tree.root, 20, { tag: 'completion', lastUse: now - 100 });
  const file = tree.insert(tree.root, laneIds(Array.from({ length: 20 }, (_, i) => 5000 + i), [[0, 20]]), new Int32Array(20));
  Object.assign(file, { tag: 'idle', lastUse: now - 60_000 });
  expect(order(tree, utility, now)).toEqual([file, typed]);
  for (let i = 0; i < 20; i++) {
    utility.gone(typed, 500);
    utility.hit(file, 70_000);
  }
  expect(order(tree, utility, now)).toEqual([typed, file]);
  const deep = add(tree, typed, 20, { tag: 'completion', lastUse: now - 100, startIndex: 8000 });
  expect(utility.worth(deep, now)).toBeGreaterThan(2 * utility.worth({ ...deep, startIndex: 0 }, now));
  expect(utility.worth({ ...deep, slots: null, stored: { numTokens: 20, numRows: 20, bytes: 80, numExact: 0, blocks: [] } }, now)).toBeCloseTo(4 * utility.worth(deep, now), 9);
});

test('chances of being found: by class, falling with age, learnt from what was found and what went', () => {
  const times = new ReuseTimes();
  const before = [1, 60, 3600].map((seconds) => times.chance('a', 1000 * seconds));
  expect(before).toEqual([...before].sort((a, b) => b - a));
  for (let i = 0; i < 100; i++) {
    times.ended('a', 2000, i % 10 > 0);
    times.ended('b', 2000, false);
  }
  expect(times.chance('a', 1000)).toBeGreaterThan(0.9);
  expect(times.chance('b', 1000)).toBeLessThan(times.chance('c', 1000));
  // What has come past the age at which the others were found is as unknown as before.
  expect(times.chance('a', 10_000)).toBeCloseTo(times.chance('c', 10_000), 9);
});

test('the recorded session: whatever goes first, what is found is the same where all fits, and less where it does not', async () => {
  const trace = await cacheTrace(readSession());
  for (const [policy] of POLICIES) {
    const [small, large, larger] = [4096, 65_536, 131_072].map((ceiling) => replayCache(trace, policy, ceiling));
    expect([large!.evictions, larger!.evictions, large!.found]).toEqual([0, 0, larger!.found]);
    expect(small!.evictions).toBeGreaterThan(10);
    expect(small!.found).toBeLessThan(large!.found);
  }
});
