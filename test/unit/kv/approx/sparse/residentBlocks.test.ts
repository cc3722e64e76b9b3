/** Which blocks of a context that is longer than the pool are chosen. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { chosenBlocks, queriesByToken } from '../../../../../engine/kv/approx/sparse/residentBlocks.ts';

const blocks = (...attention: number[]) => attention.map((each, i) => ({ i, numTokens: 10, attention: each }));
const chosen = (mostTokens: number, ...attention: number[]): number[] =>
  Array.from(chosenBlocks(blocks(...attention), mostTokens), ({ i }) => i).sort((a, b) => a - b);

test('the choice is the first block, recent blocks for at most half of the rest, then the most attended ones', () => {
  expect(chosen(60, 0, 0.1, 0.9, 0.2, 0.8, 0, 0, 0, 0, 0)).toEqual([0, 2, 3, 4, 8, 9]);
  // Of few: more that receive something than last ones.
  expect(chosen(40, 0, 0.1, 0.9, 0.2, 0.8, 0, 0, 0, 0, 0)).toEqual([0, 2, 4, 9]);
});

test('nobody has asked: the newest ones', () => {
  expect(chosen(50, 0, 0, 0, 0, 0, 0, 0, 0)).toEqual([0, 4, 5, 6, 7]);
});

test('all blocks are chosen when all fit, none when no slot is free', () => {
  expect(chosen(40, 0, 1, 0, 0)).toEqual([0, 1, 2, 3]);
  expect(chosen(9, 0, 1, 0, 0)).toEqual([]);
});

test('property: the choice never exceeds the slots and leaves out no block that would fit', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          numTokens: fc.integer({ min: 1, max: 32 }),
          attention: fc.double({ min: 0, max: 1, noNaN: true }),
        }),
        { maxLength: 30 },
      ),
      fc.integer({ min: 0, max: 400 }),
      (given, mostTokens) => {
        const taken = chosenBlocks(given, mostTokens);
        const left = mostTokens - [...taken].reduce((sum, { numTokens }) => sum + numTokens, 0);
        expect(left).toBeGreaterThanOrEqual(0);
        for (const block of given) if (!taken.has(block)) expect(block.numTokens).toBeGreaterThan(left);
      },
    ),
  );
});

test('queries by token', () => {
  // Two heads, three tokens, values of two: head, token, value are the digits.
  const queries = Float32Array.of(0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121);
  expect(queriesByToken(queries, 3, 2).map((token) => [...token])).toEqual([
    [0, 1, 100, 101],
    [10, 11, 110, 111],
    [20, 21, 120, 121],
  ]);
});
