/** Tests suite `eviction`: its policies, its synthetic days of work and its cache replay. */
import { expect, test } from 'vitest';
import { type Eviction, evictionOrder } from '../../../engine/kv/eviction/eviction.ts';
import { RadixTree, type RadixNode } from '../../../engine/kv/radixTree.ts';
import { KvStore } from '../../../engine/kv/store.ts';
import { Documents } from '../../../engine/server/documents.ts';
import { fakeShape } from '../../support/engine/fakeRunner.ts';
import { readSession } from '../../support/session/session.ts';
import { sessionArrivals } from '../sessionArrivals.ts';
import { cacheTrace } from './cacheTrace.ts';
import { Clock } from './clock.ts';
import { daySession } from './daySession.ts';
import { CEILINGS, replayCache } from './evictionBench.ts';
import { EQUAL } from './evictionReport.ts';
import { Future } from './future.ts';
import { returns } from './returns.ts';

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

test('clock evicts in order of arrival, and spares a run that was hit since the hand passed it', () => {
  const tree = newTree();
  const clock = new Clock();
  const [a, b, c, d] = Array.from({ length: 4 }, () => add(tree, tree.root, 5));
  // A node takes its place when it is first seen.
  for (const node of [a, b, c, d]) clock.worth(node!);
  expect(order(tree, clock, 0)).toEqual([a, b, c, d]);
  clock.hit(a!);
  expect(order(tree, clock, 0)).toEqual([b, c, d, a]);
  tree.remove(b!);
  clock.gone(b!);
  // The hand is after b and has passed a, so a is no longer spared.
  expect(order(tree, clock, 0)).toEqual([c, d, a]);
});

test('Belady’s rule evicts the run with the latest next use first, and runs without a next use before it', () => {
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
  const insert = (parent: RadixNode, ids: number[]): RadixNode => tree.insert(parent, ids, new Int32Array(ids.length));
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

test('the older a file is, the rarer are returns to it, with the figures of the codec ladder and docs/compression.md', () => {
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

test('a day of work is the same for the same seed, has ten files or more, valid edits and returns that slowly thin out', () => {
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
      // An accepted completion is the text that comes next.
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

test('every policy finds all where all fits and less where it does not, and none clearly beats Belady', async () => {
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

test('on the recorded session utility costs no more than LRU with any documented memory budget, and less with one of them', async () => {
  const trace = await cacheTrace(sessionArrivals(readSession()));
  const shares = CEILINGS.recorded.map(
    (budget) => replayCache(trace, 'utility', budget).cost / replayCache(trace, 'lru', budget).cost,
  );
  expect(shares).toHaveLength(9);
  expect(Math.max(...shares)).toBeLessThanOrEqual(1 + EQUAL);
  expect(shares[CEILINGS.recorded.indexOf(6144)]).toBeLessThan(0.98);
});
