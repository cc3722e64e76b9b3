import { tmpdir } from 'node:os';
import fc from 'fast-check';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { SpillFile } from '../../../engine/kv/disk/spillFile.ts';
import { type Eviction, Utility } from '../../../engine/kv/eviction/eviction.ts';
import { Lru } from '../../support/kv/lru.ts';
import { KvCache, type KvCacheOptions } from '../../../engine/kv/kvCache.ts';
import { type Lease, numComputed } from '../../../engine/kv/lease.ts';
import { pathTo, RadixTree } from '../../../engine/kv/radixTree.ts';
import { SlotAllocator } from '../../../engine/kv/pageTable.ts';
import { KvStore } from '../../../engine/kv/store.ts';
import { BLOCK_TOKENS, exactBytesPerToken, plainBlock } from '../../../engine/kv/storedBlocks.ts';
import { StoreEviction } from '../../../engine/kv/eviction/storeEviction.ts';
import { type KvRows, kvBytesPerToken, newKvRows, sliceRows } from '../../../engine/kv/kvRows.ts';
import { cacheOptions } from '../../../engine/kv/approx/approximations.ts';
import { prune } from '../../../engine/kv/approx/pruned/keptRows.ts';
import { KvPool } from '../../../engine/kv/pool.ts';
import type { KvPrecision } from '../../../engine/protocol/tasks.ts';
import { fakeShape } from '../../support/engine/fakeRunner.ts';
import { watched } from '../../support/kv/watchedBytes.ts';

const BYTES = kvBytesPerToken(fakeShape());

function newCache(
  slots: number,
  softSlots = slots,
  options: Partial<KvCacheOptions> = {},
): { cache: KvCache; pool: KvPool; clock: { now: number } } {
  const pool = new KvPool(fakeShape(), 0);
  const clock = { now: 0 };
  return {
    cache: new KvCache({
      pool,
      maxBytes: slots * BYTES,
      softSlots,
      clock: () => clock.now,
      ...cacheOptions({ spillFile: options.spillFile }),
      ...options,
    }),
    pool,
    clock,
  };
}

/** Computes what is missing of a sequence, as a step would; false when it does not fit. */
function compute(cache: KvCache, pool: KvPool, lease: Lease, tokenIds: number[]): boolean {
  cache.advance(lease, tokenIds, tokenIds.length);
  const at = numComputed(lease);
  const slots = cache.memory.allocate(tokenIds.length - at);
  if (!slots) return false;
  pool.write(slots, newKvRows(pool.shape, slots.length), 0, at);
  cache.append(lease, slots);
  cache.commit(lease, tokenIds);
  return true;
}

function cached(cache: KvCache, pool: KvPool, tokenIds: number[]): void {
  const lease = cache.open();
  compute(cache, pool, lease, tokenIds);
  cache.release(lease);
}

const run = (n: number, first: number): number[] => Array.from({ length: n }, (_, i) => first * 1000 + i);

test.each([
  { numOld: 760, left: 0 },
  { numOld: 1000, left: 896 },
])(
  'what a idle moment takes from the pool drives nothing out: $numOld stored, $left stay in the pool',
  ({ numOld, left }) => {
    const { cache, pool, clock } = newCache(2048);
    const [old, young] = [run(numOld, 1), run(1024, 2)];
    const most = (): void =>
      expect(cache.memory.pool.bytes + cache.memory.store.bytes).toBeLessThanOrEqual(2048 * BYTES);
    // Between the steps of a demotion, too.
    const { read, resize } = pool;
    pool.read = (slots) => {
      most();
      return read.call(pool, slots);
    };
    pool.resize = (...sizes) => {
      resize.apply(pool, sizes);
      most();
    };
    for (const ids of [old, young]) {
      cached(cache, pool, ids);
      clock.now += 61_000;
      while (cache.shrink()) cache.checkIntegrity();
      cache.checkIntegrity();
    }
    expect(cache.memory.poolSlots.held).toBe(left);
    expect([cache.prefixes.describe(young).tokens, cache.prefixes.describe(old).tokens]).toEqual([1024, numOld]);
  },
);

test.each([0, 100])(
  'memory reserved for a long context shrinks a full pool page by page, within the budget, and costs less than a page: %i free slots',
  (room) => {
    const spillFile = new SpillFile(tmpdir(), 1e9, () => {});
    const maxBytes = (2048 + room) * BYTES;
    const { cache, pool } = newCache(2048 + room, 2048, { spillFile, maxBytes });
    cached(cache, pool, run(1024, 1));
    cached(cache, pool, run(1024, 2));
    expect(cache.memory.poolSlots).toMatchObject({ total: 2048, free: 0 });
    const seen = watched({ cache, pool });
    cache.reserved(8000);
    cache.checkIntegrity();
    expect(seen.most).toBeLessThanOrEqual(maxBytes);
    expect(cache.memory.poolSlots.total).toBeLessThanOrEqual(1024);
    const left = cache.prefixes.describe(run(1024, 1)).tokens + cache.prefixes.describe(run(1024, 2)).tokens;
    expect(left).toBeGreaterThanOrEqual(2048 - 256 + room);
  },
);

