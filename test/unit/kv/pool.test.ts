/** The pool in pages: in any order of pages a slot keeps its rows, and a step reads the pages that it needs. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type KvRows, type KvShape, newKvRows } from '../../../engine/kv/kvRows.ts';
import { KvPool, PAGE_SLOTS } from '../../../engine/kv/pool.ts';

const SHAPE: KvShape = { numLayers: 2, kvHeads: 2, headSize: 4, kv: 'int8' };

/** Rows that tell which tokens they are of. */
function rowsOf(values: readonly number[], shape = SHAPE): KvRows {
  const rows = newKvRows(shape, values.length);
  const { numLayers, kvHeads, headSize } = shape;
  for (let head = 0; head < numLayers * kvHeads; head++) {
    for (const [i, value] of values.entries()) {
      for (let d = 0; d < headSize; d++) {
        rows.keys[(head * headSize + d) * values.length + i] = (value * 7 + head * 3 + d) % 127;
        rows.values[(head * values.length + i) * headSize + d] = (value * 5 + head + d * 2) % 127;
      }
      if (rows.keyScales.length > 0) {
        rows.keyScales[head * values.length + i] = value + head;
        rows.valueScales[head * values.length + i] = value - head;
      }
    }
  }
  return rows;
}

/** Where the slot's page is. */
const placeOf = (pool: KvPool, slot: number): number => pool.places[Math.floor(slot / pool.pageSlots)]!;

test('property: rows stay with their slots through writes, moves, exchanges of pages and other sizes', () => {
  const sizes = fc.constantFrom(100, PAGE_SLOTS, 300, 4 * PAGE_SLOTS, 7 * PAGE_SLOTS);
  const action = fc.oneof(
    fc.record({
      kind: fc.constant('write' as const),
      at: fc.nat(1791),
      step: fc.constantFrom(1, 1, 3),
      length: fc.integer({ min: 1, max: 300 }),
      value: fc.nat(1000),
    }),
    fc.record({
      kind: fc.constant('move' as const),
      from: fc.nat(1791),
      to: fc.nat(1791),
      length: fc.integer({ min: 1, max: 40 }),
    }),
    fc.record({
      kind: fc.constant('look' as const),
      slots: fc.array(fc.nat(1791), { maxLength: 5 }),
      tokens: fc.integer({ min: 1, max: 20 }),
    }),
    fc.record({
      kind: fc.constant('resize' as const),
      numSlots: sizes,
      most: fc.constantFrom(0, 5 * PAGE_SLOTS, 12 * PAGE_SLOTS),
    }),
  );
  fc.assert(
    fc.property(
      sizes,
      fc.constantFrom('int8' as const, 'float32' as const),
      fc.array(action, { maxLength: 30 }),
      (numSlots, kv, actions) => {
        const shape = { ...SHAPE, kv };
        const pool = new KvPool(shape, numSlots);
        const model = new Map<number, { value: number; position: number }>();
        for (const action of actions) {
          const P = pool.numSlots;
          if (action.kind === 'write') {
            const slots = Int32Array.from({ length: action.length }, (_, i) => action.at + i * action.step).filter(
              (slot) => slot < P,
            );
            const values = Array.from(slots, (_, i) => action.value + i);
            // A row before those that are wanted.
            pool.write(slots, rowsOf([0, ...values], shape), 1, 40);
            for (const [i, slot] of slots.entries()) model.set(slot, { value: values[i]!, position: 40 + i });
          } else if (action.kind === 'move') {
            const length = Math.min(action.length, P - action.from, P - action.to, Math.abs(action.from - action.to));
            if (length <= 0) continue;
            const range = (at: number): Int32Array => Int32Array.from({ length }, (_, i) => at + i);
            pool.exchange(range(action.from), range(action.to));
            for (let i = 0; i < length; i++) {
              const pair = [model.get(action.from + i), model.get(action.to + i)];
              for (const [slot, row] of [
                [action.to + i, pair[0]],
                [action.from + i, pair[1]],
              ] as const) {
                if (row) model.set(slot, row);
                else model.delete(slot);
              }
            }
          } else if (action.kind === 'look') {
            const slots = Int32Array.from(action.slots).filter((slot) => slot < P);
            const { first, count } = pool.attend([slots], action.tokens);
            expect(first).toBeGreaterThanOrEqual(0);
            expect(first + count).toBeLessThanOrEqual(pool.places.length);
            for (const slot of slots)
              expect(placeOf(pool, slot)).toSatisfy((place: number) => place >= first && place < first + count);
          } else {
            pool.resize(action.numSlots, Math.max(action.numSlots, action.most));
            for (const slot of [...model.keys()]) if (slot >= action.numSlots) model.delete(slot);
          }
          expect([...pool.places].sort((a, b) => a - b)).toEqual([...pool.places.keys()]);
          const slots = Int32Array.from(model.keys());
          const known = [...model.values()];
          expect(pool.read(slots)).toEqual(
            rowsOf(
              known.map(({ value }) => value),
              shape,
            ),
          );
          for (const [slot, { position }] of model) expect(pool.positions[slot]).toBe(position);
        }
      },
    ),
  );
});

test('pages of slots; a small pool is one page', () => {
  const pagesOf = (pool: KvPool, slots: number[]): number[] => {
    const pages = new Set<number>();
    pool.addPages(slots, pages);
    return [...pages].sort((a, b) => a - b);
  };
  const large = new KvPool(SHAPE, 8 * PAGE_SLOTS);
  expect(pagesOf(large, [])).toEqual([]);
  expect(pagesOf(large, [0, 1, PAGE_SLOTS - 1, 5, 7 * PAGE_SLOTS, PAGE_SLOTS, 2])).toEqual([0, 1, 7]);
  expect(pagesOf(new KvPool(SHAPE, 900), [0, 300, 899])).toEqual([0]);
});

