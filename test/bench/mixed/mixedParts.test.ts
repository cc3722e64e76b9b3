/** Tests the parts of suite `mixed`: prompts from the session, servers, and figures from times. */
import { expect, test } from 'vitest';
import { figuresOf, targetsOf } from './mixedFigures.ts';
import type { Run } from './mixedBench.ts';
import { mixedCharts, mixedReport } from './mixedReport.ts';
import { mixedOptions } from './mixedSuite.ts';
import { replay } from './replay.ts';
import { type MixedRequest, mixedWorkload, seen } from './requests.ts';
import { EngineServer, OneByOne, type Job, PaddedBatches, type Server } from './server.ts';
import { LOOK_MS, readSession } from '../../support/session/session.ts';
import { quantile } from '../spread.ts';
import { VOCAB_SIZE } from '../../support/engine/fakeRunner.ts';
import { drain, harness, tokens } from '../../support/engine/harness.ts';
import { seededRandom } from '../../support/engine/workload.ts';

const session = readSession();

test('the session becomes prompts that fit their context, share their file blocks, and are the same for the same seed', async () => {
  const options = { contextTokens: 2048, vocabSize: 5000, numParameters: 494e6, suffixFirst: false, seed: 1 };
  const { requests, blocks } = await mixedWorkload(session, { ...options, untilMs: 110_000 });
  const start = await mixedWorkload(session, { ...options, untilMs: 20_000 });
  expect(start.requests).toEqual(requests.slice(0, start.requests.length));
  const count = (of: readonly MixedRequest[], priority: string) =>
    of.filter((request) => request.priority === priority).length;
  expect(count(requests, 'completion')).toBeGreaterThan(300);
  expect([count(requests, 'chat'), count(requests, 'summary')]).toEqual([1, 1]);
  for (const { promptIds, numTokens } of requests) {
    expect(promptIds.length + numTokens).toBeLessThanOrEqual(2048);
    expect(numTokens).toBeGreaterThan(0);
    expect(Math.max(...promptIds)).toBeLessThan(5000);
  }
  // Each chat and each summary continues a block that was read in idle time.
  for (const { promptIds, priority } of requests)
    if (priority !== 'completion')
      expect(blocks.some((block) => block.every((id, i) => promptIds[i] === id))).toBe(true);
  // The next key aborts a completion that nobody would have seen.
  const [shown, rest] = [seen(requests), requests.filter(({ abortMs }) => abortMs !== undefined)];
  expect(count(shown, 'completion')).toBeGreaterThan(30);
  for (const { atMs, abortMs } of rest) expect(abortMs! - atMs).toBeLessThan(LOOK_MS);
  const other = await mixedWorkload(session, { ...options, seed: 2, untilMs: 20_000 });
  expect(other.requests.map(({ numTokens }) => numTokens)).not.toEqual(
    start.requests.map(({ numTokens }) => numTokens),
  );
});

test('a model whose prompts end with the typed text reuses more of the previous prompt', async () => {
  const options = { contextTokens: 2048, vocabSize: 6144, numParameters: 494e6, seed: 1, untilMs: 20_000 };
  const shared = async (suffixFirst: boolean): Promise<number> => {
    const { requests } = await mixedWorkload(session, { ...options, suffixFirst });
    const ids = requests.map(({ promptIds }) => promptIds);
    // A further letter of a word may leave the prompt unchanged.
    const sharedWith = (before: readonly number[], prompt: readonly number[]): number => {
      const first = prompt.findIndex((id, at) => before[at] !== id);
      return first < 0 ? prompt.length : first;
    };
    return ids.slice(1).reduce((sum, prompt, i) => sum + sharedWith(ids[i]!, prompt), 0);
  };
  expect(await shared(true)).toBeGreaterThan(await shared(false));
});

function job(id: string, promptIds: readonly number[], numTokens: number, log: string[]): Job {
  return {
    id,
    priority: 'chat',
    promptIds,
    prefill: [],
    numTokens,
    onToken: () => log.push(id),
    onEnd: () => log.push(`${id} ends`),
  };
}

function padded(size: number, timeoutMs = 100) {
  const made = harness({ slots: 4096, tokenBudget: 256 });
  const server = new PaddedBatches(made.engine, {
    size,
    timeoutMs,
    now: () => made.clock.now,
    sleep: async (ms) => {
      made.clock.now += ms;
    },
    random: seededRandom(1),
    vocabSize: VOCAB_SIZE,
  });
  return { ...made, server };
}

async function finish(server: Server): Promise<void> {
  for (let steps = 0; server.hasWork(); steps++) {
    await server.step();
    if (steps > 10_000) throw new Error('The server does not come to an end.');
  }
}

