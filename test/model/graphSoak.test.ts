/** The same through the real graph: many requests of one engine's life, in a process of its own. */
import { afterAll, expect, test } from 'vitest';
import { MAX_GROWTH_BYTES, soakProcess } from '../support/soak/startSoak.ts';
import { slope } from '../support/soak/soakRun.ts';
import { part } from '../support/testLength.ts';
import { temporaryFolder } from '../support/model/fixtures.ts';

// With fewer, the slope of the heap says more about the start than about a leak.
const NUM_REQUESTS = Math.max(1000, part(2000));
const folder = temporaryFolder();
afterAll(() => folder.remove());

test(`${NUM_REQUESTS} requests through the graph, many of them evicted and preempted: the tokens of each alone, and nothing of them left behind`, async () => {
  const result = await soakProcess({
    numRequests: NUM_REQUESTS,
    seed: 2,
    model: { modelDir: 'test/fixtures/models/qwen3-tied-sharded', cacheDir: folder.dir, precision: 'int8' },
  });
  expect(result.finished + result.aborted + result.failed).toBe(NUM_REQUESTS);
  expect(result.tokensCompared).toBeGreaterThan(5 * NUM_REQUESTS);
  expect(result.tokensDiffering).toBeLessThan(1 + 0.001 * result.tokensCompared);
  expect(result.events.evictions).toBeGreaterThanOrEqual(NUM_REQUESTS / 10);
  expect(result.events.preemptions).toBeGreaterThanOrEqual(NUM_REQUESTS / 10);
  expect(1000 * slope(result.samples, 'heapBytes')).toBeLessThan(MAX_GROWTH_BYTES);
  // The inference library keeps memory for the largest step of each kind so far, and rare ones come late: over so few requests that is a bound, no slope.
  expect(result.samples.at(-1)!.bytes - result.samples[0]!.bytes).toBeLessThan(250e6);
});
