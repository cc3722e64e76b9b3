/**
 * Compression of the store: rows become what the codec makes of them, bytes are exact, and nodes in use stay unchanged.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PoolBudget } from '../../../../engine/kv/poolBudget.ts';
import type { KvCodec } from '../../../../engine/kv/approx/codecs/kvCodec.ts';
import type { CodecName } from '../../../../engine/kv/approx/codecs/registry.ts';
import { codecNames, compressionOf } from '../../../../engine/kv/approx/approximations.ts';
import { levelFor, nextToCode, codingReserve } from '../../../../engine/kv/approx/compression.ts';
import { Lru } from '../../../support/kv/lru.ts';
import { KvCache } from '../../../../engine/kv/kvCache.ts';
import { joinRows, kvBytesPerToken, sliceRows } from '../../../../engine/kv/kvRows.ts';
import {
  type Lossy,
  lossyWithin,
  BLOCK_TOKENS,
  exactBytesPerToken,
  plainBlocks,
  runOf,
  type StoredRun,
} from '../../../../engine/kv/storedBlocks.ts';
import type { RadixNode } from '../../../../engine/kv/radixTree.ts';
import { KvStore } from '../../../../engine/kv/store.ts';
import { KvPool } from '../../../../engine/kv/pool.ts';
import { randomRows } from '../../../support/kv/codecRows.ts';
import { codec, contents, laddered, minutes, SHAPE } from '../../../support/kv/ladderedCache.ts';

test.each<{ names: CodecName[] }>([
  ...(['int4-kivi', 'nvfp4', 'turboquant'] as const).map((name) => ({ names: [name] })),
  { names: ['int4-kivi', 'turboquant'] },
])(
  '$names: a run that is split and compressed in any order has the rows that its blocks were made into, says of each what it has been through, none twice, and has its bytes',
  ({ names }) => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 300 }),
        fc.array(fc.oneof(fc.integer({ min: -names.length, max: -1 }), fc.nat(300)), { maxLength: 12 }),
        fc.nat(300),
        fc.integer(),
        (numTokens, work, after, seed) => {
          const rows = randomRows(SHAPE, numTokens, seed);
          const contextEnd = numTokens + after;
          const store = new KvStore(SHAPE);
          let runs: { run: StoredRun; lossy: Lossy }[] = [{ run: store.add(plainBlocks(SHAPE, rows)), lossy: [] }];
          let now = rows;
          /** What each row has been through. */
          const through = Array<string>(numTokens).fill('');
          for (const what of work) {
            const name = names[-1 - what]!;
            const startOf = (i: number): number => runs.slice(0, i).reduce((sum, { run }) => sum + run.numTokens, 0);
            const of = runs.findIndex(({ run, lossy }, i) =>
              what < 0
                ? nextToCode(SHAPE, run, codec(name), { startIndex: startOf(i), contextEnd }, lossy)
                : startOf(i + 1) > what,
            );
            if (of < 0) continue;
            const { run, lossy } = runs[of]!;
            const from = startOf(of);
            if (what < 0) {
              const compressed = store.compress(run, codec(name), { startIndex: from, contextEnd }, lossy)!;
              expect(compressed.run.bytes).toBeLessThan(run.bytes);
              expect(
                Math.max(...compressed.run.blocks.map((block) => (block.codec?.name === name ? block.numTokens : 0))),
              ).toBeLessThan(codec(name).format.blockTokens + BLOCK_TOKENS);
              runs = runs.with(of, compressed);
              // One block is new: the others are as they were.
              const parts = compressed.run.blocks.map((block) => block.rows());
              const first = compressed.run.blocks.findIndex((block, i) => block !== run.blocks[i]);
              const before = from + parts.slice(0, first).reduce((sum, { numTokens }) => sum + numTokens, 0);
              const coded = parts[first]!.numTokens;
              const place = { startIndex: before, contextEnd };
              const made = codec(name).through(sliceRows(SHAPE, now, before, before + coded), place);
              now = joinRows(SHAPE, [
                sliceRows(SHAPE, now, 0, before),
                made,
                sliceRows(SHAPE, now, before + coded, numTokens),
              ]);
              const [firstCoded, endCoded] = codec(name).codedTokens(coded, place);
              for (let i = before + firstCoded; i < before + endCoded; i++) through[i] += name;
            } else if (what > from) {
              const before = store.bytes;
              const [upper, lower] = store.split(run, what - from);
              expect(store.bytes).toBe(before);
              runs = [
                ...runs.slice(0, of),
                { run: upper, lossy: lossyWithin(lossy, 0, what - from) },
                { run: lower, lossy: lossyWithin(lossy, what - from) },
                ...runs.slice(of + 1),
              ];
            }
            expect(
              contents(
                joinRows(
                  SHAPE,
                  runs.map(({ run }) => store.read(run, 0, run.numTokens)),
                ),
              ),
            ).toEqual(contents(now));
            expect(
              runs.flatMap(({ run, lossy }) =>
                Array.from(
                  { length: run.numTokens },
                  (_, i) => lossy.find((rows) => rows.from <= i && i < rows.to)?.codec ?? '',
                ),
              ),
            ).toEqual(through);
            // Rows of which nothing is said are as they were.
            for (let i = 0; i < numTokens; i++)
              if (through[i] === '')
                expect(contents(sliceRows(SHAPE, now, i, i + 1))).toEqual(contents(sliceRows(SHAPE, rows, i, i + 1)));
            expect(store.bytes).toBe(runs.reduce((sum, { run }) => sum + run.bytes, 0));
            for (const { run } of runs) expect(run).toMatchObject({ ...runOf(run.blocks), blocks: run.blocks });
          }
        },
      ),
      { numRuns: 25 },
    );
  },
);

