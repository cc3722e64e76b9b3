/** Compressing the store: what comes back is what the codec makes of it, the bytes are exact, and what runs stays as it was. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { KvCodec } from '../../engine/cache/codecs/kvCodec.ts';
import { codecNamed, type CodecName } from '../../engine/cache/codecs/registry.ts';
import { codecNames, compressionOf, rungFor } from '../../engine/cache/compression.ts';
import { KvCache } from '../../engine/cache/kvCache.ts';
import { kvBytesPerToken, type KvRows } from '../../engine/cache/kvRows.ts';
import { BLOCK_TOKENS, exactBlock, exactBytesPerToken, joinRows, KvStore, runOf, sliceRows, splitReserve } from '../../engine/cache/store.ts';
import { KvWindow } from '../../engine/cache/window.ts';
import { randomRows, rope } from './codecRows.ts';

const SHAPE = { numLayers: 2, kvHeads: 2, headSize: 16, kv: 'int8' as const };
const codec = (name: CodecName) => codecNamed(name, SHAPE, rope(16));
const contents = ({ keys, keyScales, values, valueScales }: KvRows): unknown[] => [keys, keyScales, values, valueScales];

test.each<{ names: CodecName[] }>([...(['fp8', 'int4', 'int4-kivi', 'nvfp4', 'kvquant3'] as const).map((name) => ({ names: [name] })), { names: ['int4-kivi', 'kvquant3'] }])('$names: a run that is split and compressed in any order has the rows that its blocks were made into, none of them twice, and its bytes', ({ names }) => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 300 }), fc.array(fc.oneof(fc.integer({ min: -names.length, max: -1 }), fc.nat(300)), { maxLength: 12 }), fc.integer(), (numTokens, work, seed) => {
      const rows = randomRows(SHAPE, numTokens, seed);
      const store = new KvStore(SHAPE);
      const blocks = [];
      for (let at = 0; at < numTokens; at += BLOCK_TOKENS) blocks.push(exactBlock(sliceRows(SHAPE, rows, at, Math.min(numTokens, at + BLOCK_TOKENS))));
      let runs = [store.add(blocks)];
      let now = rows;
      const codings = new Uint8Array(numTokens);
      for (const what of work) {
        const name = names[-1 - what]!;
        const endOf = (i: number): number => runs.slice(0, i + 1).reduce((sum, { numTokens }) => sum + numTokens, 0);
        const of = runs.findIndex((run, i) => (what < 0 ? run.numUncoded > 0 : endOf(i) > what));
        if (of < 0) continue;
        const run = runs[of]!;
        const from = runs.slice(0, of).reduce((sum, { numTokens }) => sum + numTokens, 0);
        if (what < 0) {
          const compressed = store.compress(run, codec(name), { startIndex: from })!;
          expect(compressed.numUncoded).toBeLessThan(run.numUncoded);
          runs = runs.with(of, compressed);
          // One block is new: the others are as they were.
          const parts = compressed.blocks.map((block) => block.rows());
          const first = compressed.blocks.findIndex((block, i) => block !== run.blocks[i]);
          const before = parts.slice(0, first).reduce((sum, { numTokens }) => sum + numTokens, 0);
          const coded = parts[first]!.numTokens;
          for (let i = 0; i < coded; i++) expect(++codings[from + before + i]!).toBe(1);
          const made = codec(name).decode(codec(name).encode(sliceRows(SHAPE, now, from + before, from + before + coded), { startIndex: from + before })).rows;
          now = joinRows(SHAPE, [sliceRows(SHAPE, now, 0, from + before), made, sliceRows(SHAPE, now, from + before + coded, numTokens)]);
        } else if (what > from) runs = [...runs.slice(0, of), ...store.split(run, what - from), ...runs.slice(of + 1)];
        expect(contents(joinRows(SHAPE, runs.map((each) => store.read(each, 0, each.numTokens))))).toEqual(contents(now));
        expect(store.bytes).toBe(runs.reduce((sum, { bytes }) => sum + bytes, 0));
        for (const each of runs) expect(each).toMatchObject({ ...runOf(each.blocks), blocks: each.blocks });
      }
    }),
    { numRuns: 25 },
  );
});

test('only what is long out of use is compressed, and only when memory is short where that is asked for', () => {
  const clock = { now: 0 };
  const window = new KvWindow(SHAPE, 0);
  const bytes = kvBytesPerToken(SHAPE);
  const compression = { rungs: [{ codec: codec('int4-kivi'), idleMs: 1000, fullness: 0.75 }], only: null };
  const cache = new KvCache({ window, maxBytes: 800 * bytes, softSlots: 256, clock: () => clock.now, compression });
  const run = (seed: number): number[] => Array.from({ length: 200 }, (_, i) => 1000 * seed + i);
  const compute = (seed: number): void => {
    const lease = cache.open();
    const slots = cache.allocate(200)!;
    window.write(slots, randomRows(SHAPE, 200, seed), 0, 0);
    cache.append(lease, slots);
    cache.commit(lease, run(seed));
    cache.release(lease);
    cache.checkIntegrity();
  };
  const drain = (): number => {
    let numBlocks = 0;
    for (; cache.runs.compress(); numBlocks++) cache.checkIntegrity();
    return numBlocks;
  };
  compute(1);
  compute(2);
  clock.now = 5000;
  // In the window, or not enough.
  expect(drain()).toBe(0);
  compute(3);
  compute(4);
  clock.now = 5500;
  const before = cache.storeBytes;
  // Until a quarter is free again: all seven blocks of one, two of the next.
  expect(drain()).toBe(9);
  expect(cache.storeBytes).toBeLessThan(before);
  expect([1, 2, 3, 4].map((seed) => cache.describe(run(seed)).codecs)).toEqual([['int4-kivi'], ['int4-kivi'], [], []]);
  expect(cache.describe(run(1)).tokens).toBe(200);
  // Its rest made room. Back in the window it says what it has been through, and nothing of it goes to the disk as if it were exact.
  const lease = cache.open();
  expect(cache.advance(lease, run(1), 150)).toBe(150);
  cache.checkIntegrity();
  expect(cache.describe(run(1))).toMatchObject({ tokens: 150, codecs: ['int4-kivi'] });
  expect([cache.runs.readExact(run(1), 0, 100), cache.runs.readExact(run(3), 0, 100)?.numTokens]).toEqual([null, 100]);
  cache.release(lease);
});

const minutes = (n: number): number => n * 60_000;

test('the codec follows from age and fullness: the smallest whose conditions both hold', () => {
  const rungs = compressionOf('auto', [codec('int4-kivi'), codec('kvquant3')])!.rungs;
  const chosen = (idle: number, fullness: number): string | null => rungFor(rungs, minutes(idle), fullness)?.codec.name ?? null;
  const table = [0.74, 0.75, 0.89, 0.9, 1].map((fullness) => [4.9, 5, 9.9, 10, 29.9, 30, 1000].map((idle) => chosen(idle, fullness)));
  const [kivi, quant] = ['int4-kivi', 'kvquant3'];
  const short = [null, kivi, kivi, kivi, kivi, quant, quant];
  const full = [null, kivi, kivi, quant, quant, quant, quant];
  expect(table).toEqual([Array(7).fill(null), short, short, full, full]);
  fc.assert(
    fc.property(fc.double({ min: 0, max: 60, noNaN: true }), fc.double({ min: 0, max: 1, noNaN: true }), fc.double({ min: 0, max: 60, noNaN: true }), fc.double({ min: 0, max: 1, noNaN: true }), (idle, fullness, longer, fuller) => {
      const place = (i: number, f: number): number => [null, kivi, quant].indexOf(chosen(i, f) as never);
      expect(place(idle + longer, Math.min(1, fullness + fuller))).toBeGreaterThanOrEqual(place(idle, fullness));
    }),
  );
});

test('a ladder has the rungs whose codecs may be used; a codec that is asked for by name is one rung, always', () => {
  const [kivi, quant] = [codec('int4-kivi'), codec('kvquant3')];
  const names = (setting: string, codecs: KvCodec[]): unknown => compressionOf(setting, codecs)?.rungs.map((rung) => [rung.codec.name, rung.idleMs / 60_000, rung.fullness]) ?? null;
  expect(codecNames('auto')).toEqual(['int4-kivi', 'kvquant3']);
  expect(names('auto', [kivi])).toEqual([['int4-kivi', 5, 0.75]]);
  expect(names('auto', [quant])).toEqual([['kvquant3', 30, 0.75], ['kvquant3', 10, 0.9]]);
  expect(names('auto', [])).toBeNull();
  expect([codecNames('kvquant3'), names('kvquant3', [quant])]).toEqual([['kvquant3'], [['kvquant3', 1, 0]]]);
  expect([names('int8', [codec('int8')]), compressionOf('auto', [kivi])!.only, codecNames('kvzip'), compressionOf('kvzip', [codec('int4')])!.only]).toEqual([null, null, ['int4'], 'kept']);
  // Kept free: what halves of the largest block may take.
  const reserve = (codecs: KvCodec[]): number => splitReserve(compressionOf('auto', codecs), SHAPE) / exactBytesPerToken(SHAPE);
  expect([reserve([kivi]), reserve([kivi, quant]), reserve([quant]), reserve([])]).toEqual([32, 128, 128, 0]);
});

/** A cache with both codecs of `auto`, from a second and from half an hour on, however much room there is. */
function laddered(slots = 1500) {
  const clock = { now: 0 };
  const window = new KvWindow(SHAPE, 0);
  const compression = { rungs: [{ codec: codec('int4-kivi'), idleMs: 1000, fullness: 0 }, { codec: codec('kvquant3'), idleMs: minutes(30), fullness: 0 }], only: null };
  const cache = new KvCache({ window, maxBytes: slots * kvBytesPerToken(SHAPE), softSlots: 2000, clock: () => clock.now, compression });
  const run = (seed: number, n: number): number[] => Array.from({ length: n }, (_, i) => 1000 * seed + i);
  return {
    clock, window, cache, run,
    /** Computes what is missing of a run of so many tokens. */
    compute(seed: number, n: number): void {
      const lease = cache.open();
      const known = cache.advance(lease, run(seed, n), n);
      const slots = cache.allocate(n - known)!;
      window.write(slots, randomRows(SHAPE, n - known, seed), 0, known);
      cache.append(lease, slots);
      cache.commit(lease, run(seed, n));
      cache.release(lease);
      cache.checkIntegrity();
    },
    /** Codes all there is to code. */
    settle(): void {
      while (cache.runs.compress()) cache.checkIntegrity();
    },
  };
}

