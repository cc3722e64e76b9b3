import { expect, test } from 'vitest';
import { slope } from '../../support/soak/soakRun.ts';
import { soakReport } from './soakBench.ts';

test('the slope covers the last half of the samples, and the report has all figures', () => {
  const samples = Array.from({ length: 40 }, (_, i) => ({
    ended: 100 * i,
    bytes: i < 20 ? 1e6 * i : 2e7 + 300 * i,
    heapBytes: 1,
  }));
  expect(slope(samples)).toBeCloseTo(3, 6);
  expect(slope(samples, 'heapBytes')).toBe(0);
  const result = {
    numRequests: 4000,
    steps: 9,
    finished: 3000,
    aborted: 900,
    failed: 100,
    tokensCompared: 5,
    noise: 0,
    tokensDiffering: 0,
    events: { evictions: 300, preemptions: 400, promotions: 0, demotions: 0 },
    samples,
  };
  expect(soakReport({ seed: 1, runs: [{ name: 'fake runner', result, growthPer1000: 3000, seconds: 12 }] })).toContain(
    '| fake runner | 4000 | 900 | 100 | 9 | 5 | 0 | 300 | 400 | 20.0 | 0.0030 | 12.0 |',
  );
});
