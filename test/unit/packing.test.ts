/** Packing: afterwards the slots that are meant lie in as few pages as they fill, and nobody else's are lost. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { exchanges, scatterOf } from '../../engine/cache/packing.ts';

const L = 8;

test('property: the exchanges bring the slots into the fewest pages; free slots are taken before others', () => {
  const slot = fc.integer({ min: 0, max: 10 * L - 1 });
  fc.assert(
    fc.property(fc.array(fc.array(slot, { maxLength: 40 }), { maxLength: 4 }), fc.array(slot), fc.array(slot), (lists, free, idle) => {
      const meant = new Set(lists.flat());
      const scatter = scatterOf(lists.map((list) => Int32Array.from(list)), 10 * L, L);
      expect(scatter.numPages).toBe(new Set([...meant].map((s) => Math.floor(s / L))).size);
      expect(scatter.fewest).toBe(Math.ceil(meant.size / L));
      const isFree = (s: number): boolean => free.includes(s) && !meant.has(s);
      const { from, to } = exchanges(scatter, L, isFree, (s) => idle.includes(s));
      expect([from.length, to.length]).toEqual([scatter.numMoves, scatter.numMoves]);
      expect(new Set([...from, ...to]).size).toBe(2 * scatter.numMoves);
      for (const s of from) expect(meant.has(s)).toBe(true);
      for (const s of to) expect(meant.has(s)).toBe(false);
      const moved = new Map([...from].map((s, i) => [s, to[i]!]));
      expect(new Set([...meant].map((s) => Math.floor((moved.get(s) ?? s) / L))).size).toBe(scatter.fewest);
      // Whoever has to go although a free slot of the pages stays: nobody.
      const left = Array.from({ length: 10 * L }, (_, s) => s).filter((s) => scatter.pages.has(Math.floor(s / L)) && !meant.has(s) && !to.includes(s));
      if (left.some(isFree)) expect([...to].every(isFree)).toBe(true);
      if (left.some((s) => idle.includes(s))) expect([...to].every((s) => isFree(s) || idle.includes(s))).toBe(true);
    }),
  );
});

test('slots that fill their pages stay where they are', () => {
  const scatter = scatterOf([Int32Array.from({ length: 2 * L }, (_, i) => 3 * L + i), Int32Array.of(6 * L, 6 * L + 7)], 10 * L, L);
  expect(scatter).toMatchObject({ numPages: 3, fewest: 3, numMoves: 0 });
});
