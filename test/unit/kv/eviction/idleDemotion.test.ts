/** Idle demotion: which nodes leave the pool, which stay, how long a call takes, and that no row is lost. */
import fc from 'fast-check';
import { prune } from '../../../../engine/kv/approx/pruned/keptRows.ts';
import { expect, onTestFinished, test, vi } from 'vitest';
import { KvCodec } from '../../../../engine/kv/approx/codecs/kvCodec.ts';
import { joinRows, type KvRows, kvBytesPerToken, sliceRows } from '../../../../engine/kv/kvRows.ts';
import type { Lease } from '../../../../engine/kv/lease.ts';
import { KvStore } from '../../../../engine/kv/store.ts';
import { exactBytesPerToken } from '../../../../engine/kv/storedBlocks.ts';
import { randomRows } from '../../../support/kv/codecRows.ts';
import { contents, laddered, minutes, SHAPE } from '../../../support/kv/ladderedCache.ts';
import { watched } from '../../../support/kv/watchedBytes.ts';

const ALL = ['int4-kivi', 'nvfp4', 'turboquant'] as const;
const BYTES = kvBytesPerToken(SHAPE);

test('when memory is short, rows leave the pool page by page, so that requests can run in between', () => {
  const { cache, run, compute, clock } = laddered({ slots: 2600 });
  compute(run(1, 800));
  clock.now += minutes(2);
  const places = [];
  while (cache.shrink()) places.push([cache.memory.poolSlots.held, cache.memory.poolSlots.total]);
  // What has left is given back before more leaves: hardly anything is in memory twice.
  expect(places).toEqual([
    [640, 1024],
    [640, 768],
    [384, 768],
    [384, 512],
    [128, 512],
    [128, 256],
    [0, 256],
  ]);
  expect(cache.memory.poolSlots.total).toBe(256);
  expect(cache.prefixes.describe(run(1, 800))).toMatchObject({ tokens: 800, tier: 'store' });
  // Of short runs no more than that, to a run.
  for (let seed = 2; seed < 10; seed++) compute(run(seed, 100));
  clock.now += minutes(2);
  expect([cache.shrink(), cache.memory.poolSlots.held]).toEqual([true, 500]);
});

test('maintenance searches for demotable nodes once, however many do not fit', () => {
  const { cache, run, compute, clock } = laddered({ slots: 1024, mild: 'int4-kivi' });
  for (let seed = 1; seed <= 128; seed++) compute(run(seed, 8));
  clock.now += minutes(2);
  const sized = vi.spyOn(KvCodec.prototype, 'encodedBytes');
  onTestFinished(() => sized.mockRestore());
  expect(cache.shrink()).toBe(false);
  expect(sized.mock.calls.length).toBeLessThanOrEqual(128);
});

test('a codec failure in the middle of a page changes nothing and takes nothing of the reserve', () => {
  const { cache, run, compute, settle, clock } = laddered({ slots: 1024 });
  const seeds = [1, 2, 3, 4, 5];
  for (const seed of seeds) compute(run(seed, 200));
  clock.now += minutes(2);
  const { encode } = KvCodec.prototype;
  let numBlocks = 0;
  // The seven blocks of one run, and the first of the next.
  const failing = vi.spyOn(KvCodec.prototype, 'encode').mockImplementation(function (
    this: KvCodec,
    ...of: Parameters<typeof encode>
  ) {
    if (++numBlocks === 8) throw new Error('out of memory');
    return encode.apply(this, of);
  });
  onTestFinished(() => failing.mockRestore());
  expect(() => cache.shrink()).toThrow('out of memory');
  cache.checkIntegrity();
  expect([cache.memory.store.bytes, cache.memory.poolSlots]).toEqual([0, { total: 1024, free: 24, held: 1000 }]);
  failing.mockRestore();
  while (cache.shrink() || settle() > 0) cache.checkIntegrity();
  expect(seeds.map((seed) => cache.prefixes.describe(run(seed, 200)).tokens)).toEqual(seeds.map(() => 200));
  expect(cache.memory.poolSlots.total).toBe(256);
});

