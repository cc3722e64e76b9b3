/** The rotation of stored keys, with heads and layers that are rotated in part. */
import { expect, test } from 'vitest';
import { newKvRows } from '../../../../engine/kv/kvRows.ts';
import { RopeTable, shiftKeys } from '../../../../engine/model/runtime/rope.ts';

test('keys of layers with their own rope move by it', () => {
  const shape = { numLayers: 2, kvHeads: 1, headSize: 2, kv: 'float32', runnerBytes: 0 } as const;
  const rows = newKvRows(shape, 1);
  rows.keys.set([1, 0, 1, 0]);
  const local = { type: 'linear', theta: 100, factor: 4 } as const;
  const rope = new RopeTable({ type: 'default', theta: 100 }, 2, { tokens: 8, layers: [1], rope: local });
  shiftKeys(rows, shape, rope, -2);
  const expected = [Math.cos(2), -Math.sin(2), Math.cos(0.5), -Math.sin(0.5)];
  for (const [i, value] of expected.entries()) expect(rows.keys[i]).toBeCloseTo(value, 5);
});

test('numbers and layers without rope stay as they are when keys move', () => {
  const shape = { numLayers: 2, kvHeads: 1, headSize: 8, kv: 'float32', runnerBytes: 0 } as const;
  const rows = newKvRows(shape, 1);
  for (let i = 0; i < 16; i++) rows.keys[i] = 1 + (i % 8);
  const rope = new RopeTable({ type: 'default', theta: 100, rotated: 4, unrotated: [1] }, 8);
  shiftKeys(rows, shape, rope, 3);
  // Pairs are (i, i + 4). The frequencies are 1 and 1 / 10.
  const turned = (i: number, angle: number): number[] => [
    (1 + i) * Math.cos(angle) - (5 + i) * Math.sin(angle),
    (5 + i) * Math.cos(angle) + (1 + i) * Math.sin(angle),
  ];
  const [first, second] = [turned(0, 3), turned(1, 0.3)];
  const expected = [first[0]!, second[0]!, 3, 4, first[1]!, second[1]!, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8];
  for (const [i, value] of expected.entries()) expect(rows.keys[i]).toBeCloseTo(value, 5);
});
