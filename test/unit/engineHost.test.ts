/** The engine's surroundings: the cache's ceiling reaches it whenever it changes, and old notifications do nothing. */
import { expect, test, vi } from 'vitest';
import { type EngineMessage, type HostMessage, PROTOCOL_VERSION } from '../../engine/protocol.ts';
import type { EngineHost as Host } from '../../src/engineHost.ts';

const world = vi.hoisted(() => ({ engines: [] as { sent: HostMessage[]; say(message: EngineMessage): void }[], told: [] as string[], choose: (_: string | undefined) => {} }));
vi.mock('../../src/threadTransport.ts', () => ({
  ThreadTransport: class {
    sent: HostMessage[] = [];
    say = (_: EngineMessage): void => {};

    constructor() {
      world.engines.push(this);
    }

    send(message: HostMessage): void {
      this.sent.push(message);
      if (message.type === 'shutdown') queueMicrotask(() => this.say({ type: 'reply', requestId: message.requestId, value: { kind: 'ok' } }));
    }

    onMessage(listener: (message: EngineMessage) => void): void {
      this.say = listener;
    }

    onExit(): void {}
    dispose(): void {}
  },
}));
vi.mock('../../src/vscode.ts', () => ({
  EventEmitter: class {
    event = () => ({ dispose() {} });
    fire(): void {}
    dispose(): void {}
  },
  l10n: { t: (text: string, ...values: unknown[]) => text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)])) },
  window: {
    showErrorMessage: (message: string) => {
      world.told.push(message);
      return new Promise((resolve) => {
        world.choose = resolve;
      });
    },
  },
}));
const { EngineHost } = await import('../../src/engineHost.ts');

const settle = () => new Promise((resolve) => setImmediate(resolve));

function hostOf() {
  world.engines.length = 0;
  world.told.length = 0;
  const config = { model: '', threads: 0, transport: 'thread', cacheMaxBytes: 0 };
  let changed = (_: unknown): void => {};
  const settings = {
    get current() { return { ...config }; },
    onDidChange: (listener: (change: unknown) => void) => {
      changed = listener;
      return { dispose() {} };
    },
  };
  const log = { info() {}, warn() {}, error() {} };
  const host: Host = new EngineHost({ extensionPath: '/x', globalStorageUri: { fsPath: '/s' } } as never, settings as never, log as never);
  const set = (cacheMaxBytes: number) => {
    const before = { ...config };
    config.cacheMaxBytes = cacheMaxBytes;
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

test('a ceiling set while the model loads reaches the engine when it is ready, 0 later without a restart', async () => {
  const { host, set } = hostOf();
  const ready = host.client.ready();
  const { requestId } = await greet();
  set(5e6);
  expect(last().sent.map((message) => message.type)).toEqual(['load']);
  last().say({ type: 'reply', requestId, value: { kind: 'loaded', model: { name: 'm' } as never } });
  await ready;
  set(0);
  expect(last().sent.slice(1)).toEqual([{ type: 'configure', maxBytes: 5e6 }, { type: 'configure', maxBytes: 0 }]);
  expect(world.engines.length).toBe(1);
});

test('Restart of a notification older than switching off does nothing; a model’s words are no link', async () => {
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
