/** The disk tier and a codec of the store with the built-in model, through the protocol. */
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { AssistantServer } from '../../engine/server/assistantServer.ts';
import { leastBudget } from '../../engine/server/cacheReach.ts';
import { formatBytes } from '../../engine/protocol/formatBytes.ts';
import type { LoadedModel } from '../../engine/server/loadedModel.ts';
import { loadModel } from '../../engine/server/loadModel.ts';
import type { EngineMessage, HostMessage, LoadOptions } from '../../engine/protocol/messages.ts';
import type { EngineStats, FileStats, ModelInfo } from '../../engine/protocol/stats.ts';
import type { Usage } from '../../engine/protocol/tasks.ts';
import { Tokenizer } from '../../engine/text/tokenizer/tokenizer.ts';
import { BUILT_IN } from '../support/builtIn.ts';

const folder = await mkdtemp(join(tmpdir(), 'kvasir-tiers-'));
afterAll(() => rm(folder, { recursive: true, force: true }));
const LOAD: LoadOptions = {
  modelDir: 'model',
  cacheDir: join(folder, 'models'),
  precision: 'int8',
  maxBytes: 100e6,
  threads: 1,
};
const FILE = await readFile('test/fixtures/samples/slots.ts.txt', 'utf8');
/** Tokens of a question about the file and its answer, rounded up. */
const QUESTION_TOKENS = (await Tokenizer.load('model')).encode(FILE).length + 70;
/**
 * Budgets that read the file whole but without memory for the disk tier; in parts, if a spill file is allowed; and not
 * at all.
 */
const WHOLE = 1e5 * Math.ceil(leastBudget(BUILT_IN.config, QUESTION_TOKENS, 1e9, { isWhole: true }) / 0.9e5);
const IN_PARTS = 1.1 * leastBudget(BUILT_IN.config, QUESTION_TOKENS, 1e9);
const TOO_LITTLE = IN_PARTS / 4;

type Ended = Extract<EngineMessage, { type: 'done' | 'reply' | 'error' }>;

function talk(loading = loadModel) {
  const waiting = new Map<string, (message: Ended) => void>();
  const lines: string[] = [];
  const assistant = new AssistantServer((message) => {
    if (message.type === 'log') lines.push(message.message);
    if (
      (message.type === 'done' || message.type === 'reply' || message.type === 'error') &&
      message.requestId !== undefined
    )
      waiting.get(message.requestId)?.(message);
  }, loading);
  const ask = async (message: HostMessage & { requestId: string }): Promise<Ended> => {
    const ended = new Promise<Ended>((resolve) => waiting.set(message.requestId, resolve));
    assistant.handle(message);
    const answer = await ended;
    if (answer.type === 'error') throw new Error(answer.message);
    return answer;
  };
  const stats = async (): Promise<EngineStats> => {
    const told = await ask({ type: 'stats', requestId: 'stats' });
    if (told.type !== 'reply' || told.value.kind !== 'stats') throw new Error('there are no figures');
    return told.value.stats;
  };
  return {
    lines,
    send: (message: HostMessage) => assistant.handle(message),
    load: async (options: Partial<LoadOptions>): Promise<ModelInfo> => {
      const loaded = await ask({ type: 'load', requestId: 'load', ...LOAD, ...options });
      if (loaded.type !== 'reply' || loaded.value.kind !== 'loaded') throw new Error('it was not loaded');
      return loaded.value.model;
    },
    question: async (docId: string, secret = false, text = FILE): Promise<{ usage: Usage; text: string }> => {
      assistant.handle({
        type: 'documentChanged',
        docId,
        version: 1,
        path: docId,
        text,
        ...(secret ? { secret } : {}),
      });
      const done = await ask({
        type: 'generate',
        requestId: `ask ${docId}`,
        priority: 'chat',
        task: {
          kind: 'chat',
          docIds: [docId],
          messages: [{ role: 'user', content: 'Why is it written like this?' }],
          anyway: true,
        },
        sampling: { maxTokens: 8 },
      });
      if (done.type !== 'done') throw new Error('it has no answer');
      return done;
    },
    /** Runs the work of idle time at once. */
    flush: () => ask({ type: 'flush', requestId: 'flush' }),
    stats,
    files: async (): Promise<FileStats[]> => (await stats()).files,
    close: () => ask({ type: 'shutdown', requestId: 'shutdown' }),
  };
}

