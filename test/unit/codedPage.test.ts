/** A window that is full: what leaves it is coded on its way, a page is given back, and nothing has to go for it. */
import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import { kvBytesPerToken } from '../../engine/cache/kvRows.ts';
import type { Lossy } from '../../engine/cache/lossyRows.ts';
import { KvStore } from '../../engine/cache/store.ts';
import type { StoredRun } from '../../engine/cache/storedBlocks.ts';
import { codedBytes } from '../../engine/cache/toCode.ts';
import { KvWindow } from '../../engine/cache/window.ts';
import { randomRows } from './codecRows.ts';
import { codec, contents, laddered, minutes, SHAPE } from './ladderedCache.ts';

const ALL = ['fp8', 'int4', 'int4-kivi', 'nvfp4', 'kvquant3'] as const;

test.each(ALL.filter((name) => name !== 'int4-kivi').flatMap((mild) => [0, 40, 232].map((room) => ({ mild, room }))))('a window that is full of short runs loses none: they are coded straight out of it, $mild with room for $room more tokens', ({ mild, room }) => {
  const { cache, run, compute, settle, clock } = laddered({ slots: 1024 + room, mild });
  const seeds = [1, 2, 3, 4, 5];
  for (const seed of seeds) compute(run(seed, 200));
  expect(cache.windowSlots.total).toBe(1024);
  clock.now += minutes(2);
  while (cache.shrink({ codes: true }) || settle() > 0) cache.checkIntegrity();
  cache.checkIntegrity();
  expect(seeds.map((seed) => cache.describe(run(seed, 200)))).toEqual(seeds.map(() => ({ tokens: 200, tier: 'store', bytes: expect.any(Number), codecs: expect.arrayContaining([mild]) })));
  expect(cache.windowSlots.total).toBe(256);
});

test('a page is coded at a time, and given back before the next one: somebody may ask meanwhile', () => {
  const { cache, run, compute, clock } = laddered({ slots: 1024 });
  compute(run(1, 1000));
  clock.now += minutes(2);
  const pages = [];
  while (cache.shrink({ codes: true })) pages.push([cache.windowSlots.total, cache.windowSlots.held]);
  // The last has room as it is, and is coded in the store.
  expect(pages).toEqual([[768, 768], [512, 512], [256, 256], [256, 0]]);
  expect(cache.describe(run(1, 1000))).toMatchObject({ tokens: 1000, codecs: ['int4'] });
});

test('what would take no less coded stays in the full window, and nothing goes for it', () => {
  // Of 200 tokens 132 are kept exactly.
  const { cache, run, compute, settle, clock } = laddered({ slots: 1024, mild: 'int4-kivi' });
  for (const seed of [1, 2, 3, 4, 5]) compute(run(seed, 200));
  clock.now += minutes(2);
  expect(cache.shrink({ codes: true })).toBe(false);
  expect([settle(), [1, 2, 3, 4, 5].map((seed) => cache.describe(run(seed, 200)).tokens)]).toEqual([0, [200, 200, 200, 200, 200]]);
});

