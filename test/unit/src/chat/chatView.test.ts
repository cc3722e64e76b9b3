/** What the chat view sends to its page, measures and attaches, with a page that is hidden and shown again. */
import { expect, test, vi } from 'vitest';
import { editor } from '../../../support/editor/fakeChatEditor.ts';

vi.mock('../../../../src/vscode.ts', async () => (await import('../../../support/editor/fakeChatEditor.ts')).vscodeApi);
const { chatOf, DONE, flush, openDocument, useChat } = await import('../../../support/editor/chatHarness.ts');
const { fileRef, refId, selectionRef } = await import('../../../../src/chat/contextRefs.ts');

useChat();

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