test('padded batches compute all prompts at the longest length, and all sequences decode until the last has ended', async () => {
  const { server, runner, engine } = padded(2);
  const log: string[] = [];
  server.add(job('long', tokens(60, 1), 20, log));
  server.add(job('short', tokens(10, 2), 3, log));
  server.add(job('late', tokens(10, 3), 2, log));
  await server.step();
  // 60 tokens of the first prompt, 10 of the second and 50 pads.
  expect(runner.batches[0]!.tokens).toBe(120);
  await finish(server);
  expect(log.filter((id) => id === 'short')).toHaveLength(3);
  expect(log.indexOf('late')).toBeGreaterThan(log.indexOf('long ends'));
  expect(log.filter((entry) => entry.endsWith('ends'))).toEqual(['short ends', 'long ends', 'late ends']);
  // Each of the 19 steps after the first token has two rows. One of them is useless after its third token.
  expect(runner.numComputed).toBeGreaterThanOrEqual(120 + 19 + 19 + 11);
  expect(runner.numComputed).toBeLessThanOrEqual(120 + 19 + 19 + 11 + 2);
  engine.checkIntegrity();
});

test('a padded batch waits for its size or its timeout, and neither computes nor pads cached tokens', async () => {
  const { server, runner, clock } = padded(2, 40);
  const log: string[] = [];
  server.add(job('first', tokens(100, 1), 1, log));
  await server.step();
  expect(runner.batches).toEqual([]);
  await finish(server);
  expect(clock.now).toBe(40);
  server.add(job('again', [...tokens(100, 1), 5], 1, log));
  server.add(job('other', tokens(9, 2), 1, log));
  await server.step();
  // One token is left of the first prompt and nine of the second, so there are eight pads.
  expect(runner.batches.at(-1)!.tokens).toBe(1 + 9 + 8);
  await finish(server);
});

test('a padded batch drops requests aborted while waiting, and ends when all of its requests are aborted', async () => {
  const { server, engine } = padded(2);
  const log: string[] = [];
  for (const [i, id] of ['a', 'b', 'c'].entries()) server.add(job(id, tokens(20 + i, i), 50, log));
  server.abort('c');
  await server.step();
  server.abort('a');
  server.abort('b');
  await finish(server);
  expect(log.filter((entry) => entry.endsWith('ends')).sort()).toEqual(['a ends', 'b ends', 'c ends']);
  expect(engine.hasWork()).toBe(false);
});

const request = (id: string, atMs: number, more: Partial<MixedRequest> = {}): MixedRequest => ({
  id,
  priority: 'completion',
  atMs,
  promptIds: tokens(30, Number(id.slice(1))),
  prefill: [],
  numTokens: 5,
  ...more,
});

test('a replay sends and aborts as recorded, and keeps a background request running until the session has ended', async () => {
  const { engine, runner } = harness({ slots: 8192 });
  const requests = [request('c1', 1000), request('c2', 1010, { abortMs: 1011, numTokens: 4000 }), request('c3', 1020)];
  const summary = request('s9', 0, { priority: 'summary', numTokens: 40 });
  const { records, makespanMs } = await replay(new EngineServer(engine), requests, {
    speed: 10,
    background: [[summary]],
  });
  expect(records.map(({ id, due, tokens, unseen }) => [id, due, tokens.length === 5, unseen])).toEqual([
    ['c1', 0, true, false],
    ['c2', 1, false, true],
    ['c3', 2, true, false],
  ]);
  for (const { due, tokens, ended } of records)
    for (const at of [...tokens, ended]) expect(at).toBeGreaterThanOrEqual(due);
  expect(makespanMs).toBe(Math.max(...records.map(({ ended }) => ended)));
  expect(engine.hasWork()).toBe(false);
  expect(runner.numComputed).toBeGreaterThan(3 * 30);
  expect(engine.stats().classes.summary.queueMs.count).toBeGreaterThan(0);
  await drain(engine);
});

test.each([EngineServer, OneByOne])('a replay with %o serves all requests in full', async (Server) => {
  const { engine, runner } = harness({ slots: 8192 });
  const requests = Array.from({ length: 6 }, (_, i) => request(`c${i}`, i, { numTokens: 1 + i }));
  const { records } = await replay(new Server(engine), requests, { speed: 1000 });
  if (Server === OneByOne) expect(Math.max(...runner.batches.map(({ spans }) => spans))).toBe(1);
  expect(records.map(({ tokens: times }) => times.length)).toEqual(requests.map(({ numTokens }) => numTokens));
  expect(engine.stats().tokens.generated).toBe(21);
});

test('quantiles are actual values of the sample', () => {
  const values = Array.from({ length: 100 }, (_, i) => 100 - i);
  expect([0.5, 0.95, 0.99, 1].map((share) => quantile(values, share))).toEqual([50, 95, 99, 100]);
  expect(quantile([7], 0.5)).toBe(7);
  expect(quantile([], 0.5)).toBeNaN();
});

