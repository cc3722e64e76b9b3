/**
 * The engine's host: settings reach the engine when they change, failures are reported once, and old notifications do
 * nothing.
 */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { world } from '../../../support/editor/fakeHostEditor.ts';

vi.mock(
  '../../../../src/client/transport.ts',
  async () => (await import('../../../support/editor/fakeHostEditor.ts')).transport,
);
vi.mock('../../../../src/vscode.ts', async () => (await import('../../../support/editor/fakeHostEditor.ts')).vscodeApi);
const { focus, greet, hostOf, last, loaded, settle } = await import('../../../support/editor/hostHarness.ts');

test('a memory budget set during the load reaches the engine when it is ready, and a later one without a restart', async () => {
  const { host, set } = hostOf();
  const ready = host.client.ready();
  const { requestId } = await greet();
  set({ cacheMaxBytes: 5e6 });
  expect(last().sent.map((message) => message.type)).toEqual(['load']);
  last().say({ type: 'reply', requestId, value: { kind: 'loaded', model: { name: 'm' } as never } });
  await ready;
  set({ cacheMaxBytes: 0 });
  expect(last().sent.slice(1)).toEqual([
    { type: 'configure', maxBytes: 5e6 },
    { type: 'configure', maxBytes: 0 },
  ]);
  expect(world.engines.length).toBe(1);
});

test('the number of threads reaches the engine; a change stops it, and the next request starts it with the new number', async () => {
  const { host, set } = hostOf();
  set({ threads: 3 });
  host.client.ready().catch(() => {});
  expect((await greet()).threads).toBe(3);
  set({ threads: 5 });
  await settle();
  host.client.ready().catch(() => {});
  expect((await greet()).threads).toBe(5);
  expect(world.engines.length).toBe(2);
});

test('shifted reuse is on only with its setting; turning it on stops the engine, and the next request starts it with it', async () => {
  const { host, set } = hostOf();
  set({});
  host.client.ready().catch(() => {});
  expect(await greet()).not.toHaveProperty('reuseShifted');
  set({ cacheReuseShifted: true });
  await settle();
  host.client.ready().catch(() => {});
  expect((await greet()).reuseShifted).toBe(true);
  expect(world.engines.length).toBe(2);
});

test('nothing is kept on disk or compressed unless the settings say so', async () => {
  const { host, set } = hostOf();
  host.client.ready().catch(() => {});
  const usual = await greet();
  expect([usual.disk, usual.compress]).toEqual([undefined, undefined]);
  const loaded = async (change: object) => {
    set(change);
    await settle();
    host.client.ready().catch(() => {});
    return greet();
  };
  expect((await loaded({ cacheDiskBytes: 5e8 })).disk).toEqual({ dir: expect.stringMatching(/kv$/), maxBytes: 5e8 });
  expect((await loaded({ cacheCodec: 'auto' })).compress).toBe('auto');
  expect((await loaded({ cacheCodec: 'nvfp4' })).compress).toBe('nvfp4');
  expect(world.engines.length).toBe(4);
});

test('the engines of all windows get one folder to share the memory budget', async () => {
  const { host } = hostOf();
  host.client.ready().catch(() => {});
  expect((await greet()).enginesDir).toMatch(/engines$/);
});

test('an untrusted workspace leaves nothing on disk', async () => {
  const { host, set } = hostOf();
  set({ cacheDiskBytes: 5e8 });
  world.isTrusted = false;
  host.client.ready().catch(() => {});
  expect((await greet()).disk).toBeUndefined();
  world.isTrusted = true;
  await host.client.stop('a test');
  host.client.ready().catch(() => {});
  expect((await greet()).disk).toMatchObject({ maxBytes: 5e8 });
});

test('the disk cache is removed when its setting becomes 0, and when the cache is cleared while no engine uses it', async () => {
  const storage = await mkdtemp(join(tmpdir(), 'kvasir-host-'));
  const kept = join(storage, 'kv', 'a');
  const keep = async () => {
    await mkdir(join(storage, 'kv'), { recursive: true });
    await writeFile(kept, 'x');
  };
  const gone = () => expect.poll(() => existsSync(kept)).toBe(false);
  try {
    await keep();
    const { host, set } = hostOf(storage);
    await gone();
    set({ cacheDiskBytes: 5e8 });
    await keep();
    await settle();
    set({ cacheDiskBytes: 4e8 });
    await settle();
    expect(existsSync(kept)).toBe(true);
    host.clearCache();
    await gone();
    await keep();
    set({ cacheDiskBytes: 0 });
    await gone();
    // For example left by a window that is still open.
    await keep();
    const ready = host.client.ready();
    const { requestId } = await greet();
    last().say({ type: 'reply', requestId, value: { kind: 'loaded', model: { name: 'm' } as never } });
    await ready;
    host.clearCache();
    expect(last().sent.at(-1)).toEqual({ type: 'evict', pinned: false });
    await gone();
  } finally {
    await rm(storage, { recursive: true, force: true });
  }
});

test('the precision of the weights reaches the engine; a change stops it, and the next request starts it with the new one', async () => {
  const { host, set } = hostOf();
  host.client.ready().catch(() => {});
  expect((await greet()).precision).toBe('int8');
  set({ precision: 'int4' });
  await settle();
  host.client.ready().catch(() => {});
  expect((await greet()).precision).toBe('int4');
  expect(world.engines.length).toBe(2);
});

test('the native kernels are used unless the setting says so', async () => {
  const { host, set } = hostOf();
  host.client.ready().catch(() => {});
  expect((await greet()).native).toBeUndefined();
  set({ native: false });
  await settle();
  host.client.ready().catch(() => {});
  expect((await greet()).native).toBe(false);
  expect(world.engines.length).toBe(2);
});

test('Restart in an old notification does nothing after Kvasir was switched off; text from a model’s files is not a link', async () => {
  const { host } = hostOf();
  host.client.ready().catch(() => {});
  const { requestId } = await greet();
  last().say({ type: 'error', requestId, code: 'modelInvalid', message: 'no [x](command:y)' });
  await settle();
  expect(world.told).toEqual(['Kvasir: no [x] (command:y)']);
  await host.stop();
  world.choose('Restart');
  await settle();
  expect(world.engines.length).toBe(1);
});

test('the message about a model that cannot be loaded offers to choose another one', async () => {
  const { host } = hostOf();
  host.client.ready().catch(() => {});
  const { requestId } = await greet();
  last().say({ type: 'error', requestId, code: 'modelInvalid', message: '/m: model.safetensors is cut off' });
  await settle();
  expect(world.offered).toEqual(['Choose Model', 'Show Log', 'Restart']);
  world.choose('Choose Model');
  await settle();
  expect(world.ran.splice(0)).toEqual([['kvasir.chooseModel']]);
  expect(world.engines.length).toBe(1);
});

test('a failure that the caller reports is not reported twice, and is kept for a problem report', async () => {
  const { host } = hostOf();
  const failed = host.quietly(() => host.client.ready()).catch((error: Error) => error.message);
  const { requestId } = await greet();
  last().say({ type: 'error', requestId, code: 'modelInvalid', message: 'no hidden_size' });
  expect(await failed).toBe('no hidden_size');
  expect(world.told).toEqual([]);
  expect(host.problems).toMatchObject([{ level: 'error', text: 'no hidden_size' }]);
});

test('no file is read ahead while the window is in the background', async () => {
  const { host } = await loaded({});
  const configured = () =>
    last()
      .sent.filter((message) => message.type === 'configure')
      .map((message) => message.idleWork);
  focus(false);
  focus(true);
  expect(configured()).toEqual([false, true]);
  await host.stop();
});
