/** A full pool: rows are compressed on their way out, their page is freed, and nothing is dropped for them. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { codedPage } from '../../../../engine/kv/approx/codedPage.ts';
import type { CodecName } from '../../../../engine/kv/approx/codecs/registry.ts';
import { sliceRows } from '../../../../engine/kv/kvRows.ts';
import { type Lossy, plainBlocks, type StoredRun } from '../../../../engine/kv/storedBlocks.ts';
import { RadixTree, type RadixNode } from '../../../../engine/kv/radixTree.ts';
import { KvStore } from '../../../../engine/kv/store.ts';
import { codedBytes } from '../../../../engine/kv/approx/compression.ts';
import { KvPool } from '../../../../engine/kv/pool.ts';
import { randomRows } from '../../../support/kv/codecRows.ts';
import { codec, contents, laddered, minutes, SHAPE } from '../../../support/kv/ladderedCache.ts';

const ALL = ['int4-kivi', 'nvfp4', 'turboquant'] as const;

test.each(ALL.flatMap((mild) => [0, 40, 232].map((room) => ({ mild, room }))))(
  'a pool full of short nodes loses none: they are compressed straight out of it, $mild, $room tokens free',
  ({ mild, room }) => {
    const { cache, run, compute, settle, clock } = laddered({ slots: 1024 + room, mild });
    const seeds = [1, 2, 3, 4, 5];
    for (const seed of seeds) compute(run(seed, 200));
    expect(cache.memory.poolSlots.total).toBe(1024);
    clock.now += minutes(2);
    expect(cache.shrink()).toBe(true);
    while (cache.shrink() || settle() > 0) cache.checkIntegrity();
    cache.checkIntegrity();
    const left = seeds.map((seed) => cache.prefixes.describe(run(seed, 200)));
    expect(left.map(({ tokens }) => tokens)).toEqual([200, 200, 200, 200, 200]);
    expect(cache.memory.poolSlots.total).toBe(256);
    // Of each KIVI keeps the last 128 tokens exactly: the last run stays, or a part of it, in what the pool has at least.
    const isCoded = ({ codecs, tier }: (typeof left)[number]): boolean => codecs.includes(mild) && tier === 'store';
    expect(left.filter(isCoded).length).toBeGreaterThanOrEqual(mild === 'int4-kivi' ? 4 : 5);
  },
);

test('rows are encoded page by page, and each page is returned before the next', () => {
  const { cache, run, compute, clock } = laddered({ slots: 1024 });
  compute(run(1, 1000));
  clock.now += minutes(2);
  const pages = [];
  while (cache.shrink()) pages.push([cache.memory.poolSlots.total, cache.memory.poolSlots.held]);
  // Where an exact page fits in the store, it is compressed there later, not while it leaves the pool.
  expect(pages).toEqual([
    [768, 768],
    [512, 512],
    [512, 256],
    [256, 256],
    [256, 0],
  ]);
  expect(cache.prefixes.describe(run(1, 1000))).toMatchObject({ tokens: 1000, codecs: ['nvfp4'] });
});

test.each(ALL.flatMap((mild) => [0, 100].map((room) => ({ mild, room }))))(
  'a page of the ends of several contexts leaves, too, $mild, $room tokens free',
  ({ mild, room }) => {
    const { cache, run, compute, settle, clock } = laddered({ slots: 2048 + room, mild });
    const file = run(1, 1800);
    const tails = [2, 3, 4].map((seed) => [...file, ...run(seed, 60)]);
    for (const ids of tails) compute(ids);
    clock.now += minutes(2);
    expect(cache.shrink()).toBe(true);
    while (cache.shrink() || settle() > 0) cache.checkIntegrity();
    expect(tails.map((ids) => cache.prefixes.describe(ids))).toEqual(
      tails.map(() => ({
        tokens: 1860,
        tier: 'store',
        bytes: expect.any(Number),
        codecs: expect.arrayContaining([mild]),
      })),
    );
    expect(cache.memory.poolSlots).toMatchObject({ total: 256, held: 0 });
  },
);

test('rows that would not get smaller stay in a full pool, and nothing is evicted for them', () => {
  // The last 128 tokens of a context are kept exactly.
  const { cache, run, compute, settle, clock } = laddered({ slots: 1024, mild: 'int4-kivi' });
  const seeds = [1, 2, 3, 4, 5, 6, 7, 8];
  for (const seed of seeds) compute(run(seed, 128));
  clock.now += minutes(2);
  expect(cache.shrink()).toBe(false);
  expect([settle(), seeds.map((seed) => cache.prefixes.describe(run(seed, 128)))]).toEqual([
    0,
    seeds.map(() => expect.objectContaining({ tokens: 128, tier: 'pool', codecs: [] })),
  ]);
});

/** Runs of a pool, each with its parent's index or none, and what leaves of them: which, how many rows. */
function leaving(
  runs: { length: number; parent?: number; lossy?: Lossy; stored?: boolean }[],
  numRows: number,
  {
    mild = 'nvfp4',
    room = Number.POSITIVE_INFINITY,
    without = [],
  }: { mild?: CodecName; room?: number; without?: number[] } = {},
): number[][] {
  const store = new KvStore(SHAPE);
  const tree = new RadixTree(store);
  const nodes: RadixNode[] = [];
  for (const [i, { length, parent, lossy = [], stored = false }] of runs.entries()) {
    const node = tree.insert(
      parent === undefined ? tree.root : nodes[parent]!,
      Array.from({ length }, (_, at) => 10_000 * i + at),
      new Int32Array(length),
    );
    node.lossy = lossy;
    if (stored) node.stored = store.add(plainBlocks(SHAPE, randomRows(SHAPE, length, i)));
    nodes.push(node);
  }
  // Children go before their parents.
  const stale = nodes.filter((_, i) => !without.includes(i)).reverse();
  return codedPage(stale, numRows, room, () => codec(mild), SHAPE).map(({ node, length, codec }) => [
    nodes.indexOf(node),
    length,
    ...(codec ? [] : [0]),
  ]);
}

