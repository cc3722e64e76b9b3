/** Samples for the charts: changes since the last sample, gaps without activity, and only the last minutes. */
import { expect, test } from 'vitest';
import type { EngineStats } from '../../../../engine/protocol/stats.ts';
import { KEPT_MS, Samples } from '../../../../src/monitor/samples.ts';

const stats = (steps: number, batchSequences: number, prompt: number, promptCached: number): EngineStats =>
  ({
    poolBytes: 5,
    storeBytes: 7,
    scratchBytes: 11,
    bufferBytes: 13,
    tokensPerSecond: 3,
    ttftMs: { p95: 0 },
    events: { steps },
    batchSequences,
    tokens: { prompt, promptCached },
  }) as EngineStats;

test('shares and means cover the time since the last sample', () => {
  const samples = new Samples();
  expect(samples.add(stats(10, 2, 100, 0), 0)).toMatchObject({
    reused: 0,
    batch: 2,
    usedBytes: 36,
    tokensPerSecond: 3,
    firstTokenP95: null,
  });
  // 20 sequences in 10 steps before, 60 in 30 now: 2 a step; 90 of 100 more tokens were cached.
  expect(samples.add(stats(30, 2, 200, 90), 500)).toMatchObject({ reused: 0.9, batch: 2 });
  expect(samples.add(stats(31, (60 + 5) / 31, 200, 90), 1000)).toMatchObject({
    reused: null,
    batch: expect.closeTo(5),
  });
  expect(samples.add(stats(31, (60 + 5) / 31, 200, 90), 1500)).toMatchObject({ reused: null, batch: null });
});

test('counters start again with a new engine', () => {
  const samples = new Samples();
  samples.add(stats(100, 2, 1000, 900), 0);
  expect(samples.add(stats(4, 3, 50, 10), 500)).toMatchObject({ reused: 0.2, batch: 3 });
});

test('samples older than the limit are dropped', () => {
  const samples = new Samples();
  for (let i = 0; i <= 3000; i++) samples.add(stats(i, 1, 0, 0), i * 500);
  expect(samples.all.at(-1)!.at).toBe(1_500_000);
  expect(samples.all[0]!.at).toBeGreaterThan(1_500_000 - KEPT_MS);
  expect(samples.all.length).toBe(KEPT_MS / 500);
});