test('after a restart the first question about a file finds over 90% of it on disk, a secret file is not there, and clearing removes everything', async () => {
  const disk = { dir: join(folder, 'kv'), maxBytes: 1e9 };
  const first = talk();
  await first.load({ disk });
  const before = await first.question('a.ts');
  await first.question('.env', true);
  await first.close();
  expect((await readdir(disk.dir)).length).toBeGreaterThan(1);

  const second = talk();
  await second.load({ disk });
  const after = await second.question('a.ts');
  expect(after.text).toBe(before.text);
  expect(after.usage.cachedTokens / after.usage.blockTokens).toBeGreaterThan(0.9);
  // The block begins with the file's path, so another file shares nothing with it.
  expect((await second.question('.env', true)).usage.cachedTokens).toBeLessThan(50);
  second.send({ type: 'evict' });
  await second.close();
  expect(second.lines).toEqual([]);
  expect(await readdir(disk.dir)).toEqual([]);
});

test('clearing keeps pinned files on disk, also those of another model', async () => {
  const disk = { dir: join(folder, 'pinned'), maxBytes: 1e9 };
  const { load, question, send, close } = talk();
  await load({ disk, precision: 'int4' });
  await question('a.ts');
  // The unloaded model writes its rows to disk.
  await load({ disk });
  const pinned = (await readdir(disk.dir)).sort();
  expect(pinned.length).toBeGreaterThan(1);
  await question('b.ts');
  await load({ disk });
  expect((await readdir(disk.dir)).length).toBeGreaterThan(pinned.length);
  send({ type: 'pin', docId: 'a.ts', pinned: true });
  send({ type: 'evict' });
  await close();
  expect((await readdir(disk.dir)).sort()).toEqual(pinned);
});

test('evicting a file removes it from the disk, with all its versions and those of another model; other files stay', async () => {
  const disk = { dir: join(folder, 'versions'), maxBytes: 1e9 };
  const { load, question, send, close } = talk();
  await load({ disk });
  await question('b.ts');
  // The unloaded model writes its rows to disk.
  await load({ disk });
  const other = (await readdir(disk.dir)).sort();
  expect(other.length).toBeGreaterThan(1);
  await question('a.ts');
  await load({ disk, precision: 'int4' });
  const { length } = await readdir(disk.dir);
  expect(length).toBeGreaterThan(other.length);
  await question('a.ts');
  await load({ disk });
  expect((await readdir(disk.dir)).length).toBeGreaterThan(length);
  send({ type: 'documentChanged', docId: 'a.ts', version: 2, edits: [{ start: 0, end: 20, text: '' }] });
  send({ type: 'evict', docId: 'a.ts' });
  await close();
  expect((await readdir(disk.dir)).sort()).toEqual(other);
});

test('a file that is evicted only from memory stays on disk', async () => {
  const disk = { dir: join(folder, 'memory-only'), maxBytes: 1e9 };
  const { load, question, send, flush, files, close } = talk();
  await load({ disk });
  await question('a.ts');
  await flush();
  await load({ disk });
  await question('a.ts');
  await flush();
  const kept = (await readdir(disk.dir)).sort();
  send({ type: 'evict', docId: 'a.ts', memoryOnly: true });
  const [{ tokens, diskTokens }] = (await files()) as [FileStats];
  expect([tokens, diskTokens > 256]).toEqual([0, true]);
  await close();
  expect((await readdir(disk.dir)).sort()).toEqual(kept);
});

