/**
 * The engine behind its protocol, with the built-in model: shared file block, one end per request, the error boundary,
 * the worker.
 */
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { build } from 'esbuild';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { AssistantServer } from '../../engine/server/assistantServer.ts';
import { Engine } from '../../engine/core/engine.ts';
import { BEAT_MS } from '../../engine/server/liveEngines.ts';
import type { LoadedModel } from '../../engine/server/loadedModel.ts';
import { loadModel } from '../../engine/server/loadModel.ts';
import { IdlePrefill } from '../../engine/server/idlePrefill.ts';
import type { Machine } from '../../engine/server/machine.ts';
import { type EngineMessage, type HostMessage, PROTOCOL_VERSION } from '../../engine/protocol/messages.ts';
import type { EngineStats } from '../../engine/protocol/stats.ts';
import type { ChatTask, Task } from '../../engine/protocol/tasks.ts';
import { RequestOutput } from '../../engine/server/requestOutput.ts';
import { BUILT_IN } from '../support/builtIn.ts';
import { linkNative } from '../support/linkNative.ts';

const cacheDir = await mkdtemp(join(tmpdir(), 'kvasir-assistant-'));
afterAll(() => rm(cacheDir, { recursive: true, force: true }));

const LOAD = {
  type: 'load',
  requestId: 'load',
  modelDir: 'model',
  cacheDir,
  precision: 'int8',
  maxBytes: 50e6,
  threads: 1,
} as const;
const SOURCE = Array.from(
  { length: 40 },
  (_, i) =>
    `export function field${i}(record: Record<string, number>): number {\n  return record.field${i} ?? ${i};\n}\n`,
)
  .join('\n')
  .slice(0, 3400);

/**
 * Sends messages to an engine and keeps its answers. `post` is an AssistantServer's `handle` or a worker's
 * `postMessage`.
 */
class Talk {
  readonly messages: EngineMessage[] = [];
  #waiting: { id: string; resolve: (end: EngineMessage) => void }[] = [];
  post: (message: HostMessage) => void = () => {};

  readonly receive = (message: EngineMessage): void => {
    this.messages.push(message);
    if (
      message.type === 'chunk' ||
      message.type === 'ready' ||
      message.type === 'loadProgress' ||
      message.type === 'progress' ||
      message.type === 'log'
    )
      return;
    const found = this.#waiting.filter((w) => w.id === message.requestId);
    this.#waiting = this.#waiting.filter((w) => w.id !== message.requestId);
    for (const { resolve } of found) resolve(message);
  };

  ends(id: string): EngineMessage[] {
    return this.messages.filter(
      (m) => (m.type === 'done' || m.type === 'error' || m.type === 'reply') && m.requestId === id,
    );
  }

  ask(message: HostMessage & { requestId: string }): Promise<EngineMessage> {
    return new Promise((resolve) => {
      this.#waiting.push({ id: message.requestId, resolve });
      this.post(message);
    });
  }

  generate(requestId: string, task: Task, sampling = {}): Promise<EngineMessage> {
    const priority = task.kind === 'complete' ? 'completion' : task.kind === 'chat' ? 'chat' : 'summary';
    return this.ask({ type: 'generate', requestId, priority, task, sampling });
  }

  async stats(): Promise<EngineStats> {
    const reply = await this.ask({ type: 'stats', requestId: `stats${this.messages.length}` });
    if (reply.type !== 'reply' || reply.value.kind !== 'stats') throw new Error(JSON.stringify(reply));
    return reply.value.stats;
  }
}

function inThread(load = loadModel, machine?: Machine): Talk {
  const talk = new Talk();
  const assistant = new AssistantServer(talk.receive, load, machine);
  talk.post = (message) => assistant.handle(message);
  return talk;
}

const done = (end: EngineMessage) => {
  if (end.type !== 'done') throw new Error(JSON.stringify(end));
  return end;
};

test('the budget follows the free memory down and up while an answer is written, without changing the answer', async () => {
  let availableBytes = 2e9;
  let skipped = 0;
  const { now } = performance;
  vi.spyOn(process, 'availableMemory').mockImplementation(() => availableBytes);
  vi.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + skipped);
  try {
    const talk = inThread();
    const budgets: number[] = [];
    talk.post({ ...LOAD, maxBytes: 0 });
    talk.post({ type: 'documentChanged', docId: 'd', version: 1, path: 'src/fields.ts', text: SOURCE });
    // A raw prompt, because an answer about the file would end before the budget falls.
    const question: Task = { kind: 'raw', prompt: SOURCE };
    const alone = done(await talk.generate('alone', question, { maxTokens: 40, ignoreEos: true }));
    budgets.push((await talk.stats()).maxBytes);
    const answer = talk.generate('pressed', question, { maxTokens: 40, ignoreEos: true });
    while (!talk.messages.some((message) => message.type === 'chunk' && message.requestId === 'pressed'))
      await new Promise((resolve) => setImmediate(resolve));
    availableBytes = 600e6;
    skipped += 4000;
    // The budget falls after the current step.
    while ((await talk.stats()).maxBytes === budgets[0]) await new Promise((resolve) => setImmediate(resolve));
    expect(talk.ends('pressed')).toEqual([]);
    budgets.push((await talk.stats()).maxBytes);
    const pressed = done(await answer);
    const text = (id: string) =>
      talk.messages
        .flatMap((message) => (message.type === 'chunk' && message.requestId === id ? [message.text] : []))
        .join('');
    expect(text('pressed')).toBe(text('alone'));
    expect(pressed.usage.completionTokens).toBe(alone.usage.completionTokens);
    availableBytes = 4e9;
    for (let i = 0; i < 2; i++) {
      skipped += 61_000;
      budgets.push((await talk.stats()).maxBytes);
    }
    // The budget is a share of the free memory and the cache's memory. It rises by half each minute.
    expect(budgets[0]).toBe(1.2e9);
    expect(budgets[1]! / 1e6).toBeGreaterThan(360);
    expect(budgets[1]! / 1e6).toBeLessThan(480);
    expect(budgets.slice(2).map((each) => each / budgets[1]!)).toEqual([
      expect.closeTo(1.5, 5),
      expect.closeTo(2.25, 5),
    ]);
    await talk.ask({ type: 'shutdown', requestId: 'shutdown' });
  } finally {
    vi.restoreAllMocks();
  }
});

