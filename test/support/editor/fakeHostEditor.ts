/** Stand-ins for the editor's API and the engine's thread, for tests of the engine's host. */
import type { EngineMessage, HostMessage } from '../../../engine/protocol/messages.ts';

/** What the fakes record, and what a test sets. */
export const world = {
  engines: [] as { sent: HostMessage[]; say(message: EngineMessage): void }[],
  told: [] as string[],
  offered: [] as string[],
  ran: [] as unknown[][],
  choose: (_: string | undefined) => {},
  windowState: new Set<(state: { focused: boolean }) => void>(),
  focused: true,
  isTrusted: true,
};

/** The module src/client/transport.ts, with engines that the test answers for. */
export const transport = {
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
};

/** The parts of the editor's API that the host uses. */
export const vscodeApi = {
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
};
