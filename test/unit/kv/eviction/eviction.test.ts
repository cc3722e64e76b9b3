/**
 * Eviction order: a node leaves after all nodes below it, pinned nodes leave last, and the policy decides among the
 * rest.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type Eviction,
  evictionOrder,
  firstToGo,
  ReuseTimes,
  Utility,
} from '../../../../engine/kv/eviction/eviction.ts';
import { laneIds } from '../../../../engine/kv/laneIds.ts';
import { RadixTree, type RadixNode } from '../../../../engine/kv/radixTree.ts';
import { KvStore } from '../../../../engine/kv/store.ts';
import { fakeShape } from '../../../support/engine/fakeRunner.ts';
import { Lru } from '../../../support/kv/lru.ts';

const POLICIES: [string, () => Eviction][] = [
  ['lru', () => new Lru()],
  ['utility', () => new Utility(16)],
];
const newTree = (): RadixTree => new RadixTree(new KvStore(fakeShape()));

function add(tree: RadixTree, parent: RadixNode, numTokens: number, fields: Partial<RadixNode> = {}): RadixNode {
  const node = tree.insert(
    parent,
    Array.from({ length: numTokens }, (_, i) => tree.numNodes * 1000 + i),
    new Int32Array(numTokens),
  );
  return Object.assign(node, fields);
}

function order(tree: RadixTree, eviction: Eviction, now: number): RadixNode[] {
  return [...tree.nodes()].sort(evictionOrder(tree, eviction, now));
}

test.each(POLICIES)(
  '%s: property: in any tree a node is evicted after its descendants, pinned nodes last',
  (_, make) => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            parent: fc.nat(),
            tokens: fc.integer({ min: 1, max: 50 }),
            use: fc.nat(100_000),
            pinned: fc.boolean(),
            tag: fc.constantFrom('chat', 'completion', 'idle'),
          }),
          { minLength: 1, maxLength: 20 },
        ),
        fc.array(fc.nat()),
        (runs, hits) => {
          const tree = newTree();
          const eviction = make();
          const nodes = [tree.root];
          for (const { parent, tokens, use, pinned, tag } of runs) {
            const node = add(tree, nodes[parent % nodes.length]!, tokens, { pinned, tag });
            // As in real use: a use of a node is a use of its parents, and pins are of prefixes.
            for (let n: RadixNode | null = node; n; n = n.parent) {
              n.lastUse = Math.max(n.lastUse, use);
              n.pinned ||= pinned;
            }
            nodes.push(node);
          }
          for (const hit of hits) eviction.hit(nodes[1 + (hit % runs.length)]!, hit % 5000);
          const gone = new Set<RadixNode>();
          for (const node of order(tree, eviction, 200_000)) {
            for (const child of node.children.values()) expect(gone.has(child)).toBe(true);
            gone.add(node);
          }
          const sorted = order(tree, eviction, 200_000);
          expect(sorted.findIndex(({ pinned }) => pinned)).toBe(
            sorted.some(({ pinned }) => pinned) ? sorted.filter(({ pinned }) => !pinned).length : -1,
          );
          expect(firstToGo(tree.nodes(), evictionOrder(tree, eviction, 200_000), () => true)).toBe(sorted[0]);
        },
      ),
    );
  },
);

test('LRU: what was used longest ago goes first', () => {
  const tree = newTree();
  const [a, b, c] = [30, 10, 20].map((lastUse) => add(tree, tree.root, 5, { lastUse }));
  expect(order(tree, new Lru(), 100)).toEqual([b, c, a]);
});

test('utility before learning: newer nodes are worth more, and at equal age deeper and compressed ones', () => {
  const tree = newTree();
  const utility = new Utility(16);
  const now = 1_000_000;
  const [old, young, middle] = [900_000, 3000, 80_000].map((idleMs) =>
    add(tree, tree.root, 20, { lastUse: now - idleMs }),
  );
  expect(order(tree, utility, now)).toEqual([old, middle, young]);
  const deep = add(tree, young!, 20, { lastUse: now - 3000, startIndex: 8000 });
  expect(utility.worth(deep, now)).toBeGreaterThan(2 * utility.worth({ ...deep, startIndex: 0 }, now));
  expect(
    utility.worth({ ...deep, slots: null, stored: { numTokens: 20, numRows: 20, bytes: 80, blocks: [] } }, now),
  ).toBeCloseTo(4 * utility.worth(deep, now), 9);
});

test('utility learns that rows behind the typing position are never reused and evicts them before an idle file', () => {
  const tree = newTree();
  const utility = new Utility(16);
  const now = 100_000;
  const typed = add(tree, tree.root, 20, { tag: 'completion', lastUse: now - 1000 });
  const file = tree.insert(
    tree.root,
    laneIds(
      Array.from({ length: 20 }, (_, i) => 5000 + i),
      [[0, 20]],
    ),
    new Int32Array(20),
  );
  Object.assign(file, { tag: 'idle', lastUse: now - 60_000 });
  expect(order(tree, utility, now)).toEqual([file, typed]);
  for (let i = 0; i < 400; i++) utility.gone(typed, 100_000);
  expect(order(tree, utility, now)).toEqual([typed, file]);
});

test('utility distinguishes nodes with and without hits, and old versions of a text from the current one', () => {
  const tree = newTree();
  const utility = new Utility(16);
  const now = 100_000;
  const [once, again] = [0, 1].map(() => add(tree, tree.root, 20, { tag: 'completion', lastUse: now - 1000 }));
  for (let i = 0; i < 20; i++) {
    utility.gone(once!, 100_000);
    utility.hit(again!, 2000);
  }
  expect(utility.worth(again!, now)).toBeGreaterThan(3 * utility.worth(once!, now));

  const file = add(tree, tree.root, 100, { tag: 'idle', lastUse: now - 500 });
  const [before, after] = [5000, 500].map((idleMs) => add(tree, file, 20, { tag: 'idle', lastUse: now - idleMs }));
  for (let i = 0; i < 20; i++) {
    utility.gone(before!, 600_000);
    utility.hit(after!, 6000);
    // Neither is one that was found before: that is another class.
    utility.gone(after!, 1);
  }
  // At the same age.
  expect(utility.worth(before!, now)).toBeLessThan(utility.worth(after!, now + 4500) / 3);
});

test('the worth of keeping depends on class and age, is learnt from hits and evictions, and falls with age by default', () => {
  const times = new ReuseTimes();
  const [a, b, c, chat] = [0, 1, 2, 3] as const;
  const before = [1, 3, 60, 3600, 36_000].map((seconds) => times.worth(a, 1000 * seconds));
  expect(before).toEqual([...before].sort((a, b) => b - a));
  for (let i = 0; i < 200; i++) {
    times.ended(a, 3000, i % 10 > 0);
    times.ended(b, 100_000, false);
    times.ended(chat, i % 2 ? 3000 : 100_000, i % 2 === 0);
  }
  // Nine of ten within the doubling from two seconds on, which takes 1.1 seconds of keeping each.
  expect(times.worth(a, 2000)).toBeCloseTo(0.9 / 1100, 4);
  expect(times.worth(b, 2000)).toBeLessThan(times.worth(c, 2000) / 10);
  // What has come past the age at which the others were found is as unknown as before.
  expect(times.worth(a, 10_000)).toBe(times.worth(c, 10_000));
  // A conversation goes on after minutes or not at all: it is kept until then, and not much longer.
  expect(times.worth(chat, 4500)).toBeGreaterThan(0.3 / 100_000);
  expect(times.worth(chat, 70_000)).toBeGreaterThan(2 * times.worth(chat, 4500));
  expect(times.worth(chat, 300_000)).toBeLessThan(times.worth(chat, 70_000) / 10);
});