test.each([1000, 3000])('a pool of one page can shrink below a page: %i tokens of a long context', (numTokens) => {
  const { cache, pool } = newCache(256, 2048, { spillFile: new SpillFile(tmpdir(), 1e9, () => {}) });
  cached(cache, pool, run(256, 1));
  cache.reserved(numTokens);
  cache.checkIntegrity();
  expect([cache.memory.poolSlots.total < 256, cache.memory.available < 256]).toEqual([true, true]);
});

test('a lower budget is reached page by page; the old one holds meanwhile, and rows that fit the new one stay', () => {
  const { cache, pool } = newCache(2048, 2048);
  cached(cache, pool, run(2048, 1));
  const seen = watched({ cache, pool });
  cache.setMaxBytes((1024 + 200) * BYTES);
  cache.checkIntegrity();
  expect(seen.most).toBe(2048 * BYTES);
  expect(cache.memory.poolSlots).toEqual({ total: 1024, free: 0, held: 1024 });
  expect(cache.prefixes.describe(run(2048, 1)).tokens).toBeGreaterThanOrEqual(1024 + 200);
});

/** Texts that begin as one of a few files and go on in a way of their own. */
const textOf = ({ file, length, branch }: { file: number; length: number; branch: number }): number[] => [
  ...run(length, file),
  ...run(20 + (branch % 9), 100 + branch),
];

/** Counts the runs of trees that are looked at from now on. */
function countLooks(counted: { looks: number }): void {
  const { nodes } = RadixTree.prototype;
  const spied = vi.spyOn(RadixTree.prototype, 'nodes').mockImplementation(function* (this: RadixTree) {
    for (const node of nodes.call(this)) {
      counted.looks++;
      yield node;
    }
  });
  onTestFinished(() => spied.mockRestore());
}

/** So many short runs in a full pool, and how often worths are reckoned and runs of the tree looked at from then on. */
function shortRuns(n: number): { cache: KvCache; held: number; counted: { worths: number; looks: number } } {
  const counted = { worths: 0, looks: 0 };
  class Counted extends Utility {
    override worth(...of: Parameters<Utility['worth']>): number {
      counted.worths++;
      return super.worth(...of);
    }
  }
  const { cache, pool, clock } = newCache(16_384, 16_384, {
    eviction: new Counted(BYTES),
    spillFile: new SpillFile(tmpdir(), 1e9, () => {}),
  });
  for (let i = 0; i < n; i++) {
    clock.now += 137;
    cached(cache, pool, textOf({ file: i % 32, length: 40, branch: i }));
  }
  countLooks(counted);
  counted.worths = 0;
  return { cache, held: cache.memory.poolSlots.held, counted };
}

/** Tokens of a long context beside which the pool has so many slots. */
function besidePool(cache: KvCache, slots: number): number {
  let numTokens = 1;
  while (cache.memory.availableBeside(cache.longContexts.storeBytes(numTokens)) > slots) numTokens *= 1.1;
  return Math.floor(numTokens);
}

test.each([
  // Less than a page has to leave, and not all of it fits in the store.
  {
    what: 'a budget falls',
    leave: (cache: KvCache, held: number) => cache.setMaxBytes((Math.floor(held / 1024) * 256 + 100) * BYTES),
    numEvents: 'evictions' as const,
  },
  {
    what: 'memory is reserved for a long context',
    leave: (cache: KvCache) => cache.reserved(besidePool(cache, 1024)),
    numEvents: 'demotions' as const,
  },
])('the order of eviction is computed once for all nodes that leave: $what', ({ leave, numEvents }) => {
  const n = 512;
  const { cache, held, counted } = shortRuns(n);
  const before = cache.memory.nodes.events[numEvents];
  leave(cache, held);
  expect(cache.memory.nodes.events[numEvents] - before).toBeGreaterThan(n / 2);
  // Once for the order, and as it is by then for the first of each kind as they go; slots move a few times. Of each that leaves it would be n at least.
  expect(counted.worths).toBeLessThan(12 * n);
  expect(counted.looks).toBeLessThan(24 * n);
  cache.checkIntegrity();
});

