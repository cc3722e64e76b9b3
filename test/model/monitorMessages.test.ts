/**
 * What the engine with the built-in model reports to the monitor: open and closed files, the tree, pins, evictions, the
 * trace.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AssistantServer } from '../../engine/server/assistantServer.ts';
import { Machine } from '../../engine/server/machine.ts';
import type { EngineMessage, HostMessage, ReplyValue } from '../../engine/protocol/messages.ts';
import type { EngineStats, TreeNode } from '../../engine/protocol/stats.ts';

type Asking = HostMessage extends infer M ? (M extends { requestId: string } ? Omit<M, 'requestId'> : never) : never;

const cacheDir = await mkdtemp(join(tmpdir(), 'kvasir-monitor-'));
const problems: EngineMessage[] = [];
const waiting = new Map<string, (value: ReplyValue | null) => void>();
const assistant = new AssistantServer(
  (message) => {
    if (message.type === 'error') problems.push(message);
    if (message.type !== 'reply' && message.type !== 'done' && message.type !== 'error') return;
    if (message.requestId !== undefined)
      waiting.get(message.requestId)?.(message.type === 'reply' ? message.value : null);
  },
  undefined,
  new Machine(new URL('../../engine/server/machineProbe.ts', import.meta.url)),
);
let numAsked = 0;
function ask(message: Asking): Promise<ReplyValue | null> {
  const requestId = `r${++numAsked}`;
  return new Promise((resolve) => {
    waiting.set(requestId, resolve);
    assistant.handle({ ...message, requestId } as HostMessage);
  });
}

async function stats(tree = false): Promise<EngineStats> {
  const value = await ask({ type: 'stats', tree });
  if (value?.kind !== 'stats') throw new Error(JSON.stringify(value));
  return value.stats;
}

const docId = (name: string) => `file:///src/${name}`;
const TEXT = Array.from({ length: 30 }, (_, i) => `export const value${i} = ${i} * factor; // number ${i}`).join('\n');
const files = async () => Object.fromEntries((await stats()).files.map((file) => [file.path, file]));
const flat = (nodes: TreeNode[]): TreeNode[] => nodes.flatMap((node) => [node, ...flat(node.children)]);

beforeAll(async () => {
  await ask({ type: 'load', modelDir: 'model', cacheDir, precision: 'int8', maxBytes: 50e6, threads: 1 });
  for (const name of ['a.ts', 'b.ts'])
    assistant.handle({
      type: 'documentChanged',
      docId: docId(name),
      version: 1,
      path: `src/${name}`,
      text: `// ${name}\n${TEXT}`,
    });
  await ask({ type: 'flush' });
  await ask({
    type: 'generate',
    priority: 'chat',
    task: { kind: 'chat', messages: [{ role: 'user', content: 'What is this?' }], docIds: [docId('a.ts')] },
    sampling: { maxTokens: 4 },
  });
});
afterAll(async () => {
  await ask({ type: 'shutdown' });
  await rm(cacheDir, { recursive: true, force: true });
  expect(problems).toEqual([]);
});

test('both files are listed, and the tree has them and the chat after one', async () => {
  const now = await stats(true);
  expect(now.files.map(({ path, open, tier }) => ({ path, open, tier }))).toEqual([
    { path: 'src/a.ts', open: true, tier: 'pool' },
    { path: 'src/b.ts', open: true, tier: 'pool' },
  ]);
  const nodes = flat(now.tree!);
  for (const { path, tokens } of now.files) {
    expect(tokens).toBeGreaterThan(200);
    // The common beginning counts for each of the two files, and the tree reports it once.
    const header = nodes.find(({ kind }) => kind === 'header')?.tokens ?? 0;
    expect(
      nodes
        .filter(({ kind, label }) => kind === 'file' && label === path)
        .reduce((sum, node) => sum + node.tokens, header),
    ).toBe(tokens);
  }
  expect(nodes.filter(({ kind }) => kind === 'request').map(({ label, docId: of }) => [label, of])).toContainEqual([
    'chat',
    docId('a.ts'),
  ]);
  expect((await stats()).tree).toBeUndefined();
});

test('a pin is reported, closing the file removes it, and cached rows stay listed', async () => {
  assistant.handle({ type: 'pin', docId: docId('a.ts'), pinned: true });
  const pinned = (await files())['src/a.ts']!;
  expect(pinned).toMatchObject({ pinned: true, open: true, hits: 1 });
  expect(flat((await stats(true)).tree!).some((node) => node.pinned)).toBe(true);
  assistant.handle({ type: 'documentClosed', docId: docId('a.ts') });
  expect((await files())['src/a.ts']).toMatchObject({
    pinned: false,
    open: false,
    tokens: pinned.tokens,
    bytes: pinned.bytes,
    hits: 1,
  });
  expect(flat((await stats(true)).tree!).some((node) => node.pinned)).toBe(false);
});

test('a file that is opened again is the same file', async () => {
  assistant.handle({
    type: 'documentChanged',
    docId: docId('a.ts'),
    version: 1,
    path: 'src/a.ts',
    text: `// a.ts\n${TEXT}`,
  });
  expect((await files())['src/a.ts']).toMatchObject({ open: true, hits: 1 });
  assistant.handle({ type: 'documentClosed', docId: docId('a.ts') });
});

test('evicting frees one file only, and a closed file without rows is not listed', async () => {
  const before = await files();
  assistant.handle({ type: 'evict', docId: docId('b.ts') });
  expect((await files())['src/b.ts']).toMatchObject({ tokens: 0, bytes: 0, tier: 'none', open: true });
  expect((await files())['src/a.ts']).toMatchObject({ tokens: before['src/a.ts']!.tokens });
  assistant.handle({ type: 'evict', docId: docId('a.ts') });
  expect(Object.keys(await files())).toEqual(['src/b.ts']);
});

test('pinning or evicting a file that is not open gives no error', async () => {
  assistant.handle({ type: 'pin', docId: 'file:///gone.ts', pinned: true });
  assistant.handle({ type: 'evict', docId: 'file:///gone.ts' });
  expect((await files())['gone.ts']).toBeUndefined();
  expect(problems).toEqual([]);
});

test('the trace has the steps that ran and contains no text', async () => {
  const value = await ask({ type: 'trace' });
  if (value?.kind !== 'trace') throw new Error(JSON.stringify(value));
  const { traceEvents } = JSON.parse(value.json) as { traceEvents: { ph: string; name: string }[] };
  expect(traceEvents.filter(({ ph, name }) => ph === 'X' && name === 'step')).toHaveLength(
    (await stats()).events.steps,
  );
  expect(value.json).not.toMatch(/value1|factor|a\.ts|What is/);
});

test('the machine is described', async () => {
  const value = await ask({ type: 'machine', speed: true });
  if (value?.kind !== 'machine') throw new Error(JSON.stringify(value));
  expect(value.machine.readBytesPerSecond).toBeGreaterThan(0);
  expect(value.machine.gpus).toBeInstanceOf(Array);
});
