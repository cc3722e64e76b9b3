/**
 * The engine's host: settings reach the engine when they change, old notifications do nothing, and an unused model is
 * unloaded.
 */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { type EngineMessage, type HostMessage, PROTOCOL_VERSION } from '../../../../engine/protocol/messages.ts';
import type { EngineHost as Host } from '../../../../src/client/engineHost.ts';

const world = vi.hoisted(() => ({
  engines: [] as { sent: HostMessage[]; say(message: EngineMessage): void }[],
  told: [] as string[],
  offered: [] as string[],
  ran: [] as unknown[][],
  choose: (_: string | undefined) => {},
  windowState: new Set<(state: { focused: boolean }) => void>(),
  focused: true,
  isTrusted: true,
}));
vi.mock('../../../../src/client/transport.ts', () => ({
  ThreadTransport: class {
    sent: HostMessage[] = [];
    say = (_: EngineMessage): void => {};

    constructor() {
      world.engines.push(this);
    }

    send(message: HostMessage): void {
      this.sent.push(message);
      if (message.type === 'shutdown')
        queueMicrotask(() => this.say({ type: 'reply', requestId: message.requestId, value: { kind: 'ok' } }));
    }

    onMessage(listener: (message: EngineMessage) => void): void {
      this.say = listener;
    }

    onExit(): void {}
    dispose(): void {}
  },
}));
vi.mock('../../../../src/vscode.ts', () => ({
  EventEmitter: class {
    event = () => ({ dispose() {} });
    fire(): void {}
    dispose(): void {}
  },
  l10n: { t: (text: string, ...values: unknown[]) => text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)])) },
  commands: { executeCommand: async (...args: unknown[]) => void world.ran.push(args) },
  workspace: {
    get isTrusted() {
      return world.isTrusted;
    },
  },
  window: {
    get state() {
      return { focused: world.focused };
    },
    onDidChangeWindowState: (listener: (state: { focused: boolean }) => void) => {
      world.windowState.add(listener);
      return { dispose: () => world.windowState.delete(listener) };
    },
    showErrorMessage: (message: string, ...buttons: string[]) => {
      world.told.push(message);
      world.offered = buttons;
      return new Promise((resolve) => {
        world.choose = resolve;
      });
    },
  },
}));
const { EngineHost } = await import('../../../../src/client/engineHost.ts');

const settle = () => new Promise((resolve) => setImmediate(resolve));

function hostOf(storage = '/nowhere/storage') {
  world.isTrusted = true;
  world.engines.length = 0;
  world.told.length = 0;
  world.focused = true;
  world.windowState.clear();
  const config = {
    model: '',
    threads: 0,
    precision: 'int8',
    cacheMaxBytes: 0,
    cacheDiskBytes: 0,
    cacheCodec: 'int8',
    cacheReuseShifted: false,
    unloadAfterMinutes: 0,
  };
  let changed = (_: unknown): void => {};
  const settings = {
    get current() {
      return { ...config };
    },
    onDidChange: (listener: (change: unknown) => void) => {
      changed = listener;
      return { dispose() {} };
    },
  };
  const log = { info() {}, warn() {}, error() {} };
  const host: Host = new EngineHost(
    { extensionPath: '/x', globalStorageUri: { fsPath: storage } } as never,
    settings as never,
    log as never,
  );
  const set = (change: Partial<typeof config>) => {
    const before = { ...config };
    Object.assign(config, change);
    changed({ before, now: { ...config } });
  };
  return { host, set };
}

const last = () => world.engines.at(-1)!;
const greet = async () => {
  await settle();
  last().say({ type: 'ready', version: PROTOCOL_VERSION });
  await settle();
  return last().sent.find((message) => message.type === 'load') as Extract<HostMessage, { type: 'load' }>;
};

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

async function loaded(config: Parameters<ReturnType<typeof hostOf>['set']>[0]) {
  const { host, set } = hostOf();
  set(config);
  const ready = host.client.ready();
  const { requestId } = await greet();
  last().say({ type: 'reply', requestId, value: { kind: 'loaded', model: { name: 'm' } as never } });
  await ready;
  return { host, set };
}
const focus = (focused: boolean) => {
  world.focused = focused;
  for (const listener of world.windowState) listener({ focused });
};
const MINUTE = 60_000;

afterEach(() => void vi.useRealTimers());

test('the model is unloaded after the time without a request, sooner in the background, and loaded by the next request', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  const { host } = await loaded({ unloadAfterMinutes: 15 });
  vi.advanceTimersByTime(14 * MINUTE);
  const done = host.client.generate({ task: () => ({ kind: 'raw', prompt: '' }), priority: 'chat' });
  await settle();
  // The time of a long request does not count as idle.
  vi.advanceTimersByTime(60 * MINUTE);
  expect(host.client.state.kind).toBe('ready');
  last().say({ type: 'done', requestId: (last().sent.at(-1) as { requestId: string }).requestId } as never);
  await done;
  vi.advanceTimersByTime(14.9 * MINUTE);
  expect(host.client.state.kind).toBe('ready');
  vi.advanceTimersByTime(0.2 * MINUTE);
  expect(host.client.state.kind).toBe('stopped');
  await settle();
  expect(last().sent.at(-1)?.type).toBe('shutdown');
  expect(vi.getTimerCount()).toBe(0);

  const { epoch } = host.client;
  const ready = host.client.ready();
  const { requestId } = await greet();
  last().say({ type: 'reply', requestId, value: { kind: 'loaded', model: { name: 'm' } as never } });
  await ready;
  expect(world.engines.length).toBe(2);
  expect(host.client.epoch).toBeGreaterThan(epoch);
  vi.advanceTimersByTime(3 * MINUTE);
  focus(false);
  vi.advanceTimersByTime(4.9 * MINUTE);
  focus(true);
  vi.advanceTimersByTime(3 * MINUTE);
  expect(host.client.state.kind).toBe('ready');
  focus(false);
  vi.advanceTimersByTime(5.1 * MINUTE);
  expect(host.client.state.kind).toBe('stopped');
  await host.stop();
  expect(vi.getTimerCount()).toBe(0);
  expect(world.windowState.size).toBe(0);
});

test('0 keeps the model loaded; a changed time counts from the last request', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  const { host, set } = await loaded({ unloadAfterMinutes: 0 });
  expect(vi.getTimerCount()).toBe(0);
  vi.advanceTimersByTime(600 * MINUTE);
  expect(host.client.state.kind).toBe('ready');
  set({ unloadAfterMinutes: 601 });
  vi.advanceTimersByTime(1.1 * MINUTE);
  expect(host.client.state.kind).toBe('stopped');
  await host.stop();
});

test('an engine that stays down keeps its message', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
  const { host } = await loaded({ unloadAfterMinutes: 15 });
  last().say({ type: 'error', code: 'engineFailed', message: 'the engine is down' });
  await host.client.generate({ task: () => ({ kind: 'raw', prompt: '' }), priority: 'chat' }).catch(() => {});
  vi.advanceTimersByTime(20 * MINUTE);
  expect(host.client.state).toMatchObject({ kind: 'failed', message: 'the engine is down' });
  await host.stop();
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