test('property: a falling budget evicts the same nodes as a freshly computed order each time; by utility, the same amount up to a page', () => {
  const text = fc.record({
    file: fc.integer({ min: 1, max: 4 }),
    length: fc.constantFrom(10, 40, 300),
    branch: fc.nat(40),
  });
  const budgets = fc.array(
    fc.record({ slots: fc.integer({ min: 100, max: 2500 }), aside: fc.constantFrom(0, 0, 2000) }),
    { minLength: 1, maxLength: 4 },
  );
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          text,
          idleMs: fc.constantFrom(0, 10, 3000, 100_000),
          pin: fc.boolean(),
          stays: fc.boolean(),
          prunes: fc.boolean(),
        }),
        { minLength: 1, maxLength: 30 },
      ),
      budgets,
      fc.boolean(),
      (all, budgets, lru) => {
        const outcome = (anew: boolean): { gone: string[]; bytes: number[] } => {
          const make = StoreEviction.prototype.make;
          const spied = vi.spyOn(StoreEviction.prototype, 'make').mockImplementation(function (
            this: StoreEviction,
            limit,
            before,
            known,
          ) {
            return make.call(this, limit, before, anew ? undefined : known);
          });
          const { cache, pool, clock } = newCache(3000, 3000, {
            ...(lru ? { eviction: new Lru() } : {}),
            spillFile: new SpillFile(tmpdir(), 1e9, () => {}),
          });
          const [gone, bytes]: [string[], number[]] = [[], []];
          const leases: Lease[] = [];
          for (const { text, idleMs, pin, stays, prunes } of all) {
            const ids = textOf(text);
            if (pin) cache.prefixes.pin(`${text.file}`, run(text.length, text.file));
            const lease = cache.open();
            compute(cache, pool, lease, ids);
            if (stays && leases.length < 2) leases.push(lease);
            else cache.release(lease);
            clock.now += idleMs;
            const { numLayers, kvHeads } = pool.shape;
            if (prunes && leases.length === 0)
              prune(
                cache.memory,
                ids,
                text.length,
                new Float32Array(numLayers * kvHeads * cache.prefixes.describe(ids).tokens),
                {
                  keep: 0.7,
                  layers: new Set([0]),
                  name: 'h2o',
                },
              );
          }
          for (const { slots, aside } of budgets) {
            if (cache.memory.excess(slots * BYTES) > 0) continue;
            cache.setMaxBytes(slots * BYTES);
            if (aside > 0 && cache.memory.availableBeside(cache.longContexts.storeBytes(aside)) >= 0)
              cache.reserved(aside);
            cache.checkIntegrity();
            bytes.push(cache.memory.pool.bytes + cache.memory.store.bytes);
            gone.push(
              JSON.stringify([
                cache.memory.nodes.events,
                cache.memory.poolSlots,
                ...all.map(({ text }) => cache.prefixes.describe(textOf(text))),
              ]),
            );
          }
          spied.mockRestore();
          return { gone, bytes };
        };
        const [once, anew] = [outcome(false), outcome(true)];
        // What a run is worth to its utility depends on what has left beside it: of two of about the same worth the other may go.
        if (lru) expect(once.gone).toEqual(anew.gone);
        for (const [i, left] of anew.bytes.entries())
          expect(Math.abs(once.bytes[i]! - left)).toBeLessThanOrEqual(256 * BYTES);
      },
    ),
    { numRuns: 300 },
  );
});

test.each([
  { room: 300, left: [true, 1600] },
  // Then a part of one or the other has to go, and it is the first to go.
  { room: 100, left: [false, 1600] },
])(
  'a pruned node that fits into the store only after others have left the pool waits for them: $room free slots',
  ({ room, left }) => {
    const { cache, pool, clock } = newCache(2048 + room, 2048, { eviction: new Lru() });
    const pruned = run(640, 1);
    cached(cache, pool, pruned);
    const { numLayers, kvHeads } = pool.shape;
    prune(cache.memory, pruned, 0, new Float32Array(numLayers * kvHeads * 640), {
      keep: 0.7,
      layers: new Set([0]),
      name: 'h2o',
    });
    clock.now++;
    cached(cache, pool, run(1600, 2));
    expect(cache.memory.poolSlots).toEqual({ total: 2048, free: 0, held: 2048 });
    cache.checkIntegrity();
    const seen = watched({ cache, pool });
    cache.setMaxBytes((2048 + room - 16) * BYTES);
    cache.reserved(4000);
    cache.checkIntegrity();
    expect(seen.most).toBeLessThanOrEqual((2048 + room) * BYTES);
    expect([cache.prefixes.describe(pruned).tokens === 640, cache.prefixes.describe(run(1600, 2)).tokens]).toEqual(
      left,
    );
  },
);