test('only rows idle for long are compressed, and with that setting only when memory is short', () => {
  const clock = { now: 0 };
  const pool = new KvPool(SHAPE, 0);
  const bytes = kvBytesPerToken(SHAPE);
  const compression = { levels: [{ codec: codec('nvfp4'), idleMs: 1000, fullness: 0.75 }], only: null };
  const cache = new KvCache({
    pool,
    maxBytes: 750 * bytes + codingReserve(compression, SHAPE),
    softSlots: 256,
    clock: () => clock.now,
    compression,
  });
  const run = (seed: number): number[] => Array.from({ length: 200 }, (_, i) => 1000 * seed + i);
  const compute = (seed: number): void => {
    const lease = cache.open();
    const slots = cache.memory.allocate(200)!;
    pool.write(slots, randomRows(SHAPE, 200, seed), 0, 0);
    cache.append(lease, slots);
    cache.commit(lease, run(seed));
    cache.release(lease);
    cache.checkIntegrity();
  };
  const drain = (): number => {
    let numBlocks = 0;
    for (; cache.compression.compress(); numBlocks++) cache.checkIntegrity();
    return numBlocks;
  };
  compute(1);
  compute(2);
  clock.now = 5000;
  // In the pool, or not enough.
  expect(drain()).toBe(0);
  compute(3);
  compute(4);
  clock.now = 5500;
  const before = cache.memory.store.bytes;
  // Until a quarter of what runs may take is free again: all seven blocks of one, the first two of the next.
  expect(drain()).toBe(9);
  expect(cache.memory.store.bytes).toBeLessThan(before);
  expect([1, 2, 3, 4].map((seed) => cache.prefixes.describe(run(seed)).codecs)).toEqual([['nvfp4'], ['nvfp4'], [], []]);
  expect(cache.prefixes.describe(run(1)).tokens).toBe(200);
  // Back in the pool it says what it has been through, and nothing of it goes to the disk as if it were exact.
  const lease = cache.open();
  expect(cache.advance(lease, run(1), 150)).toBe(150);
  cache.checkIntegrity();
  expect(cache.prefixes.describe(run(1))).toMatchObject({ tokens: 200, codecs: ['nvfp4'] });
  expect([cache.prefixes.readExact(run(1), 0, 100), cache.prefixes.readExact(run(3), 0, 100)?.numTokens]).toEqual([
    null,
    100,
  ]);
  cache.release(lease);
});

test('more of an older encoded file in the pool is evicted before any of many newer short nodes', () => {
  const clock = { now: 0 };
  const pool = new KvPool(SHAPE, 0);
  const compression = { levels: [{ codec: codec('nvfp4'), idleMs: 1000, fullness: 0 }], only: null };
  const cache = new KvCache({
    pool,
    maxBytes: 1500 * kvBytesPerToken(SHAPE) + codingReserve(compression, SHAPE),
    softSlots: 1024,
    clock: () => clock.now,
    eviction: new Lru(),
    compression,
  });
  const run = (seed: number, length: number): number[] => Array.from({ length }, (_, i) => 1000 * seed + i);
  const compute = (seed: number, length: number): void => {
    const lease = cache.open();
    const slots = cache.memory.allocate(length)!;
    pool.write(slots, randomRows(SHAPE, length, seed), 0, 0);
    cache.append(lease, slots);
    cache.commit(lease, run(seed, length));
    cache.release(lease);
  };
  const file = run(1, 320);
  compute(1, 320);
  clock.now += 100_000;
  while (cache.shrink());
  while (cache.compression.compress());
  expect(cache.prefixes.describe(file)).toMatchObject({ tier: 'store', codecs: ['nvfp4'] });
  const lease = cache.open();
  expect(cache.advance(lease, file, 320)).toBe(320);
  cache.release(lease);
  const shorts = Array.from({ length: 29 }, (_, i) => 2 + i);
  for (const seed of shorts) {
    clock.now++;
    compute(seed, 24);
  }
  const slots = cache.memory.allocate(800)!;
  cache.checkIntegrity(slots);
  expect(cache.prefixes.describe(file).tokens).toBeGreaterThan(0);
  expect(cache.prefixes.describe(file).tokens).toBeLessThan(320);
  for (const seed of shorts) expect(cache.prefixes.describe(run(seed, 24)).tokens).toBe(24);
});

