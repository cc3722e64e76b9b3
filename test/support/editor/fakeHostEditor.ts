/** Replaces the editor's API and the engine's thread in tests of the engine host. */
import type { EngineMessage, HostMessage } from '../../../engine/protocol/messages.ts';

/** State that the fakes record and that a test sets. */
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

/** Replaces the module src/client/transport.ts. The test answers for its engines. */
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