test('a node with a copy in the store leaves the pool first, which frees memory for one without a copy', () => {
  const { cache, pool, clock } = newCache(1024 + 64, 1024, { eviction: new Lru() });
  cached(cache, pool, run(60, 1));
  clock.now += 61_000;
  while (cache.shrink()) cache.checkIntegrity();
  expect(cache.prefixes.describe(run(60, 1)).tier).toBe('store');
  cached(cache, pool, run(1024 - 256, 2));
  clock.now++;
  // Back in the pool, with its rows in the store as well.
  cached(cache, pool, run(60, 1));
  clock.now += 61_000;
  while (cache.shrink()) cache.checkIntegrity();
  cache.checkIntegrity();
  // It leaves first, nothing goes for it; then the other one can, a page at a time.
  expect([cache.prefixes.describe(run(60, 1)).tier, cache.prefixes.describe(run(1024 - 256, 2))]).toEqual([
    'store',
    expect.objectContaining({ tokens: 1024 - 256, tier: 'store' }),
  ]);
});

test('when the pool keeps its size, demotion evicts nothing from the store: only what fits is demoted', () => {
  const { cache, pool, clock } = newCache(1024 + 300, 1024);
  cached(cache, pool, run(200, 1));
  clock.now += 61_000;
  while (cache.shrink()) cache.checkIntegrity();
  expect(cache.prefixes.describe(run(200, 1)).tier).toBe('store');
  const lease = cache.open();
  compute(cache, pool, lease, run(768, 2));
  cached(cache, pool, run(250, 3));
  clock.now += 61_000;
  while (cache.shrink()) cache.checkIntegrity();
  cache.checkIntegrity();
  expect([
    cache.memory.poolSlots.total,
    cache.prefixes.describe(run(200, 1)).tokens,
    cache.prefixes.describe(run(250, 3)).tokens,
  ]).toEqual([1024, 200, 250]);
  // The whole blocks that fit; in the store a row is smaller.
  expect(cache.memory.poolSlots.held).toBe(768 + 250 - 128);
  cache.release(lease);
});

// Where a smaller pool would be worth it, older runs might go for each of them.
test.each([{ held: 600 }, { held: 10 }])(
  'maintenance computes the order of eviction once, however many nodes do not fit: $held slots held',
  ({ held }) => {
    let numReckoned = 0;
    class Counted extends Lru {
      override worth(...of: Parameters<Lru['worth']>): number {
        numReckoned++;
        return super.worth(...of);
      }
    }
    const { cache, pool, clock } = newCache(1024, 1024, { eviction: new Counted() });
    const lease = cache.open();
    compute(cache, pool, lease, run(held, 1));
    const numRuns = 1 + Math.floor((1024 - held) / 40);
    for (let i = 2; i <= numRuns; i++) cached(cache, pool, run(40, i));
    expect(cache.memory.poolSlots.total).toBe(1024);
    clock.now += 61_000;
    numReckoned = 0;
    while (cache.shrink()) cache.checkIntegrity();
    cache.checkIntegrity();
    expect(numReckoned).toBe(numRuns);
    cache.release(lease);
  },
);

test('two sequences that compute the same keep one copy', () => {
  const { cache, pool } = newCache(100);
  const a = cache.open();
  const b = cache.open();
  const tokenIds = run(10, 1);
  for (const lease of [a, b]) {
    const slots = cache.memory.allocate(10)!;
    pool.write(slots, newKvRows(pool.shape, 10), 0, 0);
    cache.append(lease, slots);
  }
  expect(cache.memory.poolSlots.held).toBe(20);
  cache.commit(a, tokenIds);
  cache.commit(b, [...tokenIds.slice(0, 6), 7, 7, 7, 7]);
  cache.checkIntegrity();
  expect(cache.memory.poolSlots.held).toBe(14);
  expect(cache.slotsOf(b).slice(0, 6)).toEqual(cache.slotsOf(a).slice(0, 6));
  cache.release(a);
  cache.release(b);
  cache.checkIntegrity();
  expect(() => cache.release(a)).toThrow('released twice');
});

test('what does not fit is null, and referenced runs stay', () => {
  const { cache, pool } = newCache(50);
  const lease = cache.open();
  expect(compute(cache, pool, lease, run(40, 1))).toBe(true);
  expect(cache.memory.allocate(11)).toBeNull();
  expect(cache.memory.available).toBe(10);
  cache.release(lease);
  expect(cache.memory.available).toBe(50);
  const slots = cache.memory.allocate(50)!;
  expect(slots).toHaveLength(50);
  expect(cache.prefixes.describe(run(40, 1)).tier).toBe('none');
  cache.memory.free(slots);
  cache.checkIntegrity();
});

