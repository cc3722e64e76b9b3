/** When a step waits for more requests: only where bursts have been seen, and never for a completion. */
import { expect, test } from 'vitest';
import { arrived, MAX_WAIT_MS, NO_ARRIVALS, waitMs } from '../../../engine/scheduler/stepPlanner.ts';

const fresh = { completion: false, started: false, stepMs: 150 };

/** Times of arrival; the first of each burst finds the engine idle. */
const after = (bursts: number[][]): typeof NO_ARRIVALS => {
  let arrivals = NO_ARRIVALS;
  for (const times of bursts) for (const [i, time] of times.entries()) arrivals = arrived(arrivals, time, i === 0);
  return arrivals;
};

const bursts = after([[0, 2, 3], [1000, 1002], [2000, 2001, 2004], [3000]]);

test('after bursts, the first request of the next burst waits slightly longer than the usual gap for the second', () => {
  expect(waitMs(bursts, 3000, fresh)).toBe(3);
  expect(waitMs(bursts, 3001, fresh)).toBe(2);
  expect(waitMs(bursts, 3003, fresh)).toBe(0);
  const second = arrived(bursts, 3002, false);
  expect(waitMs(second, 3002, fresh)).toBe(3);
  // However many come, not longer than this from the first on.
  let many = bursts;
  for (let time = 3001; time <= 3007; time++) many = arrived(many, time, false);
  expect(waitMs(many, 3007, fresh)).toBe(1);
  expect(waitMs(many, 3000 + MAX_WAIT_MS, fresh)).toBe(0);
});

test('no waiting for bursts beside a completion, after a start, or for a short step', () => {
  expect(waitMs(bursts, 3000, { ...fresh, completion: true })).toBe(0);
  expect(waitMs(bursts, 3000, { ...fresh, started: true })).toBe(0);
  expect(waitMs(bursts, 3000, { ...fresh, stepMs: 20 })).toBe(0);
});

test('no waiting for bursts when requests come one by one', () => {
  expect(waitMs(NO_ARRIVALS, 0, fresh)).toBe(0);
  expect(waitMs(after([[0]]), 0, fresh)).toBe(0);
  expect(waitMs(after([[0], [500], [900], [2000]]), 2000, fresh)).toBe(0);
  expect(waitMs(after([[0, 1], [500], [900], [2000]]), 2000, fresh)).toBe(0);
});

test('bursts are forgotten when single requests follow', () => {
  let arrivals = bursts;
  for (let i = 0; i < 6; i++) arrivals = arrived(arrivals, 5000 + 1000 * i, true);
  expect(waitMs(arrivals, 10_000, fresh)).toBe(0);
});

test('requests that arrive while the engine works start no burst', () => {
  const arrivals = arrived(bursts, 3500, false);
  expect(arrivals.gaps).toEqual(bursts.gaps);
  expect(waitMs(arrivals, 3500, fresh)).toBe(0);
});