const run = (scene: Run['scene'], way: string, round: number, ms: number): Run => ({
  scene,
  way,
  round,
  makespanMs: 10 * ms,
  background: way === 'with chat and summaries' ? { chat: { promptTokens: 60, tokens: 30, ended: 2 } } : {},
  busyMs: 5 * ms,
  records: [
    {
      id: 'c1',
      priority: 'completion',
      due: 100,
      tokens: [100 + ms, 100 + 2 * ms, 100 + 4 * ms],
      ended: 100 + 4 * ms,
      unseen: false,
    },
    { id: 'c2', priority: 'completion', due: 0, tokens: [1], ended: 2, unseen: true },
    { id: 'h1', priority: 'chat', due: 0, tokens: [3 * ms], ended: 3 * ms, unseen: false },
  ],
});
const RUNS = [
  run('rush', 'continuous', 0, 10),
  run('rush', 'one by one', 0, 30),
  run('rush', 'continuous', 1, 20),
  run('rush', 'without ageing', 0, 40),
  run('live', 'alone', 0, 10),
  run('live', 'with chat and summaries', 0, 15),
];

test('figures combine rounds, compare with both neighbouring runs, and leave unseen completions out', () => {
  const figures = figuresOf({ runs: RUNS });
  expect(figures.map(({ scene, way, rounds }) => [scene, way, rounds])).toEqual([
    ['rush', 'continuous', 2],
    ['rush', 'one by one', 1],
    ['rush', 'without ageing', 1],
    ['live', 'alone', 1],
    ['live', 'with chat and summaries', 1],
  ]);
  expect(figures[0]).toMatchObject({
    perSecond: (10 * 1000) / 300,
    perBusySecond: (10 * 1000) / 150,
    makespanMs: 150,
    unseen: 2,
  });
  expect(figures[0]!.classes.completion).toEqual({
    ttft: { count: 2, p50: 10, p95: 20, p99: 20, most: 20 },
    total: { count: 2, p50: 40, p95: 80, p99: 80, most: 80 },
    tpot: { count: 2, p50: 15, p95: 30, p99: 30, most: 30 },
  });
  expect(figures[0]!.classes.chat).toMatchObject({ ttft: { count: 2, most: 60 }, tpot: { count: 0 } });
  const targets = targetsOf(figures);
  // Relative to the runs right before and after.
  expect(figures.map(({ overBeside }) => overBeside)).toEqual([Number.NaN, 0.5, 0.5, Number.NaN, Number.NaN]);
  expect(targets.throughput).toBeCloseTo(2, 9);
  expect(targets).toMatchObject({ ttft: 1.5, total: 1.5 });
  expect(targetsOf(figures.slice(0, 1))).toEqual({});
});

test('the report and the charts show the measured figures and nothing else', () => {
  const bench = {
    model: 'tiny' as const,
    threads: 2,
    parameters: 1e6,
    contextTokens: 512,
    seed: 1,
    rush: 50,
    speed: 2,
    batchSize: 8,
    batchTimeoutMs: 100,
    counts: { completion: 1, chat: 1, summary: 0 },
    promptTokens: 99,
    runs: RUNS,
  };
  const report = mixedReport(bench);
  expect(report).not.toMatch(/NaN|undefined|null/);
  for (const part of [
    '| continuous | 2 | 0.150 | 33.3 | 66.7 | 2.00x |',
    '| without ageing |',
    'Live',
    'chat 400 tokens/s of prompts, 200 tokens/s of answers, 2 ended',
    '2.00x | ≥ 2.5x',
    '1.50x | ≤ 2x',
  ])
    expect(report).toContain(part);
  expect(Object.keys(mixedCharts(bench)).sort()).toEqual([
    'mixed-first-token.svg',
    'mixed-live.svg',
    'mixed-policies.svg',
    'mixed-throughput.svg',
  ]);
  for (const svg of Object.values(mixedCharts(bench))) expect(svg).not.toMatch(/NaN|undefined|null/);
  const live = { ...bench, runs: RUNS.slice(4) };
  expect(mixedReport(live)).not.toContain('Rush');
  expect(Object.keys(mixedCharts(live))).toEqual(['mixed-live.svg']);
});

test('the command line explains an error in one sentence', () => {
  expect(mixedOptions({ shape: 'tiny', only: 'live,rush', rounds: '3', speed: '2.5' })).toEqual({
    model: 'tiny',
    only: ['live', 'rush'],
    rounds: 3,
    speed: 2.5,
  });
  expect(() => mixedOptions({ only: 'rush,nothing' })).toThrow(
    '--only nothing: it must be one of rush, policies, live',
  );
  expect(() => mixedOptions({ shape: 'huge' })).toThrow('--shape huge: it must be one of');
  expect(() => mixedOptions({ rounds: '1.5' })).toThrow('--rounds 1.5: it must be a whole number above 0');
  expect(() => mixedOptions({ speed: 'fast' })).toThrow('--speed fast: it must be a number above 0');
});
