/** The soak test over a real model: many requests of one engine in a separate process. */
import { afterAll, expect, test } from 'vitest';
import { MAX_GROWTH_BYTES, soakProcess } from '../support/soak/startSoak.ts';
import { slope } from '../support/soak/soakRun.ts';
import { part } from '../support/testLength.ts';
import { temporaryFolder } from '../support/model/fixtures.ts';

// With fewer requests, the slope of the heap depends more on the start than on a leak.
const NUM_REQUESTS = Math.max(1000, part(2000));
const folder = temporaryFolder();
afterAll(() => folder.remove());

test(`${NUM_REQUESTS} requests through a model, many evicted and preempted: same tokens as each request alone, and no memory left behind`, async () => {
  const result = await soakProcess({
    numRequests: NUM_REQUESTS,
    seed: 2,
    model: { modelDir: 'test/fixtures/models/qwen3-tied-sharded', cacheDir: folder.dir, precision: 'int8' },
  });
  expect(result.finished + result.aborted + result.failed).toBe(NUM_REQUESTS);
  expect(result.tokensCompared).toBeGreaterThan(5 * NUM_REQUESTS);
  expect(result.tokensDiffering).toBe(0);
  expect(result.events.evictions).toBeGreaterThanOrEqual(NUM_REQUESTS / 10);
  expect(result.events.preemptions).toBeGreaterThanOrEqual(NUM_REQUESTS / 10);
  expect(1000 * slope(result.samples, 'heapBytes')).toBeLessThan(MAX_GROWTH_BYTES);
  // The inference library keeps memory for the largest step of each kind so far, and rare kinds come late. With so few
  // requests this checks a bound and not a slope.
  expect(result.samples.at(-1)!.bytes - result.samples[0]!.bytes).toBeLessThan(250e6);
});