test('the codec follows from age and fullness: the smallest whose conditions both hold', () => {
  const levels = compressionOf('auto', [codec('int4-kivi'), codec('turboquant')])!.levels;
  const chosen = (idle: number, fullness: number): string | null =>
    levelFor(levels, minutes(idle), fullness)?.codec.name ?? null;
  const table = [0.74, 0.75, 0.89, 0.9, 1].map((fullness) =>
    [4.9, 5, 9.9, 10, 29.9, 30, 1000].map((idle) => chosen(idle, fullness)),
  );
  const [kivi, quant] = ['int4-kivi', 'turboquant'];
  const short = [null, kivi, kivi, kivi, kivi, quant, quant];
  const full = [null, kivi, kivi, quant, quant, quant, quant];
  expect(table).toEqual([Array(7).fill(null), short, short, full, full]);
  fc.assert(
    fc.property(
      fc.double({ min: 0, max: 60, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 60, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (idle, fullness, longer, fuller) => {
        const place = (i: number, f: number): number => [null, kivi, quant].indexOf(chosen(i, f) as never);
        expect(place(idle + longer, Math.min(1, fullness + fuller))).toBeGreaterThanOrEqual(place(idle, fullness));
      },
    ),
  );
});

test('the compression levels are those of the allowed codecs; a codec chosen by name is the only level', () => {
  const [kivi, quant] = [codec('int4-kivi'), codec('turboquant')];
  const names = (setting: string, codecs: KvCodec[]): unknown =>
    compressionOf(setting, codecs)?.levels.map((level) => [level.codec.name, level.idleMs / 60_000, level.fullness]) ??
    null;
  expect(codecNames('auto')).toEqual(['int4-kivi', 'turboquant']);
  expect(names('auto', [kivi])).toEqual([['int4-kivi', 5, 0.75]]);
  expect(names('auto', [quant])).toEqual([
    ['turboquant', 30, 0.75],
    ['turboquant', 10, 0.9],
  ]);
  expect(names('auto', [])).toBeNull();
  expect([codecNames('turboquant'), names('turboquant', [quant])]).toEqual([['turboquant'], [['turboquant', 1, 0]]]);
  expect([
    names('int8', [codec('int8')]),
    compressionOf('auto', [kivi])!.only,
    codecNames('kvzip'),
    compressionOf('kvzip', [codec('nvfp4')])!.only,
  ]).toEqual([null, null, ['turboquant'], 'kept']);
});

test('the reserve is one page of rows, because a codec may keep all rows exact; a pool under three pages reserves what it can', () => {
  const page = 256 * exactBytesPerToken(SHAPE);
  expect(
    [['int4-kivi'], ['int4-kivi', 'turboquant'], []].map((names) =>
      codingReserve(
        compressionOf(
          'auto',
          names.map((name) => codec(name as CodecName)),
        ),
        SHAPE,
      ),
    ),
  ).toEqual([page, page, 0]);
  expect(codingReserve(compressionOf('kvzip', [codec('nvfp4')]), SHAPE)).toBe(0);
  const bytesPerSlot = kvBytesPerToken(SHAPE);
  const kept = (maxBytes: number): number =>
    maxBytes - new PoolBudget({ maxBytes, bytesPerSlot, softSlots: 2000, reserve: page }).limit;
  expect([0, 100, 512 * bytesPerSlot + 1, 512 * bytesPerSlot + page, 1e9].map(kept)).toEqual([0, 0, 1, page, page]);
});

test('rows that were encoded and returned through the pool are not encoded again', () => {
  const { cache, run, compute, read, rest, toPool, settle } = laddered();
  compute(run(1, 200));
  rest();
  settle();
  expect(cache.prefixes.describe(run(1, 200)).bytes).toBeLessThan(200 * exactBytesPerToken(SHAPE));
  const coded = contents(read(run(1, 200)));
  toPool(run(1, 200));
  // Rows behind it are exact.
  compute(run(1, 264));
  rest(minutes(60));
  const expected = { tokens: 200, tier: 'store', bytes: 200 * exactBytesPerToken(SHAPE), codecs: ['nvfp4'] };
  expect(cache.prefixes.describe(run(1, 200))).toEqual(expected);
  settle();
  expect(cache.prefixes.describe(run(1, 264)).bytes).toBeLessThan(264 * exactBytesPerToken(SHAPE));
  expect(cache.prefixes.describe(run(1, 264)).codecs).toEqual(['nvfp4', 'turboquant']);
  expect(contents(read(run(1, 200)))).toEqual(coded);
});

test('exact store copies of pool rows are dropped before encoded ones', () => {
  // Beside a pool of 1280 slots one fits.
  const { cache, run, compute, rest, settle } = laddered({ slots: 1280 + 250 });
  for (const seed of [1, 2]) compute(run(seed, 200));
  rest();
  compute(run(1, 200));
  settle();
  compute(run(2, 200));
  const bytes = (seed: number): number =>
    cache.prefixes.describe(run(seed, 200)).bytes / (200 * kvBytesPerToken(SHAPE));
  expect([1, 2].map((seed) => [cache.prefixes.describe(run(seed, 200)).codecs, bytes(seed) > 1])).toEqual([
    [[], true],
    [['nvfp4'], true],
  ]);
  compute(run(3, 800));
  expect([bytes(1), bytes(2) > 1]).toEqual([1, true]);
});

test('nodes with a store copy leave a full pool first, and nothing is evicted for the page', () => {
  const { cache, run, compute, rest, settle, clock } = laddered({ slots: 1024 + 130, mild: 'turboquant' });
  compute(run(1, 256));
  rest();
  settle();
  const coded = cache.prefixes.describe(run(1, 256)).bytes;
  // Its rows are in the pool, and still in the store.
  compute(run(1, 256));
  compute(run(2, 768));
  expect([cache.memory.poolSlots, cache.memory.store.bytes]).toEqual([{ total: 1024, free: 0, held: 1024 }, coded]);
  clock.now += minutes(2);
  for (let i = 0; i < 2; i++) {
    cache.shrink();
    settle();
  }
  cache.checkIntegrity();
  expect([1, 2].map((seed) => cache.prefixes.describe(run(seed, 1024)).tokens)).toEqual([256, 768]);
  expect(cache.memory.poolSlots.total).toBeLessThan(1024);
});

test('rows to encode are searched once for a whole node, not per block; rows evicted meanwhile are released', () => {
  const clock = { now: 0 };
  let numReckoned = 0;
  class Counted extends Lru {
    override worth(node: RadixNode): number {
      numReckoned++;
      return super.worth(node);
    }
  }
  const compression = { levels: [{ codec: codec('nvfp4'), idleMs: 1000, fullness: 0 }], only: null };
  const cache = new KvCache({
    pool: new KvPool(SHAPE, 0),
    maxBytes: 1e8,
    softSlots: 256,
    clock: () => clock.now,
    compression,
    eviction: new Counted(),
  });
  const [numRuns, numBlocks] = [40, 10];
  const tokens = (run: number): number[] => Array.from({ length: numBlocks * BLOCK_TOKENS }, (_, i) => 1000 * run + i);
  for (let run = 0; run < numRuns; run++) {
    clock.now = run;
    cache.prefixes.takeStored(
      tokens(run),
      0,
      plainBlocks(SHAPE, randomRows(SHAPE, numBlocks * BLOCK_TOKENS, run)),
      'idle',
    );
  }
  clock.now = minutes(1);
  numReckoned = 0;
  for (let i = 0; i < 5; i++) expect(cache.compression.compress()).toBe(true);
  // The run under way, and one that has not come to its turn: all but their first tokens go.
  const [first, last] = [0, numRuns - 1].map((run) => cache.lookUp(tokens(run), 1).path.nodes[0]!);
  expect(first!.stored!.blocks.filter((block) => block.codec)).toHaveLength(5);
  for (const run of [0, numRuns - 1]) cache.prefixes.evict(tokens(run).slice(0, 1));
  cache.checkIntegrity();
  expect([first!.stored, last!.stored]).toEqual([null, null]);
  let numCoded = 5;
  for (; cache.compression.compress(); numCoded++) cache.checkIntegrity();
  expect(numCoded).toBe(5 + (numRuns - 2) * numBlocks + 1);
  expect(numReckoned).toBeLessThan(4 * numRuns);
  expect(cache.compression.compress()).toBe(false);
});
