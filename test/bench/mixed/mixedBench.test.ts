/** Tests suite `mixed` on a tiny shape: each way completes the session's requests and appears in the report. */
import { afterAll, expect, test } from 'vitest';
import { mixedBench } from './mixedBench.ts';
import { figuresOf } from './mixedFigures.ts';
import { mixedCharts, mixedReport } from './mixedReport.ts';
import { temporaryFolder } from '../../support/model/fixtures.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

test('each way completes the session, and every figure is present', async () => {
  // The part of the session before its first question. It takes a second at this speed.
  const bench = await mixedBench({
    model: 'tiny',
    threads: 1,
    contextTokens: 512,
    untilMs: 32_000,
    rush: 200,
    speed: 40,
    cache: folder.dir,
  });
  const figures = figuresOf(bench);
  const ways = (scene: string) => figures.filter((one) => one.scene === scene).map(({ way }) => way);
  expect(ways('rush').slice(0, 3)).toEqual(['continuous', 'one by one', 'padded batches']);
  expect(ways('rush')).toContain('without grouping');
  expect(ways('live').slice(0, 3)).toEqual(['alone', 'with chat and summaries', 'without classes']);
  const { completion, chat } = bench.counts;
  expect(completion).toBeGreaterThan(5);
  expect(chat).toBe(1);
  for (const { scene, rounds, classes, perSecond, perBusySecond } of figures) {
    expect(classes.completion.ttft.count).toBe(completion! * rounds);
    expect(classes.chat.ttft.count).toBe(scene === 'rush' ? rounds : 0);
    expect(perSecond).toBeGreaterThan(0);
    expect(perBusySecond).toBeGreaterThanOrEqual(perSecond);
  }
  expect(mixedReport(bench)).not.toMatch(/NaN|undefined|null/);
  for (const svg of Object.values(mixedCharts(bench))) expect(svg).not.toMatch(/NaN|undefined|null/);
});
