/** Rows keep the record of lossy steps, whatever happens to their node, and are never encoded twice. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { sliceRows } from '../../../engine/kv/kvRows.ts';
import {
  codecsOf,
  isExact,
  joinLossy,
  type Lossy,
  lossyWithin,
  exactBytesPerToken,
} from '../../../engine/kv/storedBlocks.ts';
import { type Shift, ShiftedRuns } from '../../../engine/kv/approx/shifted/shiftedReuse.ts';
import { prune } from '../../../engine/kv/approx/pruned/keptRows.ts';
import { laneIds } from '../../../engine/kv/laneIds.ts';
import { contents, laddered, minutes, SHAPE } from '../../support/kv/ladderedCache.ts';

test('property: splitting and joining extents keeps the history of each row', () => {
  const codecs = fc.array(fc.constantFrom('', 'a', 'b'), { maxLength: 40 });
  const lossyOf = (rows: readonly string[]): Lossy =>
    joinLossy(
      [],
      rows.flatMap((codec, i) => (codec ? [{ from: i, to: i + 1, codec }] : [])),
    );
  const saidOf = (lossy: Lossy, n: number): string[] =>
    Array.from({ length: n }, (_, i) => codecsOf(lossyWithin(lossy, i, i + 1)).join());
  fc.assert(
    fc.property(codecs, fc.nat(40), fc.nat(40), (rows, one, other) => {
      const lossy = lossyOf(rows);
      expect(saidOf(lossy, rows.length)).toEqual(rows);
      const [from, to] = [Math.min(one, other), Math.max(one, other)];
      expect(saidOf(lossyWithin(lossy, from, to), to - from)).toEqual(
        Array.from({ length: to - from }, (_, i) => rows[from + i] ?? ''),
      );
      expect(isExact(lossy, from, to)).toBe(rows.slice(from, to).every((codec) => codec === ''));
      const moved = lossyWithin(lossy, from).map((each) => ({ ...each, from: from + each.from, to: from + each.to }));
      expect(joinLossy(lossyWithin(lossy, 0, from), moved)).toEqual(lossy);
    }),
  );
});

test('encoding rows twice is an error', () => {
  const once = joinLossy([{ from: 0, to: 32, codec: 'nvfp4' }], [{ from: 40, to: 60, codec: 'nvfp4' }]);
  expect(() => joinLossy(once, [{ from: 31, to: 40, codec: 'turboquant' }])).toThrow(
    'Rows 31 to 32 have been through nvfp4, and now through turboquant.',
  );
  expect(joinLossy(once, [{ from: 32, to: 40, codec: 'nvfp4' }])).toEqual([{ from: 0, to: 60, codec: 'nvfp4' }]);
});

test.each([
  { name: 'kvzip' as const, from: 0, kept: [0, 1, 2, 3] },
  { name: 'h2o' as const, from: 2, kept: [0, 1, 2, 3] },
  { name: 'h2o' as const, from: 10, kept: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] },
])(
  '$name from token $from on: the first four tokens of a context have rows, whatever they receive, and no piece of it has more rows than its share',
  ({ name, from, kept }) => {
    const { cache, pool, run, compute } = laddered();
    const ids = run(1, 700);
    compute(ids);
    // The later a token stands the more it receives, in each of two pieces.
    prune(
      cache.memory,
      ids,
      from,
      Float32Array.from({ length: 4 * 700 }, (_, i) => (i % 700) % ((700 - from) / 2)),
      { keep: 0.6, layers: new Set([0]), name },
    );
    const lease = cache.open();
    expect(cache.advance(lease, ids, 700)).toBe(700);
    const positions = Array.from(cache.slotsOf(lease), (slot) => pool.positions[slot]!);
    cache.release(lease);
    const piece = (700 - from) / 2;
    expect(positions.filter((at) => at < from + piece / 4)).toEqual(kept);
    expect(positions).toHaveLength(from + 2 * Math.ceil(0.6 * piece));
    // The second piece begins where the context does not.
    expect(positions).not.toContain(from + piece);
  },
);

test('pruned and encoded rows are not encoded again after a promotion', () => {
  const { cache, run, compute, read, rest, toPool, settle } = laddered({ only: 'kept' });
  const ids = run(1, 200);
  compute(run(1, 200));
  prune(
    cache.memory,
    ids,
    0,
    Float32Array.from({ length: 4 * 200 }, (_, i) => (i * 7919) % 1009),
    { keep: 0.6, layers: new Set([0]), name: 'kvzip' },
  );
  expect(cache.prefixes.describe(ids)).toMatchObject({ tokens: 200, tier: 'pool', codecs: ['kvzip'] });
  const kept = contents(read(ids));
  rest();
  expect(settle()).toBe(4);
  expect(cache.prefixes.describe(ids)).toMatchObject({ tokens: 200, tier: 'store', codecs: ['kvzip', 'nvfp4'] });
  const coded = read(ids);
  expect([coded.numTokens, contents(coded)]).not.toEqual([120, kept]);
  toPool(ids);
  const uncoded = 120 * (exactBytesPerToken(SHAPE) + 4);
  rest(minutes(60));
  expect(cache.prefixes.describe(ids)).toMatchObject({
    tokens: 200,
    tier: 'store',
    bytes: uncoded,
    codecs: ['kvzip', 'nvfp4'],
  });
  expect(settle()).toBe(0);
  expect(cache.prefixes.describe(ids).bytes).toBe(uncoded);
  expect(contents(read(ids))).toEqual(contents(coded));
});

test('rows that the codec keeps exact do not count as encoded: same size, and written to disk as exact', () => {
  const { cache, run, compute, read, rest, settle } = laddered({ mild: 'int4-kivi' });
  // All of it is recent.
  compute(run(1, 100));
  const exact = contents(read(run(1, 100)));
  rest();
  expect(settle()).toBe(0);
  expect(cache.prefixes.describe(run(1, 100))).toEqual({
    tokens: 100,
    tier: 'store',
    bytes: 100 * exactBytesPerToken(SHAPE),
    codecs: [],
  });
  expect(contents(cache.prefixes.readExact(run(1, 100), 0, 100)!)).toEqual(exact);
});

test('the exact part of a partly encoded node can be split, extended and encoded later', () => {
  const { cache, run, compute, read, rest, toPool, settle } = laddered({ mild: 'int4-kivi' });
  const ids = run(1, 300);
  compute(run(1, 300));
  const exact = read(ids);
  rest();
  // Five blocks of 32, all but the first four tokens, and most of the sixth: 128 are recent.
  expect(settle()).toBe(5);
  const coded = read(ids);
  const codecs = (n: number): string[] => cache.prefixes.describe(run(1, n)).codecs;
  expect([codecs(4), codecs(5), codecs(300)]).toEqual([[], ['int4-kivi'], ['int4-kivi']]);
  expect(contents(sliceRows(SHAPE, coded, 160, 300))).toEqual(contents(sliceRows(SHAPE, exact, 160, 300)));
  expect(contents(cache.prefixes.readExact(ids, 0, 4)!)).toEqual(contents(sliceRows(SHAPE, exact, 0, 4)));
  expect([cache.prefixes.readExact(ids, 0, 5), cache.prefixes.readExact(ids, 200, 300)]).toEqual([null, null]);

  // In the pool alone, cut where another text goes on, and grown.
  toPool(ids);
  cache.prefixes.evict(run(1, 250));
  compute(run(1, 400));
  const grown = read(run(1, 400));
  expect([codecs(4), codecs(5)]).toEqual([[], ['int4-kivi']]);
  rest(minutes(60));
  expect(settle()).toBeGreaterThan(0);
  expect(codecs(400)).toEqual(['int4-kivi', 'turboquant']);
  const after = read(run(1, 400));
  // Once through the one or the other, and neither twice.
  expect(contents(sliceRows(SHAPE, after, 0, 160))).toEqual(contents(sliceRows(SHAPE, grown, 0, 160)));
  expect(contents(sliceRows(SHAPE, grown, 0, 250))).toEqual(contents(sliceRows(SHAPE, coded, 0, 250)));
});

test('shifted reuse takes computed rows only, no encoded ones', () => {
  const { cache, run, compute, rest, settle } = laddered({ mild: 'int4-kivi' });
  const shifted = new ShiftedRuns(cache.memory);
  const block = (tokenIds: number[]): number[] => laneIds(tokenIds, [[0, tokenIds.length]]);
  const ids = block(run(1, 256));
  compute(ids);
  /** Behind five tokens that were put in at `at`. */
  const plan = (at: number): Shift[] => shifted.plan([...ids.slice(0, at), ...block(run(2, 5)), ...ids.slice(at)], 261);
  const taken = (at: number): number[][] => plan(at).map(({ start, end }) => [start, end]);
  const exact = [[[5 + 10 + 64, 261]], [[5 + 60 + 64, 261]]];
  expect([taken(10), taken(60)]).toEqual(exact);
  const shift = plan(10)[0]!;
  rest();
  expect([taken(10), taken(60)]).toEqual(exact);
  // Of the first block of 128 three parts of 32.
  for (let i = 0; i < 3; i++) expect(cache.compression.compress()).toBe(true);
  expect([taken(10), taken(60)]).toEqual([[], exact[1]]);
  // It was planned before.
  expect(shifted.copy(shift, shift.start, () => {})).toBeNull();
  const slots = shifted.copy(shift, 128 + 5, () => {})!;
  expect(slots).toHaveLength(256 - 128);
  cache.memory.free(slots);
  rest();
  settle();
  expect(taken(60)).toEqual([]);
});
