/** The chat's turns: streaming, failures, stopping, what the model is told of earlier turns, and the footer. */
import { describe, expect, test } from 'vitest';
import type { ConversationChange } from '../../src/chat/conversation.ts';
import { Conversation } from '../../src/chat/conversation.ts';
import { footerOf } from '../../src/chat/footer.ts';
import { exampleQuestions } from '../../src/chat/questions.ts';
import type { Done } from '../../src/connection.ts';
import type { GenerateRequest } from '../../src/engineClient.ts';

const DONE: Done = {
  type: 'done', requestId: '', finishReason: 'stop', text: 'Hello there', tokenIds: [], logprobs: [], diagnostics: [],
  usage: { promptTokens: 8164, cachedTokens: 8112, completionTokens: 3, blockTokens: 8000 },
  timings: { queueMs: 0, ttftMs: 61.2, tpotMs: 1000 / 44 },
};

function conversationOf(generate: (request: GenerateRequest) => Promise<Done>) {
  const changes: ConversationChange[] = [];
  const conversation = new Conversation({ generate }, 'Stopped.', (change) => changes.push(structuredClone(change)));
  const ask = (question: string) => conversation.run({ question, task: () => ({ kind: 'raw', prompt: '' }), priority: 'chat' });
  return { conversation, changes, ask };
}

/** Streams `text` word by word, then is done. */
const speak = async ({ onChunk }: GenerateRequest): Promise<Done> => {
  for (const word of ['Hello', ' there']) onChunk?.(word);
  return DONE;
};

describe('conversation', () => {
  test('question and empty answer, pieces, then the whole answer with its footer', async () => {
    const { conversation, changes, ask } = conversationOf(speak);
    await ask('Hi');
    expect(changes.map((change) => change.type)).toEqual(['turns', 'append', 'append', 'turn']);
    expect(conversation.turns.at(-1)).toMatchObject({ role: 'assistant', state: 'done', text: 'Hello there', footer: '8,112 of 8,164 tokens reused · first token 61 ms · 44 tok/s' });
    expect(conversation.history()).toEqual([{ role: 'user', content: 'Hi' }, { role: 'assistant', content: 'Hello there' }]);
  });

  test('a failure is the answer’s state and message, and not told to the model', async () => {
    const { conversation, ask } = conversationOf(() => Promise.reject(new Error('too long')));
    await ask('Hi');
    expect(conversation.turns.at(-1)).toMatchObject({ state: 'error', error: 'too long' });
    expect(conversation.history()).toEqual([]);
  });

  test('stop keeps what was written and says so', async () => {
    const { conversation, ask } = conversationOf(({ onChunk, signal }) => {
      onChunk?.('Hel');
      return new Promise((resolve) => signal?.addEventListener('abort', () => resolve({ ...DONE, finishReason: 'abort', text: 'Hel' })));
    });
    const asked = ask('Hi');
    expect(conversation.busy).toBe(true);
    conversation.stop();
    await asked;
    expect(conversation.turns.at(-1)).toMatchObject({ state: 'done', text: 'Hel', notes: ['Stopped.'] });
    expect(conversation.busy).toBe(false);
  });

  test('what ends after a clear is not shown', async () => {
    const { conversation, changes, ask } = conversationOf(({ signal }) => new Promise((resolve) => signal?.addEventListener('abort', () => resolve(DONE))));
    const asked = ask('Hi');
    conversation.clear();
    expect(conversation.busy).toBe(false);
    await asked;
    expect(conversation.turns).toEqual([]);
    expect(changes.map((change) => change.type)).toEqual(['turns', 'turns']);
  });

  test('a page’s turns are restored once; an answer cut off by the reload is over; ids go on', async () => {
    const { conversation, ask } = conversationOf(speak);
    conversation.restore([{ id: 't2', role: 'user', text: 'Hi' }, { id: 't1', role: 'assistant', text: 'Hel', state: 'streaming', notes: [] }]);
    expect(conversation.turns.at(-1)).toMatchObject({ state: 'done', notes: ['Stopped.'] });
    conversation.restore([]);
    expect(conversation.turns.length).toBe(2);
    await ask('More');
    expect(new Set(conversation.turns.map((turn) => turn.id)).size).toBe(4);
  });
});

test('a cleared conversation stays cleared, whatever a page that comes back has kept', () => {
  const { conversation } = conversationOf(speak);
  conversation.clear();
  conversation.restore([{ id: 't1', role: 'user', text: 'Hi' }]);
  expect(conversation.turns).toEqual([]);
});

test('a second question while the first is being answered is ignored; a summary is not', async () => {
  const { conversation, ask } = conversationOf(speak);
  const summary = () => conversation.run({ question: 'S', task: () => ({ kind: 'raw', prompt: '' }), priority: 'summary' });
  await Promise.all([ask('Hi'), ask('Hi'), summary()]);
  expect(conversation.turns.filter((turn) => turn.role === 'user').map((turn) => turn.text)).toEqual(['Hi', 'S']);
});

test('the footer leaves the rate out for a single token', () => {
  expect(footerOf({ usage: DONE.usage, timings: { ...DONE.timings, tpotMs: 0 } })).toBe('8,112 of 8,164 tokens reused · first token 61 ms');
});

test('example questions name what the file defines', () => {
  expect(exampleQuestions(null)).toEqual([]);
  expect(exampleQuestions('x = 1')).toEqual(['Summarize this file', 'Which functions does this file define?']);
  expect(exampleQuestions('export async function readAll(a) {}\nexport class Reader {}')).toEqual(['Summarize this file', 'What does readAll do?', 'What are the parameters of readAll?', 'Explain Reader']);
  expect(exampleQuestions('def flush(self):\n    pass\n')[1]).toBe('What does flush do?');
});
