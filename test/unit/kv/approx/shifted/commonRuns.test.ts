/** What a text has in common with an older version, and keys at other positions. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { commonRuns } from '../../../../../engine/kv/approx/shifted/shiftedReuse.ts';
import { newKvRows } from '../../../../../engine/kv/kvRows.ts';
import { shiftKeys, RopeTable } from '../../../../../engine/model/runtime/rope.ts';
import { exactId, isPrefill, isShifted, laneIds, shiftedId } from '../../../../../engine/kv/laneIds.ts';
import { seededRandom } from '../../../../support/engine/workload.ts';
import { tokens } from '../../../../support/engine/harness.ts';

test('ids: what was taken over has an id of its own, and the way back', () => {
  const [pool, prefill] = [5, laneIds([5], [[0, 1]])[0]!];
  expect(new Set([pool, prefill, shiftedId(prefill), shiftedId(pool)]).size).toBe(4);
  expect([pool, prefill, shiftedId(prefill)].map(isPrefill)).toEqual([false, true, false]);
  expect([pool, prefill, shiftedId(prefill)].map(isShifted)).toEqual([false, false, true]);
  for (const id of [pool, prefill]) expect(exactId(shiftedId(id))).toBe(id);
  expect([exactId(prefill), shiftedId(shiftedId(prefill))]).toEqual([prefill, shiftedId(prefill)]);
});

const older = tokens(500, 3);

test('common runs after an edit start where the texts meet again, however often the lines repeat', () => {
  const line = tokens(20, 4);
  const text = [...older.slice(0, 100), ...line, ...older.slice(100, 300), ...line, ...older.slice(300)];
  const changed = [...text.slice(0, 90), 1, 2, 3, ...text.slice(95)];
  const runs = commonRuns(text, changed, 90, changed.length);
  expect(runs).toEqual([{ start: 93, end: changed.length, by: -2 }]);
  // From further on, the run is known to have begun before.
  expect(commonRuns(text, changed, 300, 400)).toEqual([{ start: 93, end: 400, by: -2 }]);
});

test('two edits leave two runs; moved text is found where it was', () => {
  const changed = [...older.slice(250), 9, 9, ...older.slice(0, 250)];
  expect(commonRuns(older, changed, 0, changed.length)).toEqual([
    { start: 0, end: 250, by: -250 },
    { start: 252, end: 502, by: 252 },
  ]);
});

test('property: runs are disjoint, in order, and the same tokens in both texts', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(3), { maxLength: 300 }),
      fc.array(fc.nat(3), { maxLength: 300 }),
      fc.nat(100),
      (a, b, from) => {
        let last = from;
        for (const { start, end, by } of commonRuns(a, b, from, b.length)) {
          expect(end).toBeGreaterThan(last);
          last = end;
          expect(b.slice(start, end)).toEqual(a.slice(start - by, end - by));
        }
      },
    ),
  );
});

/** A head of known keys k, rotated to a position and coded as the step graph codes them. */
function codedAt(keys: Float32Array, rope: RopeTable, position: number, kv: 'int8' | 'float32') {
  const headSize = keys.length;
  const rows = newKvRows({ numLayers: 1, kvHeads: 1, headSize, kv }, 1);
  rope.ensure(position + 1);
  const turned = new Float32Array(headSize);
  for (let d = 0; d < rope.half; d++) {
    const [c, s] = [rope.cos[position * rope.half + d]!, rope.sin[position * rope.half + d]!];
    turned[d] = keys[d]! * c - keys[d + rope.half]! * s;
    turned[d + rope.half] = keys[d + rope.half]! * c + keys[d]! * s;
  }
  const most = Math.max(...turned.map(Math.abs));
  if (kv === 'int8') rows.keyScales[0] = most / 127;
  rows.keys.set(kv === 'int8' ? turned.map((v) => Math.round((v / most) * 127)) : turned);
  return rows;
}

test.each(['default', 'linear', 'llama3'] as const)(
  'keys turned to another position are those computed there, but for rounding (%s)',
  (type) => {
    const random = seededRandom(5);
    const rope = new RopeTable(
      { type, theta: 10_000, factor: 4, lowFreqFactor: 1, highFreqFactor: 4, originalContext: 512 } as never,
      64,
    );
    const keys = Float32Array.from({ length: 64 }, () => random() * 2 - 1);
    for (const [from, to] of [
      [100, 117],
      [2000, 1700],
      [40, 0],
      [7, 7],
    ] as const) {
      for (const kv of ['int8', 'float32'] as const) {
        const rows = codedAt(keys, rope, from, kv);
        shiftKeys(rows, { numLayers: 1, kvHeads: 1, headSize: 64, kv }, rope, to - from);
        const wanted = codedAt(keys, rope, to, kv);
        const scale = (r: typeof rows) => (kv === 'int8' ? r.keyScales[0]! : 1);
        // Two roundings of half a step each, turned together.
        const tolerance = kv === 'int8' ? 1.8 * scale(wanted) : 2e-3;
        for (let d = 0; d < 64; d++)
          expect(Math.abs(rows.keys[d]! * scale(rows) - wanted.keys[d]! * scale(wanted))).toBeLessThan(tolerance);
        if (kv === 'int8') expect(Math.max(...rows.keys.map(Math.abs))).toBe(127);
      }
    }
  },
);