test('least recently used goes first, from the end, and only as much as needed', () => {
  const { cache, pool, clock } = newCache(200);
  for (const i of [1, 2, 3]) {
    clock.now = i;
    cached(cache, pool, run(60, i));
  }
  clock.now = 4;
  cached(cache, pool, run(60, 1));
  cached(cache, pool, run(30, 4));
  expect([1, 2, 3, 4].map((i) => cache.prefixes.describe(run(60, i)).tokens)).toEqual([60, 28, 60, 30]);
  cache.checkIntegrity();
});

test('the default policy is utility: a long, costly context outlives a short one used slightly later', () => {
  const left = (options: Partial<KvCacheOptions>): number[] => {
    const { cache, pool, clock } = newCache(2100, 2100, options);
    cached(cache, pool, run(2000, 1));
    clock.now++;
    cached(cache, pool, run(60, 2));
    clock.now += 100;
    cached(cache, pool, run(80, 3));
    return [1, 2, 3].map((i) => cache.prefixes.describe(run(2000, i)).tokens);
  };
  expect(left({})[1]).toBe(0);
  expect(left({ eviction: new Lru() })[1]).toBe(60);
});

test('the policy learns of hits with their idle time; lookups by maintenance do not count', () => {
  const told: Parameters<Eviction['hit']>[] = [];
  const eviction: Eviction = { worth: ({ lastUse }) => lastUse, hit: (...of) => void told.push(of), gone: () => {} };
  const { cache, pool, clock } = newCache(512, 512, { eviction });
  cached(cache, pool, run(100, 1));
  expect(told).toEqual([]);
  clock.now += 70;
  const quiet = cache.open('', { quiet: true });
  cache.advance(quiet, run(100, 1), 100);
  cache.release(quiet);
  expect(told).toEqual([]);
  cached(cache, pool, run(100, 1));
  expect(told.map(([{ tokenIds }, idleMs]) => [tokenIds, idleMs])).toEqual([[run(100, 1), 70]]);
});

test('a pool reduced to part of a page grows back to whole pages', () => {
  const { cache, pool } = newCache(900, 4096);
  const slots = cache.memory.allocate(800)!;
  expect([pool.numSlots, pool.pageSlots]).toEqual([900, 900]);
  cache.setMaxBytes(4096 * BYTES);
  const more = cache.memory.allocate(200)!;
  expect([pool.numSlots, pool.pageSlots]).toEqual([1024, 256]);
  for (const taken of [slots, more]) cache.memory.free(taken);
  cache.checkIntegrity();
});

test('pool and store share one budget; a stored node comes back, and its copy is dropped when memory is short', () => {
  const { cache, pool, clock } = newCache(200, 64);
  for (const i of [1, 2]) {
    clock.now++;
    cached(cache, pool, run(60, i));
  }
  expect(cache.prefixes.describe(run(60, 1))).toMatchObject({ tokens: 60, tier: 'store' });
  clock.now++;
  cached(cache, pool, run(60, 1));
  expect(cache.memory.nodes.events).toEqual({ evictions: 0, promotions: 1, demotions: 2 });
  expect(cache.prefixes.describe(run(60, 1)).tier).toBe('pool');
  expect(cache.prefixes.describe(run(60, 2)).tier).toBe('store');
  expect(cache.memory.pool.bytes + cache.memory.store.bytes).toBeLessThanOrEqual(200 * BYTES);
  const lease = cache.open();
  cache.advance(lease, run(60, 1), 60);
  const slots = cache.memory.allocate(140)!;
  expect(cache.prefixes.describe(run(60, 1))).toMatchObject({ tokens: 60, bytes: 60 * BYTES, tier: 'pool' });
  cache.memory.free(slots);
  cache.release(lease);
  cache.checkIntegrity();
});

test('the pool grows in steps and drops stored nodes only if it must', () => {
  const { cache, pool } = newCache(5000, 4096);
  expect(pool.numSlots).toBe(256);
  const slots = cache.memory.allocate(1100)!;
  expect(pool.numSlots).toBe(1280);
  const more = cache.memory.allocate(3700)!;
  expect(pool.numSlots).toBe(4864);
  expect(cache.capacity).toBe(4864);
  expect(cache.memory.allocate(65)).toBeNull();
  cache.memory.free(slots);
  cache.memory.free(more);
  while (cache.shrink()) cache.checkIntegrity();
  expect(pool.numSlots).toBe(256);
  cache.checkIntegrity();
});

