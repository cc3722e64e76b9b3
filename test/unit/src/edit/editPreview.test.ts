/** The diff of a proposed edit in a scripted editor: accepted, rejected, closed, replaced, or in conflict. */
import { beforeEach, expect, test, vi } from 'vitest';
import { t } from '../../../support/editor/translate.ts';

type Changed = (event: { document: unknown; contentChanges: unknown[] }) => void;
const editor = vi.hoisted(() => ({
  contexts: {} as Record<string, unknown>,
  tabs: [] as { input: unknown }[],
  messages: [] as string[],
  copied: '',
  choose: '',
  refuse: false,
  closing: undefined as Promise<void> | undefined,
  documents: [] as { uri: { toString(): string }; text: string }[],
  changed: new Set<unknown>(),
  tabsClosed: new Set<unknown>(),
}));
vi.mock('../../../../src/vscode.ts', () => {
  const listenTo = (listeners: Set<unknown>) => (listener: unknown) => {
    listeners.add(listener);
    return { dispose: () => listeners.delete(listener) };
  };
  class TabInputTextDiff {
    readonly original: unknown;
    readonly modified: unknown;
    constructor(original: unknown, modified: unknown) {
      this.original = original;
      this.modified = modified;
    }
  }
  const say = async (message: string, ...buttons: string[]) => {
    editor.messages.push(message);
    return buttons.find((button) => button === editor.choose);
  };
  return {
    l10n: { t },
    EventEmitter: class {
      event = () => ({ dispose() {} });
      fire(): void {}
      dispose(): void {}
    },
    TabInputTextDiff,
    Disposable: {
      from: (...all: { dispose(): void }[]) => ({
        dispose: () => {
          for (const each of all) each.dispose();
        },
      }),
    },
    Range: class {
      readonly start: number;
      readonly end: number;
      constructor(start: number, end: number) {
        this.start = start;
        this.end = end;
      }
    },
    WorkspaceEdit: class {
      readonly edits: { uri: unknown; range: { start: number; end: number }; text: string }[] = [];
      replace(uri: unknown, range: { start: number; end: number }, text: string): void {
        this.edits.push({ uri, range, text });
      }
    },
    commands: {
      executeCommand: async (name: string, ...args: unknown[]) => {
        if (name === 'setContext') editor.contexts[args[0] as string] = args[1];
        else if (name === 'vscode.diff') editor.tabs.push({ input: new TabInputTextDiff(args[0], args[1]) });
      },
    },
    env: {
      clipboard: {
        writeText: async (text: string) => {
          editor.copied = text;
        },
      },
    },
    window: {
      showInformationMessage: say,
      showWarningMessage: say,
      showTextDocument: async () => {},
      tabGroups: {
        get all() {
          return [{ tabs: editor.tabs }];
        },
        close: async (tabs: unknown[]) => {
          if (editor.closing) await editor.closing;
          editor.tabs = editor.tabs.filter((tab) => !tabs.includes(tab));
        },
        onDidChangeTabs: listenTo(editor.tabsClosed),
      },
    },
    workspace: {
      registerTextDocumentContentProvider: () => ({ dispose() {} }),
      onDidChangeTextDocument: listenTo(editor.changed),
      get textDocuments() {
        return editor.documents;
      },
      openTextDocument: async (uri: unknown) => {
        const found = editor.documents.find((document) => document.uri.toString() === String(uri));
        if (!found) throw new Error('cannot open file: it was deleted');
        return found;
      },
      applyEdit: async ({
        edits,
      }: {
        edits: { uri: unknown; range: { start: number; end: number }; text: string }[];
      }) => {
        if (editor.refuse) return false;
        for (const { uri, range, text } of edits) {
          const document = editor.documents.find((one) => one.uri.toString() === String(uri));
          if (document) document.text = document.text.slice(0, range.start) + text + document.text.slice(range.end);
        }
        return true;
      },
    },
  };
});
const { EditPreview } = await import('../../../../src/edit/editPreview.ts');
const { Range } = (await import('../../../../src/vscode.ts')) as unknown as {
  Range: new (start: number, end: number) => never;
};

beforeEach(() => {
  Object.assign(editor, {
    contexts: {},
    tabs: [],
    messages: [],
    copied: '',
    choose: '',
    refuse: false,
    closing: undefined,
    documents: [],
  });
});

function documentOf(text: string, name = 'a.ts') {
  const uriOf = (of: Record<string, string>) => ({
    path: `/${name}`,
    with: (change: object) => uriOf({ ...of, ...change }),
    toString: () => `${of.scheme}:/${name}?${of.query ?? ''}`,
  });
  const document = {
    uri: uriOf({ scheme: 'file' }),
    eol: 1,
    text,
    getText: () => document.text,
    offsetAt: (offset: number) => offset,
    positionAt: (offset: number) => offset,
  };
  editor.documents.push(document);
  return document;
}

function type(document: ReturnType<typeof documentOf>, at: number, length: number, text: string): void {
  document.text = document.text.slice(0, at) + text + document.text.slice(at + length);
  for (const changed of editor.changed)
    (changed as Changed)({ document, contentChanges: [{ rangeOffset: at, rangeLength: length, text }] });
}