test('pages side by side anywhere are given as they are', () => {
  const pool = new KvPool(SHAPE, 8 * PAGE_SLOTS);
  expect(pool.attend([[7 * PAGE_SLOTS + 1]], 100)).toMatchObject({ first: 7, count: 1 });
  expect(pool.attend([[5 * PAGE_SLOTS, 4 * PAGE_SLOTS]], 100)).toMatchObject({ first: 4, count: 2 });
  expect(pool.attend([], 4)).toMatchObject({ first: 0, count: 1 });
  expect([...pool.places]).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
});

test("gathered attention uses each sequence's own pages in order and exchanges none", () => {
  const pool = new KvPool(SHAPE, 8 * PAGE_SLOTS);
  const lists = [
    Int32Array.of(5 * PAGE_SLOTS, 2 * PAGE_SLOTS + 7, 5 * PAGE_SLOTS + 1),
    Int32Array.of(7 * PAGE_SLOTS),
    Int32Array.of(0),
  ];
  expect(pool.attend(lists, 100)).toEqual({
    gathered: true,
    own: [new Set([5, 2]), new Set([7]), new Set([0])],
    first: 0,
    count: 8,
    columns: 2 * PAGE_SLOTS,
    paidColumns: 2.4 * PAGE_SLOTS,
  });
  // Nor on the account of steps that attended together.
  pool.attend([Int32Array.from([0, 2, 4, 6], (page) => page * PAGE_SLOTS)], 1);
  expect(pool.attend([Int32Array.of(0), Int32Array.of(PAGE_SLOTS), Int32Array.of(3 * PAGE_SLOTS)], 1)).toMatchObject({
    gathered: true,
    first: 0,
    count: 4,
  });
  expect([...pool.places]).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  // Where one has nearly all of them, all do better together.
  expect(pool.attend(lists.slice(0, 2), 1)).toMatchObject({ gathered: true });
  expect(pool.attend([lists[0]!, Int32Array.of(5 * PAGE_SLOTS + 9)], 1)).toMatchObject({ gathered: false });
  // A float32 pool has no such way.
  expect(new KvPool({ ...SHAPE, kv: 'float32' }, 8 * PAGE_SLOTS).attend(lists, 100)).toMatchObject({
    gathered: false,
    count: 4,
    paidColumns: 4 * PAGE_SLOTS,
  });
  // Copies have a bound.
  expect(pool.attend(lists, 1e6)).toMatchObject({ gathered: false });
});

test('shared attention exchanges pages when that saves more than the copies cost; the step then reads only what it needs', () => {
  const pool = new KvPool(SHAPE, 8 * PAGE_SLOTS);
  // One unused page lies between them: for the first tokens an exchange is too expensive.
  const two = Int32Array.of(5 * PAGE_SLOTS + 1, 7 * PAGE_SLOTS);
  expect([1, 2, 3].map(() => pool.attend([two], 1).count)).toEqual([3, 3, 2]);
  expect(Array.from(two, (slot) => placeOf(pool, slot))).toEqual([5, 6]);
  // Three of which two lie together at the end: the third comes to them, not past the end.
  expect(pool.attend([[0, 7 * PAGE_SLOTS, 6 * PAGE_SLOTS]], 100)).toMatchObject({ first: 5, count: 3 });
});

test('the pool grows and shrinks in place and keeps the remaining pages, whatever their places', () => {
  const pool = new KvPool(SHAPE, 0);
  pool.resize(4 * PAGE_SLOTS, 8 * PAGE_SLOTS);
  const buffers = pool.keys.map(({ buffer }) => buffer);
  const slots = Int32Array.of(0, 3 * PAGE_SLOTS);
  pool.write(slots, rowsOf([1, 2]), 0, 10);
  // Page 3 comes to lie beside page 0, in the place of page 1.
  expect(pool.attend([slots], 100)).toMatchObject({ first: 0, count: 2 });
  pool.resize(7 * PAGE_SLOTS, 8 * PAGE_SLOTS);
  expect(pool.read(slots)).toEqual(rowsOf([1, 2]));
  const last = Int32Array.of(6 * PAGE_SLOTS);
  expect(pool.attend([[...slots, ...last]], 100)).toMatchObject({ count: 3 });
  pool.resize(4 * PAGE_SLOTS, 8 * PAGE_SLOTS);
  expect(pool.read(slots)).toEqual(rowsOf([1, 2]));
  expect([...pool.places].sort()).toEqual([0, 1, 2, 3]);
  expect(pool.keys.map(({ buffer }) => buffer)).toEqual(buffers);
  expect(pool.keys.every(({ buffer }, l) => buffer === buffers[l])).toBe(true);
  expect(pool.keys[0]!.byteLength).toBe(4 * PAGE_SLOTS * 8);
});

test('without reserved address space the pool is reallocated', () => {
  const pool = new KvPool(SHAPE, 0);
  pool.resize(PAGE_SLOTS, Number.MAX_SAFE_INTEGER / 64);
  pool.write(Int32Array.of(5), rowsOf([3]), 0, 0);
  pool.resize(3 * PAGE_SLOTS);
  expect(pool.read(Int32Array.of(5))).toEqual(rowsOf([3]));
});
