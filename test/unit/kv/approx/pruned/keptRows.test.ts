/** Which rows of a pruned context stay: the first ones, and those that receive most in the layers that decide. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { keptTokens, rowsOf, SINK_TOKENS } from '../../../../../engine/kv/approx/pruned/keptRows.ts';
import type { KvPrecision } from '../../../../../engine/protocol/tasks.ts';
import { randomRows } from '../../../../support/kv/codecRows.ts';

const SHAPE = { numLayers: 3, kvHeads: 2, headSize: 4, kv: 'int8' as const };
const HEADS = 6;
const setting = fc.record({
  n: fc.integer({ min: 1, max: 60 }),
  startIndex: fc.integer({ min: 0, max: 6 }),
  share: fc.double({ min: 0.01, max: 1, noNaN: true }),
  values: fc.infiniteStream(fc.integer({ min: 0, max: 20 })),
  layers: fc.subarray([0, 1, 2], { minLength: 1 }),
});

test('as many stay as are to, in order: those of the first tokens of the context, then none that receives less of the heads of these layers than one that goes', () => {
  fc.assert(
    fc.property(setting, ({ n, startIndex, share, values, layers }) => {
      const attention = Float32Array.from({ length: HEADS * n }, () => values.next().value!);
      const count = Math.ceil(share * n);
      const kept = [...keptTokens(SHAPE, attention, count, new Set(layers), startIndex)];
      expect(kept).toEqual([...new Set(kept)].sort((a, b) => a - b));
      expect(kept).toHaveLength(count);
      const received = (i: number): number =>
        layers.reduce((sum, l) => sum + attention[2 * l * n + i]! + attention[(2 * l + 1) * n + i]!, 0);
      const numSinks = Math.max(0, Math.min(SINK_TOKENS - startIndex, n));
      expect(kept.slice(0, Math.min(numSinks, count))).toEqual(
        Array.from({ length: Math.min(numSinks, count) }, (_, i) => i),
      );
      const gone = Array.from({ length: n }, (_, i) => i).filter((i) => !kept.includes(i));
      expect(Math.min(...kept.filter((i) => i >= numSinks).map(received))).toBeGreaterThanOrEqual(
        Math.max(0, ...gone.filter((i) => i >= numSinks).map(received)),
      );
    }),
  );
});

test('the first four tokens of a context stay though nothing attends to them, those of a run that starts later only where something does', () => {
  // The less a token receives the nearer it is to the beginning.
  const attention = Float32Array.from({ length: HEADS * 10 }, (_, i) => i % 10);
  const kept = (startIndex: number): number[] => [...keptTokens(SHAPE, attention, 6, new Set([2]), startIndex)];
  expect(kept(0)).toEqual([0, 1, 2, 3, 8, 9]);
  expect(kept(3)).toEqual([0, 5, 6, 7, 8, 9]);
  for (const startIndex of [4, 10]) expect(kept(startIndex)).toEqual([4, 5, 6, 7, 8, 9]);
});

test.each<KvPrecision>(['int8', 'float32'])('%s: the rows are those of the tokens, in all heads', (kv) => {
  const shape = { ...SHAPE, kv };
  const n = 17;
  const rows =
    kv === 'int8'
      ? randomRows({ ...SHAPE }, n, 1)
      : {
          numTokens: n,
          keys: Float32Array.from({ length: HEADS * 4 * n }, (_, i) => i),
          values: Float32Array.from({ length: HEADS * 4 * n }, (_, i) => -i),
          keyScales: new Float32Array(0),
          valueScales: new Float32Array(0),
        };
  const tokens = Int32Array.of(0, 1, 2, 5, 9, 10, 16);
  const left = rowsOf(tokens, shape, rows);
  const m = tokens.length;
  expect(left.numTokens).toBe(m);
  for (let h = 0; h < HEADS; h++) {
    for (const [i, token] of tokens.entries()) {
      for (let d = 0; d < 4; d++) {
        expect(left.keys[(h * 4 + d) * m + i]).toBe(rows.keys[(h * 4 + d) * n + token]);
        expect(left.values[(h * m + i) * 4 + d]).toBe(rows.values[(h * n + token) * 4 + d]);
      }
      if (kv === 'float32') continue;
      expect(left.keyScales[h * m + i]).toBe(rows.keyScales[h * n + token]);
      expect(left.valueScales[h * m + i]).toBe(rows.valueScales[h * n + token]);
    }
  }
});
