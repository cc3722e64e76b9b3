/**
 * The extension host's half of the chat view, with a page that is closed and reopened: what it shows, stores and
 * measures.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ToHost, ToPage } from '../../../../src/chat/chatMessages.ts';

const editor = vi.hoisted(() => ({
  changed: (_: unknown): void => {},
  active: undefined as unknown,
  messages: [] as string[],
}));
vi.mock('../../../../src/vscode.ts', () => {
  const event = () => ({ dispose() {} });
  return {
    EventEmitter: class {
      #listeners: ((value: unknown) => void)[] = [];
      event = (listener: () => void) => {
        this.#listeners.push(listener);
        return { dispose() {} };
      };
      fire(value: unknown): void {
        for (const listener of this.#listeners) listener(value);
      }
      dispose(): void {}
    },
    TabInputTextDiff: class {},
    Uri: { joinPath: () => ({}), parse: (text: string) => ({ toString: () => text }) },
    l10n: { t: (text: string, ...values: unknown[]) => text.replace(/\{(\d)\}/g, (_, i) => String(values[Number(i)])) },
    env: { language: 'en' },
    languages: { match: () => 1 },
    SymbolKind: {},
    Range: class {
      start: unknown;
      end: unknown;
      constructor(line: number, character: number, endLine: number, endCharacter: number) {
        this.start = { line, character };
        this.end = { line: endLine, character: endCharacter };
      }
      contains = () => true;
    },
    // A language's extension that never answers.
    commands: {
      executeCommand: (name: string) => (name.startsWith('vscode.') ? new Promise(() => {}) : Promise.resolve()),
    },
    window: {
      showInformationMessage: async (message: string) => void editor.messages.push(message),
      get activeTextEditor() {
        return editor.active;
      },
      visibleTextEditors: [],
      tabGroups: { onDidChangeTabs: event, activeTabGroup: {} },
      onDidChangeActiveTextEditor: event,
      onDidChangeTextEditorSelection: event,
    },
    workspace: {
      asRelativePath: () => 'b.ts',
      openTextDocument: async () => (editor.active as { document: unknown }).document,
      get textDocuments() {
        return editor.active ? [(editor.active as { document: unknown }).document] : [];
      },
      onDidChangeTextDocument: (listener: (event: unknown) => void) => {
        editor.changed = listener;
        return { dispose() {} };
      },
    },
  };
});
const { ChatView } = await import('../../../../src/chat/chatView.ts');
const { fileRef, refId, selectionRef } = await import('../../../../src/chat/contextRefs.ts');

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  Object.assign(editor, { active: undefined, messages: [] });
});

const DONE = {
  finishReason: 'stop',
  text: 'Yes.',
  usage: { promptTokens: 10, cachedTokens: 5 },
  timings: { ttftMs: 1, tpotMs: 1 },
  diagnostics: [],
};

function chatOf(
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

const flush = () => vi.advanceTimersByTimeAsync(0);

test('conversations survive page and window; a partial answer is stored as interrupted and can be regenerated', async () => {
  const state = new Map<string, unknown>();
  const first = chatOf(state, {
    generate: ({ onChunk }) => {
      onChunk('Hel');
      return new Promise(() => {});
    },
  });
  first.openPage();
  first.send({ type: 'ask', text: 'Hi' });
  await vi.advanceTimersByTimeAsync(3000);
  first.openPage();
  expect(first.last('conversation')?.turns).toMatchObject([{ text: 'Hi' }, { text: 'Hel', state: 'streaming' }]);
  const reloaded = chatOf(state);
  reloaded.openPage();
  expect(reloaded.last('conversation')?.turns).toMatchObject([
    { text: 'Hi' },
    { text: 'Hel', state: 'done', notes: [expect.stringContaining('Interrupted')] },
  ]);
  reloaded.send({ type: 'regenerate', anyway: false });
  await flush();
  expect(reloaded.view.chat.current.turns).toMatchObject([{ text: 'Hi' }, { text: 'Yes.', notes: [] }]);
});

test('a draft survives closing the page and the window until it is sent', async () => {
  const state = new Map<string, unknown>();
  const { view, openPage, hide, send, last } = chatOf(state);
  openPage();
  expect(last('draft')?.text).toBe('');
  send({ type: 'draft', text: 'half a thou' });
  hide();
  // A command of the editor asks another question.
  await view.chat.ask('/explain this');
  openPage();
  expect(last('draft')?.text).toBe('half a thou');
  await vi.advanceTimersByTimeAsync(1500);
  const reloaded = chatOf(state);
  reloaded.openPage();
  expect(reloaded.last('draft')?.text).toBe('half a thou');
  reloaded.send({ type: 'draft', text: '' });
  reloaded.send({ type: 'ask', text: 'half a thou' });
  await vi.advanceTimersByTimeAsync(1500);
  const again = chatOf(state);
  again.openPage();
  expect(again.last('draft')?.text).toBe('');
});

test('a new chat leaves the other one running, and a deleted one is removed', async () => {
  const { view, openPage, send, last } = chatOf(new Map());
  openPage();
  send({ type: 'ask', text: 'One' });
  view.chat.newChat();
  await flush();
  expect(last('conversation')?.turns).toEqual([]);
  expect(view.chat.conversations).toMatchObject([{ turns: [{ text: 'One' }, { text: 'Yes.' }] }]);
  view.chat.show(view.chat.conversations[0]!);
  expect(last('conversation')?.turns).toHaveLength(2);
  view.chat.delete(view.chat.current.id);
  expect([last('conversation')?.turns, view.chat.conversations]).toEqual([[], []]);
});

test('an undone deletion restores the conversation: shown if it was shown, with its answer stopped, also after a reload', async () => {
  const state = new Map<string, unknown>();
  let numAsked = 0;
  const answers = async ({ onChunk, signal }: { onChunk(text: string): void; signal?: AbortSignal }) => {
    if (++numAsked === 1) return DONE;
    onChunk('Hel');
    await new Promise((resolve) => signal!.addEventListener('abort', resolve));
    return { ...DONE, text: 'Hel', finishReason: 'abort' };
  };
  const { view, openPage, send, last } = chatOf(state, { generate: answers });
  const { chat } = view;
  openPage();
  expect(chat.delete(chat.current.id), 'nothing is lost with an empty one').toBeUndefined();
  send({ type: 'ask', text: 'One' });
  await flush();
  const one = chat.current.id;
  chat.newChat();
  const putBackOne = chat.delete(one)!;
  expect(chat.conversations).toEqual([]);
  send({ type: 'ask', text: 'Two' });
  await flush();
  const two = chat.current.id;
  const putBackTwo = chat.delete(two)!;
  expect([last('conversation')?.turns, chat.conversations]).toEqual([[], []]);
  await flush();
  putBackOne();
  expect(last('conversation')?.turns, 'it was not shown').toEqual([]);
  putBackTwo();
  expect(last('conversation')).toMatchObject({
    id: two,
    turns: [{ text: 'Two' }, { text: 'Hel', state: 'done', notes: ['Stopped.'] }],
  });
  expect(chat.conversations.map(({ id }) => id)).toEqual([two, one]);
  await view.dispose();
  expect(chatOf(state).view.chat.conversations.map(({ id }) => id)).toEqual([two, one]);
});

test('a conversation restored before its stopped answer has ended gets that answer', async () => {
  const { view, openPage, send, last } = chatOf(new Map(), {
    generate: async ({ signal }) => {
      await new Promise((resolve) => signal!.addEventListener('abort', () => setTimeout(resolve, 50)));
      return { ...DONE, text: '', finishReason: 'abort' };
    },
  });
  openPage();
  send({ type: 'ask', text: 'One' });
  await flush();
  view.chat.delete(view.chat.current.id)!();
  expect(last('conversation')?.turns).toMatchObject([{ text: 'One' }, { state: 'streaming' }]);
  await vi.advanceTimersByTimeAsync(100);
  expect(last('turn')?.turn).toMatchObject({ state: 'done', notes: ['Stopped.'] });
  expect(view.chat.current.turns).toMatchObject([{ text: 'One' }, { state: 'done' }]);
});

test('editing an earlier question drops the turns after it', async () => {
  const { view, openPage, send } = chatOf(new Map());
  openPage();
  for (const text of ['One', 'Two']) {
    send({ type: 'ask', text });
    await flush();
  }
  send({ type: 'resend', id: view.chat.current.turns[0]!.id, text: 'Three' });
  await flush();
  expect(view.chat.current.turns.map(({ text }) => text)).toEqual(['Three', 'Yes.']);
});

test('a question cannot be edited while one above it is being answered, and the edited text stays', async () => {
  const { view, openPage, send } = chatOf(new Map(), {
    generate: ({ onChunk }) => {
      onChunk('Hel');
      return new Promise(() => {});
    },
  });
  openPage();
  send({ type: 'ask', text: 'One' });
  await flush();
  void view.chat.run('Summarize it', [], () => ({ kind: 'summarize', docId: 'a' }));
  await flush();
  const summary = view.chat.current.turns[2]!;
  send({ type: 'resend', id: summary.id, text: 'What is it?' });
  await flush();
  expect(view.chat.current.turns.map(({ text }) => text)).toEqual(['One', 'Hel', 'Summarize it', 'Hel']);
  expect(editor.messages).toEqual([expect.stringContaining('still answering')]);
  // Editing the question above drops the summary below it.
  send({ type: 'resend', id: view.chat.current.turns[0]!.id, text: 'Two' });
  await flush();
  expect(view.chat.current.turns.map(({ text }) => text)).toEqual(['Two', 'Hel']);
});

test('a question sent while another one is being answered returns to the input and is stored as the draft', async () => {
  const state = new Map<string, unknown>();
  const { view, openPage, send, last } = chatOf(state, { generate: () => new Promise(() => {}) });
  openPage();
  void view.chat.ask('/explain this');
  send({ type: 'draft', text: '' });
  send({ type: 'ask', text: 'Why?' });
  await flush();
  expect(last('draft')?.text).toBe('Why?');
  expect(view.chat.current.turns).toHaveLength(2);
  expect(editor.messages).toEqual([expect.stringContaining('still answering')]);
  await view.dispose();
  expect(chatOf(state).view.chat.draft).toBe('Why?');
});

test('typing causes one measurement after a pause; example questions appear only in an empty chat', async () => {
  const document = {
    uri: { path: '/a/b.ts', toString: () => 'file:///a/b.ts' },
    version: 1,
    lineCount: 1,
    lineAt: () => ({ range: { end: 0 } }),
    offsetAt: () => 9,
    getText: () => 'def flush(): pass',
  };
  editor.active = { document, selection: { isEmpty: true, active: 0 } };
  const { openPage, numMeasured, last, send, view } = chatOf(new Map());
  openPage();
  await vi.advanceTimersByTimeAsync(1000);
  expect(numMeasured()).toBe(1);
  for (const type of ['document', 'draft']) {
    const before = numMeasured();
    for (let key = 0; key < 10; key++) {
      if (type === 'draft') send({ type: 'draft', text: 'x'.repeat(key) });
      else editor.changed({ document, contentChanges: [{}] });
      await vi.advanceTimersByTimeAsync(50);
    }
    expect(numMeasured()).toBe(before);
    await vi.advanceTimersByTimeAsync(1000);
    expect(numMeasured()).toBe(before + 1);
  }
  expect(last('meter')?.meter).toMatchObject({
    label: '1,320 of 2,048 tokens',
    notes: ['b.ts: lines 1-9 of 99 left out'],
  });
  expect(last('context')).toMatchObject({
    chips: [{ name: 'b.ts', tokens: '1,300', omitted: '4,000 left out' }],
    questions: [
      'Summarize this file',
      'What does flush() do?',
      'What are the parameters of flush()?',
      'Which functions does this file define?',
    ],
  });
  send({ type: 'ask', text: 'Hi' });
  await flush();
  expect(last('context')?.questions).toEqual([]);
  view.chat.watch(false);
  const before = numMeasured();
  editor.changed({ document, contentChanges: [{}] });
  await vi.advanceTimersByTimeAsync(5000);
  expect(numMeasured()).toBe(before);
});

test('nothing is measured while no model is loaded', async () => {
  const { openPage, numMeasured, last } = chatOf(new Map(), { state: { kind: 'stopped' } });
  openPage();
  await vi.advanceTimersByTimeAsync(1000);
  expect([numMeasured(), last('meter')?.meter]).toEqual([0, null]);
});

test.each([
  ['failed', { kind: 'failed', message: 'broken', retry: false }, false],
  ['unloaded', { kind: 'stopped' }, false],
  ['unloaded while an answer is awaited', { kind: 'stopped' }, true],
])('the measured size disappears when the engine is %s and returns with a model', async (_, state, busy) => {
  const { openPage, last, send, setState } = chatOf(new Map(), { generate: () => new Promise(() => {}) });
  openPage();
  await vi.advanceTimersByTimeAsync(1000);
  expect(last('meter')?.meter).not.toBeNull();
  if (busy) send({ type: 'ask', text: 'Hi' });
  setState(state);
  await vi.advanceTimersByTimeAsync(1000);
  expect(last('meter')?.meter).toBeNull();
  if (busy) return;
  setState({ kind: 'ready', model: { canEdit: false } } as never);
  await vi.advanceTimersByTimeAsync(1000);
  expect(last('meter')?.meter).not.toBeNull();
});

function openDocument(text: string, selection: object): object {
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

test('text that streamed while the page was hidden, and a requested focus, reach the page when it is shown again', async () => {
  const { view, openPage, hide, posted, last } = chatOf(new Map(), {
    generate: ({ onChunk }) => {
      onChunk('Hel');
      return new Promise(() => {});
    },
  });
  openPage();
  hide();
  const before = posted.length;
  void view.chat.ask('Hi');
  await view.open('Why?');
  await flush();
  // A page that is closed or not ready gets no messages.
  expect(posted).toHaveLength(before);
  openPage();
  expect(last('conversation')?.turns).toMatchObject([{ text: 'Hi' }, { text: 'Hel' }]);
  expect(last('focus')).toEqual({ type: 'focus', draft: 'Why?' });
});

test('a selection that is added by hand is attached once, next to others', () => {
  const range = (line: number) => ({
    isEmpty: false,
    start: { line, character: 0 },
    end: { line: line + 1, character: 0 },
  });
  const document = openDocument('a();\nb();\nc();', range(0)) as never;
  const { context } = chatOf(new Map()).view.chat;
  context.add([selectionRef(document, range(0) as never), selectionRef(document, range(1) as never)]);
  expect(context.refs.map(({ name }) => name)).toEqual(['b.ts', 'b.ts:1', 'b.ts:2']);
  expect(new Set(context.refs.map(refId)).size).toBe(3);
  context.attach(refId(context.refs[1]!), false);
  expect(context.refs.map(({ name }) => name)).toEqual(['b.ts', 'b.ts:2']);
});

test('a file that is added by hand stays attached when another file becomes active', () => {
  const document = openDocument('a();', { isEmpty: true, active: { line: 0, character: 0 } }) as {
    uri: { path: string };
  };
  const { context } = chatOf(new Map()).view.chat;
  context.add([fileRef(document.uri as never)]);
  expect(context.refs).toHaveLength(1);
  document.uri = { path: '/a/c.ts', toString: () => 'file:///a/c.ts' } as never;
  expect(context.refs.map(({ uri }) => uri)).toEqual(['file:///a/c.ts', 'file:///a/b.ts']);
  context.attach('file:///a/b.ts', false);
  expect(context.refs.map(({ uri }) => uri)).toEqual(['file:///a/c.ts']);
});

test('a question about a definition appears before the language’s extension has located it, also when it is edited', async () => {
  openDocument('def flush(): pass', { isEmpty: true, active: { line: 0, character: 4 } });
  const { view, openPage, send, last } = chatOf(new Map());
  openPage();
  send({ type: 'ask', text: '/explain flush' });
  expect(last('conversation')?.turns).toMatchObject([{ text: '/explain flush' }, { state: 'streaming' }]);
  // A command from an editor's menu in the meantime says why it does not ask.
  void view.ask('/doc', []);
  await flush();
  expect(editor.messages).toEqual([expect.stringContaining('still answering')]);
  send({ type: 'resend', id: view.chat.current.turns[0]!.id, text: '/explain `flush`' });
  await flush();
  expect(last('conversation')?.turns).toMatchObject([{ text: '/explain `flush`' }, { state: 'streaming' }]);
});

test('a command without a file says so, and a retry uses the file that is open then', async () => {
  const { view } = chatOf(new Map());
  await view.chat.ask('/summarize');
  expect(view.chat.current.turns).toMatchObject([
    { context: [] },
    { state: 'done', text: '', notes: [expect.stringContaining('Nothing is attached')] },
  ]);
  openDocument('def flush(): pass', { isEmpty: true, active: { line: 0, character: 4 } });
  view.chat.context.add([fileRef((editor.active as { document: { uri: never } }).document.uri)]);
  await view.chat.regenerate(true);
  expect(view.chat.current.turns).toMatchObject([{ context: [{ name: 'b.ts' }] }, { state: 'done', text: 'Yes.' }]);
});

test.each([
  [0, undefined],
  [50, { maxTokens: 50 }],
])('kvasir.chat.maxTokens %d sends the sampling %j', async (maxTokens, sampling) => {
  const asked: unknown[] = [];
  const { view } = chatOf(new Map(), {
    maxTokens,
    generate: async (request) => {
      asked.push(request.sampling);
      return DONE;
    },
  });
  await view.chat.ask('Hi');
  expect(asked).toEqual([sampling]);
});
