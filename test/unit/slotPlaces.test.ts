/** Rows that change their slots: they stay what they are, and hardly anything is held beside the window meanwhile, which nobody counts. */
import { expect, test, vi } from 'vitest';
import { Lru } from '../../engine/cache/eviction/lru.ts';
import { KvCache } from '../../engine/cache/kvCache.ts';
import { type KvRows, type KvShape, kvBytesPerToken, newKvRows } from '../../engine/cache/kvRows.ts';
import { PrefixTree } from '../../engine/cache/prefixTree.ts';
import { SlotPlaces } from '../../engine/cache/slotPlaces.ts';
import { SlotAllocator } from '../../engine/cache/slots.ts';
import { KvStore } from '../../engine/cache/store.ts';
import { KvWindow, PAGE_SLOTS } from '../../engine/cache/window.ts';
import { seededRandom } from '../engine/workload.ts';

const made = vi.hoisted(() => ({ bytes: 0 }));

vi.mock('../../engine/cache/kvRows.ts', async (original) => {
  const kvRows = await original<typeof import('../../engine/cache/kvRows.ts')>();
  const counted = (shape: KvShape, numTokens: number): KvRows => {
    const rows = kvRows.newKvRows(shape, numTokens);
    for (const { byteLength } of kvRows.arraysOf(rows)) made.bytes += byteLength;
    return rows;
  };
  return { ...kvRows, newKvRows: counted };
});

const SHAPE: KvShape = { numLayers: 6, kvHeads: 2, headSize: 4, kv: 'int8' };
/** Rows of a page in one layer. */
const LEAST_BYTES = (PAGE_SLOTS * kvBytesPerToken(SHAPE)) / SHAPE.numLayers;

const range = (from: number, to: number): Int32Array => Int32Array.from({ length: to - from }, (_, i) => from + i);

function randomRows(shape: KvShape, n: number): KvRows {
  const random = seededRandom(n);
  const rows = newKvRows(shape, n);
  for (const array of [rows.keys, rows.values, rows.keyScales, rows.valueScales])
    for (let i = 0; i < array.length; i++) array[i] = Math.floor(random() * 255) - 127;
  return rows;
}

/** Of a window full of rows no two of which are alike. */
function full(numPages: number, shape = SHAPE): KvWindow {
  const window = new KvWindow(shape, numPages * PAGE_SLOTS);
  window.write(range(0, window.numSlots), randomRows(shape, window.numSlots), 0, 0);
  // Places are not in order either.
  window.attend([[PAGE_SLOTS, 4 * PAGE_SLOTS]], 100);
  return window;
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
  const window = full(12, shape);
  const [a, b, others] = [window.read(FROM), window.read(TO), window.read(range(2300, 3072))];
  const [ofA, ofB] = [window.positionsOf(FROM), window.positionsOf(TO)];
  const stamps = window.stamps.slice();
  expect(bytesMade(() => window.exchange(FROM, TO))).toBeLessThan(
    (PAGE_SLOTS * kvBytesPerToken(shape)) / shape.numLayers,
  );
  expect([window.read(TO), window.read(FROM), window.read(range(2300, 3072))]).toEqual([a, b, others]);
  expect([window.positionsOf(TO), window.positionsOf(FROM)]).toEqual([ofA, ofB]);
  for (const slot of [...FROM, ...TO]) expect(window.stamps[slot]).toBeGreaterThan(stamps[slot]!);
});

test('over free slots rows are copied once, and nothing is held beside them', () => {
  const window = full(12);
  const [rows, positions, stamps] = [window.read(FROM), window.positionsOf(FROM), window.stamps.slice()];
  expect(bytesMade(() => window.move(FROM, TO))).toBe(0);
  expect([window.read(TO), window.positionsOf(TO)]).toEqual([rows, positions]);
  for (const slot of TO) expect(window.stamps[slot]).toBeGreaterThan(stamps[slot]!);
});

test('at a lower ceiling what is in use comes to the front, and nothing is held beside it', () => {
  const window = new KvWindow(SHAPE, 0);
  const cache = new KvCache({
    window,
    maxBytes: 4096 * kvBytesPerToken(SHAPE),
    softSlots: 4096,
    clock: () => 0,
    eviction: new Lru(),
  });
  const leases = [1, 2].map((first) => {
    const ids = Array.from(range(0, 2000), (i) => 10_000 * first + i);
    const lease = cache.open();
    const slots = cache.allocate(2000, lease)!;
    window.write(slots, randomRows(SHAPE, 2000), 0, 0);
    cache.append(lease, slots);
    cache.commit(lease, ids);
    return lease;
  });
  cache.release(leases[0]!);
  cache.evict();
  const rows = window.read(cache.slotsOf(leases[1]!));
  expect(Math.max(...cache.slotsOf(leases[1]!))).toBeGreaterThan(3900);
  expect(bytesMade(() => cache.setMaxBytes(2048 * kvBytesPerToken(SHAPE)))).toBe(0);
  expect(window.numSlots).toBe(2048);
  expect(window.read(cache.slotsOf(leases[1]!))).toEqual(rows);
  cache.checkIntegrity();
});

test.each([
  { others: 'in their way', from: 0 },
  { others: 'elsewhere', from: 9 * PAGE_SLOTS },
])(
  'slots are packed past others that are $others: all keep their rows, and free slots are written over',
  ({ from }) => {
    const window = full(12);
    const slots = new SlotAllocator();
    slots.resize(window.numSlots);
    // One in eight of the first pages, and behind them, or beyond, what somebody else has.
    const mine = range(0, 256).map((_, i) => 8 * i);
    const others = range(from + 1, from + 2 * PAGE_SLOTS).filter((slot) => slot % 8 !== 0);
    const held = new Set([...mine, ...others]);
    slots.give(slots.take(window.numSlots)!.filter((slot) => !held.has(slot)));
    const places = new SlotPlaces(window, slots, new PrefixTree(new KvStore(SHAPE)));
    const rows = [mine, others].map((list) => window.read(list));
    const pagesOf = (list: Int32Array): number => window.addPages(list, new Set()).size;
    for (let i = 0; pagesOf(mine) > 1; i++) {
      expect(bytesMade(() => places.pack([mine], 1000, [mine, others]))).toBeLessThan(from ? 1 : LEAST_BYTES);
      expect([mine, others].map((list) => window.read(list))).toEqual(rows);
      for (let slot = 0; slot < window.numSlots; slot++)
        expect(slots.isHeld(slot)).toBe(mine.includes(slot) || others.includes(slot));
      expect(i).toBeLessThan(10);
    }
  },
);
