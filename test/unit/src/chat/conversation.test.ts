/**
 * A conversation: streaming, failures, stopping, refusals, asking again, the history that the model gets, and the
 * footer.
 */
import { describe, expect, test } from 'vitest';
import {
  type Ask,
  Conversation,
  type ConversationChange,
  type SavedConversation,
  footerOf,
} from '../../../../src/chat/conversation.ts';
import { RequestError } from '../../../../engine/protocol/errors.ts';
import type { AssistantTurn } from '../../../../src/chat/chatMessages.ts';
import type { Done } from '../../../../src/client/connection.ts';
import type { GenerateRequest } from '../../../../src/client/engineClient.ts';

const DONE: Done = {
  type: 'done',
  requestId: '',
  finishReason: 'stop',
  text: 'Hello there',
  tokenIds: [],
  logprobs: [],
  diagnostics: [],
  usage: { promptTokens: 8164, cachedTokens: 8112, completionTokens: 3, blockTokens: 8000 },
  timings: { queueMs: 0, ttftMs: 61.2, tpotMs: 1000 / 44 },
};
const OPEN = { kind: 'file' as const, uri: 'file:///w/a.ts', name: 'a.ts', path: 'a.ts' };
const EMPTY: SavedConversation = { id: 'c', createdAt: 0, updatedAt: 0, turns: [] };

function conversationOf(generate: (request: GenerateRequest) => Promise<Done>, saved = EMPTY, modelNote = '') {
  const changes: string[] = [];
  const onChange = (change: ConversationChange) => changes.push(change.type);
  const conversation = new Conversation(saved, {
    engine: { generate },
    notes: { stopped: 'Stopped.', interrupted: 'Interrupted.' },
    modelName: () => 'tiny',
    modelNote: () => modelNote,
    openFiles: () => [OPEN],
    onChange,
  });
  const ask = (question: string, more: Partial<Ask> = {}) =>
    conversation.run({
      question,
      context: [],
      prepare: async () => ({ task: () => ({ kind: 'raw', prompt: '' }) }),
      priority: 'chat',
      ...more,
    });
  return { conversation, changes, ask };
}

/** Streams `text` word by word, then ends. */
const speak = async ({ onChunk }: GenerateRequest): Promise<Done> => {
  for (const word of ['Hello', ' there']) onChunk?.(word);
  return DONE;
};
const untilStopped = ({ onChunk, signal }: GenerateRequest): Promise<Done> => {
  onChunk?.('Hel');
  return new Promise((resolve) =>
    signal?.addEventListener('abort', () => resolve({ ...DONE, finishReason: 'abort', text: 'Hel' })),
  );
};