test('property: any order of leases, budgets, pins and evictions keeps the invariants', () => {
  const action = fc.oneof(
    fc.record({
      kind: fc.constant('open' as const),
      file: fc.nat(3),
      length: fc.oneof(fc.integer({ min: 1, max: 70 }), fc.integer({ min: 200, max: 700 })),
      tail: fc.nat(2),
    }),
    fc.record({ kind: fc.constant('close' as const), which: fc.nat(5) }),
    fc.record({ kind: fc.constant('budget' as const), slots: fc.integer({ min: 0, max: 300 }) }),
    fc.record({ kind: fc.constant('pin' as const), file: fc.nat(3), length: fc.nat(70) }),
    fc.record({ kind: fc.constant('evict' as const), file: fc.nat(3), length: fc.nat(20) }),
    fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(1, 100_000) }),
  );
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 2000 }),
      fc.integer({ min: 1, max: 2000 }),
      fc.array(action, { maxLength: 60 }),
      (slots, softSlots, actions) => {
        const { cache, pool, clock } = newCache(slots, softSlots);
        const leases: Lease[] = [];
        for (const step of actions) {
          if (step.kind === 'open') {
            const lease = cache.open();
            if (compute(cache, pool, lease, [...run(step.length, step.file), step.tail, step.tail])) leases.push(lease);
            else cache.release(lease);
          } else if (step.kind === 'close') {
            const [lease] = leases.splice(step.which, 1);
            if (lease) cache.release(lease);
          } else if (step.kind === 'budget') {
            if (cache.memory.excess(step.slots * BYTES) <= 0) cache.setMaxBytes(step.slots * BYTES);
          } else if (step.kind === 'pin')
            cache.prefixes.pin(`${step.file}`, step.length ? run(step.length, step.file) : null);
          else if (step.kind === 'evict') cache.prefixes.evict(run(step.length, step.file));
          else {
            clock.now += step.ms;
            while (cache.shrink()) cache.checkIntegrity();
          }
          cache.checkIntegrity();
          for (const lease of leases)
            expect(cache.slotsOf(lease)).toEqual(
              Int32Array.from([...pathTo(lease.node).flatMap((node) => [...node.slots!]), ...lease.tail]),
            );
        }
        for (const lease of leases) cache.release(lease);
        expect(cache.memory.available).toBe(cache.capacity);
        cache.checkIntegrity();
      },
    ),
    { seed: 13, numRuns: 300 },
  );
});

describe('checkIntegrity finds', () => {
  test('a slot that nobody holds, and one that two hold', () => {
    const { cache, pool } = newCache(100);
    const slots = cache.memory.allocate(3)!;
    expect(() => cache.checkIntegrity()).toThrow('3 slots are held, 0 have a holder');
    cache.checkIntegrity(slots);
    const lease = cache.open();
    compute(cache, pool, lease, run(5, 1));
    expect(() => cache.checkIntegrity([...slots, cache.slotsOf(lease)[0]!])).toThrow('belongs to');
  });

  test('a reference too many', () => {
    const { cache, pool } = newCache(100);
    const lease = cache.open();
    compute(cache, pool, lease, run(5, 1));
    lease.node.refCount++;
    expect(() => cache.checkIntegrity()).toThrow('ref count 2, leases 1');
  });
});

test('slots are taken behind those of their sequence, otherwise in the page with most free slots, and never twice', () => {
  const slots = new SlotAllocator();
  slots.resize(600);
  expect(slots.take(3)).toEqual(Int32Array.of(0, 1, 2));
  // Another sequence begins in a page of its own, as long as there is one.
  expect(slots.take(2)).toEqual(Int32Array.of(256, 257));
  expect(slots.take(2, 2)).toEqual(Int32Array.of(3, 4));
  slots.give([1, 3]);
  expect(slots.take(2, 257)).toEqual(Int32Array.of(258, 259));
  // At the end of the page there is no more behind them.
  expect([...slots.take(300, 259)!]).toEqual([
    ...Array.from({ length: 252 }, (_, i) => 260 + i),
    1,
    3,
    ...Array.from({ length: 46 }, (_, i) => 5 + i),
  ]);
  expect(slots.take(10_000)).toBeNull();
  expect(slots.takeLowest(2)).toEqual(Int32Array.of(51, 52));
  slots.resize(512);
  expect([slots.numFree, slots.numHeld]).toEqual([203, 309]);
  expect(() => slots.resize(511)).toThrow('held');
  slots.give([511]);
  expect(() => slots.give([511])).toThrow('not held');
  slots.resize(511);
  expect([slots.numFree, slots.numHeld]).toEqual([203, 308]);
});

/** Every cell its own value, as far as a byte goes. */
function counted(kv: KvPrecision, n: number): KvRows {
  const rows = newKvRows(fakeShape(kv), n);
  let value = 0;
  for (const array of [rows.keys, rows.keyScales, rows.values, rows.valueScales])
    for (let i = 0; i < array.length; i++) array[i] = (value++ % 251) - 125;
  return rows;
}

