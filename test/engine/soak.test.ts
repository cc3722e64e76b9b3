/**
 * A long random workload over the fake runner in a separate process. Every token equals the oracle's, every slot is
 * accounted for, and memory stays flat.
 */
import { expect, test } from 'vitest';
import { MAX_GROWTH_BYTES, soakProcess } from '../support/soak/startSoak.ts';
import { part } from '../support/testLength.ts';
import { slope } from '../support/soak/soakRun.ts';

// With fewer, the budget falls too seldom for enough preemptions.
const NUM_REQUESTS = Math.max(2500, part(10_000));

test(`${NUM_REQUESTS} requests, edits, aborts and evictions: same tokens as each request alone, no lost slot, flat memory`, async () => {
  const result = await soakProcess({ numRequests: NUM_REQUESTS, seed: 1 });
  expect(result.finished + result.aborted + result.failed).toBe(NUM_REQUESTS);
  for (const { count, least } of [
    { count: result.aborted, least: part(500) },
    { count: result.failed, least: part(50) },
    { count: result.tokensCompared, least: part(80_000) },
  ])
    expect(count).toBeGreaterThan(least);
  expect(result.tokensDiffering).toBe(0);
  expect(result.events.evictions).toBeGreaterThanOrEqual(part(200));
  expect(result.events.preemptions).toBeGreaterThanOrEqual(part(200));
  expect(1000 * slope(result.samples, 'heapBytes')).toBeLessThan(MAX_GROWTH_BYTES);
  // The time at which memory returns to the system is not under the test's control. The heap's slope is checked above;
  // resident memory only has a bound.
  expect(result.samples.at(-1)!.bytes - result.samples[0]!.bytes).toBeLessThan(150e6);
});

test('a failure inside the soak process rejects with its error output', async () => {
  await expect(
    soakProcess({
      numRequests: 100,
      seed: 1,
      model: { modelDir: 'no/such/model', cacheDir: 'no/such/cache', precision: 'int8' },
    }),
  ).rejects.toThrow(/the soak ended with 1: [\s\S]*no.such.model/);
});
