/** The conversations of the chat: stored, restored, deleted, edited, and asked one question at a time. */
import { expect, test, vi } from 'vitest';
import { editor } from '../../../support/editor/fakeChatEditor.ts';

vi.mock('../../../../src/vscode.ts', async () => (await import('../../../support/editor/fakeChatEditor.ts')).vscodeApi);
const { chatOf, DONE, flush, useChat } = await import('../../../support/editor/chatHarness.ts');

useChat();

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

const uriOf = (path: string) => ({ scheme: 'file', path, toString: () => `file://${path}` });

test('a question without a file offers the open ones; one click attaches a file and asks again', async () => {
  const samplings: unknown[] = [];
  const { view, openPage, send } = chatOf(new Map(), {
    generate: async ({ sampling }) => {
      samplings.push(sampling);
      return samplings.length > 1 ? DONE : { ...DONE, text: 'No file is attached.', source: 'unattached' };
    },
  });
  openPage();
  const uri = uriOf('/w/b.ts');
  editor.tabs = [uri, uriOf('/w/c.ts'), uri, { ...uriOf('/log'), scheme: 'output' }];
  send({ type: 'ask', text: 'Where is it?' });
  await flush();
  const [ref, ...others] = view.chat.current.turns.flatMap((turn) => (turn.role === 'assistant' ? turn.offers! : []));
  expect([ref, ...others].map((each) => each!.uri)).toEqual(['file:///w/b.ts', 'file:///w/c.ts']);
  const end = { line: 0, range: { end: 0 } };
  editor.active = { document: { uri, getText: () => 'x', lineCount: 1, lineAt: () => end, offsetAt: () => 1 } };
  send({ type: 'attachAndAsk', ref: ref! });
  await flush();
  // It is the first real answer, not another one.
  expect(samplings).toEqual([undefined, undefined]);
  expect(view.chat.current.turns).toMatchObject([{ text: 'Where is it?', context: [ref] }, { text: 'Yes.' }]);
});

test('a question that the model is too small for is asked anyway only after a click', async () => {
  const insisted: unknown[] = [];
  const { view, openPage, send } = chatOf(new Map(), {
    generate: async (request) => {
      const { anyway } = (request as unknown as { task(): { anyway?: boolean } }).task();
      insisted.push(anyway);
      return anyway ? DONE : { ...DONE, source: 'refused', usage: { ...DONE.usage, promptTokens: 0 } };
    },
  });
  openPage();
  const again = async (anyway: boolean): Promise<void> => {
    send({ type: 'regenerate', anyway });
    await flush();
  };
  send({ type: 'ask', text: 'Why?' });
  await flush();
  expect(view.chat.current.turns.at(-1)).toMatchObject({ text: '', refused: expect.any(String) });
  await again(false);
  await again(true);
  expect(view.chat.current.turns.at(-1)).toMatchObject({ text: 'Yes.' });
  // What the model has answered is asked in the same way.
  await again(false);
  expect(insisted).toEqual([undefined, undefined, true, true]);
});

test('the last source file stays attached while its tab is open, also when something else is in front', async () => {
  const uri = uriOf('/w/b.ts');
  const document = { uri, isClosed: false, languageId: 'typescript', getText: () => '' };
  editor.active = { document, selection: { isEmpty: true } };
  editor.tabs = [uri];
  const { view } = chatOf(new Map());
  const names = () => view.chat.context.refs.map((ref) => ref.uri);
  expect(names()).toEqual(['file:///w/b.ts']);
  // A preview or the editor's own chat.
  editor.active = undefined;
  expect(names()).toEqual(['file:///w/b.ts']);
  editor.tabs = [];
  expect(names()).toEqual([]);
});