test('property: spare memory is used without any eviction: rounding the pool up to pages costs neither stored nor borrowed rows', () => {
  const lengths = fc.array(fc.integer({ min: 10, max: 700 }), { minLength: 1, maxLength: 6 });
  const share = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(
      fc.integer({ min: 300, max: 3000 }),
      fc.integer({ min: 64, max: 3000 }),
      lengths,
      share,
      share,
      (slots, softSlots, runLengths, taken, lent) => {
        const { cache, pool, clock } = newCache(slots, softSlots);
        for (const [i, n] of runLengths.entries()) {
          cached(cache, pool, run(n, i));
          clock.now += 61_000;
          while (cache.shrink());
        }
        const bytes = Math.floor(lent * (slots * BYTES - cache.memory.pool.bytes - cache.memory.store.bytes));
        const spare = cache.memory.spareBeside(bytes);
        expect(cache.memory.lend(bytes, () => {})).toBe(true);
        const before = { ...cache.memory.nodes.events, storeBytes: cache.memory.store.bytes, borrowedBytes: bytes };
        const some = cache.memory.allocate(Math.floor(taken * spare));
        expect(some).not.toBeNull();
        expect({
          ...cache.memory.nodes.events,
          storeBytes: cache.memory.store.bytes,
          borrowedBytes: cache.memory.budget.borrowed,
        }).toEqual(before);
        cache.checkIntegrity(some!);
      },
    ),
    { seed: 5, numRuns: 300 },
  );
});

test.each<{ what: string; take: (cache: KvCache, pool: KvPool, bytes: number) => void }>([
  { what: 'slots', take: (cache) => cache.memory.free(cache.memory.allocate(cache.memory.spare + 1)!) },
  {
    what: 'runs of the store',
    take: (cache, pool) =>
      expect([
        cache.prefixes.takeStored(run(500, 7), 0, [plainBlock(newKvRows(pool.shape, 500))], ''),
        cache.prefixes.describe(run(500, 7)).tier,
      ]).toEqual([500, 'store']),
  },
  { what: 'another budget', take: (cache, _, bytes) => cache.setMaxBytes(bytes - 1) },
  { what: 'sparse leases', take: (cache) => cache.reserved(4000) },
])('borrowed memory is taken back before anything is evicted, and only then: for $what', ({ take }) => {
  const { cache, pool } = newCache(2048);
  cached(cache, pool, run(700, 1));
  const rows = cache.memory.pool.bytes + cache.memory.store.bytes;
  let numTaken = 0;
  const tooMuch = 2048 * BYTES - rows + 1;
  expect(cache.memory.lend(tooMuch, () => numTaken++)).toBe(false);
  expect([cache.memory.budget.borrowed, cache.memory.spareBeside(tooMuch)]).toEqual([0, 0]);
  expect(cache.memory.lend(tooMuch - 1, () => numTaken++)).toBe(true);
  cache.checkIntegrity();
  cache.memory.free(cache.memory.allocate(cache.memory.spare)!);
  cache.setMaxBytes(2048 * BYTES);
  cache.reserved(0);
  expect([cache.memory.budget.borrowed, numTaken]).toEqual([tooMuch - 1, 0]);
  take(cache, pool, 2048 * BYTES);
  expect([cache.memory.budget.borrowed, numTaken]).toEqual([0, 1]);
  cache.memory.takeBack();
  expect([numTaken, cache.memory.nodes.events.evictions, cache.prefixes.describe(run(700, 1)).tokens]).toEqual([
    1, 0, 700,
  ]);
  cache.checkIntegrity();
});

test.each([60_000, 30_000])(
  'thousands of short nodes are evicted for a long one, under a budget of %d tokens: the order of eviction is computed once',
  (maxTokens) => {
    let numReckoned = 0;
    class Counting extends Lru {
      override worth(node: { lastUse: number }): number {
        numReckoned++;
        return super.worth(node);
      }
    }
    const { cache, pool, clock } = newCache(maxTokens, 8192, { eviction: new Counting() });
    // What is typed past.
    for (let i = 0; i < 2000; i++) {
      cached(cache, pool, run(24, i));
      clock.now += 1000;
    }
    expect(cache.memory.nodes.events.evictions > 0).toBe(maxTokens < 2000 * 24);
    const { demotions } = cache.memory.nodes.events;
    numReckoned = 0;
    const slots = cache.memory.allocate(4000)!;
    cache.checkIntegrity(slots);
    expect(cache.memory.nodes.events.demotions - demotions).toBeGreaterThan(150);
    expect(numReckoned).toBeLessThan(3 * 2000);
  },
);

