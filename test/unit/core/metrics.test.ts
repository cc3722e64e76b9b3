/** Counters and percentiles: by class and over ten seconds. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Metrics } from '../../../engine/core/metrics.ts';
import type { Quantiles } from '../../../engine/protocol/stats.ts';
import type { Priority } from '../../../engine/protocol/tasks.ts';

const step = (startedAt: number, ms: number, priorities: Priority[] = ['chat'], numGenerated = 1) => ({
  startedAt,
  endedAt: startedAt + ms,
  numTokens: 2,
  numGenerated,
  priorities,
});

test('percentiles of steps, and a rate over ten seconds with work', () => {
  const metrics = new Metrics();
  expect(metrics.stepMs()).toEqual({ p50: 0, p95: 0, p99: 0, count: 0, sum: 0 });
  for (let i = 1; i <= 100; i++) metrics.recordStep(step(i * 1000 - i, i));
  const { p50, p95, p99, count, sum } = metrics.stepMs();
  expect(Math.abs(p50 - 50) + Math.abs(p95 - 95) + Math.abs(p99 - 99)).toBeLessThan(3);
  expect({ count, sum }).toEqual({ count: 100, sum: 5050 });
  expect(metrics.meanBatchTokens()).toBe(2);
  // Steps 90 to 100: 11 tokens in their 1045 ms.
  expect(metrics.tokensPerSecond(100_000)).toBeCloseTo(11_000 / 1045, 6);
  expect(metrics.tokensPerSecond(200_000)).toBe(0);
});

test('property: rate and utilisation are those of a plain loop over all steps, however many there were', () => {
  const steps = fc.array(
    fc.record({ pause: fc.oneof(fc.nat(30), fc.nat(9000)), ms: fc.nat(800), numGenerated: fc.nat(9) }),
    { minLength: 1, maxLength: 300 },
  );
  fc.assert(
    fc.property(steps, fc.nat(12_000), fc.nat(7), (recorded, later, asks) => {
      const metrics = new Metrics();
      const all: ReturnType<typeof step>[] = [];
      let now = 0;
      const check = (at: number): void => {
        const recent = all.filter(({ endedAt }) => endedAt >= at - 10_000);
        const sum = (of: (one: (typeof all)[number]) => number): number =>
          recent.reduce((total, one) => total + of(one), 0);
        const ms = sum(({ startedAt, endedAt }) => endedAt - startedAt);
        const from = Math.max(0, at - 10_000);
        expect(metrics.tokensPerSecond(at)).toBeCloseTo(
          ms > 0 ? (1000 * sum(({ numGenerated }) => numGenerated)) / ms : 0,
          6,
        );
        expect(metrics.utilisation(at)).toBeCloseTo(
          at > from
            ? Math.min(1, sum(({ startedAt, endedAt }) => endedAt - Math.max(startedAt, from)) / (at - from))
            : 0,
          9,
        );
      };
      for (const [i, { pause, ms, numGenerated }] of recorded.entries()) {
        all.push(step(now + pause, ms, ['chat'], numGenerated));
        metrics.recordStep(all.at(-1)!);
        now += pause + ms;
        if (asks > 0 && i % asks === 0) check(now);
      }
      check(now);
      check(now + later);
    }),
    { seed: 7, numRuns: 200 },
  );
});

test('a step is recorded in about the same time, whether the last ten seconds had ten of them or twenty thousand', () => {
  /** The least ms of several turns: others on the machine can only make one longer. */
  const timeOf = (msPerStep: number): number => {
    const metrics = new Metrics();
    let now = 0;
    const record = (count: number): void => {
      for (let i = 0; i < count; i++, now += msPerStep) metrics.recordStep(step(now, msPerStep));
    };
    record(22_000);
    return Math.min(
      ...[1, 2, 3, 4, 5].map(() => {
        const start = performance.now();
        record(1000);
        return performance.now() - start;
      }),
    );
  };
  expect(timeOf(0.5) / timeOf(1000)).toBeLessThan(8);
});

test('utilisation is the share of the last ten seconds that steps covered, the parts before them left out', () => {
  const metrics = new Metrics(1000);
  expect(metrics.utilisation(1000)).toBe(0);
  metrics.recordStep(step(1000, 500));
  // A life of two seconds so far.
  expect(metrics.utilisation(3000)).toBeCloseTo(0.25, 9);
  metrics.recordStep(step(9000, 2000));
  // From 1,200 on: 300 ms of the first, all of the second.
  expect(metrics.utilisation(11_200)).toBeCloseTo(0.23, 9);
  expect(metrics.utilisation(20_500)).toBeCloseTo(0.05, 9);
  expect(metrics.utilisation(30_000)).toBe(0);
  expect(metrics.busyMs).toBe(2500);
});

test('each class has its own times; a step with several sequences of a class counts once', () => {
  const metrics = new Metrics();
  metrics.recordStep(step(0, 10, ['completion', 'chat', 'chat']));
  metrics.recordStep(step(10, 30, ['chat']));
  metrics.recordFirstToken('chat', 40);
  metrics.recordFirstToken('completion', 8);
  metrics.recordEnd('completion', 2, null);
  metrics.recordEnd('chat', 4, 16);
  const { completion, chat, summary, idle } = metrics.classes();
  const about = (quantiles: Quantiles) => [
    Math.round(quantiles.p50),
    Math.round(quantiles.p99),
    quantiles.count,
    quantiles.sum,
  ];
  expect([completion, chat].map(({ stepMs }) => about(stepMs))).toEqual([
    [10, 10, 1, 10],
    [10, 30, 2, 40],
  ]);
  expect([completion, chat].map(({ ttftMs }) => about(ttftMs))).toEqual([
    [8, 8, 1, 8],
    [40, 40, 1, 40],
  ]);
  expect([completion, chat].map(({ queueMs }) => about(queueMs))).toEqual([
    [2, 2, 1, 2],
    [4, 4, 1, 4],
  ]);
  expect([completion, chat].map(({ tpotMs }) => tpotMs.count)).toEqual([0, 1]);
  for (const times of [summary, idle]) for (const { count } of Object.values(times)) expect(count).toBe(0);
  expect(metrics.ttftMs().count).toBe(2);
});
