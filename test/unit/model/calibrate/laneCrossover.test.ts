/** From how many tokens on a text is for the prefill lane. */
import { expect, test } from 'vitest';
import { crossoverOf } from '../../../../engine/model/calibrate/laneCrossover.ts';

const times = (...prefill: number[]) =>
  [16, 32, 64, 128].map((tokens, i) => ({ tokens, paged: tokens, prefill: prefill[i]! }));

test('the lane crossover is the shortest text that the prefill lane reads faster by more than noise', () => {
  expect(crossoverOf(times(20, 31, 50, 90))).toBe(64);
  expect(crossoverOf(times(15, 30, 50, 90))).toBe(16);
  expect(crossoverOf(times(15.5, 30, 50, 90))).toBe(32);
  // A longer one that is not faster says that the shorter one's was noise.
  expect(crossoverOf(times(10, 32, 50, 90))).toBe(64);
});

test('if no length is faster, only long texts use the prefill lane', () => {
  expect(crossoverOf(times(20, 40, 80, 130))).toBe(256);
});