test('encoded and promoted rows give way to their ancestors and are not encoded again', () => {
  const { cache, run, compute, settle, toPool, clock } = laddered({ slots: 1280 + 10 });
  compute(run(1, 1000));
  clock.now += minutes(2);
  expect([cache.shrink(), cache.memory.poolSlots.held]).toEqual([true, 768]);
  while (settle() > 0) cache.checkIntegrity();
  toPool(run(1, 1000));
  compute(run(2, 280));
  expect(cache.prefixes.describe(run(1, 1000))).toEqual({
    tokens: 1000,
    tier: 'pool',
    bytes: 1000 * BYTES,
    codecs: ['nvfp4'],
  });
  expect(cache.memory.poolSlots).toEqual({ total: 1280, free: 0, held: 1280 });
  clock.now += minutes(40);
  while (cache.shrink() || settle() > 0) cache.checkIntegrity();
  expect(cache.prefixes.describe(run(1, 1000))).toMatchObject({
    tokens: 1000,
    tier: 'store',
    codecs: ['turboquant', 'nvfp4'],
  });
  expect(cache.prefixes.describe(run(2, 280))).toMatchObject({ tokens: 280, tier: 'store', codecs: ['turboquant'] });
});

test('a full pool keeps what is pinned, as it was computed', () => {
  const { cache, run, compute, settle, clock } = laddered({ slots: 1024 });
  compute(run(1, 512));
  cache.prefixes.pin('file', run(1, 512));
  compute(run(2, 512));
  clock.now += minutes(2);
  while (cache.shrink() || settle() > 0) cache.checkIntegrity();
  expect([1, 2].map((seed) => cache.prefixes.describe(run(seed, 512)))).toEqual([
    { tokens: 512, tier: 'pool', bytes: 512 * BYTES, codecs: [] },
    expect.objectContaining({ tokens: 512, tier: 'store', codecs: ['nvfp4'] }),
  ]);
  expect(cache.memory.poolSlots).toEqual({ total: 512, free: 0, held: 512 });
});

test('a pruned node is not encoded on its way out of the pool, and its ancestors stay with it', () => {
  const { cache, run, compute, settle, clock } = laddered({ slots: 1024 });
  const context = [...run(1, 500), ...run(2, 300)];
  compute(context);
  prune(
    cache.memory,
    context,
    500,
    Float32Array.from({ length: 4 * 800 }, (_, i) => (i * 7919) % 1009),
    { keep: 0.6, layers: new Set([0]), name: 'kvzip' },
  );
  compute(run(3, 344));
  expect(cache.memory.poolSlots).toEqual({ total: 1024, free: 0, held: 1024 });
  clock.now += minutes(2);
  while (cache.shrink() || settle() > 0) cache.checkIntegrity();
  expect(cache.memory.poolSlots).toEqual({ total: 768, free: 88, held: 680 });
  expect(cache.prefixes.describe(context)).toEqual({
    tokens: 800,
    tier: 'pool',
    bytes: 680 * BYTES,
    codecs: ['kvzip'],
  });
  expect(cache.prefixes.describe(run(3, 344))).toMatchObject({ tokens: 344, tier: 'store', codecs: ['nvfp4'] });
});

test.each([
  { kept: 40, pages: 2 },
  { kept: 100, pages: 2 },
  { kept: 200, pages: 1 },
  { kept: 256, pages: 1 },
])(
  'beside two pages the reserve is what the budget leaves, and a page is compressed out of the pool where it fits: $kept rows',
  ({ kept, pages }) => {
    const laid = laddered({ slots: 1024, mild: 'nvfp4', hard: 'nvfp4' });
    const { cache, run, compute, clock } = laid;
    const maxBytes = 512 * BYTES + kept * exactBytesPerToken(SHAPE);
    cache.setMaxBytes(maxBytes);
    compute(run(1, 512));
    expect(cache.memory.poolSlots).toEqual({ total: 512, free: 0, held: 512 });
    const seen = watched(laid);
    clock.now += minutes(2);
    expect(cache.shrink()).toBe(pages === 1);
    expect(seen.most).toBeLessThanOrEqual(maxBytes);
    expect([cache.memory.poolSlots.total, cache.prefixes.describe(run(1, 512)).tokens]).toEqual([256 * pages, 512]);
  },
);

/** The rows of a sequence's tokens: what a token's are follows from its place and what stands before it. */
const rowsBySeed = new Map<number, KvRows>();
function rowsFrom(seed: number, numTokens: number): KvRows {
  if (!rowsBySeed.has(seed)) rowsBySeed.set(seed, randomRows(SHAPE, 600, seed));
  return sliceRows(SHAPE, rowsBySeed.get(seed)!, 0, numTokens);
}

interface Text {
  readonly ids: readonly number[];
  readonly rows: KvRows;
}

