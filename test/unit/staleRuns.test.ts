/** Quiet moments: what leaves the window then, what may not, and how long one is. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { KvCodec } from '../../engine/cache/codecs/kvCodec.ts';
import { kvBytesPerToken } from '../../engine/cache/kvRows.ts';
import { laddered, minutes, SHAPE } from './ladderedCache.ts';

const BYTES = kvBytesPerToken(SHAPE);

test('where memory is short a page at a time leaves the window, also where the store has room for all: somebody may ask meanwhile', () => {
  const { cache, run, compute, clock } = laddered({ slots: 2600 });
  compute(run(1, 800));
  clock.now += minutes(2);
  const held = [];
  while (cache.shrink({ codes: true })) held.push(cache.windowSlots.held);
  expect(held).toEqual([544, 288, 32, 0]);
  expect(cache.windowSlots.total).toBe(256);
  expect(cache.describe(run(1, 800))).toMatchObject({ tokens: 800, tier: 'store' });
  // Elsewhere all of it does at once.
  compute(run(2, 800));
  clock.now += minutes(2);
  expect([cache.shrink(), cache.windowSlots]).toEqual([false, { total: 256, free: 256, held: 0 }]);
});

test('what can leave is looked for once in a quiet moment, however many runs have no room', () => {
  const { cache, run, compute, clock } = laddered({ slots: 1024, mild: 'int4-kivi' });
  for (let seed = 1; seed <= 128; seed++) compute(run(seed, 8));
  clock.now += minutes(2);
  const sized = vi.spyOn(KvCodec.prototype, 'encodedBytes');
  onTestFinished(() => sized.mockRestore());
  expect(cache.shrink({ codes: true })).toBe(false);
  expect(sized.mock.calls.length).toBeLessThanOrEqual(128);
});

test('a codec that fails in the middle of a page leaves everything as it was: nothing is taken of what is kept free', () => {
  const { cache, run, compute, settle, clock } = laddered({ slots: 1024 });
  const seeds = [1, 2, 3, 4, 5];
  for (const seed of seeds) compute(run(seed, 200));
  clock.now += minutes(2);
  const { encode } = KvCodec.prototype;
  let numBlocks = 0;
  // The seven blocks of one run, and the first of the next.
  const failing = vi.spyOn(KvCodec.prototype, 'encode').mockImplementation(function (this: KvCodec, ...of: Parameters<typeof encode>) {
    if (++numBlocks === 8) throw new Error('out of memory');
    return encode.apply(this, of);
  });
  onTestFinished(() => failing.mockRestore());
  expect(() => cache.shrink({ codes: true })).toThrow('out of memory');
  cache.checkIntegrity();
  expect([cache.storeBytes, cache.windowSlots]).toEqual([0, { total: 1024, free: 24, held: 1000 }]);
  failing.mockRestore();
  while (cache.shrink({ codes: true }) || settle() > 0) cache.checkIntegrity();
  expect(seeds.map((seed) => cache.describe(run(seed, 200)).tokens)).toEqual(seeds.map(() => 200));
  expect(cache.windowSlots.total).toBe(256);
});

test('a full window keeps what is pinned, as it was computed', () => {
  const { cache, run, compute, settle, clock } = laddered({ slots: 1024 });
  compute(run(1, 512));
  cache.pin('file', run(1, 512));
  compute(run(2, 512));
  clock.now += minutes(2);
  while (cache.shrink({ codes: true }) || settle() > 0) cache.checkIntegrity();
  expect([1, 2].map((seed) => cache.describe(run(seed, 512)))).toEqual([{ tokens: 512, tier: 'window', bytes: 512 * BYTES, codecs: [] }, expect.objectContaining({ tokens: 512, tier: 'store', codecs: ['int4'] })]);
  expect(cache.windowSlots).toEqual({ total: 512, free: 0, held: 512 });
});

test('a run that has fewer rows than tokens is not coded out of the window, and what it goes on from stays there with it', () => {
  const { cache, run, compute, settle, clock } = laddered({ slots: 1024 });
  const context = [...run(1, 500), ...run(2, 300)];
  compute(context);
  cache.runs.prune(context, 500, Float32Array.from({ length: 4 * 800 }, (_, i) => (i * 7919) % 1009), { keep: 0.6, name: 'kvzip' });
  compute(run(3, 344));
  expect(cache.windowSlots).toEqual({ total: 1024, free: 0, held: 1024 });
  clock.now += minutes(2);
  while (cache.shrink({ codes: true }) || settle() > 0) cache.checkIntegrity();
  expect(cache.windowSlots).toEqual({ total: 768, free: 88, held: 680 });
  expect(cache.describe(context)).toEqual({ tokens: 800, tier: 'window', bytes: 680 * BYTES, codecs: ['kvzip'] });
  expect(cache.describe(run(3, 344))).toMatchObject({ tokens: 344, tier: 'store', codecs: ['int4'] });
});
