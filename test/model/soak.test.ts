/** The same through the real graph: 2,000 requests of one engine's life, in a process of its own. */
import { afterAll, expect, test } from 'vitest';
import { MOST_GROWTH_BYTES, soakProcess } from '../bench/soak/soakBench.ts';
import { slope } from '../bench/soak/soakRun.ts';
import { temporaryFolder } from './fixtures.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

test('2,000 requests through the graph, hundreds of them evicted and preempted: the tokens of each alone, and memory that stays flat', async () => {
  const result = await soakProcess({ numRequests: 2000, seed: 2, model: { modelDir: 'test/fixtures/models/qwen3-tied-sharded', cacheDir: folder.dir, precision: 'int8' } });
  expect(result.finished + result.aborted + result.failed).toBe(2000);
  expect(result.tokensCompared).toBeGreaterThan(10_000);
  expect(result.tokensDiffering / result.tokensCompared).toBeLessThan(0.001);
  expect(result.events.evictions).toBeGreaterThanOrEqual(200);
  expect(result.events.preemptions).toBeGreaterThanOrEqual(200);
  expect(1000 * slope(result.samples, 'heapBytes')).toBeLessThan(MOST_GROWTH_BYTES);
  // How the system hands out memory is a megabyte or two of noise over 1,000 requests; leaving one step's outputs behind would be tens of them.
  expect(1000 * slope(result.samples)).toBeLessThan(4 * MOST_GROWTH_BYTES);
});
