/** The chat view's half in the extension host, with a page that comes and goes: what it keeps, and what a key costs. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ToHost, ToPage, Turn } from '../../src/chat/chatMessages.ts';

const editor = vi.hoisted(() => ({ changed: (_: unknown): void => {}, active: undefined as unknown }));
vi.mock('../../src/vscode.ts', () => {
  const event = () => ({ dispose() {} });
  return {
    EventEmitter: class {
      #listeners: (() => void)[] = [];
      event = (listener: () => void) => {
        this.#listeners.push(listener);
        return { dispose() {} };
      };
      fire(): void {
        for (const listener of this.#listeners) listener();
      }
      dispose(): void {}
    },
    Uri: { joinPath: () => ({}) },
    l10n: { t: (text: string) => text },
    env: { language: 'en' },
    languages: { match: () => 1 },
    window: { get activeTextEditor() { return editor.active; }, visibleTextEditors: [], onDidChangeActiveTextEditor: event },
    workspace: {
      asRelativePath: () => 'b.ts',
      onDidChangeTextDocument: (listener: (event: unknown) => void) => {
        editor.changed = listener;
        return { dispose() {} };
      },
    },
  };
});
vi.mock('../../src/chat/chatPage.ts', () => ({ chatPage: () => '' }));
const { ChatView } = await import('../../src/chat/chatView.ts');
const { Attachment } = await import('../../src/chat/attachment.ts');

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function chatOf(workspaceState: Map<string, unknown>) {
  let numCounted = 0;
  const event = () => ({ dispose() {} });
  const host = { client: { state: { kind: 'ready', model: { name: 'm', note: '' } }, countTokens: async (docId: () => string) => { numCounted++; return docId().length; } }, onState: event };
  const mirror = { sync: (document: { uri: unknown }) => String(document.uri) };
  const settings = { current: { completion: { exclude: [] }, chat: { maxTokens: 0 }, model: '' }, onDidChange: event };
  const context = { extensionUri: {}, workspaceState: { get: (key: string) => workspaceState.get(key), update: async (key: string, value: unknown) => void workspaceState.set(key, value) } };
  const attachment = new Attachment(host as never, mirror as never, settings as never);
  const chat = new ChatView(context as never, host as never, mirror as never, settings as never, attachment, {} as never);
  const posted: ToPage[] = [];
  let send = (_: ToHost): void => {};
  const openPage = (turns: Turn[]) => {
    chat.resolveWebviewView({ visible: true, onDidChangeVisibility: event, onDidDispose: event, webview: { postMessage: (message: ToPage) => posted.push(message), onDidReceiveMessage: (listener: typeof send) => { send = listener; return event(); } } } as never);
    send({ type: 'ready', turns });
  };
  const shown = () => posted.findLast((message) => message.type === 'turns')?.turns.length;
  return { chat, posted, openPage, shown, numCounted: () => numCounted };
}

const KEPT: Turn[] = [{ id: 't1', role: 'user', text: 'Hi' }];

test('cleared while its page was closed, it stays cleared across a reload of the window, and only that once', () => {
  const workspaceState = new Map<string, unknown>();
  chatOf(workspaceState).chat.clear();
  const reloaded = chatOf(workspaceState);
  reloaded.openPage(KEPT);
  expect(reloaded.shown()).toBe(0);
  const later = chatOf(workspaceState);
  later.openPage(KEPT);
  expect(later.shown()).toBe(1);
});

test('keys are answered by one look at the file, after a pause; questions are suggested only to an empty chat', async () => {
  let numRead = 0;
  const document = { uri: { path: '/a/b.ts', toString: () => 'file:///a/b.ts' }, version: 1, lineCount: 1, lineAt: () => ({ range: { end: 0 } }), offsetAt: () => 9, getText: () => { numRead++; return 'def flush(): pass'; } };
  editor.active = { document };
  const { posted, openPage, numCounted, chat } = chatOf(new Map());
  openPage(KEPT);
  await vi.advanceTimersByTimeAsync(1000);
  expect([numRead, numCounted()]).toEqual([0, 1]);
  posted.length = 0;
  for (let key = 0; key < 10; key++) {
    document.version++;
    editor.changed({ document, contentChanges: [{}] });
    await vi.advanceTimersByTimeAsync(50);
  }
  expect(posted).toEqual([]);
  await vi.advanceTimersByTimeAsync(1000);
  expect([numRead, numCounted()]).toEqual([0, 2]);
  expect(posted.at(-1)).toMatchObject({ type: 'context', chip: { tokens: '14' }, questions: [] });
  chat.clear();
  expect(posted.at(-1)).toMatchObject({ type: 'context', questions: ['Summarize this file', 'What does flush do?', 'What are the parameters of flush?', 'Which functions does this file define?'] });
});