test('in a layout without headers an evicted file is not written again, because nothing with its beginning stays in memory', async () => {
  const modelDir = join(folder, 'headerless');
  await cp('model', modelDir, { recursive: true, filter: (source) => !/train$|\.md$/.test(source) });
  const edit = async (name: string, change: (json: Record<string, unknown>) => object): Promise<void> =>
    writeFile(join(modelDir, name), JSON.stringify(change(JSON.parse(await readFile(join(modelDir, name), 'utf8')))));
  await edit('kvasir.json', (manifest) => ({
    ...manifest,
    fileBlock: 'chatTemplate',
    can: { complete: true, chat: false, summarize: false, edit: false },
  }));
  await edit('tokenizer_config.json', ({ chat_template: _, ...config }) => config);
  const disk = { dir: join(folder, 'headerless-kv'), maxBytes: 1e9 };
  const { load, send, flush, close } = talk();
  await load({ modelDir, disk });
  const open = (docId: string, text: string): void =>
    send({ type: 'documentChanged', docId, version: 1, path: docId, text });
  open('b.ts', FILE.slice(FILE.indexOf('\n') + 1));
  await flush();
  await load({ modelDir, disk });
  const other = (await readdir(disk.dir)).sort();
  expect(other.length).toBeGreaterThan(1);
  open('a.ts', FILE);
  await flush();
  await load({ modelDir, disk });
  expect((await readdir(disk.dir)).length).toBeGreaterThan(other.length);
  // Idle prefill reads the file back into memory.
  await flush();
  send({ type: 'evict', docId: 'a.ts' });
  await close();
  expect((await readdir(disk.dir)).sort()).toEqual(other);
});

test('an unloaded model writes the most recently used file first', async () => {
  let model: LoadedModel | undefined;
  const { load, question, close } = talk(async (...options) => {
    model = await loadModel(...options);
    return model;
  });
  await load({});
  for (const path of ['a.ts', 'b.ts']) await question(path);
  const save = vi.spyOn(model!.engine, 'save');
  await close();
  const headers = ['b.ts', 'a.ts'].map((path) => model!.layout.header(path));
  expect(save.mock.calls[0]![0].map(({ tokenIds }, i) => tokenIds.slice(0, headers[i]!.length))).toEqual(headers);
});

test('a codec is measured once per model and used if it loses little; an unusable folder gives one log line', async () => {
  const compress = 'int4-kivi';
  const one = talk();
  const { compressed: qualities } = await one.load({
    compress,
    disk: { dir: join('package.json', 'kv'), maxBytes: 1e9 },
  });
  expect(one.lines).toHaveLength(1);
  expect(one.lines[0]).toContain('cannot be kept');
  expect((await one.stats()).diskFault).toMatch(/package\.json.kv cannot be written: ENOTDIR/);
  expect(qualities).toHaveLength(1);
  const [compressed] = qualities!;
  expect(compressed!.klMean).toBeGreaterThan(0);
  expect(compressed!.klMean).toBeLessThan(compressed!.bound);
  expect(compressed!.top1).toBeGreaterThan(0.8);
  expect(compressed!.compression).toBeGreaterThan(3);
  await one.question('a.ts');
  await one.close();
  const again = talk();
  expect((await again.load({ compress })).compressed).toEqual(qualities);
  await again.close();
});

test('with a budget that is too small for disk buffers nothing is kept on disk, requests still work, and the figures say why', async () => {
  const disk = { dir: join(folder, 'no-room'), maxBytes: 1e9 };
  const { load, question, flush, stats, send, lines, close } = talk();
  // Enough memory for the whole file, and less than the disk tier needs beyond that.
  await load({ maxBytes: WHOLE });
  const { text } = await question('a.ts');
  await load({ maxBytes: WHOLE, disk });
  const whole = await question('a.ts');
  expect(whole.text).toBe(text);
  expect(whole.usage.inParts).toBeUndefined();
  expect((await stats()).diskFault).toBe(`the KV cache limit of ${formatBytes(WHOLE)} is too small for disk buffers`);
  await flush();
  expect(await readdir(disk.dir)).toEqual([]);
  // With this budget a longer context is read in parts, from a temporary file.
  send({ type: 'configure', maxBytes: IN_PARTS });
  expect((await question('a.ts')).usage.inParts).toBe(true);
  expect(lines.filter((line) => line.includes('nothing is kept on disk'))).toHaveLength(1);
  await close();
});

