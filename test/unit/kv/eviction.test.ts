/** Which run goes first: never one before another that goes on from it, and by policy what is worth least. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Documents } from '../../../engine/server/documents.ts';
import { Clock } from '../../bench/eviction/clock.ts';
import { type Eviction, evictionOrder, firstToGo } from '../../../engine/kv/eviction/eviction.ts';
import { Lru } from '../../bench/eviction/lru.ts';
import { ReuseTimes } from '../../../engine/kv/eviction/utility.ts';
import { Utility } from '../../../engine/kv/eviction/utility.ts';
import { RadixTree, type TreeNode } from '../../../engine/kv/radixTree.ts';
import { KvStore } from '../../../engine/kv/store.ts';
import { laneIds } from '../../../engine/kv/laneIds.ts';
import { fakeShape } from '../../engine/fakeRunner.ts';
import { cacheTrace } from '../../bench/eviction/cacheTrace.ts';
import { daySession } from '../../bench/eviction/daySession.ts';
import { CEILINGS, replayCache } from '../../bench/eviction/evictionBench.ts';
import { EQUAL } from '../../bench/eviction/evictionReport.ts';
import { Future } from '../../bench/eviction/future.ts';
import { returns } from '../../bench/eviction/returns.ts';
import { readSession } from '../../bench/session.ts';
import { sessionArrivals } from '../../bench/sessionArrivals.ts';

const POLICIES: [string, () => Eviction][] = [
  ['lru', () => new Lru()],
  ['clock', () => new Clock()],
  ['utility', () => new Utility(16)],
];
const newTree = (): RadixTree => new RadixTree(new KvStore(fakeShape()));

function add(tree: RadixTree, parent: TreeNode, numTokens: number, fields: Partial<TreeNode> = {}): TreeNode {
  const node = tree.insert(
    parent,
    Array.from({ length: numTokens }, (_, i) => tree.numRuns * 1000 + i),
    new Int32Array(numTokens),
  );
  return Object.assign(node, fields);
}

function order(tree: RadixTree, eviction: Eviction, now: number): TreeNode[] {
  return [...tree.nodes()].sort(evictionOrder(tree, eviction, now));
}

test.each(POLICIES)('%s: in any tree a run goes after all that go on from it, pinned ones last', (_, make) => {
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
        expect(sorted.findIndex(({ pinned }) => pinned)).toBe(
          sorted.some(({ pinned }) => pinned) ? sorted.filter(({ pinned }) => !pinned).length : -1,
        );
        expect(firstToGo(tree.nodes(), evictionOrder(tree, eviction, 200_000), () => true)).toBe(sorted[0]);
      },
    ),
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

test('utility with nothing learnt: the younger is worth more, and of one age the deeper and the compressed', () => {
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

test('utility learns that what was typed past is never found again: it goes before a file not looked at for a minute', () => {
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

test('utility tells what has been found before from what has not, and old versions of a text from its present one', () => {
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

test('what keeping is worth: by class and age, learnt from what was found and what went, falling with age where nothing is known', () => {
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

test('Belady’s rule: what is asked for last goes first, and what is never asked for before that', () => {
  const request = (atMs: number, ids: number[]) => ({
    atMs,
    priority: 'chat' as const,
    ids: [...ids, 99],
    numPrompt: ids.length,
  });
  const future = new Future([
    request(1, [1, 2, 3, 4]),
    request(2, [1, 2, 5]),
    request(3, [7, 8]),
    request(4, [1, 2, 3]),
  ]);
  const tree = newTree();
  const insert = (parent: TreeNode, ids: number[]): TreeNode => tree.insert(parent, ids, new Int32Array(ids.length));
  const shared = insert(tree.root, [1, 2]);
  const [three, four] = [insert(shared, [3, 4, 99]), insert(shared, [5])];
  const seven = insert(tree.root, [7, 8, 99]);
  const whens = (now: number): number[] => [shared, three, four, seven].map((node) => -future.worth(node, now));
  expect(whens(0)).toEqual([1, Number.POSITIVE_INFINITY, 2, Number.POSITIVE_INFINITY]);
  for (const [node, at] of [
    [three, 1],
    [seven, 2],
  ] as const)
    expect(-future.worth(tree.split(node, at), 0)).toBe(at === 1 ? 1 : 3);
  expect(whens(2)[0]).toBe(4);
  expect(whens(4)).toEqual(Array(4).fill(Number.POSITIVE_INFINITY));
});

test('the longer a file has been left the more rarely it is come back to, as the ladder of codecs and docs/compression.md have it', () => {
  const ages = returns([101, 102, 103]);
  expect(ages.map(({ fromMinutes, perTenMinutes }) => [fromMinutes, perTenMinutes.toFixed(2)])).toEqual([
    [0, '1.24'],
    [5, '0.74'],
    [10, '0.31'],
    [30, '0.10'],
    [60, '0.06'],
  ]);
  expect(ages.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
});

test('a day of work: the same for the same seed, ten files or more, edits that follow each other, and returns to files that thin out slowly', () => {
  const day = daySession(readSession(), 3);
  expect(daySession(readSession(), 3)).toEqual(day);
  const documents = new Documents();
  const kinds = new Map<string, number>();
  const gaps: number[] = [];
  const asked = new Map<string, number>();
  let last = 0;
  for (const { atMs, message, answer } of day) {
    expect(atMs).toBeGreaterThanOrEqual(last);
    last = atMs;
    if (message.type === 'documentChanged') {
      if ('text' in message) documents.open(message.docId, message.version, message.path, message.text);
      else documents.edit(message.docId, message.version, message.edits);
    } else if (message.type === 'generate') {
      const { task, priority } = message;
      const docId = 'docId' in task ? task.docId : 'docIds' in task ? task.docIds[0]! : '';
      kinds.set(`${task.kind} ${priority}`, (kinds.get(`${task.kind} ${priority}`) ?? 0) + 1);
      if (asked.has(docId)) gaps.push(atMs - asked.get(docId)!);
      asked.set(docId, atMs);
      // What is accepted is what stands there next.
      if (task.kind === 'complete' && answer !== undefined)
        expect(documents.get(docId).text.slice(0, task.offset)).not.toBe('');
    }
  }
  expect(documents.all().length).toBeGreaterThanOrEqual(10);
  expect(last / 3_600_000).toBeGreaterThan(5);
  expect([...kinds.keys()].sort()).toEqual([
    'chat chat',
    'complete completion',
    'complete summary',
    'summarize summary',
  ]);
  const share = (from: number, to: number): number =>
    gaps.filter((gap) => gap >= from && gap < to).length / gaps.length;
  expect(share(0, 2000)).toBeGreaterThan(0.8);
  expect(share(60_000, 600_000)).toBeGreaterThan(2 * share(3_600_000, 36_000_000));
  expect(share(3_600_000, 36_000_000)).toBeGreaterThan(0);
});

test('sessions: whatever goes first, all is found where all fits, and less where it does not; nobody beats who knows what comes by more than the grain', async () => {
  const day = daySession(readSession(), 3);
  const traces = {
    recorded: await cacheTrace(sessionArrivals(readSession())),
    day: await cacheTrace(day.slice(0, 1200)),
  };
  for (const trace of Object.values(traces)) {
    const belady = replayCache(trace, 'belady', 6144).computed;
    for (const policy of ['lru', 'clock', 'utility'] as const) {
      const [small, large, all] = [
        replayCache(trace, policy, 6144),
        replayCache(trace, policy, 262_144),
        replayCache(trace, 'all', 262_144),
      ];
      expect([large.evictions, large.computed]).toEqual([0, all.computed]);
      expect(small.evictions).toBeGreaterThan(10);
      expect(small.computed).toBeGreaterThan(replayCache(trace, 'all', 6144).computed);
      expect(small.computed).toBeGreaterThan(0.98 * belady);
    }
  }
});

test('the recorded session: under no budget of the document does utility cost more than LRU by the document’s measure, and it costs less under one of them', async () => {
  const trace = await cacheTrace(sessionArrivals(readSession()));
  const shares = CEILINGS.recorded.map(
    (budget) => replayCache(trace, 'utility', budget).cost / replayCache(trace, 'lru', budget).cost,
  );
  expect(shares).toHaveLength(9);
  expect(Math.max(...shares)).toBeLessThanOrEqual(1 + EQUAL);
  expect(shares[CEILINGS.recorded.indexOf(6144)]).toBeLessThan(0.98);
});
