/** Of how many rows products are made so that a row's result does not depend on the others: found by comparing, and said when there is no such number. */
import { expect, test } from 'vitest';
import { smallestMultiple } from '../../../../engine/model/runtime/onnxSession.ts';

const MOST = 24;

/** Products of a runtime that takes `together` rows at once, and sums those that are left over in another order. */
const taking =
  (together: number) =>
  async (numRows: number): Promise<Float32Array[]> => [
    Float32Array.from({ length: numRows }, (_, row) => row + (row >= numRows - (numRows % together) ? 1e-3 : 0)),
  ];

test.each([1, 2, 4, 8])('finds a kernel that computes %i rows at once', async (together) => {
  expect(await smallestMultiple(MOST, taking(together))).toBe(together);
});

test('there is no multiple if rows depend on the number of all rows', async () => {
  expect(
    await smallestMultiple(MOST, async (numRows) => [
      Float32Array.from({ length: numRows }, (_, row) => row + 1 / numRows),
    ]),
  ).toBeNull();
});

test('a difference in one of several products is enough', async () => {
  expect(
    await smallestMultiple(MOST, async (numRows) => [...(await taking(1)(numRows)), ...(await taking(2)(numRows))]),
  ).toBe(2);
});