test('two windows share one budget: it falls when the second loads, without changing a running answer, and rises when it unloads', async () => {
  let skipped = 0;
  const { now } = performance;
  vi.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + skipped);
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    const [one, two] = [inThread(), inThread()];
    const load = { ...LOAD, enginesDir: join(cacheDir, 'engines') };
    const shared = async (talk: Talk) => {
      const { maxBytes, numEngines } = await talk.stats();
      return [maxBytes, numEngines];
    };
    one.post(load);
    one.post({ type: 'documentChanged', docId: 'd', version: 1, path: 'src/fields.ts', text: SOURCE });
    // A raw prompt, because an answer about the file would end before the budget falls.
    const question: Task = { kind: 'raw', prompt: SOURCE };
    const text = (id: string) =>
      one.messages
        .flatMap((message) => (message.type === 'chunk' && message.requestId === id ? [message.text] : []))
        .join('');
    const ask = (id: string) => one.generate(id, question, { maxTokens: 200, ignoreEos: true }).then(done);
    await ask('alone');
    expect(await shared(one)).toEqual([50e6, undefined]);
    await two.ask(load);
    expect(await shared(two)).toEqual([25e6, 2]);
    const answer = ask('pressed');
    while (text('pressed') === '') await new Promise((resolve) => setImmediate(resolve));
    vi.advanceTimersByTime(BEAT_MS);
    while ((await one.stats()).maxBytes === 50e6) await new Promise((resolve) => setImmediate(resolve));
    expect(one.ends('pressed')).toEqual([]);
    expect(await shared(one)).toEqual([25e6, 2]);
    await answer;
    expect(text('pressed')).toBe(text('alone'));
    // Its cached rows from when it was alone are found.
    const again = await ask('again');
    expect(again.usage.cachedTokens).toBeGreaterThan(0.9 * again.usage.promptTokens);
    await two.ask({ type: 'unload', requestId: 'unload' });
    vi.advanceTimersByTime(BEAT_MS);
    while ((await one.stats()).numEngines) await new Promise((resolve) => setImmediate(resolve));
    for (const budget of [37.5e6, 50e6]) {
      skipped += 61_000;
      // The engine follows the memory when it next looks at it.
      await vi.waitFor(async () => expect((await one.stats()).maxBytes).toBe(budget), { timeout: 20_000 });
    }
    for (const talk of [one, two]) await talk.ask({ type: 'shutdown', requestId: 'shutdown' });
    expect(await readdir(load.enginesDir)).toEqual([]);
  } finally {
    vi.useRealTimers();
    vi.restoreAllMocks();
  }
});

/** Loads the real model and calls `inStep` in each step. */
const watched =
  (inStep: () => void): typeof loadModel =>
  (options, progress) =>
    loadModel(options, progress).then((model) => {
      const step = model.engine.step.bind(model.engine);
      model.engine.step = () => {
        const stepping = step();
        inStep();
        return stepping;
      };
      return model;
    });

const failingAt = (...steps: number[]): typeof loadModel => {
  let count = 0;
  return (options, progress) => loadModel(options, progress).then(failing);
  function failing(model: LoadedModel): LoadedModel {
    const arm = () => {
      const step = model.engine.step.bind(model.engine);
      model.engine.step = async () => {
        if (steps.includes(++count)) throw new Error('injected fault');
        return step();
      };
    };
    const rebuild = model.rebuild.bind(model);
    model.rebuild = () => {
      rebuild();
      arm();
    };
    arm();
    return model;
  }
};

