/** Rows that move between slots stay the same, and moving them needs almost no memory beside the pool. */
import { expect, test, vi } from 'vitest';
import { Lru } from '../../support/kv/lru.ts';
import { KvCache } from '../../../engine/kv/kvCache.ts';
import { type KvRows, type KvShape, kvBytesPerToken, newKvRows } from '../../../engine/kv/kvRows.ts';
import { RadixTree } from '../../../engine/kv/radixTree.ts';
import { PageTable, SlotAllocator } from '../../../engine/kv/pageTable.ts';
import { KvStore } from '../../../engine/kv/store.ts';
import { lastSlot } from '../../../engine/kv/lease.ts';
import { KvPool, PAGE_SLOTS } from '../../../engine/kv/pool.ts';
import { seededRandom } from '../../support/engine/workload.ts';

const made = vi.hoisted(() => ({ bytes: 0 }));

vi.mock('../../../engine/kv/kvRows.ts', async (original) => {
  const kvRows = await original<typeof import('../../../engine/kv/kvRows.ts')>();
  const counted = (shape: KvShape, numTokens: number): KvRows => {
    const rows = kvRows.newKvRows(shape, numTokens);
    for (const { byteLength } of kvRows.arraysOf(rows)) made.bytes += byteLength;
    return rows;
  };
  return { ...kvRows, newKvRows: counted };
});

const SHAPE: KvShape = { numLayers: 6, kvHeads: 2, headSize: 4, kv: 'int8' };
/** Rows of a page in one layer. */
const MIN_BYTES = (PAGE_SLOTS * kvBytesPerToken(SHAPE)) / SHAPE.numLayers;

const range = (from: number, to: number): Int32Array => Int32Array.from({ length: to - from }, (_, i) => from + i);

function randomRows(shape: KvShape, n: number): KvRows {
  const random = seededRandom(n);
  const rows = newKvRows(shape, n);
  for (const array of [rows.keys, rows.values, rows.keyScales, rows.valueScales])
    for (let i = 0; i < array.length; i++) array[i] = Math.floor(random() * 255) - 127;
  return rows;
}

/** Of a pool full of rows no two of which are alike. */
function full(numPages: number, shape = SHAPE): KvPool {
  const pool = new KvPool(shape, numPages * PAGE_SLOTS);
  pool.write(range(0, pool.numSlots), randomRows(shape, pool.numSlots), 0, 0);
  // Places are not in order either.
  pool.attend([[PAGE_SLOTS, 4 * PAGE_SLOTS]], 100);
  return pool;
}

function bytesMade(work: () => void): number {
  made.bytes = 0;
  work();
  return made.bytes;
}

/** Runs that end in the middle of pages, and slots by themselves; none is in both. */
const FROM = Int32Array.from([...range(0, 300), ...range(700, 1000), ...range(1000, 1200).map((slot, i) => slot + i)]);
const TO = Int32Array.from([
  ...range(1450, 1700),
  ...range(1900, 2248),
  ...range(300, 700).filter((slot) => slot % 2 === 0),
  1700,
  1702,
]);

test.each(['int8', 'float32'] as const)('any number of %s rows are exchanged a layer of a page at a time', (kv) => {
  const shape = { ...SHAPE, kv };
  const pool = full(12, shape);
  const [a, b, others] = [pool.read(FROM), pool.read(TO), pool.read(range(2300, 3072))];
  const [ofA, ofB] = [pool.positionsOf(FROM), pool.positionsOf(TO)];
  const stamps = pool.stamps.slice();
  expect(bytesMade(() => pool.exchange(FROM, TO))).toBeLessThan(
    (PAGE_SLOTS * kvBytesPerToken(shape)) / shape.numLayers,
  );
  expect([pool.read(TO), pool.read(FROM), pool.read(range(2300, 3072))]).toEqual([a, b, others]);
  expect([pool.positionsOf(TO), pool.positionsOf(FROM)]).toEqual([ofA, ofB]);
  for (const slot of [...FROM, ...TO]) expect(pool.stamps[slot]).toBeGreaterThan(stamps[slot]!);
});

test('rows move over free slots in one copy without a buffer', () => {
  const pool = full(12);
  const [rows, positions, stamps] = [pool.read(FROM), pool.positionsOf(FROM), pool.stamps.slice()];
  expect(bytesMade(() => pool.move(FROM, TO))).toBe(0);
  expect([pool.read(TO), pool.positionsOf(TO)]).toEqual([rows, positions]);
  for (const slot of TO) expect(pool.stamps[slot]).toBeGreaterThan(stamps[slot]!);
});

test('at a lower budget, pages in use move to the front without a buffer', () => {
  const pool = new KvPool(SHAPE, 0);
  const cache = new KvCache({
    pool,
    maxBytes: 4096 * kvBytesPerToken(SHAPE),
    softSlots: 4096,
    clock: () => 0,
    eviction: new Lru(),
  });
  const leases = [1, 2].map((first) => {
    const ids = Array.from(range(0, 2000), (i) => 10_000 * first + i);
    const lease = cache.open();
    const slots = cache.memory.allocate(2000, lastSlot(lease))!;
    pool.write(slots, randomRows(SHAPE, 2000), 0, 0);
    cache.append(lease, slots);
    cache.commit(lease, ids);
    return lease;
  });
  cache.release(leases[0]!);
  cache.prefixes.evict();
  const rows = pool.read(cache.slotsOf(leases[1]!));
  expect(Math.max(...cache.slotsOf(leases[1]!))).toBeGreaterThan(3900);
  expect(bytesMade(() => cache.setMaxBytes(2048 * kvBytesPerToken(SHAPE)))).toBe(0);
  expect(pool.numSlots).toBe(2048);
  expect(pool.read(cache.slotsOf(leases[1]!))).toEqual(rows);
  cache.checkIntegrity();
});

test.each([
  { others: 'in their way', from: 0 },
  { others: 'elsewhere', from: 9 * PAGE_SLOTS },
])(
  'slots are packed past others that are $others: all keep their rows, and free slots are written over',
  ({ from }) => {
    const pool = full(12);
    const slots = new SlotAllocator();
    slots.resize(pool.numSlots);
    // One slot in eight of the first pages; the others, and later pages, belong to another lease.
    const mine = range(0, 256).map((_, i) => 8 * i);
    const others = range(from + 1, from + 2 * PAGE_SLOTS).filter((slot) => slot % 8 !== 0);
    const held = new Set([...mine, ...others]);
    slots.give(slots.take(pool.numSlots)!.filter((slot) => !held.has(slot)));
    const places = new PageTable(pool, slots, new RadixTree(new KvStore(SHAPE)));
    const rows = [mine, others].map((list) => pool.read(list));
    const pagesOf = (list: Int32Array): number => pool.addPages(list, new Set()).size;
    for (let i = 0; pagesOf(mine) > 1; i++) {
      expect(bytesMade(() => places.pack([mine], 1000, [mine, others]))).toBeLessThan(from ? 1 : MIN_BYTES);
      expect([mine, others].map((list) => pool.read(list))).toEqual(rows);
      for (let slot = 0; slot < pool.numSlots; slot++)
        expect(slots.isHeld(slot)).toBe(mine.includes(slot) || others.includes(slot));
      expect(i).toBeLessThan(10);
    }
  },
);