const TEXT = 'one();\ntwo();\n';
const show = (preview: InstanceType<typeof EditPreview>, document: unknown, text?: string) =>
  preview.show({
    document: document as never,
    range: new Range(7, 13),
    title: 'change it',
    ...(text === undefined ? {} : { text }),
  });
const settled = () => vi.waitFor(() => expect(editor.contexts['kvasir.editStreaming']).toBe(false));

test('accepting replaces the range once, closes the diff and removes all listeners', async () => {
  const preview = new EditPreview();
  const document = documentOf(TEXT);
  const edit = await show(preview, document);
  expect(editor.contexts).toEqual({ 'kvasir.editPending': true, 'kvasir.editStreaming': true });
  edit.write('2');
  expect(await preview.accept()).toBe(false);
  expect(editor.messages).toEqual(['Kvasir is still writing this edit.']);
  edit.finish('2();');
  await settled();
  type(document, 0, 0, '// first\n');
  expect(await preview.accept()).toBe(true);
  expect(document.text).toBe('// first\none();\n2();\n');
  expect(editor.tabs).toEqual([]);
  expect(editor.contexts).toEqual({ 'kvasir.editPending': false, 'kvasir.editStreaming': false });
  expect(editor.changed.size + editor.tabsClosed.size).toBe(0);
});

test('accepting twice at the same time replaces the range once', async () => {
  const preview = new EditPreview();
  const document = documentOf(TEXT);
  await show(preview, document, 'longer_than_two();');
  expect(await Promise.all([preview.accept(), preview.accept()])).toEqual([true, false]);
  expect(document.text).toBe('one();\nlonger_than_two();\n');
  expect(editor.messages).toEqual([]);
});

test('rejecting, closing the diff or proposing another edit cancels the edit and leaves the file unchanged', async () => {
  const preview = new EditPreview();
  const document = documentOf(TEXT);
  const rejected = await show(preview, document);
  await preview.reject();
  const closed = await show(preview, document);
  const tabs = editor.tabs.splice(0);
  for (const changed of editor.tabsClosed) (changed as (event: { closed: unknown[] }) => void)({ closed: tabs });
  const replaced = await show(preview, document);
  const last = await show(preview, document, 'x();');
  expect([rejected, closed, replaced, last].map(({ signal }) => signal.aborted)).toEqual([true, true, true, false]);
  expect(editor.tabs).toHaveLength(1);
  expect(preview.pending).toBe(last);
  preview.dispose();
  expect(document.text).toBe(TEXT);
  expect(editor.tabs).toEqual([]);
  expect(editor.changed.size + editor.tabsClosed.size).toBe(0);
});

test('the edit follows its text when the file is edited while the last diff closes', async () => {
  const preview = new EditPreview();
  const document = documentOf(TEXT);
  await show(preview, document, 'x();');
  let close = () => {};
  editor.closing = new Promise((resolve) => {
    close = resolve;
  });
  const shown = show(preview, document, '2();');
  type(document, 0, 0, '// first\n');
  close();
  const edit = await shown;
  expect(edit.anchor.original).toBe('two();');
  expect(await preview.accept()).toBe(true);
  expect(document.text).toBe('// first\none();\n2();\n');
  expect(editor.changed.size + editor.tabsClosed.size).toBe(0);
});

test('a diff that cannot be closed is reported, and all listeners are removed', async () => {
  const preview = new EditPreview();
  const document = documentOf(TEXT);
  await show(preview, document, 'x();');
  editor.closing = Promise.reject(new Error('the tab is gone'));
  await expect(show(preview, document, '2();')).rejects.toThrow('the tab is gone');
  expect(preview.pending).toBeUndefined();
  expect(editor.changed.size + editor.tabsClosed.size).toBe(0);
});

test('of two simultaneous edits the later one is shown and the other one is cancelled', async () => {
  const preview = new EditPreview();
  const document = documentOf(TEXT);
  await show(preview, document, 'x();');
  const [first, second] = await Promise.all([show(preview, document), show(preview, document, '2();')]);
  expect([first.signal.aborted, second.signal.aborted, preview.pending]).toEqual([true, false, second]);
  expect(editor.tabs).toHaveLength(1);
  await preview.reject();
  expect(editor.changed.size + editor.tabsClosed.size).toBe(0);
});

test('an edit that is in conflict, refused or without its file is reported once, and its text can be copied', async () => {
  const preview = new EditPreview();
  const document = documentOf(TEXT);
  await show(preview, document, '2();');
  editor.choose = 'Copy New Text';
  type(document, 8, 1, 'X');
  expect(await preview.accept()).toBe(false);
  expect(editor.copied).toBe('2();');
  type(document, 8, 1, 'w');
  editor.refuse = true;
  expect(await preview.accept()).toBe(false);
  editor.documents = [];
  expect(await preview.accept()).toBe(false);
  expect(editor.messages).toEqual([
    'Kvasir: The text to replace has changed. Undo that change, or copy the new text.',
    'Kvasir: The editor refused the edit. The file may be read-only.',
    'Kvasir: cannot open file: it was deleted',
  ]);
  expect(preview.pending?.text).toBe('2();');
});
