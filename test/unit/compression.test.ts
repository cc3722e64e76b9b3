/** Compressing the store: what comes back is what the codec makes of it, the bytes are exact, and what runs stays as it was. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { codecNamed, type CodecName } from '../../engine/cache/codecs/registry.ts';
import { KvCache } from '../../engine/cache/kvCache.ts';
import { kvBytesPerToken, type KvRows } from '../../engine/cache/kvRows.ts';
import { BLOCK_TOKENS, exactBlock, joinRows, KvStore, runOf, sliceRows } from '../../engine/cache/store.ts';
import { KvWindow } from '../../engine/cache/window.ts';
import { randomRows, rope } from './codecRows.ts';

const SHAPE = { numLayers: 2, kvHeads: 2, headSize: 16, kv: 'int8' as const };
const codec = (name: CodecName) => codecNamed(name, SHAPE, rope(16));
const contents = ({ keys, keyScales, values, valueScales }: KvRows): unknown[] => [keys, keyScales, values, valueScales];

test.each<CodecName>(['fp8', 'int4', 'int4-kivi', 'nvfp4', 'kvquant3'])('%s: a run that is split and compressed in any order has the rows that its blocks were made into, and its bytes', (name) => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 300 }), fc.array(fc.oneof(fc.constant(-1), fc.nat(300)), { maxLength: 12 }), fc.integer(), (numTokens, work, seed) => {
      const rows = randomRows(SHAPE, numTokens, seed);
      const store = new KvStore(SHAPE);
      const blocks = [];
      for (let at = 0; at < numTokens; at += BLOCK_TOKENS) blocks.push(exactBlock(sliceRows(SHAPE, rows, at, Math.min(numTokens, at + BLOCK_TOKENS))));
      let runs = [store.add(blocks)];
      let now = rows;
      for (const what of work) {
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
  const compression = { codec: codec('int4-kivi'), idleMs: 1000, fullness: 0.75, only: null };
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
  expect([1, 2, 3, 4].map((seed) => cache.describe(run(seed)).codec)).toEqual(['int4-kivi', 'int4-kivi', null, null]);
  expect(cache.describe(run(1)).tokens).toBe(200);
  // Its rest made room. Back in the window it says what it has been through, and nothing of it goes to the disk as if it were exact.
  const lease = cache.open();
  expect(cache.advance(lease, run(1), 150)).toBe(150);
  cache.checkIntegrity();
  expect(cache.describe(run(1))).toMatchObject({ tokens: 150, codec: 'int4-kivi' });
  expect([cache.runs.readExact(run(1), 0, 100), cache.runs.readExact(run(3), 0, 100)?.numTokens]).toEqual([null, 100]);
  cache.release(lease);
});