test('store copies that give way to demoted nodes are searched once, not per node', () => {
  const [n, length] = [256, 24];
  const { cache, pool, clock } = newCache(3 * n * length + 512, 2 * n * length, { eviction: new Lru() });
  const compute = (first: number): void => {
    for (let i = first; i < first + n; i++) {
      clock.now++;
      cached(cache, pool, run(length, i));
    }
  };
  compute(1);
  clock.now += 100_000;
  while (cache.shrink());
  compute(1 + n);
  // Out of the store again, which keeps its copies.
  compute(1);
  expect(cache.memory.poolSlots.free).toBe(0);
  expect(cache.memory.store.bytes).toBe(n * length * exactBytesPerToken(pool.shape));
  const counted = { looks: 0 };
  countLooks(counted);
  const { demotions } = cache.memory.nodes.events;
  const slots = cache.memory.allocate(n * length)!;
  expect(cache.memory.nodes.events.demotions - demotions).toBeGreaterThan(0.9 * n);
  expect(counted.looks).toBeLessThan(24 * 2 * n);
  cache.checkIntegrity(slots);
});

test.each(['int8', 'float32'] as const)(
  'pool and store lose no %s cell: write, exchange, put, split, copy back',
  (kv) => {
    const shape = fakeShape(kv);
    const n = 2 * BLOCK_TOKENS + 9;
    const rows = counted(kv, n);
    const pool = new KvPool(shape, 2 * n);
    const odd = Int32Array.from({ length: n }, (_, i) => 2 * i + 1);
    const even = odd.map((slot) => slot - 1);
    pool.write(odd, rows, 0, 5);
    pool.exchange(odd, even);
    expect(pool.read(even)).toEqual(rows);
    expect([...even].map((slot) => pool.positions[slot])).toEqual(Array.from({ length: n }, (_, i) => 5 + i));

    const store = new KvStore(shape);
    const whole = store.put(pool, even);
    expect(store.bytes).toBe(n * store.bytesPerToken);
    const [upper, lower] = store.split(whole, BLOCK_TOKENS + 3);
    expect([upper.numTokens, lower.numTokens, upper.bytes + lower.bytes]).toEqual([
      BLOCK_TOKENS + 3,
      n - BLOCK_TOKENS - 3,
      whole.bytes,
    ]);
    store.copyTo(pool, lower, odd.subarray(upper.numTokens), 5 + upper.numTokens);
    store.copyTo(pool, upper, odd.subarray(0, upper.numTokens), 5);
    expect(pool.read(odd)).toEqual(rows);
    expect(pool.positions[odd[n - 1]!]).toBe(5 + n - 1);
    expect(sliceRows(shape, rows, 3, 8)).toEqual(pool.read(odd.subarray(3, 8)));
    store.drop(upper);
    store.drop(lower);
    expect(store.bytes).toBe(0);
  },
);

test('property: a falling budget drops nodes in eviction order across pool and store, up to one page of older rows', () => {
  // In the store a token takes less than a slot.
  const mostOlder = Math.floor((256 * BYTES) / exactBytesPerToken(fakeShape()));
  const lengths = fc.constantFrom(5, 24, 24, 40, 60, 300, 900);
  fc.assert(
    fc.property(
      fc.array(fc.record({ length: lengths, again: fc.nat(60) }), { minLength: 1, maxLength: 100 }),
      fc.constantFrom(256, 1024, 4000),
      fc.array(fc.integer({ min: 300, max: 4000 }), { minLength: 1, maxLength: 4 }),
      (texts, softSlots, budgets) => {
        const { cache, pool, clock } = newCache(4000, softSlots, { eviction: new Lru() });
        const used = new Map<number, number>();
        const use = (i: number): void => {
          if (!texts[i]) return;
          used.set(i, ++clock.now);
          cached(cache, pool, run(texts[i].length, i));
        };
        const leftOf = (i: number): number => cache.prefixes.describe(run(texts[i]!.length, i)).tokens;
        for (const [i, { again }] of texts.entries()) {
          use(i);
          if (again < i) use(again);
        }
        for (const slots of budgets.sort((a, b) => b - a)) {
          const before = new Map([...used.keys()].map((i) => [i, leftOf(i)]));
          cache.setMaxBytes(slots * BYTES);
          cache.checkIntegrity();
          const gone = [...used.keys()].filter((i) => leftOf(i) < before.get(i)!);
          const youngestGone = Math.max(...gone.map((i) => used.get(i)!));
          const older = [...used].filter(([, at]) => at < youngestGone).map(([i]) => leftOf(i));
          expect(older.reduce((sum, length) => sum + length, 0)).toBeLessThanOrEqual(mostOlder);
        }
      },
    ),
    // The store is full of what is older, and what leaves next is a little more than would fit in its stead.
    {
      numRuns: 500,
      examples: [[[900, 900, 900, 300, 300, 900, 60].map((length) => ({ length, again: 0 })), 4000, [3325, 300]]],
    },
  );
});
