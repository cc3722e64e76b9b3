/**
 * Everything that `kvasir.enable` switches on, over an editor's API that keeps account: making it starts no engine and
 * no timer, stopping it leaves no listener, registration, item or timer behind.
 */
import { expect, test, vi } from 'vitest';

const account = vi.hoisted(() => {
  const open = new Map<object, string>();
  let numMade = 0;
  const disposable = (name: string, more: object = {}): object => {
    const made: object = { ...more, dispose: () => open.delete(made) };
    numMade++;
    open.set(made, name);
    return made;
  };
  /** A value that can be read, called, constructed and awaited, for any member that the features use. */
  const anything = (name: string): object =>
    new Proxy(class {}, {
      get: (_, key) =>
        key === Symbol.toPrimitive || key === 'toString'
          ? () => name
          : key === Symbol.iterator
            ? function* () {}
            : key === 'then'
              ? undefined
              : member(name, key),
      apply: () => anything(`${name}()`),
      construct: () => anything(name),
    });
  const member = (owner: string, key: string | symbol): unknown => {
    const name = `${owner}.${String(key)}`;
    if (/^(on[A-Z]|register|create[A-Z])/.test(String(key))) {
      const event = () => disposable(`${name} event`);
      const events = { event, onDidChange: event, onDidCreate: event, onDidDelete: event };
      return () => disposable(name, { show() {}, hide() {}, append() {}, ...events });
    }
    return anything(name);
  };
  class EventEmitter {
    event = (): object => disposable('EventEmitter.event');
    fire(): void {}
    dispose(): void {}
  }
  class Disposable {
    static from = (...all: { dispose(): void }[]) =>
      new Disposable(() => {
        for (const each of all) each.dispose();
      });
    dispose: () => void;
    constructor(dispose: () => void) {
      this.dispose = dispose;
    }
  }
  const window = new Proxy(
    {},
    {
      get: (_, key) =>
        key === 'state'
          ? { focused: true }
          : key === 'visibleTextEditors'
            ? []
            : key === 'activeTextEditor'
              ? undefined
              : member('window', key),
    },
  );
  const workspace = new Proxy(
    {},
    {
      get: (_, key) =>
        key === 'getConfiguration'
          ? () => ({ get: (name: string) => (name === 'enable' ? true : undefined), inspect: () => undefined })
          : key === 'textDocuments' || key === 'notebookDocuments'
            ? []
            : key === 'workspaceFolders'
              ? undefined
              : key === 'isTrusted'
                ? true
                : member('workspace', key),
    },
  );
  const l10n = { t: (text: string) => text };
  const known: Record<string, unknown> = { EventEmitter, Disposable, window, workspace, l10n };
  const vscode = new Proxy(known, {
    get: (_, key) => (key === 'then' ? undefined : (known[String(key)] ?? anything(String(key)))),
    has: () => true,
  });
  return { open, vscode, made: () => numMade };
});
vi.mock('../../../src/vscode.ts', () => account.vscode);
vi.mock('node:worker_threads', () => ({ Worker: vi.fn() }));
vi.mock('node:child_process', async (original) => ({ ...(await original<object>()), fork: vi.fn() }));
const { Features } = await import('../../../src/features.ts');
const { Settings } = await import('../../../src/config.ts');
const { Worker } = await import('node:worker_threads');
const { fork } = await import('node:child_process');

test('creating the features runs nothing, and stopping them leaves nothing', async () => {
  vi.useFakeTimers();
  const settings = new Settings();
  const before = account.open.size;
  const memento = { get: (_: string, otherwise: unknown) => otherwise, update: async () => {}, keys: () => [] };
  const context = {
    subscriptions: [],
    extensionPath: '/x',
    extensionUri: {},
    globalStorageUri: { fsPath: '/s' },
    storageUri: undefined,
    globalState: memento,
    workspaceState: memento,
    extension: { packageJSON: {} },
  };
  const features = new Features(context as never, settings, { info() {}, warn() {}, error() {}, show() {} } as never);
  expect(account.made()).toBeGreaterThan(before + 20);
  expect(vi.getTimerCount()).toBe(0);
  const stopped = features.stop();
  await vi.runAllTimersAsync();
  await stopped;
  expect([...account.open.values()].slice(before)).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
  expect(Worker).not.toHaveBeenCalled();
  expect(fork).not.toHaveBeenCalled();
  vi.useRealTimers();
});