test('completion, chat and summary of one file share its block, computed once, also after an edit near the end', async () => {
  const talk = inThread();
  talk.post(LOAD);
  talk.post({ type: 'documentChanged', docId: 'd', version: 1, path: 'src/fields.ts', text: SOURCE });
  await talk.ask({ type: 'flush', requestId: 'flush' });
  const read = (await talk.stats()).tokens.idleComputed;
  expect(read).toBeGreaterThan(500);

  const ask = (turn: string) =>
    Promise.all([
      talk.generate(`complete${turn}`, { kind: 'complete', docId: 'd', offset: SOURCE.length }),
      talk.generate(
        `chat${turn}`,
        { kind: 'chat', docIds: ['d'], messages: [{ role: 'user', content: 'What is this file for?' }] },
        { maxTokens: 12 },
      ),
      talk.generate(`summary${turn}`, { kind: 'summarize', docId: 'd' }, { maxTokens: 12 }),
    ]);
  for (const { usage } of (await ask('1')).map(done)) {
    expect(usage.blockTokens).toBeGreaterThan(0.5 * read);
    expect(usage.cachedTokens).toBeGreaterThanOrEqual(usage.blockTokens);
  }
  const before = (await talk.stats()).tokens;
  talk.post({
    type: 'documentChanged',
    docId: 'd',
    version: 2,
    edits: [{ start: SOURCE.length - 200, end: SOURCE.length - 190, text: 'changed123' }],
  });
  for (const { usage } of (await ask('2')).map(done))
    expect(usage.cachedTokens).toBeGreaterThan(0.8 * usage.blockTokens);
  const after = (await talk.stats()).tokens;
  // Tokens before the edit are not computed again. Three requests compute little more than their tails.
  expect(after.promptComputed - before.promptComputed).toBeLessThan(0.6 * read);

  const {
    files: [file],
    kvBytesPerToken,
    storeBytes,
  } = await talk.stats();
  expect(file).toMatchObject({ docId: 'd', path: 'src/fields.ts', tier: 'pool', hits: 6 });
  // Rows that left the pool for a while keep their copy in the store.
  expect(file!.bytes).toBeGreaterThanOrEqual(file!.tokens * kvBytesPerToken);
  expect(file!.bytes).toBeLessThanOrEqual(file!.tokens * kvBytesPerToken + storeBytes);
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test('eight requests over one prefix, sent together, compute it once', async () => {
  const talk = inThread();
  talk.post(LOAD);
  const prefix = Array.from({ length: 400 }, (_, i) => 100 + ((i * 37) % 5000));
  const suffixes = Array.from({ length: 8 }, (_, i) => Array.from({ length: 5 + i }, (_, j) => 200 + i * 13 + j));
  const together = await Promise.all(
    suffixes.map((suffix, i) =>
      talk.generate(`r${i}`, { kind: 'raw', prompt: [...prefix, ...suffix] }, { maxTokens: 8, ignoreEos: true }),
    ),
  );
  const { tokens } = await talk.stats();
  expect(tokens.promptComputed).toBeLessThanOrEqual(1.01 * (400 + suffixes.flat().length));
  for (const [i, suffix] of suffixes.entries()) {
    talk.post({ type: 'evict' });
    const alone = await talk.generate(
      `alone${i}`,
      { kind: 'raw', prompt: [...prefix, ...suffix] },
      { maxTokens: 8, ignoreEos: true },
    );
    expect(done(alone).usage.cachedTokens).toBe(0);
    expect(done(together[i]!).tokenIds).toEqual(done(alone).tokenIds);
  }
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test('the completion after a pending one equals that of the text with the pending one inserted, and reuses its rows', async () => {
  const talk = inThread();
  talk.post(LOAD);
  const offset = SOURCE.indexOf('return') + 'return'.length;
  const text = `${SOURCE.slice(0, offset)}${SOURCE.slice(SOURCE.indexOf('\n', offset))}`;
  talk.post({ type: 'documentChanged', docId: 'd', version: 1, path: 'src/fields.ts', text });
  const first = done(await talk.generate('first', { kind: 'complete', docId: 'd', offset }));
  expect(first.text).not.toBe('');
  const next = done(
    await talk.generate('next', { kind: 'complete', docId: 'd', offset, inserted: `${first.text};\n` }),
  );
  // Only the end of the tail is new.
  expect(next.usage.promptTokens - next.usage.cachedTokens).toBeLessThan(30);
  talk.post({
    type: 'documentChanged',
    docId: 'd',
    version: 2,
    edits: [{ start: offset, end: offset, text: `${first.text};\n` }],
  });
  talk.post({ type: 'evict' });
  const real = done(
    await talk.generate('real', { kind: 'complete', docId: 'd', offset: offset + first.text.length + 2 }),
  );
  expect(real.usage.cachedTokens).toBe(0);
  expect([next.text, next.tokenIds, next.logprobs, next.diagnostics, next.usage.promptTokens]).toEqual([
    real.text,
    real.tokenIds,
    real.logprobs,
    real.diagnostics,
    real.usage.promptTokens,
  ]);
  expect(await talk.generate('outside', { kind: 'complete', docId: 'd', offset: 1e6, inserted: 'x' })).toMatchObject({
    type: 'error',
    code: 'badRequest',
    message: expect.stringContaining('offset 1000000 is outside'),
  });
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test('token healing: the shown text starts at the cursor, and after one more letter the whole prompt is in the cache', async () => {
  const talk = inThread();
  talk.post(LOAD);
  const text =
    'export class Cart {\n  total(items: Item[]): number {\n    let sum = 0;\n    for (const item of items) {\n      sum += item.price;\n    }\n    re\n  }\n}\n';
  const at = text.indexOf('re\n') + 2;
  talk.post({ type: 'documentChanged', docId: 'w', version: 1, path: 'src/cart.ts', text });
  const short = done(await talk.generate('short', { kind: 'complete', docId: 'w', offset: at }));
  expect(short.text).toMatch(/^[a-z]/);
  expect(short.text).not.toMatch(/^re/);
  expect(
    talk.messages
      .flatMap((message) => (message.type === 'chunk' && message.requestId === 'short' ? [message.text] : []))
      .join(''),
  ).toBe(short.text);
  const longer = done(
    await talk.generate('longer', { kind: 'complete', docId: 'w', offset: at, inserted: short.text[0]! }),
  );
  expect(longer.text).toBe(short.text.slice(1));
  expect(longer.usage.promptTokens).toBe(short.usage.promptTokens);
  expect(longer.usage.cachedTokens).toBe(longer.usage.promptTokens - 1);
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test('a completion that waits for its grammar uses the text at the time of the request, and can be aborted or fail', async () => {
  const talk = inThread();
  talk.post(LOAD);
  talk.post({ type: 'documentChanged', docId: 'd', version: 1, path: 'src/fields.ts', text: SOURCE });
  const offset = SOURCE.indexOf('return') + 7;
  const asked = talk.generate('asked', { kind: 'complete', docId: 'd', offset });
  const aborted = talk.generate('aborted', { kind: 'complete', docId: 'd', offset });
  talk.post({ type: 'abort', requestId: 'aborted' });
  talk.post({ type: 'documentChanged', docId: 'd', version: 2, edits: [{ start: 0, end: SOURCE.length, text: 'x' }] });
  expect(await talk.ask({ type: 'flush', requestId: 'flush' })).toMatchObject({ type: 'reply' });
  expect(talk.ends('asked')).toHaveLength(1);
  expect(done(await aborted).finishReason).toBe('abort');
  talk.post({ type: 'documentChanged', docId: 'd', version: 3, path: 'src/fields.ts', text: SOURCE });
  expect(done(await talk.generate('again', { kind: 'complete', docId: 'd', offset })).text).toBe(
    done(await asked).text,
  );
  talk.post({ type: 'documentChanged', docId: 'p', version: 1, path: 'src/fields.py', text: SOURCE });
  const dropped = talk.generate('dropped', { kind: 'complete', docId: 'p', offset: 0 });
  const gone = talk.ask({ type: 'unload', requestId: 'unload' });
  expect(await dropped).toMatchObject({ type: 'error', code: 'notLoaded' });
  await gone;
  for (const id of ['asked', 'aborted', 'again', 'dropped']) expect(talk.ends(id), id).toHaveLength(1);
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test('bad requests fail alone, aborted requests end as done, and every request ends once', async () => {
  const talk = inThread();
  const early = await talk.generate('early', { kind: 'raw', prompt: [5] });
  expect(early).toMatchObject({ type: 'error', code: 'notLoaded' });
  talk.post(LOAD);
  const long = talk.generate('long', { kind: 'raw', prompt: [300, 301] }, { maxTokens: 1500, ignoreEos: true });
  const failures = await Promise.all([
    talk.generate('unknown', { kind: 'complete', docId: 'nowhere', offset: 0 }),
    talk.generate('tooLong', { kind: 'raw', prompt: Array.from({ length: BUILT_IN.contextTokens }, () => 7) }),
    talk.generate('badId', { kind: 'raw', prompt: [999_999] }),
    talk.generate('badSampling', { kind: 'raw', prompt: [5] }, { temperature: -1 }),
    talk.generate('empty', { kind: 'raw', prompt: '' }),
  ]);
  expect(failures.map((f) => f.type === 'error' && f.code)).toEqual([
    'unknownDocument',
    'contextTooLong',
    'badRequest',
    'badRequest',
    'badRequest',
  ]);
  talk.post({ type: 'abort', requestId: 'long' });
  expect(done(await long).finishReason).toBe('abort');
  talk.post({ type: 'abort', requestId: 'long' });
  // An unload in the middle: each request ends once before the model is released.
  const pending = Array.from({ length: 5 }, (_, i) =>
    talk.generate(`p${i}`, { kind: 'raw', prompt: [300 + i, 301] }, { maxTokens: 1000, ignoreEos: true }),
  );
  const gone = talk.ask({ type: 'unload', requestId: 'unload' });
  for (const end of await Promise.all(pending)) expect(end).toMatchObject({ type: 'error', code: 'notLoaded' });
  expect(await gone).toMatchObject({ type: 'reply', value: { kind: 'ok' } });
  for (const id of ['early', 'long', 'unknown', 'tooLong', 'badId', 'badSampling', 'empty', 'p0', 'p4', 'unload'])
    expect(talk.ends(id), id).toHaveLength(1);
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test('an invalid message does not affect other messages', async () => {
  const talk = inThread();
  talk.post(LOAD);
  const first = talk.generate('same', { kind: 'raw', prompt: [300, 301] }, { maxTokens: 30, ignoreEos: true });
  talk.post({ type: 'generate', requestId: 'same', priority: 'chat', task: { kind: 'raw', prompt: [5] } });
  expect(await talk.generate('odd', { kind: 'dance' } as never)).toMatchObject({
    type: 'error',
    code: 'badRequest',
    message: expect.stringContaining('dance'),
  });
  expect(await talk.generate('stop', { kind: 'raw', prompt: [5] }, { stop: 'x' })).toMatchObject({
    type: 'error',
    code: 'badRequest',
    message: expect.stringContaining('stop'),
  });
  expect(await talk.generate('text', { kind: 'raw', prompt: [5] }, { temperature: '0.5' })).toMatchObject({
    type: 'error',
    code: 'badRequest',
  });
  expect(done(await first).tokenIds).toHaveLength(30);
  expect(talk.ends('same')).toHaveLength(1);
  expect(talk.messages.filter((m) => m.type === 'error' && m.requestId === undefined)).toMatchObject([
    { code: 'badRequest', message: expect.stringContaining('"same" is in use') },
  ]);
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test('a rebuilt engine keeps the budget, and 0 makes it automatic again', async () => {
  const talk = inThread(failingAt(3));
  talk.post(LOAD);
  talk.post({ type: 'configure', maxBytes: 5e6 });
  expect((await talk.stats()).maxBytes).toBe(5e6);
  expect(
    (await talk.generate('a', { kind: 'raw', prompt: [300, 301, 302] }, { maxTokens: 20, ignoreEos: true })).type,
  ).toBe('error');
  expect((await talk.stats()).maxBytes).toBe(5e6);
  talk.post({ type: 'configure', maxBytes: 0 });
  expect((await talk.stats()).maxBytes).toBeGreaterThan(5e6);
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test('a pin keeps the block of a file until it is released or the file is closed', async () => {
  const talk = inThread();
  talk.post(LOAD);
  talk.post({ type: 'documentChanged', docId: 'd', version: 1, path: 'src/fields.ts', text: SOURCE });
  await talk.ask({ type: 'flush', requestId: 'flush' });
  expect(await talk.ask({ type: 'countTokens', requestId: 'count', docId: 'd' })).toMatchObject({
    value: { kind: 'count', numTokens: (await talk.stats()).tokens.idleComputed },
  });
  talk.post({ type: 'pin', docId: 'd', pinned: true });
  talk.post({ type: 'evict' });
  expect((await talk.stats()).poolSlots.held).toBeGreaterThan(500);
  talk.post({ type: 'documentClosed', docId: 'd' });
  talk.post({ type: 'evict' });
  expect((await talk.stats()).poolSlots.held).toBe(0);
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test('idle work stops when it is switched off, and a waiting load cancels the running one', async () => {
  const talk = inThread();
  talk.post(LOAD);
  talk.post({ type: 'configure', idleWork: false });
  talk.post({ type: 'documentChanged', docId: 'd', version: 1, path: 'src/fields.ts', text: SOURCE });
  await talk.ask({ type: 'flush', requestId: 'flush' });
  expect((await talk.stats()).tokens.idleComputed).toBe(0);
  talk.post({ type: 'configure', idleWork: true });
  await talk.ask({ type: 'flush', requestId: 'flush2' });
  expect((await talk.stats()).tokens.idleComputed).toBeGreaterThan(500);
  await rm(join(cacheDir, 'fresh'), { recursive: true, force: true });
  const load = talk.ask({ ...LOAD, requestId: 'slow', cacheDir: join(cacheDir, 'fresh') });
  const bye = talk.ask({ type: 'shutdown', requestId: 'bye' });
  expect(await load).toMatchObject({ type: 'error', code: 'notLoaded' });
  expect((await bye).type).toBe('reply');
});

test('typing in one file stops the idle prefill of another, which continues a second later', async () => {
  const begun: number[] = [];
  const talk = inThread(
    watched(() => {
      if (begun.push(performance.now()) === 1)
        talk.post({ type: 'documentChanged', docId: 'e', version: 1, path: 'src/e.ts', text: '' });
    }),
    { onBattery: async () => false } as unknown as Machine,
  );
  await talk.ask(LOAD);
  talk.post({ type: 'documentChanged', docId: 'd', version: 1, path: 'src/fields.ts', text: SOURCE });
  await expect.poll(() => begun.length, { timeout: 120_000 }).toBeGreaterThan(1);
  expect(begun[1]! - begun[0]!).toBeGreaterThan(IdlePrefill.DELAY_MS - 50);
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test('a model that cannot be loaded gives one error, and then another can be loaded', async () => {
  const talk = inThread();
  expect(await talk.ask({ ...LOAD, requestId: 'bad', modelDir: 'test/fixtures/bad/st_truncated' })).toMatchObject({
    type: 'error',
    code: 'modelInvalid',
    message: expect.stringMatching(/^test\/fixtures\/bad\/st_truncated: model\.safetensors: .*download it again\.$/),
  });
  expect(await talk.ask({ ...LOAD, requestId: 'none', modelDir: 'test/fixtures/nowhere' })).toMatchObject({
    type: 'error',
    code: 'modelInvalid',
  });
  expect(await talk.ask(LOAD)).toMatchObject({
    type: 'reply',
    value: {
      kind: 'loaded',
      model: { name: BUILT_IN.manifest.name, precision: 'int8', contextTokens: BUILT_IN.contextTokens },
    },
  });
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test('a bug in shaping text that was held back to the end fails only that request', async () => {
  let inStep = () => {};
  const talk = inThread(watched(() => inStep()));
  talk.post(LOAD);
  const task: Task = { kind: 'raw', prompt: [300, 301, 302] };
  const { text } = done(await talk.generate('whole', task, { maxTokens: 400, ignoreEos: true }));
  const addText = vi.spyOn(RequestOutput.prototype, 'addText').mockImplementation(function (
    this: RequestOutput,
    added,
  ) {
    if (added && this.requestId === 'held') throw new Error('injected fault');
    return false;
  });
  try {
    // The whole answer could be the beginning of the stop string, so it is held back to the end.
    const held = talk.generate('held', task, { maxTokens: 400, ignoreEos: true, stop: [`${text}never`] });
    const other = talk.generate('other', task, { maxTokens: 20, ignoreEos: true });
    let numSteps = 0;
    // An abort while the engine computes takes effect at the end of the step.
    inStep = () => {
      if (++numSteps === 5) talk.post({ type: 'abort', requestId: 'held' });
    };
    expect(await held).toMatchObject({
      type: 'error',
      code: 'engineFailed',
      message: expect.stringContaining('injected fault'),
    });
    expect(done(await other).tokenIds).toHaveLength(20);
    for (const id of ['held', 'other']) expect(talk.ends(id)).toHaveLength(1);
  } finally {
    addText.mockRestore();
  }
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test('a bug in a step ends all pending requests, the engine is rebuilt and the next request works', async () => {
  const talk = inThread(failingAt(3));
  talk.post(LOAD);
  const ends = await Promise.all(
    ['a', 'b', 'c'].map((id) =>
      talk.generate(id, { kind: 'raw', prompt: [300, 301, 302] }, { maxTokens: 20, ignoreEos: true }),
    ),
  );
  for (const end of ends)
    expect(end).toMatchObject({
      type: 'error',
      code: 'engineFailed',
      message: expect.stringContaining('injected fault'),
    });
  const next = done(
    await talk.generate('next', { kind: 'raw', prompt: [300, 301, 302] }, { maxTokens: 20, ignoreEos: true }),
  );
  expect(next.tokenIds).toHaveLength(20);
  for (const id of ['a', 'b', 'c', 'next']) expect(talk.ends(id)).toHaveLength(1);
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test('a second bug in a row leaves the engine down with one message, until a model is loaded again', async () => {
  const talk = inThread(failingAt(2, 3));
  talk.post(LOAD);
  const ask = (id: string) =>
    talk.generate(id, { kind: 'raw', prompt: [300, 301, 302] }, { maxTokens: 20, ignoreEos: true });
  expect(await ask('a')).toMatchObject({ type: 'error', code: 'engineFailed' });
  expect(await ask('b')).toMatchObject({ type: 'error', code: 'engineFailed' });
  expect(talk.messages.filter((m) => m.type === 'error' && m.requestId === undefined)).toMatchObject([
    { code: 'engineFailed', message: expect.stringContaining('the engine is down') },
  ]);
  expect(await ask('c')).toMatchObject({ type: 'error', code: 'notLoaded' });
  await talk.ask({ ...LOAD, requestId: 'again' });
  expect((await ask('d')).type).toBe('done');
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test('the worker thread sends its version first, gives the same answers, and ends on shutdown', async () => {
  // Inside the project, so that the bundle finds onnxruntime-node.
  const folder = join(process.cwd(), '.cache', 'worker-under-test');
  const outfile = join(folder, 'worker.cjs');
  await build({
    entryPoints: ['engine/server/worker.ts'],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    external: ['onnxruntime-node'],
    logLevel: 'error',
  });
  linkNative(folder);
  const worker = new Worker(outfile);
  const talk = new Talk();
  worker.on('message', talk.receive);
  talk.post = (message) => worker.postMessage(message);
  const exit = new Promise<number>((resolve) => worker.once('exit', resolve));
  const loaded = await talk.ask(LOAD);
  expect(talk.messages[0]).toEqual({ type: 'ready', version: PROTOCOL_VERSION });
  expect(loaded).toMatchObject({ type: 'reply', value: { kind: 'loaded' } });
  const there = done(await talk.generate('w', { kind: 'raw', prompt: [300, 301] }, { maxTokens: 10, ignoreEos: true }));
  const here = inThread();
  here.post(LOAD);
  expect(there.tokenIds).toEqual(
    done(await here.generate('h', { kind: 'raw', prompt: [300, 301] }, { maxTokens: 10, ignoreEos: true })).tokenIds,
  );
  await here.ask({ type: 'shutdown', requestId: 'bye' });
  expect(await talk.ask({ type: 'shutdown', requestId: 'bye' })).toMatchObject({ type: 'reply' });
  expect(await exit).toBe(0);
});

test('the measured size of a chat equals the usage of its answer', async () => {
  // The built-in model takes fifteen seconds to read a context of this size.
  const contextTokens = 4096;
  const modelDir = join(cacheDir, 'roomy');
  await cp('test/fixtures/models/qwen3-tied-sharded', modelDir, { recursive: true });
  const config = JSON.parse(await readFile(join(modelDir, 'config.json'), 'utf8')) as object;
  await writeFile(join(modelDir, 'config.json'), JSON.stringify({ ...config, max_position_embeddings: contextTokens }));
  const talk = inThread();
  await talk.ask({ ...LOAD, modelDir });
  for (const [docId, text] of [
    ['a', SOURCE],
    ['b', SOURCE.repeat(contextTokens / 512)],
  ] as const)
    talk.post({ type: 'documentChanged', docId, version: 1, path: `/p/${docId}.ts`, text });
  const task: ChatTask = {
    kind: 'chat',
    docIds: ['a', 'b'],
    snippets: [{ path: '/p/a.ts', text: 'a();', startLine: 3 }],
    messages: [{ role: 'user', content: 'What does this code do?' }],
    // Otherwise the text is checked and may be replaced.
    anyway: true,
  };
  const sampling = { maxTokens: 4 };
  const measured = await talk.ask({ type: 'measure', requestId: 'measure', task, sampling });
  const answer = done(await talk.generate('chat', task, sampling));
  // Without the notes about the answer itself.
  const notes = answer.diagnostics.filter((note) => !note.startsWith('cut off after'));
  expect(answer.diagnostics).toContainEqual(expect.stringMatching(/^p\/b\.ts: lines/));
  expect(measured).toMatchObject({
    value: {
      kind: 'measured',
      size: { contextTokens, promptTokens: answer.usage.promptTokens, notes },
    },
  });
  // Of the only file that does not fit, the rest is shown as its outline.
  const long: ChatTask = {
    ...task,
    docIds: ['b'],
    snippets: [],
    messages: [{ role: 'user', content: 'What is this?' }],
  };
  const outlined = done(await talk.generate('long', long, sampling));
  expect(outlined.diagnostics).toContainEqual(expect.stringMatching(/^p\/b\.ts: lines \d+-\d+ of \d+ as outline/));
  expect(await talk.ask({ type: 'measure', requestId: 'size', task: long, sampling })).toMatchObject({
    value: { size: { promptTokens: outlined.usage.promptTokens } },
  });
  expect(
    await talk.ask({ type: 'measure', requestId: 'bad', task: { kind: 'chat', docIds: ['gone'], messages: [] } }),
  ).toMatchObject({ type: 'error', code: 'unknownDocument' });
});

test('idle prefill does not run on battery; on mains power it starts a second after the last edit', async () => {
  const power = { asked: 0, onBattery: true };
  const machine = { onBattery: async () => ++power.asked > 0 && power.onBattery } as unknown as Machine;
  const talk = inThread(loadModel, machine);
  await talk.ask(LOAD);
  const edit = (version: number) =>
    talk.post({ type: 'documentChanged', docId: 'd', version, path: 'src/fields.ts', text: SOURCE });
  edit(1);
  await expect.poll(() => power.asked, { timeout: 120_000 }).toBe(1);
  await talk.generate('short', { kind: 'raw', prompt: [300, 301] }, { maxTokens: 1 });
  expect((await talk.stats()).tokens.idleComputed).toBe(0);
  power.onBattery = false;
  edit(2);
  await expect.poll(async () => (await talk.stats()).tokens.idleComputed, { timeout: 120_000 }).toBeGreaterThan(500);
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test('on battery idle maintenance only frees memory; on mains power it does the rest', async () => {
  const power = { onBattery: true };
  const own: Engine[] = [];
  const load: typeof loadModel = async (...args) => {
    const model = await loadModel(...args);
    own.push(model.engine);
    return model;
  };
  const talk = inThread(load, { onBattery: async () => power.onBattery } as unknown as Machine);
  const moments: (boolean | undefined)[] = [];
  const runMaintenance = vi.spyOn(Engine.prototype, 'runMaintenance').mockImplementation(async function (
    this: Engine,
    _blocks,
    { sparing } = {},
  ) {
    // Assistants of other tests in this file may still run idle maintenance.
    if (!own.includes(this)) return false;
    power.onBattery = false;
    return moments.push(sparing) === 1;
  });
  const later = globalThis.setTimeout;
  // An idle moment starts after ten seconds without requests. Here it starts sooner.
  const timers = vi
    .spyOn(globalThis, 'setTimeout')
    .mockImplementation(((work: () => void, ms?: number) =>
      later(work, ms === 10_000 ? 500 : ms)) as typeof setTimeout);
  onTestFinished(() => {
    runMaintenance.mockRestore();
    timers.mockRestore();
  });
  await talk.ask(LOAD);
  // Reading a file ahead waits for mains power. Freeing memory does not wait for it.
  talk.post({ type: 'documentChanged', docId: 'd', version: 1, path: 'src/fields.ts', text: SOURCE });
  await expect.poll(() => moments, { timeout: 120_000 }).toEqual([true, false]);
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test.each(['/help', 'What can you do?', 'Hello', '/where x', 'What is a hash map?'])(
  'a request of another extension reaches the model as it is: %s',
  async (content) => {
    const talk = inThread();
    await talk.ask(LOAD);
    const messages = [{ role: 'user' as const, content }];
    const ask = (id: string, asIs: boolean) =>
      talk.generate(id, { kind: 'chat', docIds: [], messages, asIs }, { maxTokens: 2, ignoreEos: true }).then(done);
    const answer = await ask('asked', true);
    expect(answer).not.toHaveProperty('source');
    expect(answer).toMatchObject({ diagnostics: [expect.stringContaining('cut off')], finishReason: 'length' });
    expect(answer.usage.promptTokens).toBeGreaterThan(0);
    expect((await ask('typed', false)).source).toMatch(/^(stock|unattached)$/);
    await talk.ask({ type: 'shutdown', requestId: 'bye' });
  },
);

test('a question about a fact is answered from the syntax tree; another one is refused, unless the user insists', async () => {
  const talk = inThread();
  await talk.ask(LOAD);
  talk.post({ type: 'documentChanged', docId: 'd', version: 1, path: 'src/fields.ts', text: SOURCE });
  const question = { role: 'user', content: 'What parameters does `field3` take?' } as const;
  const answer = done(await talk.generate('fact', { kind: 'chat', docIds: ['d'], messages: [question] }));
  expect(answer).toMatchObject({
    text: expect.stringMatching(/^The signature of `field3` is on line 13: /),
    tokenIds: [],
    finishReason: 'stop',
    usage: { promptTokens: 0, completionTokens: 0 },
    diagnostics: [expect.stringContaining('src/fields.ts')],
  });
  expect(answer.timings.ttftMs).toBeGreaterThan(0);
  expect(talk.messages.filter((message) => message.type === 'chunk' && message.requestId === 'fact')).toMatchObject([
    { text: answer.text },
  ]);
  expect(talk.ends('fact')).toHaveLength(1);
  const why = {
    kind: 'chat',
    docIds: ['d'],
    messages: [question, { role: 'assistant', content: answer.text }, { role: 'user', content: 'Why?' }],
  } as const;
  const later = (id: string, anyway: boolean) =>
    talk.generate(id, { ...why, messages: [...why.messages], docIds: ['d'], anyway }, { maxTokens: 4 }).then(done);
  expect(await later('later', false)).toMatchObject({
    text: `${BUILT_IN.manifest.name} is too small for this: choose a larger model.`,
    source: 'refused',
    tokenIds: [],
  });
  const anyway = await later('anyway', true);
  expect(anyway).not.toHaveProperty('source');
  expect(anyway.usage.promptTokens).toBeGreaterThan(100);

  // Python's grammar is not loaded yet. The request waits for it and can be stopped meanwhile.
  talk.post({ type: 'documentChanged', docId: 'p', version: 1, path: 'src/a.py', text: 'def f(x):\n    return x\n' });
  const stopped = talk.generate('stopped', {
    kind: 'chat',
    docIds: ['p'],
    messages: [{ role: 'user', content: '/where f' }],
  });
  talk.post({ type: 'abort', requestId: 'stopped' });
  expect(done(await stopped).finishReason).toBe('abort');
  expect(talk.ends('stopped')).toHaveLength(1);
  expect(await talk.generate('gone', { kind: 'chat', docIds: ['gone'], messages: [question] })).toMatchObject({
    type: 'error',
    code: 'unknownDocument',
  });

  // JavaScript's grammar is not loaded yet either. Both files are answered together, with their texts at the time of
  // the question.
  talk.post({ type: 'documentChanged', docId: 'j', version: 1, path: 'src/b.js', text: 'class B {}\n' });
  const both = talk.generate('both', {
    kind: 'chat',
    docIds: ['p', 'j'],
    messages: [{ role: 'user', content: 'Which classes are defined?' }],
  });
  talk.post({ type: 'documentChanged', docId: 'p', version: 2, path: 'src/a.py', text: 'class Later: pass\n' });
  expect(done(await both)).toMatchObject({
    text: 'Outline of `src/a.py`:\n\nFunctions: `f` (line 1).\n\nClasses of `src/b.js`: `B` (line 1).',
    source: 'files',
    diagnostics: [expect.stringContaining('src/a.py, src/b.js')],
  });
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test('further files that do not fit are read as outlines, open or not, and the answer says so', async () => {
  const talk = inThread();
  await talk.ask(LOAD);
  const long = Array.from({ length: 300 }, (_, i) => `export function part${i}(x: number) {\n  return x;\n}\n`).join(
    '',
  );
  for (const [docId, text] of Object.entries({ first: 'export const first = 1;\n', second: long }))
    talk.post({ type: 'documentChanged', docId, version: 1, path: `src/${docId}.ts`, text });
  const { diagnostics } = done(
    await talk.generate(
      'chat',
      {
        kind: 'chat',
        docIds: ['first', 'second'],
        snippets: [{ path: 'src/third.ts', text: long }],
        messages: [{ role: 'user', content: 'How do they work together?' }],
        anyway: true,
      },
      { maxTokens: 2 },
    ),
  );
  for (const name of ['second', 'third'])
    expect(diagnostics).toContainEqual(expect.stringMatching(`^src/${name}.ts: lines \\d+-900 of 900 as outline`));
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test('a file that does not fit is reported as not read, and the other files of its folder are summarized', async () => {
  const talk = inThread();
  await talk.ask(LOAD);
  talk.post({
    type: 'documentChanged',
    docId: 'w',
    version: 1,
    path: 'src/wide.ts',
    text: `export const wide = '${'Zx9Kq'.repeat(2 * BUILT_IN.contextTokens)}';\n`,
  });
  talk.post({
    type: 'documentChanged',
    docId: 'n',
    version: 1,
    path: 'src/narrow.ts',
    text: 'export const narrow = 1;\n',
  });
  const notRead = `src/wide.ts was not read: no part of it fits in the ${BUILT_IN.contextTokens} tokens that ${BUILT_IN.manifest.name} reads.`;
  expect(
    done(
      await talk.generate('chat', {
        kind: 'chat',
        docIds: ['w'],
        messages: [{ role: 'user', content: 'What is it for?' }],
      }),
    ),
  ).toMatchObject({ text: notRead, source: 'files', tokenIds: [], diagnostics: ['not written by the model'] });
  expect(done(await talk.generate('sum', { kind: 'summarize', docId: 'w' }))).toMatchObject({
    text: notRead,
    source: 'files',
    tokenIds: [],
  });
  const folder = done(
    await talk.generate('folder', { kind: 'summarizeFolder', path: 'src', docIds: ['w', 'n'] }, { maxTokens: 4 }),
  );
  expect(folder.text).toMatch(/^- src\/narrow\.ts: .+$/);
  expect(folder.diagnostics).toContain(notRead);
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test('a folder request that is stopped or loses its engine ends once, and starts no more work', async () => {
  const talk = inThread();
  talk.post(LOAD);
  const names = Array.from({ length: 4 }, (_, i) => `long${i}`);
  for (const docId of names)
    talk.post({
      type: 'documentChanged',
      docId,
      version: 1,
      path: `src/${docId}.ts`,
      text: `// ${docId}\n${SOURCE}`,
    });
  const folder: Task = {
    kind: 'summarizeFolder',
    path: 'src',
    docIds: names,
    summaries: [{ path: 'x.ts', text: 'Known.' }],
  };
  const behind = (id: string) =>
    talk.messages
      .slice(
        talk.messages.findIndex(
          (message) => (message.type === 'done' || message.type === 'error') && message.requestId === id,
        ) + 1,
      )
      .filter((message) => 'requestId' in message && message.requestId === id);
  const stopped = talk.generate('stopped', folder, { maxTokens: 4 });
  talk.post({ type: 'abort', requestId: 'stopped' });
  expect(done(await stopped)).toMatchObject({ finishReason: 'abort', text: '' });
  const lost = talk.generate('lost', folder, { maxTokens: 4 });
  await talk.ask({ type: 'unload', requestId: 'unload' });
  expect(await lost).toMatchObject({ type: 'error', requestId: 'lost' });
  await talk.ask({ ...LOAD, requestId: 'again' });
  const whole = done(await talk.generate('whole', folder, { maxTokens: 4 }));
  expect(whole.text.split('\n')).toHaveLength(5);
  for (const id of ['stopped', 'lost', 'whole']) expect([talk.ends(id).length, behind(id)], id).toEqual([1, []]);
});

test('files of languages that the small model does not know are summarized from their code, or not at all', async () => {
  const talk = inThread();
  await talk.ask(LOAD);
  const files = {
    'notes.md': '# Stock\n\n## Prices\n',
    'conf.yaml': 'port: 80\n',
    'point.go': 'package p\n\ntype Point struct {\n\tX int\n}\n',
    'list.txt': 'milk\n',
  };
  for (const [path, text] of Object.entries(files))
    talk.post({ type: 'documentChanged', docId: path, version: 1, path, text });
  const ask = async (docId: string) => done(await talk.generate(docId, { kind: 'summarize', docId }));
  expect((await ask('notes.md')).text).toContain('- `Stock` (line 1)\n  - `Prices` (line 3)');
  expect((await ask('conf.yaml')).text).toBe('Outline of `conf.yaml`:\n\nKeys: `port` (line 1).');
  expect(await ask('point.go')).toMatchObject({ text: expect.stringContaining('`Point` (line 3)'), source: 'files' });
  expect((await ask('list.txt')).source).toBe('refused');
  const folder = done(await talk.generate('all', { kind: 'summarizeFolder', path: '.', docIds: Object.keys(files) }));
  const lines = folder.text.split('\n');
  expect(lines[0]).toBe('- notes.md: Headings: `Stock` (line 1), `Prices` (line 3) (not written by the model)');
  expect(lines).toHaveLength(3);
  expect(folder.diagnostics).toContainEqual(expect.stringMatching(/^list\.txt: .* is too small for this/));
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});

test('an empty file is reported as empty, and what it cannot answer is refused', async () => {
  const talk = inThread();
  await talk.ask(LOAD);
  talk.post({ type: 'documentChanged', docId: 'e', version: 1, path: 'src/empty.ts', text: '\n' });
  const ask = async (id: string, content: string) =>
    done(
      await talk.generate(id, { kind: 'chat', docIds: ['e'], messages: [{ role: 'user', content }] }, { maxTokens: 3 }),
    );
  expect(await ask('for', 'What is this file for?')).toMatchObject({
    text: '`src/empty.ts` is empty: there is nothing in it to answer from.',
    source: 'files',
    tokenIds: [],
  });
  expect(done(await talk.generate('sum', { kind: 'summarize', docId: 'e' }))).toMatchObject({
    text: 'src/empty.ts is empty: there is nothing to summarize.',
    source: 'files',
    tokenIds: [],
  });
  expect((await ask('write', 'Write a function that adds two numbers.')).source).toBe('refused');
  await talk.ask({ type: 'shutdown', requestId: 'bye' });
});
