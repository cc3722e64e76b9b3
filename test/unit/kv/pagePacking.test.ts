/** Packing moves slots into the fewest pages, a bounded number at a time, and loses no row of others. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { packingOf, partnersOf } from '../../../engine/kv/pageTable.ts';

const L = 8;

test('property: packing ends with the fewest pages and uses free slots first', () => {
  const slot = fc.integer({ min: 0, max: 10 * L - 1 });
  fc.assert(
    fc.property(
      fc.array(fc.array(slot, { maxLength: 40 }), { maxLength: 4 }),
      fc.array(slot),
      fc.array(slot),
      (lists, free, idle) => {
        const meant = new Set(lists.flat());
        const packing = packingOf(
          lists.map((list) => Int32Array.from(list)),
          10 * L,
          L,
        );
        expect(packing.pagesInVain).toBe(
          new Set([...meant].map((s) => Math.floor(s / L))).size - Math.ceil(meant.size / L),
        );
        const isFree = (s: number): boolean => free.includes(s) && !meant.has(s);
        const to = partnersOf(packing, L, isFree, (s) => idle.includes(s));
        expect(to.length).toBe(packing.from.length);
        expect(new Set([...packing.from, ...to]).size).toBe(2 * to.length);
        for (const s of packing.from) expect(meant.has(s)).toBe(true);
        for (const s of to) expect(meant.has(s)).toBe(false);
        const moved = new Map(packing.from.map((s, i) => [s, to[i]!]));
        expect(new Set([...meant].map((s) => Math.floor((moved.get(s) ?? s) / L))).size).toBe(
          Math.ceil(meant.size / L),
        );
        // No held slot is exchanged while a page has a free one.
        const left = Array.from({ length: 10 * L }, (_, s) => s).filter(
          (s) => packing.pages.has(Math.floor(s / L)) && !meant.has(s) && !to.includes(s),
        );
        if (left.some(isFree)) expect([...to].every(isFree)).toBe(true);
        if (left.some((s) => idle.includes(s))) expect([...to].every((s) => isFree(s) || idle.includes(s))).toBe(true);
      },
    ),
  );
});

test('slots that fill their pages stay where they are', () => {
  const packing = packingOf(
    [Int32Array.from({ length: 2 * L }, (_, i) => 3 * L + i), Int32Array.of(6 * L, 6 * L + 7)],
    10 * L,
    L,
  );
  expect(packing).toMatchObject({ pagesInVain: 0, from: [], price: 0 });
});

test('packing moves a bounded amount before a step, the emptiest page first; consecutive slots are cheaper than single ones', () => {
  const every = (n: number, step: number, at = 0): Int32Array =>
    Int32Array.from({ length: n }, (_, i) => at + i * step);
  const single = packingOf([every(1000, 4)], 4000, 200);
  expect(single.price).toBeLessThanOrEqual(30);
  expect(single.from.length).toBeGreaterThan(100);
  expect(single.from.length).toBeLessThan(120);
  const runs = packingOf([every(200, 1, 0), every(100, 1, 200), every(90, 1, 400)], 4000, 200);
  expect(runs.from).toEqual([...every(90, 1, 400)]);
  expect(runs.price).toBeCloseTo(3 + 0.02 * 90, 9);
});