/** `length` tokens of a file; `branch` above 0: from token `fork` on another one's. */
function textOf({ file, length, branch, fork }: { file: number; length: number; branch: number; fork: number }): Text {
  const parts =
    branch === 0 || fork >= length
      ? [[file, length] as const]
      : [[file, fork] as const, [10 * file + branch, length - fork] as const];
  return {
    ids: parts.flatMap(([seed, n]) => Array.from({ length: n }, (_, i) => 1000 * seed + i)),
    rows: joinRows(
      SHAPE,
      parts.map(([seed, n]) => rowsFrom(seed, n)),
    ),
  };
}

const text = fc.record({
  file: fc.integer({ min: 1, max: 4 }),
  length: fc.oneof(fc.integer({ min: 1, max: 600 }), fc.integer({ min: 300, max: 600 })),
  branch: fc.nat(2),
  fork: fc.constantFrom(30, 128, 301),
});
const action = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('compute' as const), text, stays: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('release' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('quiet' as const),
      ms: fc.constantFrom(100, minutes(2), minutes(40)),
      blocks: fc.nat(12),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('budget' as const), slots: fc.integer({ min: 700, max: 1600 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('pin' as const), text, ends: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('prune' as const),
      text,
      share: fc.double({ min: 0, max: 0.9, noNaN: true }),
    }),
  },
);

test('property: maintenance under memory pressure loses no token, changes no row in use and encodes none twice', () => {
  const straight = vi.spyOn(KvStore.prototype, 'codedFrom');
  onTestFinished(() => straight.mockRestore());
  let numHeld = 0;
  fc.assert(
    fc.property(
      fc.constantFrom(...ALL),
      fc.integer({ min: 700, max: 1600 }),
      fc.array(action, { minLength: 10, maxLength: 40 }),
      (mild, slots, actions) => {
        const laid = laddered({ slots, mild });
        const { cache, pool, clock, reserve } = laid;
        const seen = watched(laid);
        let budget = slots * BYTES + reserve;
        const known = new Map<string, Text>();
        const leases: Lease[] = [];
        const left = (): number[] => [...known.values()].map(({ ids }) => cache.prefixes.describe(ids).tokens);
        const inUse = (): unknown[] => leases.map((lease) => contents(pool.read(cache.slotsOf(lease))));
        for (const step of actions) {
          if (step.kind === 'compute') {
            const { ids, rows } = textOf(step.text);
            const lease = cache.open();
            const from = cache.advance(lease, ids, ids.length);
            const own = cache.memory.allocate(ids.length - from);
            if (own) {
              pool.write(own, rows, from, from);
              cache.append(lease, own);
              cache.commit(lease, ids);
              known.set(JSON.stringify(step.text), { ids, rows });
            }
            if (step.stays && leases.length < 2) leases.push(lease);
            else cache.release(lease);
          } else if (step.kind === 'release') {
            if (leases.length > 0) cache.release(leases.shift()!);
          } else if (step.kind === 'budget') {
            if (cache.memory.excess(step.slots * BYTES + reserve) > 0) continue;
            budget = step.slots * BYTES + reserve;
            cache.setMaxBytes(budget);
          } else if (step.kind === 'pin') cache.prefixes.pin('file', step.ends ? null : textOf(step.text).ids);
          else if (step.kind === 'prune') {
            const { ids } = textOf(step.text);
            const numTokens = cache.prefixes.describe(ids).tokens;
            if (numTokens > 0)
              prune(
                cache.memory,
                ids,
                Math.floor(step.share * numTokens),
                Float32Array.from({ length: 4 * numTokens }, (_, i) => (i * 7919) % 1009),
                { keep: 0.6, layers: new Set([0]), name: 'kvzip' },
              );
          } else {
            clock.now += step.ms;
            seen.most = 0;
            const before = [left(), inUse()];
            while (cache.shrink()) cache.checkIntegrity();
            expect(seen.most).toBeLessThanOrEqual(budget);
            cache.checkIntegrity();
            for (let n = step.blocks; n > 0 && cache.compression.compress(); n--) cache.checkIntegrity();
            expect([left(), inUse()]).toEqual(before);
            numHeld += leases.length;
          }
          cache.checkIntegrity();
        }
        // What is said to be as it was computed is.
        for (const { ids, rows } of known.values()) {
          const numTokens = cache.prefixes.describe(ids).tokens;
          for (const to of [numTokens, 301, 128, 30]) {
            const exact = to > 0 && to <= numTokens ? cache.prefixes.readExact(ids, 0, to) : null;
            if (exact) expect(contents(exact)).toEqual(contents(sliceRows(SHAPE, rows, 0, to)));
          }
        }
      },
    ),
    { numRuns: 60 },
  );
  expect(straight.mock.calls.length).toBeGreaterThan(50);
  expect(numHeld).toBeGreaterThan(50);
});