const coded = (from: number, to: number): Lossy => [{ from, to, codec: 'nvfp4' }];

test('of a run that has been coded in part, and has come back, what has not been leaves: its end, or with what stands before it all of it', () => {
  expect(leaving([{ length: 300, lossy: coded(0, 128) }], 100)).toEqual([[0, 100]]);
  expect(leaving([{ length: 300, lossy: coded(0, 128) }], 172)).toEqual([[0, 172]]);
  expect(leaving([{ length: 300, lossy: coded(0, 128) }], 173)).toEqual([]);
  // Its front is as it was computed.
  expect(leaving([{ length: 300, lossy: coded(128, 300) }], 256)).toEqual([[0, 256]]);
  expect(leaving([{ length: 500 }, { length: 100, parent: 0, lossy: coded(0, 100) }], 256)).toEqual([
    [1, 100],
    [0, 156],
  ]);
  expect(
    leaving(
      [
        { length: 500, lossy: coded(0, 500) },
        { length: 100, parent: 0, lossy: coded(0, 100) },
      ],
      256,
    ),
  ).toEqual([]);
});

test('rows that the codec keeps exact leave the pool only if that lets their ancestors leave', () => {
  const mild = 'int4-kivi';
  expect(leaving([{ length: 1800 }, { length: 60, parent: 0 }, { length: 60, parent: 0 }], 256, { mild })).toEqual([
    [2, 60],
    [1, 60],
    [0, 136],
  ]);
  expect(leaving([{ length: 60 }, { length: 60, parent: 0 }], 100, { mild })).toEqual([]);
  // Another that goes on from it stays.
  expect(
    leaving([{ length: 1800 }, { length: 60, parent: 0 }, { length: 60, parent: 0 }], 256, { mild, without: [1] }),
  ).toEqual([]);
});

test('a node in the pool keeps its ancestors in the pool', () => {
  expect(leaving([{ length: 500 }, { length: 100, parent: 0 }], 256, { without: [1] })).toEqual([]);
  expect(leaving([{ length: 500 }, { length: 100, parent: 0 }, { length: 300 }], 256, { without: [1] })).toEqual([
    [2, 256],
  ]);
});

test('a node with a store copy leaves the pool unchanged, with its descendants', () => {
  expect(
    leaving(
      [
        { length: 300, stored: true },
        { length: 60, parent: 0 },
      ],
      256,
      { mild: 'int4-kivi' },
    ),
  ).toEqual([
    [1, 60],
    [0, 300, 0],
  ]);
});