test('property: a quiet moment in which memory is short loses no token, whatever fills the window, and codes none twice', () => {
  const action = fc.oneof(
    fc.record({ kind: fc.constant('compute' as const), seed: fc.integer({ min: 1, max: 6 }), length: fc.integer({ min: 1, max: 600 }) }),
    fc.record({ kind: fc.constant('compute' as const), seed: fc.integer({ min: 1, max: 6 }), length: fc.integer({ min: 300, max: 600 }) }),
    fc.record({ kind: fc.constant('quiet' as const), ms: fc.constantFrom(100, minutes(2), minutes(40)), blocks: fc.nat(12) }),
    fc.record({ kind: fc.constant('ceiling' as const), slots: fc.integer({ min: 700, max: 1600 }) }),
  );
  const straight = vi.spyOn(KvStore.prototype, 'codedFrom');
  onTestFinished(() => straight.mockRestore());
  fc.assert(
    fc.property(fc.constantFrom(...ALL), fc.integer({ min: 700, max: 1600 }), fc.array(action, { minLength: 10, maxLength: 40 }), (mild, slots, actions) => {
      const { cache, run, compute, clock, reserve } = laddered({ slots, mild });
      const left = (): number[] => [1, 2, 3, 4, 5, 6].map((seed) => cache.describe(run(seed, 600)).tokens);
      for (const step of actions) {
        if (step.kind === 'compute') compute(run(step.seed, step.length));
        else if (step.kind === 'ceiling') cache.setMaxBytes(step.slots * kvBytesPerToken(SHAPE) + reserve);
        else {
          clock.now += step.ms;
          const before = left();
          while (cache.shrink({ codes: true })) cache.checkIntegrity();
          cache.checkIntegrity();
          for (let n = step.blocks; n > 0 && cache.runs.compress(); n--) cache.checkIntegrity();
          expect(left()).toEqual(before);
        }
        cache.checkIntegrity();
      }
    }),
    { numRuns: 60 },
  );
  expect(straight.mock.calls.length).toBeGreaterThan(50);
});

test('rows that are coded, and have come back, stay in the full window: others leave it', () => {
  const { cache, run, compute, rest, settle, toWindow, clock } = laddered({ slots: 1024, mild: 'int4' });
  compute(run(1, 300));
  rest();
  settle();
  toWindow(run(1, 300));
  expect(cache.describe(run(1, 300))).toMatchObject({ tier: 'window', codecs: ['int4'] });
  for (const seed of [2, 3]) {
    clock.now += minutes(1);
    compute(run(seed, 350));
  }
  expect(cache.windowSlots).toMatchObject({ total: 1024, free: 24 });
  clock.now += minutes(2);
  while (cache.shrink({ codes: true }) || settle() > 0) cache.checkIntegrity();
  expect([1, 2, 3].map((seed) => cache.describe(run(seed, 350)).tokens)).toEqual([300, 350, 350]);
  expect([2, 3].map((seed) => cache.describe(run(seed, 350)))).toEqual([1, 2].map(() => expect.objectContaining({ tier: 'store', codecs: ['int4'] })));
});

test('property: rows that are coded on their way into the store become what they would have become there', () => {
  fc.assert(
    fc.property(fc.constantFrom(...ALL), fc.integer({ min: 1, max: 300 }), fc.nat(300), fc.nat(300), fc.integer(), (name, n, startIndex, after, seed) => {
      const window = new KvWindow(SHAPE, 512);
      const slots = Int32Array.from({ length: n }, (_, i) => 511 - ((i * 7) % 512));
      window.write(slots, randomRows(SHAPE, n, seed), 0, startIndex);
      const place = { startIndex, contextEnd: startIndex + n + after };
      const [there, onItsWay] = [new KvStore(SHAPE), new KvStore(SHAPE)];
      let expected: { run: StoredRun; lossy: Lossy } = { run: there.put(window, slots), lossy: [] };
      for (let next: typeof expected | null = expected; next; next = there.compress(next.run, codec(name), place, next.lossy)) expected = next;
      const { blocks, lossy } = onItsWay.codedFrom(window, slots, codec(name), place, []);
      expect(onItsWay.bytes).toBe(0);
      const run = onItsWay.add(blocks);
      const blocksOf = ({ blocks }: StoredRun): unknown[] => blocks.map(({ codec, encoded, numTokens }) => [codec?.name, encoded, numTokens]);
      expect([lossy, blocksOf(run), contents(onItsWay.read(run, 0, n))]).toEqual([expected.lossy, blocksOf(expected.run), contents(there.read(expected.run, 0, n))]);
      expect([onItsWay.bytes, codedBytes(SHAPE, n, codec(name), place)]).toEqual([there.bytes, there.bytes]);
    }),
    { numRuns: 100 },
  );
});