describe('conversation', () => {
  test('a fact from one file carries that file, so that its line numbers become links', async () => {
    const { conversation, ask } = conversationOf(async () => ({
      ...DONE,
      source: 'files',
      usage: { ...DONE.usage, promptTokens: 0, cachedTokens: 0 },
    }));
    const file = { kind: 'file', uri: 'file:///w/a.ts', name: 'a.ts', path: 'a.ts' } as const;
    const selection = { ...file, kind: 'selection', name: 'f', path: 'a.ts:3-4' } as const;
    await ask('Where?', { context: [selection, file] });
    expect(conversation.turns.at(-1)).toMatchObject({ linesOf: { uri: file.uri, path: 'a.ts' } });
    expect(conversation.turns.at(-1)).not.toHaveProperty('footer');
    await ask('Where?', { context: [file, { ...file, uri: 'file:///w/b.ts' }] });
    expect(conversation.turns.at(-1)).not.toHaveProperty('linesOf');
    const written = conversationOf(speak);
    await written.ask('Where?', { context: [file] });
    expect(written.conversation.turns.at(-1)).not.toHaveProperty('linesOf');
  });

  test('a turn starts with the question and an empty answer, streams, and ends with the whole answer and its footer', async () => {
    const { conversation, changes, ask } = conversationOf(speak);
    await ask('Hi');
    expect(changes).toEqual(['turns', 'append', 'append', 'turn']);
    expect(conversation.turns.at(-1)).toMatchObject({
      role: 'assistant',
      state: 'done',
      text: 'Hello there',
      footer: '8,112 of 8,164 tokens reused · first token 61 ms · 44 tok/s',
    });
    expect(conversation.history()).toEqual([
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: 'Hello there' },
    ]);
  });

  test('reasoning stands beside the answer, and the model does not read it again', async () => {
    const seen: unknown[] = [];
    const { conversation, changes, ask } = conversationOf(async (request) => {
      for (const piece of ['Hm', '. ']) request.onReasoning?.(piece);
      seen.push(structuredClone(conversation.turns.at(-1)));
      const done = await speak(request);
      return { ...done, reasoning: 'Hm. ', usage: { ...done.usage, reasoningTokens: 4 } };
    });
    await ask('Hi');
    expect(changes).toEqual(['turns', 'append', 'append', 'append', 'append', 'turn']);
    expect(seen).toMatchObject([{ text: '', reasoning: { text: 'Hm. ' } }]);
    expect(conversation.turns.at(-1)).toMatchObject({ text: 'Hello there', reasoning: { text: 'Hm.', tokens: 4 } });
    expect(conversation.history().at(-1)).toEqual({ role: 'assistant', content: 'Hello there' });
  });

  test('an answer that repeats itself is cut to one round, which is shown and part of the history', async () => {
    const { conversation, ask } = conversationOf(async (request) => ({
      ...(await speak(request)),
      text: 'Hello',
      diagnostics: ['it repeats itself'],
    }));
    await ask('Hi');
    expect(conversation.turns.at(-1)).toMatchObject({ text: 'Hello', notes: ['it repeats itself'] });
    expect(conversation.history().at(-1)).toEqual({ role: 'assistant', content: 'Hello' });
  });

  test('the history holds the prompt of a command, while the user sees the command', async () => {
    const { conversation, ask } = conversationOf(speak);
    await ask('/explain', {
      prepare: async () => ({
        task: () => ({ kind: 'raw', prompt: '' }),
        prompt: 'What does `f` do?',
        notes: ['b.ts is left out'],
      }),
    });
    expect(conversation.turns).toMatchObject([{ text: '/explain' }, { notes: ['b.ts is left out'] }]);
    expect(conversation.history()[0]).toEqual({ role: 'user', content: 'What does `f` do?' });
  });

  test('a question is sent with the earlier turns, and without itself in the history', async () => {
    const { ask } = conversationOf(speak);
    const told: number[] = [];
    const prepare: Ask['prepare'] = async (history) => {
      told.push(history.length);
      return { task: () => ({ kind: 'raw', prompt: '' }) };
    };
    await ask('One', { prepare });
    await ask('Two', { prepare });
    expect(told).toEqual([0, 2]);
  });

  test('a failure, also of reading attachments, is the answer’s state and message, and not part of the history', async () => {
    const { conversation, ask } = conversationOf(() => Promise.reject(new Error('too long')));
    await ask('Hi');
    expect(conversation.turns.at(-1)).toMatchObject({ state: 'error', error: 'too long' });
    await ask('Hi', { prepare: () => Promise.reject(new Error('no such file')) });
    expect(conversation.turns.at(-1)).toMatchObject({ state: 'error', error: 'no such file' });
    expect(conversation.history()).toEqual([]);
    expect(conversation.turns.at(-1)).not.toHaveProperty('remedy');
    // The remedy is part of the failure.
    const refused = conversationOf(() =>
      Promise.reject(new RequestError('modelInvalid', 'model.safetensors is cut off')),
    );
    await refused.ask('Hi');
    expect(refused.conversation.turns.at(-1)).toMatchObject({ remedy: { kind: 'model' } });
  });

  test('a refusal sends nothing to the engine', async () => {
    const { conversation, ask } = conversationOf(() => Promise.reject(new Error('asked')));
    await ask('/fix', { prepare: async () => ({ refused: 'small' }) });
    expect(conversation.turns.at(-1)).toMatchObject({ state: 'done', refused: 'small', text: '' });
    expect(conversation.history()).toEqual([]);
  });

  test('a refusal by the engine is shown as one, and the model does not read it later', async () => {
    const { conversation, ask } = conversationOf(async ({ onChunk }) => {
      onChunk?.('tiny is too small');
      return { ...DONE, text: 'tiny is too small', source: 'refused' };
    });
    await ask('Why?');
    expect(conversation.turns.at(-1)).toMatchObject({ state: 'done', refused: 'tiny', text: '' });
    expect(conversation.history()).toEqual([]);
  });

  test('a question that lacks a file offers the open files, and no other question does', async () => {
    for (const [source, offers] of [
      ['unattached', [OPEN]],
      ['stock', undefined],
      ['files', undefined],
    ] as const) {
      const { conversation, ask } = conversationOf(async () => ({ ...DONE, source }));
      await ask('Where is it?');
      expect((conversation.turns.at(-1) as AssistantTurn).offers, source).toEqual(offers);
    }
    const { conversation, ask } = conversationOf(() => Promise.reject(new Error('asked')));
    await ask('/explain', { prepare: async () => ({ missing: 'Attach a file.' }) });
    expect(conversation.turns.at(-1)).toMatchObject({ notes: ['Attach a file.'], offers: [OPEN] });
    const restored = conversationOf(speak, conversation.saved);
    expect(restored.conversation.turns.filter((turn) => 'offers' in turn)).toEqual([]);
    await ask('/fix', { prepare: async () => ({ refused: 'small' }) });
    expect(conversation.turns.filter((turn) => 'offers' in turn)).toEqual([]);
  });

  test.each([
    ['while it is written', undefined, 'Hel'],
    ['before it is sent', () => new Promise<never>(() => {}), ''],
  ])('stop %s keeps the written text and adds a note', async (_, prepare, text) => {
    const { conversation, ask } = conversationOf(untilStopped);
    const asked = ask('Hi', prepare ? { prepare } : {});
    await Promise.resolve();
    expect(conversation.busy).toBe(true);
    await new Promise((resolve) => setImmediate(resolve));
    conversation.stop();
    await asked;
    expect(conversation.turns.at(-1)).toMatchObject({ state: 'done', text, notes: ['Stopped.'] });
    expect(conversation.busy).toBe(false);
  });

  test('a question can be dropped with all turns after it, and asked again at once', async () => {
    const { conversation, ask } = conversationOf(untilStopped, {
      ...EMPTY,
      turns: [
        { id: 't1', role: 'user', text: 'A', context: [] },
        { id: 't2', role: 'assistant', text: 'B', state: 'done', notes: [] },
      ],
    });
    const first = ask('C');
    expect(conversation.dropFrom('t2')).toBeUndefined();
    expect(conversation.dropFrom('t1')).toMatchObject({ text: 'A' });
    expect(conversation.turns).toEqual([]);
    const second = ask('D');
    await first;
    expect(conversation.turns).toMatchObject([{ text: 'D' }, { state: 'streaming' }]);
    conversation.stop();
    await second;
  });

  test('an answer interrupted by a reload is kept with a note; turn ids continue', async () => {
    const { conversation, ask } = conversationOf(speak, {
      ...EMPTY,
      turns: [
        { id: 't2', role: 'user', text: 'Hi', context: [] },
        { id: 't1', role: 'assistant', text: 'Hel', state: 'streaming', notes: [] },
      ],
    });
    expect(conversation.turns.at(-1)).toMatchObject({ state: 'done', text: 'Hel', notes: ['Interrupted.'] });
    await ask('More');
    expect(new Set(conversation.turns.map((turn) => turn.id)).size).toBe(4);
  });

  test('a second question during an answer is ignored; a summary is not', async () => {
    const { conversation, ask } = conversationOf(speak);
    await Promise.all([ask('Hi'), ask('Hi'), ask('S', { priority: 'summary' })]);
    expect(conversation.turns.filter((turn) => turn.role === 'user').map((turn) => turn.text)).toEqual(['Hi', 'S']);
  });
});

