/**
 * A chat view over a scripted engine. Tests can open, hide and reopen its page. Mock the editor before importing this
 * file.
 */
import { afterEach, beforeEach, vi } from 'vitest';
import type { ToHost, ToPage } from '../../../src/chat/chatMessages.ts';
import { ChatView } from '../../../src/chat/chatView.ts';
import { editor } from './fakeChatEditor.ts';

/** Uses fake timers, and resets the editor after each test. */
export function useChat(): void {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => {
    vi.useRealTimers();
    Object.assign(editor, { active: undefined, tabs: [], messages: [] });
  });
}

export const flush = () => vi.advanceTimersByTimeAsync(0);

export const DONE = {
  finishReason: 'stop',
  text: 'Yes.',
  usage: { promptTokens: 10, cachedTokens: 5 },
  timings: { ttftMs: 1, tpotMs: 1 },
  diagnostics: [],
};

export function chatOf(
  workspaceState: Map<string, unknown>,
  options: {
    state?: unknown;
    maxTokens?: number;
    generate?: (request: { onChunk(text: string): void; sampling?: unknown; signal?: AbortSignal }) => Promise<unknown>;
  } = {},
) {
  let numMeasured = 0;
  const event = () => ({ dispose() {} });
  const client = {
    state: options.state ?? { kind: 'ready', model: { name: 'm', note: { en: '', pt: '' }, canEdit: false } },
    ready: async () => ({ name: 'm', canEdit: false }),
    generate: options.generate ?? (async () => DONE),
    measure: async (task: () => unknown) => {
      numMeasured++;
      return (
        task() && {
          contextTokens: 2048,
          answerTokens: 200,
          promptTokens: 1320,
          parts: [{ path: 'b.ts', tokens: 1300, omittedTokens: 4000 }],
          notes: ['b.ts: lines 1-9 of 99 left out'],
        }
      );
    },
  };
  const stateListeners: ((state: unknown) => void)[] = [];
  const host = {
    client,
    onState: (listener: (state: unknown) => void) => {
      stateListeners.push(listener);
      return event();
    },
  };
  const setState = (state: { kind: string }) => {
    client.state = state;
    for (const listener of stateListeners) listener(state);
  };
  const mirror = { sync: (document: { uri: unknown }) => String(document.uri) };
  const settings = {
    current: { completion: { exclude: [] }, chat: { maxTokens: options.maxTokens ?? 0 }, model: '' },
    onDidChange: event,
  };
  const context = {
    extensionUri: {},
    extensionPath: '',
    workspaceState: {
      get: (key: string) => workspaceState.get(key),
      update: async (key: string, value: unknown) => void workspaceState.set(key, structuredClone(value)),
    },
  };
  const view = new ChatView(
    context as never,
    host as never,
    mirror as never,
    settings as never,
    {} as never,
    {} as never,
  );
  const posted: ToPage[] = [];
  let send = (_: ToHost): void => {};
  let hide = (): void => {};
  const openPage = () => {
    const shown = {
      visible: true,
      onDidChangeVisibility: (listener: () => void) => {
        hide = () => {
          shown.visible = false;
          listener();
        };
        return event();
      },
      onDidDispose: event,
      webview: {
        asWebviewUri: () => '',
        postMessage: (message: ToPage) => posted.push(structuredClone(message)),
        onDidReceiveMessage: (listener: typeof send) => {
          send = listener;
          return event();
        },
      },
    };
    view.resolveWebviewView(shown as never);
    send({ type: 'ready' });
  };
  const last = <T extends ToPage['type']>(type: T) =>
    posted.findLast((message) => message.type === type) as Extract<ToPage, { type: T }> | undefined;
  return {
    view,
    posted,
    openPage,
    last,
    send: (message: ToHost) => send(message),
    hide: () => hide(),
    numMeasured: () => numMeasured,
    setState,
  };
}

/** Makes a document with `text` the active one. */
export function openDocument(text: string, selection: object): object {
  const lines = text.split('\n');
  const lineAt = (line: number) => ({
    text: lines[line]!,
    range: { end: 0 },
    firstNonWhitespaceCharacterIndex: 0,
    isEmptyOrWhitespace: false,
  });
  const document = {
    uri: { path: '/a/b.ts', toString: () => 'file:///a/b.ts' },
    version: 1,
    lineCount: lines.length,
    lineAt,
    offsetAt: () => 9,
    getText: () => text,
    validateRange: (range: unknown) => range,
  };
  editor.active = { document, selection };
  return document;
}
