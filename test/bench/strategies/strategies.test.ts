/** Checks that the strategies `none`, `dynamic` and `static` write the same tokens as the pool. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { SCENARIOS } from './scenarios.ts';
import { strategiesBench, strategiesSuite } from './strategiesBench.ts';
import { strategiesCsv, strategiesReport } from './strategiesReport.ts';

const cacheDir = await mkdtemp(join(tmpdir(), 'kvasir-strategies-'));
afterAll(() => rm(cacheDir, { recursive: true, force: true }));

test('two turns of a conversation: every strategy writes the same tokens', async () => {
  const scenarios = [{ ...SCENARIOS[0]!, questions: SCENARIOS[0]!.questions.slice(0, 2) }];
  const result = await strategiesBench({ samples: 1, answerTokens: 6, threads: 1, scenarios, cacheDir });
  const of = (name: string) => result.records.filter(({ strategy }) => strategy === name);
  expect(['none', 'dynamic', 'static', 'pool'].map((name) => of(name).length)).toEqual([2, 2, 2, 2]);
  expect(new Set(result.records.map(({ tokens, turn }) => `${turn} ${tokens}`)).size).toBe(2);
  expect([...of('none'), ...of('dynamic'), ...of('static')].map(({ keptBytes }) => keptBytes)).toEqual(
    Array(6).fill(0),
  );
  expect(of('pool')[0]!.peakBytes).toBeGreaterThan(0);
  for (const [turn, { peakBytes, contextTokens, tokens }] of of('none').entries()) {
    // Every token except the last written one has a row. An array that grows by one row exists beside the previous
    // array.
    const numRows = contextTokens + tokens - 1;
    expect(of('dynamic')[turn]!.peakBytes).toBe((peakBytes / numRows) * (2 * numRows - 1));
    expect(of('static')[turn]!.peakBytes).toBe((peakBytes / numRows) * (result.contextTokens - 1));
  }
  // Only the requested strategies run.
  const dynamic = await strategiesBench({
    only: ['dynamic'],
    samples: 1,
    answerTokens: 6,
    threads: 1,
    scenarios,
    cacheDir,
  });
  expect(dynamic.records.map(({ strategy, turn, tokens }) => [strategy, turn, tokens])).toEqual(
    of('dynamic').map(({ turn, tokens }) => ['dynamic', turn, tokens]),
  );
  expect(strategiesReport(dynamic)).toContain('The mean over 2 answers each');
  await expect(strategiesSuite({ only: 'none,other' })).rejects.toThrow(
    '--only other: there is no such strategy; there are none, dynamic, static, pool',
  );
  expect(strategiesCsv(result.records).trim().split('\n')).toHaveLength(9);
  expect(strategiesReport(result)).toMatch(/^\| static \| [\d.]+ \| 0 \| [\d.]+ \| [\d.]+ \|$/m);
});