describe('the note on how reliable the model’s answers are', () => {
  const FACT: Done = { ...DONE, source: 'files', usage: { ...DONE.usage, promptTokens: 0, cachedTokens: 0 } };
  const NOTE = 'Often wrong.';
  const answers = ({ turns }: Conversation) => turns.filter((turn) => turn.role === 'assistant');
  const notesOf = (conversation: Conversation) => answers(conversation).map((turn) => turn.modelNote);

  /** Answers with `replies`, one after the other. */
  const reply = (replies: (Done | Error)[]) => async (): Promise<Done> => {
    const next = replies.shift()!;
    if (next instanceof Error) throw next;
    return next;
  };

  test('is under the first answer that the model wrote, not under a fact, failure, empty answer, refusal or greeting', async () => {
    const { conversation, ask } = conversationOf(
      reply([FACT, new Error('too long'), { ...DONE, text: '\n' }, { ...DONE, source: 'stock' }, DONE, FACT, DONE]),
      EMPTY,
      NOTE,
    );
    await ask('/fix', { prepare: async () => ({ refused: 'small' }) });
    for (const question of ['A fact?', 'Too long?', 'Empty?', 'Hi', 'What is it for?', 'A fact?', 'And?'])
      await ask(question);
    expect(notesOf(conversation)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
      NOTE,
      undefined,
      undefined,
    ]);
  });

  test('is not under an answer that failed half-way', async () => {
    const { conversation, ask } = conversationOf(
      async ({ onChunk }) => {
        onChunk?.('Hel');
        throw new Error('the engine has stopped');
      },
      EMPTY,
      NOTE,
    );
    await ask('Hi');
    expect(answers(conversation)).toMatchObject([{ text: 'Hel', state: 'error' }]);
    expect(notesOf(conversation)).toEqual([undefined]);
  });

  test('appears once for each model, also in a restored conversation', async () => {
    const first = conversationOf(speak, EMPTY, NOTE);
    await first.ask('Hi');
    const kept = JSON.parse(JSON.stringify(first.conversation.saved)) as SavedConversation;
    const again = conversationOf(speak, kept, NOTE);
    await again.ask('And?');
    expect(notesOf(again.conversation)).toEqual([NOTE, undefined]);
    const other = conversationOf(speak, kept, 'Never wrong.');
    for (const question of ['And?', 'Sure?']) await other.ask(question);
    expect(notesOf(other.conversation)).toEqual([NOTE, 'Never wrong.', undefined]);
  });

  test('moves to the next answer when the answer that had it is dropped', async () => {
    const { conversation, ask } = conversationOf(speak, EMPTY, NOTE);
    await ask('Hi');
    await ask('And?');
    conversation.dropFrom(conversation.turns[0]!.id);
    await ask('Hi again');
    expect(notesOf(conversation)).toEqual([NOTE]);
  });

  test('is absent for a model without such a note, and is not part of the history', async () => {
    const silent = conversationOf(speak);
    await silent.ask('Hi');
    expect(silent.conversation.turns.at(-1)).not.toHaveProperty('modelNote');
    const noted = conversationOf(speak, EMPTY, NOTE);
    await noted.ask('Hi');
    expect(JSON.stringify(noted.conversation.history())).not.toContain(NOTE);
  });
});

test('the footer has no rate for a single token', () => {
  expect(footerOf({ usage: DONE.usage, timings: { ...DONE.timings, tpotMs: 0 } })).toBe(
    '8,112 of 8,164 tokens reused · first token 61 ms',
  );
  expect(footerOf({ usage: { ...DONE.usage, shiftedTokens: 3000 }, timings: { ...DONE.timings, tpotMs: 0 } })).toBe(
    '8,112 of 8,164 tokens reused · first token 61 ms · 3,000 approximated',
  );
  expect(footerOf({ usage: { ...DONE.usage, inParts: true }, timings: { ...DONE.timings, tpotMs: 0 } })).toBe(
    '8,112 of 8,164 tokens reused · first token 61 ms · read in parts',
  );
});
