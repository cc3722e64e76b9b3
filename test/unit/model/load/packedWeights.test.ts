/** The weight layout of the native kernels: every code and scale is where engine/native/step.h says. */
import { expect, test } from 'vitest';
import { GROUP, packBlocks4, packRest8, packRows8 } from '../../../../engine/model/load/packedWeights.ts';
import { BLOCK, numBlocks, quantiseBlocks4, rowScales } from '../../../../engine/model/load/quantise.ts';
import { seededRandom } from '../../../support/engine/workload.ts';

const ROWS = 21;
const WIDTH = 150;
const next = seededRandom(4);
const weights = Float32Array.from({ length: ROWS * WIDTH }, () => next() - 0.5);
const groups = Math.ceil(ROWS / GROUP);

test('8 bits: code times scale is the weight, and the padding is zero', () => {
  const padded = Math.ceil(WIDTH / 16) * 16;
  const scales = new Float32Array(ROWS);
  rowScales(weights, ROWS, WIDTH, scales);
  const codes = new Int8Array(groups * GROUP * padded);
  // In two parts, as a file is read.
  packRows8(weights, 10, WIDTH, scales, codes, padded, 0);
  packRows8(weights.subarray(10 * WIDTH), ROWS - 10, WIDTH, scales.subarray(10), codes, padded, 10);
  let used = 0;
  for (let row = 0; row < ROWS; row++)
    for (let i = 0; i < WIDTH; i++) {
      const group = Math.floor(row / GROUP) * GROUP * padded;
      const code = codes[group + Math.floor(i / 4) * 4 * GROUP + (row % GROUP) * 4 + (i % 4)]!;
      expect(Math.abs(code * scales[row]! - weights[row * WIDTH + i]!)).toBeLessThanOrEqual(0.501 * scales[row]!);
      used += Math.abs(code);
    }
  expect(codes.reduce((sum, code) => sum + Math.abs(code), 0)).toBe(used);
});

test('what 8 bits leave is coded in its own rows, and both give the weight within a step of 1 / 254', () => {
  const padded = Math.ceil(WIDTH / 16) * 16;
  const [scales, rest] = [new Float32Array(ROWS), new Float32Array(ROWS)];
  rowScales(weights, ROWS, WIDTH, scales);
  const firstRest = groups * GROUP;
  const codes = new Int8Array(2 * firstRest * padded);
  packRows8(weights, ROWS, WIDTH, scales, codes, padded, 0);
  packRest8(weights.slice(), ROWS, WIDTH, scales, rest, codes, padded, 0, firstRest);
  const codeAt = (row: number, i: number): number =>
    codes[Math.floor(row / GROUP) * GROUP * padded + Math.floor(i / 4) * 4 * GROUP + (row % GROUP) * 4 + (i % 4)]!;
  for (let row = 0; row < ROWS; row++)
    for (let i = 0; i < WIDTH; i++) {
      const value = codeAt(row, i) * scales[row]! + codeAt(firstRest + row, i) * rest[row]!;
      expect(Math.abs(value - weights[row * WIDTH + i]!)).toBeLessThanOrEqual((0.51 * scales[row]!) / 254);
    }
});

test('4 bits: the same codes and scales as in blocks, in the order of the kernels', () => {
  const blocks = numBlocks(WIDTH);
  const plain = new Uint8Array((ROWS * blocks * BLOCK) / 2);
  const scales = new Float32Array(ROWS * blocks);
  quantiseBlocks4(weights, ROWS, WIDTH, plain, scales);
  const codes = new Uint8Array((groups * GROUP * blocks * BLOCK) / 2);
  const packedScales = new Float32Array(groups * blocks * GROUP);
  packBlocks4(plain, scales, ROWS, blocks, codes, packedScales, 0);
  for (let row = 0; row < ROWS; row++)
    for (let b = 0; b < blocks; b++) {
      const block = Math.floor(row / GROUP) * blocks + b;
      expect(packedScales[block * GROUP + (row % GROUP)]).toBe(scales[row * blocks + b]);
      for (let i = 0; i < BLOCK; i++) {
        const expected = (plain[((row * blocks + b) * BLOCK + i) >> 1]! >> (4 * (i % 2))) & 15;
        const byte = codes[(block * GROUP * BLOCK) / 2 + Math.floor(i / 8) * 4 * GROUP + 4 * (row % GROUP) + (i % 4)]!;
        expect((byte >> (i % 8 < 4 ? 0 : 4)) & 15, `row ${row}, weight ${b * BLOCK + i}`).toBe(expected);
      }
    }
});
