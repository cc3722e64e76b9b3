/** Counters and percentiles: by class, over ten seconds, and as Prometheus text that a parser of the format takes. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Metrics } from '../../../engine/core/metrics.ts';
import { prometheusText } from '../../../engine/server/prometheus.ts';
import type { ClassTimes, EngineStats, Quantiles } from '../../../engine/protocol/stats.ts';
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

type Figures = Omit<EngineStats, 'model' | 'files' | 'tree'>;
const quantiles = fc.record({
  p50: fc.double({ min: 0, max: 1e6, noNaN: true }),
  p95: fc.double({ min: 0, max: 1e6, noNaN: true }),
  p99: fc.double({ min: 0, max: 1e6, noNaN: true }),
  count: fc.nat(),
  sum: fc.double({ min: 0, max: 1e9, noNaN: true }),
});
const classTimes: fc.Arbitrary<ClassTimes> = fc.record({
  queueMs: quantiles,
  ttftMs: quantiles,
  tpotMs: quantiles,
  stepMs: quantiles,
});
const share = fc.double({ min: 0, max: 1, noNaN: true });
const figures: fc.Arbitrary<Figures> = fc.record({
  maxBytes: fc.nat(),
  poolBytes: fc.nat(),
  storeBytes: fc.nat(),
  scratchBytes: fc.nat(),
  bufferBytes: fc.nat(),
  diskBytes: fc.nat(),
  diskMaxBytes: fc.nat(),
  kvBytesPerToken: fc.nat(),
  poolSlots: fc.record({ total: fc.nat(), free: fc.nat(), held: fc.nat() }),
  requests: fc.record({ waiting: fc.nat(), running: fc.nat(), done: fc.nat(), failed: fc.nat(), aborted: fc.nat() }),
  tokens: fc.record({
    prompt: fc.nat(),
    promptComputed: fc.nat(),
    promptCached: fc.nat(),
    promptFromDisk: fc.nat(),
    promptShifted: fc.nat(),
    idleComputed: fc.nat(),
    generated: fc.nat(),
    drafted: fc.nat(),
    accepted: fc.nat(),
  }),
  events: fc.record({
    steps: fc.nat(),
    evictions: fc.nat(),
    preemptions: fc.nat(),
    promotions: fc.nat(),
    demotions: fc.nat(),
  }),
  tokensPerSecond: share,
  utilisation: share,
  busyMs: share,
  stepMs: quantiles,
  batchTokens: share,
  batchSequences: share,
  ttftMs: quantiles,
  classes: fc.record({ completion: classTimes, chat: classTimes, summary: classTimes, idle: classTimes }),
  memory: fc.record({ processBytes: fc.nat(), totalBytes: fc.nat(), availableBytes: fc.nat() }),
});

interface Family {
  type: string;
  samples: Map<string, number>;
}

/** The exposition format, read strictly: HELP, then TYPE, then that metric's samples and no other's. @throws Error at the first line that is not so. */
function parseExposition(text: string): Map<string, Family> {
  if (!text.endsWith('\n')) throw new Error('the last line does not end');
  const families = new Map<string, Family>();
  let name = '';
  for (const line of text.slice(0, -1).split('\n')) {
    const help = /^# HELP ([a-z_]+) \S.*$/.exec(line);
    const type = /^# TYPE ([a-z_]+) (counter|gauge|summary)$/.exec(line);
    const sample = /^([a-z_]+)(\{(?:[a-z]+="[^"\\\n]*",?)+\})? (NaN|[0-9.e+-]+)$/.exec(line);
    if (help) {
      name = help[1]!;
      if (families.has(name)) throw new Error(`${name} twice`);
      families.set(name, { type: '', samples: new Map() });
    } else if (type && type[1] === name && families.get(name)!.type === '') families.get(name)!.type = type[2]!;
    else if (sample && families.get(name)?.type) {
      const family = families.get(name)!;
      const suffix = sample[1]!.slice(name.length);
      if (
        !sample[1]!.startsWith(name) ||
        !(suffix === '' || (family.type === 'summary' && /^_(sum|count)$/.test(suffix)))
      )
        throw new Error(`${line} under ${name}`);
      const key = `${suffix}${sample[2] ?? ''}`;
      if (family.samples.has(key)) throw new Error(`${line} twice`);
      const value = Number(sample[3]);
      if (Number.isNaN(value) !== (sample[3] === 'NaN')) throw new Error(`${line}: no number`);
      family.samples.set(key, value);
    } else throw new Error(`not of the format: ${line}`);
  }
  return families;
}

test('metrics are valid Prometheus text; counters end in _total, times are in seconds', () => {
  fc.assert(
    fc.property(figures, (stats) => {
      for (const [name, { type, samples }] of parseExposition(prometheusText(stats))) {
        expect(name.endsWith('_total')).toBe(type === 'counter');
        expect(samples.size).toBeGreaterThan(0);
        if (type === 'summary') expect(name).toMatch(/^kvasir_.*_seconds$/);
      }
    }),
    { seed: 1, numRuns: 100 },
  );
});

test('every metric appears in the Prometheus text', () => {
  const times = (n: number): Quantiles => ({ p50: n, p95: n + 1, p99: n + 2, count: n, sum: n * 10 });
  const none = { p50: 0, p95: 0, p99: 0, count: 0, sum: 0 };
  const ofClass = (n: number): ClassTimes => ({
    queueMs: times(n),
    ttftMs: times(n + 100),
    tpotMs: none,
    stepMs: times(n + 300),
  });
  const families = parseExposition(
    prometheusText({
      maxBytes: 1000,
      poolBytes: 600,
      storeBytes: 50,
      scratchBytes: 0,
      bufferBytes: 20,
      diskBytes: 0,
      diskMaxBytes: 0,
      kvBytesPerToken: 4,
      poolSlots: { total: 9, free: 4, held: 5 },
      requests: { waiting: 1, running: 2, done: 3, failed: 4, aborted: 5 },
      tokens: {
        prompt: 100,
        promptComputed: 30,
        promptCached: 70,
        promptFromDisk: 10,
        promptShifted: 5,
        idleComputed: 12,
        generated: 9,
        drafted: 8,
        accepted: 6,
      },
      events: { steps: 11, evictions: 21, preemptions: 22, promotions: 23, demotions: 24 },
      tokensPerSecond: 33,
      utilisation: 0.5,
      busyMs: 1500,
      stepMs: none,
      batchTokens: 4.5,
      batchSequences: 1.5,
      ttftMs: none,
      classes: {
        completion: ofClass(1000),
        chat: ofClass(2000),
        summary: ofClass(3000),
        idle: { ...ofClass(4000), ttftMs: none },
      },
      memory: { processBytes: 7, totalBytes: 8, availableBytes: 6 },
    }),
  );
  const of = (name: string) => Object.fromEntries(families.get(`kvasir_${name}`)!.samples);
  expect(of('requests')).toEqual({ '{state="waiting"}': 1, '{state="running"}': 2 });
  expect(of('requests_total')).toEqual({ '{outcome="done"}': 3, '{outcome="failed"}': 4, '{outcome="aborted"}': 5 });
  expect(of('cache_events_total')).toEqual({
    '{event="eviction"}': 21,
    '{event="preemption"}': 22,
    '{event="promotion"}': 23,
    '{event="demotion"}': 24,
  });
  expect(of('queue_seconds')).toMatchObject({
    '{class="chat",quantile="0.5"}': 2,
    '{class="chat",quantile="0.95"}': 2.001,
    '{class="chat",quantile="0.99"}': 2.002,
    '_sum{class="chat"}': 20,
    '_count{class="chat"}': 2000,
  });
  expect(of('time_to_first_token_seconds')['{class="summary",quantile="0.5"}']).toBe(3.1);
  expect(of('time_to_first_token_seconds')['{class="idle",quantile="0.5"}']).toBeNaN();
  expect(of('time_per_output_token_seconds')['_count{class="completion"}']).toBe(0);
  expect(of('step_seconds')['{class="completion",quantile="0.5"}']).toBe(1.3);
  const single = (name: string) => families.get(`kvasir_${name}`)!.samples.get('');
  expect(
    [
      'steps_total',
      'busy_seconds_total',
      'utilisation_ratio',
      'batch_sequences',
      'batch_tokens',
      'generated_tokens_total',
      'generated_tokens_per_second',
      'prompt_tokens_total',
      'prompt_tokens_cached_total',
      'draft_tokens_total',
      'draft_tokens_accepted_total',
      'kv_limit_bytes',
      'process_resident_bytes',
      'machine_available_bytes',
    ].map(single),
  ).toEqual([11, 1.5, 0.5, 1.5, 4.5, 9, 33, 100, 70, 8, 6, 1000, 7, 6]);
  expect(of('prompt_tokens_computed_total')).toEqual({ '{for="requests"}': 30, '{for="idle"}': 12 });
  expect(of('kv_bytes')).toEqual({
    '{tier="pool"}': 600,
    '{tier="store"}': 50,
    '{tier="scratch"}': 0,
    '{tier="buffers"}': 20,
  });
  expect(of('pool_slots')).toEqual({ '{state="free"}': 4, '{state="held"}': 5 });
});
