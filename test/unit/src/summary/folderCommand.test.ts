/** Summarize Folder with a scripted engine: it does not change the engine's copy of an open file. */
import { beforeEach, expect, test, vi } from 'vitest';
import { t } from '../../../support/editor/translate.ts';

const editor = vi.hoisted(() => ({ documents: [] as { uri: unknown; getText(): string }[], messages: [] as string[] }));
vi.mock('../../../../src/vscode.ts', () => {
  class Uri {
    readonly path: string;
    constructor(path: string) {
      this.path = path;
    }
    toString(): string {
      return `file://${this.path}`;
    }
    static joinPath({ path }: Uri, name: string): Uri {
      return new Uri(`${path}/${name}`);
    }
  }
  return {
    env: { language: 'en' },
    l10n: { t },
    Uri,
    EventEmitter: class {},
    ProgressLocation: { Notification: 15 },
    window: {
      withProgress: (_: unknown, run: (bar: unknown, token: unknown) => unknown) =>
        run({ report: () => {} }, { onCancellationRequested: () => {} }),
      showErrorMessage: async (message: string) => void editor.messages.push(message),
    },
    workspace: {
      getWorkspaceFolder: () => undefined,
      fs: { stat: async () => ({ size: 6 }), readFile: async () => new TextEncoder().encode('one();') },
      get textDocuments() {
        return editor.documents;
      },
    },
  };
});
vi.mock('../../../../src/summary/sourceFiles.ts', async (original) => ({
  ...(await original<object>()),
  filesOf: async () => ({ files: [file], secrets: [], numMore: 0 }),
}));
const { Uri } = (await import('../../../../src/vscode.ts')) as unknown as { Uri: new (path: string) => never };
const { FolderCommand } = await import('../../../../src/summary/folderCommand.ts');
const file = new Uri('/w/a.ts');

beforeEach(() => Object.assign(editor, { documents: [], messages: [] }));

test('an open file that changes before its turn is left out, and the engine keeps its current text', async () => {
  let text = 'one();';
  editor.documents = [{ uri: file, getText: () => text }];
  const notified: string[] = [];
  const client = {
    state: { kind: 'ready' },
    ready: async () => ({ note: { en: '', pt: '' } }),
    notify: ({ type }: { type: string }) => notified.push(type),
    generate: async ({ task }: { task: () => unknown }) => {
      text = 'two();';
      task();
    },
  };
  const settings = { current: { completion: {}, chat: { maxTokens: 0 } } };
  const cache = { get: () => undefined, save: async () => {} };
  const command = new FolderCommand(
    { client } as never,
    { sync: () => 'a' } as never,
    settings as never,
    cache as never,
    {} as never,
    { info: () => {} } as never,
  );
  await command.run(new Uri('/w'));
  expect(notified).toEqual([]);
  expect(editor.messages).toEqual(['Kvasir: a.ts changed before it was read. Try again.']);
});

test('a file that is not open is evicted from memory only; its rows on disk stay', async () => {
  const notified: unknown[] = [];
  const client = {
    state: { kind: 'ready' },
    ready: async () => ({ note: { en: '', pt: '' } }),
    notify: (message: unknown) => notified.push(message),
    generate: async ({ task }: { task: () => unknown }) => {
      task();
      return { finishReason: 'stop', text: '', diagnostics: [] };
    },
  };
  const settings = { current: { completion: {}, chat: { maxTokens: 0 } } };
  const cache = { get: () => undefined, save: async () => {} };
  const command = new FolderCommand(
    { client } as never,
    {} as never,
    settings as never,
    cache as never,
    {} as never,
    { info: () => {} } as never,
  );
  await command.run(new Uri('/w'));
  expect(notified).toEqual([
    expect.objectContaining({ type: 'documentChanged' }),
    { type: 'evict', docId: 'file:///w/a.ts', memoryOnly: true },
    { type: 'documentClosed', docId: 'file:///w/a.ts' },
  ]);
});
