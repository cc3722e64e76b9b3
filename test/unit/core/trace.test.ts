/** The step trace: valid Chrome trace JSON, phases within their steps, no text, and never more than its ring holds. */
import { expect, test } from 'vitest';
import { chromeTrace, StepTrace, type TracedStep } from '../../../engine/core/trace.ts';
import { ask, drain, harness, tokens } from '../../support/engine/harness.ts';

interface Event {
  ph: string;
  tid: number;
  name: string;
  ts: number;
  dur: number;
  args: Record<string, unknown>;
}

const parse = (steps: TracedStep[]): { traceEvents: Event[]; otherData: object } =>
  JSON.parse(chromeTrace(steps, { model: 'm' }));

/** An engine at work on three requests under a budget that makes it evict. */
async function busySteps(): Promise<TracedStep[]> {
  const { engine, clock, runner } = harness({ slots: 96 });
  runner.beforeRun = () => {
    clock.now += 5;
  };
  ask(engine, tokens(60, 1), { priority: 'completion', maxTokens: 6 });
  ask(engine, tokens(60, 2), { priority: 'chat', maxTokens: 6 });
  ask(engine, tokens(50, 3), { priority: 'summary', maxTokens: 6 });
  await drain(engine);
  return engine.trace();
}

test('slices of a trace track are consecutive or nested', async () => {
  const { traceEvents } = parse(await busySteps());
  const slices = traceEvents.filter(({ ph }) => ph === 'X');
  expect(slices.filter(({ name }) => name === 'step').length).toBeGreaterThan(5);
  for (const tid of new Set(slices.map((slice) => slice.tid))) {
    const ofTrack = slices.filter((slice) => slice.tid === tid);
    for (const a of ofTrack)
      for (const b of ofTrack) {
        const apart = a.ts + a.dur <= b.ts || b.ts + b.dur <= a.ts;
        const within = (a.ts <= b.ts && a.ts + a.dur >= b.ts + b.dur) || (b.ts <= a.ts && b.ts + b.dur >= a.ts + a.dur);
        expect(apart || within).toBe(true);
      }
  }
});

test('a traced step has its batch and the cache events', async () => {
  const steps = await busySteps();
  const { traceEvents, otherData } = parse(steps);
  expect(otherData).toEqual({ model: 'm' });
  const spans = traceEvents.filter(({ ph, tid }) => ph === 'X' && tid > 1);
  expect(new Set(spans.map(({ args }) => args.class))).toEqual(new Set(['completion', 'chat', 'summary']));
  expect(new Set(spans.map(({ args }) => args.phase))).toEqual(new Set(['prefill', 'decode']));
  const counted = traceEvents
    .filter(({ ph, name }) => ph === 'X' && name === 'step')
    .reduce((sum, { args }) => sum + Number(args.tokens), 0);
  expect(counted).toBe(steps.flatMap((step) => step.spans).reduce((sum, span) => sum + span.tokens, 0));
  const happened = steps.at(-1)!.events;
  expect(happened.evictions + happened.demotions).toBeGreaterThan(0);
  const told = traceEvents
    .filter(({ ph, name }) => ph === 'i' && (name === 'evictions' || name === 'demotions'))
    .reduce((sum, { args }) => sum + Number(args.count), 0);
  expect(told).toBe(happened.evictions + happened.demotions - steps[0]!.events.evictions - steps[0]!.events.demotions);
});

test('the trace shows the wait of a request before its first step and when steps skip it', async () => {
  const { engine, clock, runner } = harness({ slots: 1024, tokenBudget: 16 });
  runner.beforeRun = () => {
    clock.now += 5;
  };
  clock.now = 100;
  ask(engine, tokens(40, 1), { priority: 'summary', maxTokens: 2 });
  await engine.step();
  ask(engine, tokens(16, 2), { priority: 'completion', maxTokens: 1 });
  clock.now += 3;
  await drain(engine);
  const waits = (parse(engine.trace()).traceEvents as (Event & { id: number })[]).filter(
    ({ ph }) => ph === 'b' || ph === 'e',
  );
  // Milliseconds from the start: the summary's first step runs to 5; the completion comes at 5 and takes the step from 8 to 13.
  expect(waits.map(({ ph, name, id, ts, args }) => [ph, name, id, ts, args?.reason])).toEqual([
    ['b', 'completion waits', 1, 5000, 'queue'],
    ['e', 'completion waits', 1, 8000, undefined],
    ['b', 'summary waits', 0, 5000, 'passed over'],
    ['e', 'summary waits', 0, 13_000, undefined],
  ]);
});

test('the trace contains only numbers and a fixed list of words, no user text', async () => {
  const words = new Set<string>();
  const collect = (value: unknown): void => {
    if (typeof value === 'string') words.add(value.replace(/\d+/g, 'N'));
    else if (value && typeof value === 'object') Object.values(value).forEach(collect);
  };
  collect(parse(await busySteps()));
  const kinds = ['completion', 'chat', 'summary'].flatMap((kind) => [
    kind,
    `${kind} N: prefill`,
    `${kind} N: decode`,
    `${kind} waits`,
  ]);
  const known = [
    'ms',
    'm',
    'M',
    'X',
    'i',
    'C',
    't',
    'Kvasir',
    'process_name',
    'thread_name',
    'steps',
    'requests N',
    'step',
    'schedule',
    'run',
    'sample',
    'prefill',
    'decode',
    'KV bytes',
    'batch',
    'evictions',
    'preemptions',
    'promotions',
    'demotions',
    'b',
    'e',
    'waits',
    'paged',
    'tokens by lane',
    'queue',
    'passed over',
    ...kinds,
  ];
  expect([...words].filter((word) => !known.includes(word))).toEqual([]);
});

test('the trace is empty without steps and keeps the last 2,000 steps in order', () => {
  expect(parse([]).traceEvents.filter(({ ph }) => ph !== 'M')).toEqual([]);
  const trace = new StepTrace();
  for (let i = 0; i < 4500; i++)
    trace.add({
      start: i,
      scheduled: i,
      run: i,
      end: i,
      spans: [],
      events: { evictions: 0, preemptions: 0, promotions: 0, demotions: 0 },
      poolBytes: 0,
      storeBytes: 0,
      waiting: 0,
    });
  const starts = trace.steps().map(({ start }) => start);
  expect(starts).toEqual(Array.from({ length: 2000 }, (_, i) => 2500 + i));
});