test('a lowered budget frees the disk buffers at once, a raised budget allocates them again, and the disk can always be cleared', async () => {
  const disk = { dir: join(folder, 'lowered'), maxBytes: 1e9 };
  const first = talk();
  await first.load({ disk });
  await first.question('a.ts');
  await first.close();
  const kept = await readdir(disk.dir);
  expect(kept.length).toBeGreaterThan(1);

  const again = talk();
  await again.load({ disk });
  expect((await again.stats()).diskFault).toBeUndefined();
  again.send({ type: 'configure', maxBytes: WHOLE });
  const { usage } = await again.question('a.ts');
  expect([usage.inParts, usage.cachedTokens]).toEqual([undefined, 0]);
  expect((await again.stats()).diskFault).toContain('is too small for disk buffers');
  expect(again.lines.filter((line) => line.includes('nothing is kept on disk'))).toHaveLength(1);
  again.send({ type: 'configure', maxBytes: 100e6 });
  expect((await again.stats()).diskFault).toBeUndefined();
  again.send({ type: 'configure', maxBytes: IN_PARTS });
  again.send({ type: 'evict' });
  await again.flush();
  await vi.waitFor(async () => expect(await readdir(disk.dir)).toEqual([]));
  await again.close();
});

test('disk buffers take no larger share when several windows divide a budget, and files are read whole with the budget of the message', async () => {
  const shared = { enginesDir: join(folder, 'engines'), disk: { dir: join(folder, 'shared'), maxBytes: 1e9 } };
  const pools = [talk(), talk(), talk(), talk()];
  const last = pools.at(-1)!;
  for (const each of pools) await each.load({ ...shared, maxBytes: 4 * WHOLE });
  expect(await last.stats()).toMatchObject({
    maxBytes: WHOLE,
    diskFault: expect.stringContaining(`the KV cache limit of ${formatBytes(WHOLE)}`),
  });
  expect((await last.question('a.ts')).usage.inParts).toBeUndefined();
  last.send({ type: 'configure', maxBytes: 4 * TOO_LITTLE });
  const [, figure] =
    new RegExp(`about ([\\d.]+) MB are enough for ${BUILT_IN.contextTokens} tokens`).exec(
      (await last.question('a.ts').catch((error: Error) => error.message)) as string,
    ) ?? [];
  last.send({ type: 'configure', maxBytes: Number(figure) * 1e6 });
  expect(await last.stats()).toMatchObject({ numEngines: 4, maxBytes: Number(figure) * 0.25e6 });
  const longest = await last.question('b.ts', false, FILE.repeat(Math.ceil(BUILT_IN.contextTokens / 1000)));
  // A file may use the context except for the part reserved for the conversation.
  expect(longest.usage.promptTokens).toBeGreaterThan(0.6 * BUILT_IN.contextTokens);
  expect(longest.usage.inParts).toBeUndefined();
  for (const each of pools) await each.close();
});

test('a folder that cannot be written is not reported as a disk that is switched off', async () => {
  const { load, question, close } = talk();
  await load({ maxBytes: TOO_LITTLE, disk: { dir: join('package.json', 'kv'), maxBytes: 1e9 } });
  const refused = await question('a.ts').catch((error: Error) => error.message);
  const [, figure] =
    new RegExp(
      ` Raise kvasir\\.cache\\.maxBytes or send less text: about ([\\d.]+) MB are enough for ${BUILT_IN.contextTokens} tokens\\.$`,
    ).exec(String(refused)) ?? [];
  // The figure is rounded up to two digits.
  const least = leastBudget(BUILT_IN.config, BUILT_IN.contextTokens, 0, { isWhole: true });
  expect((Number(figure) * 1e6) / least).toBeGreaterThanOrEqual(1);
  expect((Number(figure) * 1e6) / least).toBeLessThan(1.1);
  await close();
});
