/** Messages of VS Code's language model API as chat messages of the engine. */
import { expect, test } from 'vitest';
import { textOf, toChatMessages, toSampling } from '../../../../src/lm/languageModelMessages.ts';

const text = (value: string) => ({ value });

test('parts of every kind are converted to text', () => {
  const seen: string[] = [];
  const parts = [
    text('a'),
    { callId: '1', content: [text('tool says b')] },
    { mimeType: 'cache_control', data: new Uint8Array(1) },
    { mimeType: 'text/plain', data: new TextEncoder().encode('c') },
    { callId: '1', name: 'f', input: {} },
  ];
  expect(textOf(parts, (kind) => seen.push(kind))).toBe('atool says bc');
  expect(seen).toEqual(['tool call']);
});

test('the system turn is kept, and empty messages are left out', () => {
  expect(
    toChatMessages([
      { role: 3, content: 'S' },
      { role: 1, content: '' },
      { role: 1, content: 'U' },
    ]),
  ).toEqual([
    { role: 'system', content: 'S' },
    { role: 'user', content: 'U' },
  ]);
});

test('sampling options are read in both spellings, and invalid ones are ignored', () => {
  expect(toSampling({ max_tokens: 9.7, top_p: 0.5, seed: 3, stop: 'x' }, 100)).toEqual({
    maxTokens: 9,
    topP: 0.5,
    seed: 3,
    stop: ['x'],
  });
  expect(toSampling({ maxTokens: 1e9, temperature: Number.NaN, top_p: 7, stop: [1, ''] }, 100)).toEqual({
    maxTokens: 100,
  });
  expect(toSampling(undefined, 5)).toEqual({ maxTokens: 5 });
});