test('no more leaves than fits into the store', () => {
  const most = codedBytes(SHAPE, 256, codec('nvfp4'), { startIndex: 44, contextEnd: 300 }, []);
  expect(leaving([{ length: 300 }], 256, { room: most })).toEqual([[0, 256]]);
  expect(leaving([{ length: 300 }], 256, { room: most - 1 })).toEqual([]);
});

test('encoded and promoted rows stay in a full pool; others leave it', () => {
  const { cache, run, compute, rest, settle, toPool, clock } = laddered({ slots: 1024, mild: 'nvfp4' });
  compute(run(1, 300));
  rest();
  settle();
  toPool(run(1, 300));
  expect(cache.prefixes.describe(run(1, 300))).toMatchObject({ tier: 'pool', codecs: ['nvfp4'] });
  for (const seed of [2, 3]) {
    clock.now += minutes(1);
    compute(run(seed, 350));
  }
  expect(cache.memory.poolSlots).toMatchObject({ total: 1024, free: 24 });
  clock.now += minutes(2);
  while (cache.shrink() || settle() > 0) cache.checkIntegrity();
  expect([1, 2, 3].map((seed) => cache.prefixes.describe(run(seed, 350)).tokens)).toEqual([300, 350, 350]);
  expect([2, 3].map((seed) => cache.prefixes.describe(run(seed, 350)))).toEqual(
    [1, 2].map(() => expect.objectContaining({ tier: 'store', codecs: ['nvfp4'] })),
  );
});

test('property: encoding on the way into the store gives the same rows as encoding in the store', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...ALL),
      fc.integer({ min: 1, max: 300 }),
      fc.nat(300),
      fc.nat(300),
      fc.integer(),
      (name, n, startIndex, after, seed) => {
        const pool = new KvPool(SHAPE, 512);
        const slots = Int32Array.from({ length: n }, (_, i) => 511 - ((i * 7) % 512));
        pool.write(slots, randomRows(SHAPE, n, seed), 0, startIndex);
        const place = { startIndex, contextEnd: startIndex + n + after };
        const [there, onItsWay] = [new KvStore(SHAPE), new KvStore(SHAPE)];
        let expected: { run: StoredRun; lossy: Lossy } = { run: there.put(pool, slots), lossy: [] };
        for (
          let next: typeof expected | null = expected;
          next;
          next = there.compress(next.run, codec(name), place, next.lossy)
        )
          expected = next;
        const { blocks, lossy } = onItsWay.codedFrom(pool, slots, codec(name), place, []);
        expect(onItsWay.bytes).toBe(0);
        const run = onItsWay.add(blocks);
        const blocksOf = ({ blocks }: StoredRun): unknown[] =>
          blocks.map(({ codec, encoded, numTokens }) => [codec?.name, encoded, numTokens]);
        expect([lossy, blocksOf(run), contents(onItsWay.read(run, 0, n))]).toEqual([
          expected.lossy,
          blocksOf(expected.run),
          contents(there.read(expected.run, 0, n)),
        ]);
        expect([onItsWay.bytes, codedBytes(SHAPE, n, codec(name), place, [])]).toEqual([there.bytes, there.bytes]);
      },
    ),
    { numRuns: 100 },
  );
});

test('encoded rows are not encoded again on their way into the store', () => {
  const pool = new KvPool(SHAPE, 256);
  const slots = Int32Array.from({ length: 200 }, (_, i) => i);
  const rows = randomRows(SHAPE, 200, 1);
  pool.write(slots, rows, 0, 0);
  const before = { from: 40, to: 70, codec: 'int4-kivi' };
  const store = new KvStore(SHAPE);
  const { blocks, lossy } = store.codedFrom(pool, slots, codec('nvfp4'), { startIndex: 0, contextEnd: 200 }, [before]);
  expect(lossy).toEqual([...coded(0, 32), before, ...coded(96, 200)]);
  expect(contents(store.read(store.add(blocks), 32, 96))).toEqual(contents(sliceRows(SHAPE, rows, 32, 96)));
  expect(codedBytes(SHAPE, 200, codec('nvfp4'), { startIndex: 0, contextEnd: 200 }, [before])).toBe(store.bytes);
});
