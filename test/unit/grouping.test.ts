/** Who runs together: shared prefixes always, long windows of their own only where sharing the weights is worth it. */
import { expect, test } from 'vitest';
import { type Joining, shouldJoin } from '../../engine/policies/grouping.ts';

const machine = { a: 14, b: 0.8, c: 0.001 };

const separate = (tokens: number, numRunning: number): Joining => ({ numRunning, foreignColumns: tokens * numRunning, missing: tokens, ownColumns: tokens, answer: 48 });

/** How many sequences of one kind come to run together. */
function together(of: (numRunning: number) => Joining, coefficients = machine): number {
  let n = 0;
  while (n < 100 && shouldJoin(coefficients, of(n))) n++;
  return n;
}

test('the first always runs', () => {
  expect(shouldJoin(machine, { ...separate(100_000, 0), numRunning: 0 })).toBe(true);
});

test('long prompts of their own run one by one, short ones several together', () => {
  expect(together((n) => separate(2000, n))).toBe(1);
  expect(together((n) => separate(300, n))).toBeGreaterThan(2);
  expect(together((n) => separate(300, n))).toBeLessThan(10);
  expect(together((n) => separate(30, n))).toBeGreaterThan(10);
});

test('sequences over one prefix run together, however long it is', () => {
  expect(together((n) => ({ numRunning: n, foreignColumns: 40 * n, missing: 20, ownColumns: 40, answer: 48 }))).toBeGreaterThan(8);
});

test('where weights are dear and columns cheap, all run together', () => {
  expect(together((n) => separate(2000, n), { a: 200, b: 1, c: 1e-6 })).toBeGreaterThan(16);
});

test('a computed prompt that comes back joins sooner than one still to be computed', () => {
  const back = { ...separate(700, 2), missing: 1 };
  expect(shouldJoin(machine, back)).toBe(true);
  expect(shouldJoin(machine, separate(700, 2))).toBe(false);
});
