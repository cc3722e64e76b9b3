/** An engine host over fake engines. Mock the editor and the transport before importing this file. */
import { type HostMessage, PROTOCOL_VERSION } from '../../../engine/protocol/messages.ts';
import { EngineHost } from '../../../src/client/engineHost.ts';
import { world } from './fakeHostEditor.ts';

export const settle = () => new Promise((resolve) => setImmediate(resolve));

/** A host over new fakes. Its function `set` changes settings. */
export function hostOf(storage = '/nowhere/storage') {
  world.isTrusted = true;
  world.engines.length = 0;
  world.told.length = 0;
  world.focused = true;
  world.windowState.clear();
  const config = {
    model: '',
    threads: 0,
    precision: 'int8',
    native: true,
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
  const host = new EngineHost(
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

/** The engine that was started last. */
export const last = () => world.engines.at(-1)!;
/** Lets the engine start, and returns its `load` message. */
export const greet = async () => {
  await settle();
  last().say({ type: 'ready', version: PROTOCOL_VERSION });
  await settle();
  return last().sent.find((message) => message.type === 'load') as Extract<HostMessage, { type: 'load' }>;
};

/** A host with these settings and a loaded model. */
export async function loaded(config: Parameters<ReturnType<typeof hostOf>['set']>[0]) {
  const { host, set } = hostOf();
  set(config);
  const ready = host.client.ready();
  const { requestId } = await greet();
  last().say({ type: 'reply', requestId, value: { kind: 'loaded', model: { name: 'm' } as never } });
  await ready;
  return { host, set };
}

/** Sets whether the window has the focus. */
export const focus = (focused: boolean) => {
  world.focused = focused;
  for (const listener of world.windowState) listener({ focused });
};