test('rows that have been through a codec and came back by way of the window are not coded again', () => {
  const { clock, window, cache, run, compute, settle } = laddered();
  const readAll = (): unknown => {
    const lease = cache.open();
    expect(cache.advance(lease, run(1, 200), 200)).toBe(200);
    const rows = contents(window.read(cache.slotsOf(lease)));
    cache.release(lease);
    cache.checkIntegrity();
    return rows;
  };
  compute(1, 200);
  clock.now += minutes(2);
  cache.shrink();
  settle();
  expect(cache.describe(run(1, 200)).bytes).toBeLessThan(200 * exactBytesPerToken(SHAPE));
  const coded = readAll();
  // Its copy in the store goes, then it leaves the window.
  clock.now += 1000;
  compute(2, 1000);
  cache.evict(run(2, 1));
  // Rows behind it are exact.
  compute(1, 264);
  clock.now += minutes(60);
  // First the window gets smaller, then there is room for what leaves it.
  for (let i = 0; i < 2; i++) cache.shrink();
  const expected = { tokens: 200, tier: 'store', bytes: 200 * exactBytesPerToken(SHAPE), codecs: ['int4-kivi'] };
  expect(cache.describe(run(1, 200))).toEqual(expected);
  settle();
  expect(cache.describe(run(1, 200))).toEqual(expected);
  expect(cache.describe(run(1, 264)).bytes).toBeLessThan(264 * exactBytesPerToken(SHAPE));
  expect(readAll()).toEqual(coded);
});

test('of copies of what the window has, exact ones go before coded ones', () => {
  // Beside a window of 1280 slots there is room for one.
  const { clock, cache, run, compute, settle } = laddered(1280 + 128 + 250);
  for (const seed of [1, 2]) compute(seed, 200);
  clock.now += minutes(2);
  for (let i = 0; i < 2; i++) cache.shrink();
  compute(1, 200);
  settle();
  compute(2, 200);
  const bytes = (seed: number): number => cache.describe(run(seed, 200)).bytes / (200 * kvBytesPerToken(SHAPE));
  expect([1, 2].map((seed) => [cache.describe(run(seed, 200)).codecs, bytes(seed) > 1])).toEqual([[[], true], [['int4-kivi'], true]]);
  compute(3, 800);
  expect([bytes(1), bytes(2) > 1]).toEqual([1, true]);
});
