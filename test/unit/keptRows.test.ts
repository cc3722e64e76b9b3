/** Which rows stay where not all do: of each head the most attended ones, of layers with a large key bias the same in all heads. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { keptTokens, rowsOf } from '../../engine/cache/keptRows.ts';
import type { KvPrecision } from '../../engine/protocol.ts';
import { randomRows } from './codecRows.ts';

const SHAPE = { numLayers: 3, kvHeads: 2, headSize: 4, kv: 'int8' as const };
const HEADS = 6;
const setting = fc.record({ n: fc.integer({ min: 1, max: 60 }), share: fc.double({ min: 0.01, max: 1, noNaN: true }), values: fc.infiniteStream(fc.integer({ min: 0, max: 20 })), biased: fc.subarray([0, 1, 2]) });

test('each head keeps as many, in order, none that stays receives less than one that goes', () => {
  fc.assert(
    fc.property(setting, ({ n, share, values, biased }) => {
      const attention = Float32Array.from({ length: HEADS * n }, () => values.next().value!);
      const count = Math.ceil(share * n);
      const kept = keptTokens(SHAPE, attention, count, new Set(biased));
      for (let h = 0; h < HEADS; h++) {
        const tokens = [...kept.tokens.subarray(h * count, (h + 1) * count)];
        expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
        expect(tokens).toHaveLength(count);
        if (biased.includes(Math.floor(h / 2))) expect(tokens).toEqual([...kept.places]);
        else {
          const gone = [...attention.subarray(h * n, (h + 1) * n)].filter((_, i) => !tokens.includes(i));
          expect(Math.min(...tokens.map((i) => attention[h * n + i]!))).toBeGreaterThanOrEqual(Math.max(0, ...gone));
        }
      }
      // What the biased layers keep together is what their best head gives most.
      const best = (i: number): number => Math.max(...biased.flatMap((l) => [attention[2 * l * n + i]!, attention[(2 * l + 1) * n + i]!]));
      if (biased.length > 0) expect(Math.min(...Array.from(kept.places, best))).toBeGreaterThanOrEqual(Math.max(0, ...Array.from({ length: n }, (_, i) => i).filter((i) => !kept.places.includes(i)).map(best)));
    }),
  );
});

test.each<KvPrecision>(['int8', 'float32'])('%s: the rows are those of the tokens that each head keeps', (kv) => {
  const shape = { ...SHAPE, kv };
  const n = 17;
  const rows = kv === 'int8' ? randomRows({ ...SHAPE }, n, 1) : { numTokens: n, keys: Float32Array.from({ length: HEADS * 4 * n }, (_, i) => i), values: Float32Array.from({ length: HEADS * 4 * n }, (_, i) => -i), keyScales: new Float32Array(0), valueScales: new Float32Array(0) };
  const kept = keptTokens(shape, Float32Array.from({ length: HEADS * n }, (_, i) => (i * 7919) % 101), 5, new Set([1]));
  const left = rowsOf(kept, shape, rows);
  expect(left.numTokens).toBe(5);
  for (let h = 0; h < HEADS; h++) {
    for (let i = 0; i < 5; i++) {
      const token = kept.tokens[h * 5 + i]!;
      for (let d = 0; d < 4; d++) {
        expect(left.keys[(h * 4 + d) * 5 + i]).toBe(rows.keys[(h * 4 + d) * n + token]);
        expect(left.values[(h * 5 + i) * 4 + d]).toBe(rows.values[(h * n + token) * 4 + d]);
      }
      if (kv === 'float32') continue;
      expect(left.keyScales[h * 5 + i]).toBe(rows.keyScales[h * n + token]);
      expect(left.valueScales[h * 5 + i]).toBe(rows.valueScales[h * n + token]);
    }
  }
});
