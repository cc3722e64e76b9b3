import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { EngineMessage } from '../../../engine/protocol/messages.ts';
import { RequestOutput } from '../../../engine/server/requestOutput.ts';
import { Confidence } from '../../../engine/tasks/confidence.ts';

const LIMITS = { line: 0.1, words: 0.5, lines: 0.3 };
const after = (tokens: readonly (readonly [string, number])[], settled = false): string => {
  const confidence = new Confidence(LIMITS);
  for (const [text, probability] of tokens) confidence.push(text, Math.log(probability));
  if (settled) confidence.settle();
  return tokens
    .map(([text]) => text)
    .join('')
    .slice(0, confidence.numSure);
};

test('words are shown at once while their joint probability is high, and never a part of a word', () => {
  expect(after([['get', 0.9]])).toBe('');
  expect(
    after([
      ['get', 0.9],
      ['User', 0.9],
    ]),
  ).toBe('');
  expect(
    after([
      ['get', 0.9],
      ['User', 0.9],
      ['(', 0.3],
    ]),
  ).toBe('getUser');
  expect(
    after([
      ['get', 0.9],
      ['User', 0.9],
      ['(', 0.9],
    ]),
  ).toBe('getUser(');
  expect(
    after([
      ['get', 0.9],
      ['User', 0.4],
      ['(', 0.9],
    ]),
  ).toBe('');
  expect(
    after([
      ['a', 0.9],
      [' =', 0.9],
      [' b', 0.3],
      [';', 0.9],
    ]),
  ).toBe('a =');
});

test('signs are held back until a word, a line until its end', () => {
  expect(after([['(', 0.9]])).toBe('');
  expect(
    after([
      ['(', 0.9],
      ['a', 0.9],
      [')', 0.9],
    ]),
  ).toBe('(a)');
  expect(
    after([
      ['a', 0.6],
      [' + b', 0.6],
      [';', 0.6],
    ]),
  ).toBe('a');
  expect(
    after([
      ['a', 0.6],
      [' + b', 0.6],
      [';', 0.6],
      ['\n  ', 0.9],
    ]),
  ).toBe('a + b;\n');
  expect(
    after(
      [
        ['a', 0.6],
        [' + b', 0.6],
        [';', 0.6],
      ],
      true,
    ),
  ).toBe('a + b;');
});

test('text with a low probability is not shown, and nothing after it', () => {
  const confidence = new Confidence(LIMITS);
  confidence.push('a', Math.log(0.2));
  expect(confidence.isLost).toBe(false);
  confidence.push('b', Math.log(0.2));
  expect(confidence.isLost).toBe(true);
  confidence.settle();
  confidence.push('\n', 0);
  expect(confidence.numSure).toBe(0);
});

test('after the first line only complete lines with a higher probability are shown', () => {
  expect(
    after([
      ['a', 0.9],
      [';\n', 0.9],
      ['b', 0.9],
      [' +', 0.9],
    ]),
  ).toBe('a;\n');
  expect(
    after([
      ['a', 0.9],
      [';\n', 0.9],
      ['b', 0.9],
      [' +', 0.4],
      [' c\n', 0.9],
    ]),
  ).toBe('a;\n');
  expect(
    after([
      ['a', 0.9],
      [';\n', 0.9],
      ['b', 0.9],
      [' +', 0.6],
      [' c\n', 0.9],
      ['d', 0.9],
    ]),
  ).toBe('a;\nb + c\n');
  expect(
    after(
      [
        ['a', 0.9],
        [';\n', 0.9],
        ['b', 0.9],
      ],
      true,
    ),
  ).toBe('a;\nb');
  // A blank line is none: what is written at the end of a line begins with its break.
  expect(
    after([
      ['\n  ', 0.9],
      ['a', 0.3],
      [';\n', 0.9],
    ]),
  ).toBe('\n  a;\n');
  // Several in one token.
  expect(
    after([
      ['a', 0.5],
      [';\nb;\n', 0.5],
    ]),
  ).toBe('a;\n');
  expect(
    after([
      ['a', 0.9],
      [' {\n  return (', 0.9],
    ]),
  ).toBe('a {\n');
  expect(
    after(
      [
        ['a', 0.5],
        [';\n', 0.5],
        ['b', 1],
      ],
      true,
    ),
  ).toBe('a;\n');
  const confidence = new Confidence(LIMITS);
  for (const [text, probability] of [
    ['a', 0.5],
    [';\n', 0.5],
  ] as const)
    confidence.push(text, Math.log(probability));
  expect([confidence.numSure, confidence.isLost]).toEqual([3, true]);
});

const someTokens = fc.array(
  fc.tuple(
    fc.constantFrom('a', 'bc', ' d', '(', ').', '\n', ' =\n  ', ';\nb;\n', ' {\n  return (', ''),
    fc.double({ min: -1, max: 0, noNaN: true }),
  ),
  { maxLength: 12 },
);

test('property: shown text only grows, and consists of lines or words with enough probability', () => {
  fc.assert(
    fc.property(someTokens, (tokens) => {
      const confidence = new Confidence(LIMITS);
      let text = '';
      let shown = 0;
      const reached: { end: number; logprob: number }[] = [{ end: 0, logprob: 0 }];
      for (const [piece, logprob] of tokens) {
        confidence.push(piece, logprob);
        text += piece;
        reached.push({ end: text.length, logprob: reached.at(-1)!.logprob + logprob });
        expect(confidence.numSure).toBeGreaterThanOrEqual(shown);
        shown = confidence.numSure;
        const { logprob: least } = reached.find(({ end }) => end >= shown)!;
        if (shown > 0) expect(least).toBeGreaterThanOrEqual(Math.log(LIMITS.line));
        if (shown > 0 && !text.slice(0, shown).endsWith('\n'))
          expect(least).toBeGreaterThanOrEqual(Math.log(LIMITS.words));
        if (text.slice(0, shown).trim().includes('\n')) expect(least).toBeGreaterThanOrEqual(Math.log(LIMITS.lines));
      }
    }),
  );
});

/** A request's messages for these tokens; it stops where it says so. */
function told(
  tokens: readonly (readonly [string, number])[],
  finishReason: 'stop' | 'length' = 'stop',
  multiline = false,
): { text: string; diagnostics: readonly string[]; numTokens: number; chunks: string[]; suppressed: boolean } {
  const messages: EngineMessage[] = [];
  const request = new RequestOutput(
    'r',
    {
      shape: (raw, finished) =>
        multiline
          ? { text: raw.trimEnd(), stop: finished }
          : { text: raw.split('\n')[0]!, stop: raw.includes('\n') || finished },
      notes: [],
      confidence: LIMITS,
      withAlternatives: false,
    },
    (message) => messages.push(message),
  );
  let numTokens = 0;
  for (const [text, probability] of tokens) {
    numTokens++;
    if (request.add({ tokenId: 1, text, reasoning: '', logprob: Math.log(probability), topLogprobs: [] })) break;
  }
  request.finish({
    finishReason,
    usage: { promptTokens: 1, cachedTokens: 0, completionTokens: numTokens, blockTokens: 0 },
    timings: { queueMs: 0, ttftMs: 0, tpotMs: 0 },
  });
  const done = messages.at(-1)!;
  if (done.type !== 'done') throw new Error(done.type);
  return {
    text: done.text,
    diagnostics: done.diagnostics,
    numTokens,
    suppressed: done.suppressed ?? false,
    chunks: messages.flatMap((message) => (message.type === 'chunk' ? [message.text] : [])),
  };
}

test('a request shows the whole line, its confident beginning, or nothing with a reason', () => {
  expect(
    told([
      ['foo', 0.7],
      ['(bar', 0.6],
      [');\n', 0.9],
      ['more', 1],
    ]),
  ).toMatchObject({ text: 'foo(bar);', diagnostics: [], numTokens: 3, suppressed: false });
  expect(
    told([
      ['foo', 0.7],
      ['(bar', 0.1],
      [');\n', 0.9],
    ]),
  ).toMatchObject({
    text: 'foo',
    diagnostics: ['cut where the confidence of the model is too low'],
    numTokens: 2,
    chunks: ['foo'],
    suppressed: true,
  });
  expect(
    told([
      ['foo', 0.05],
      ['\n', 0.9],
    ]),
  ).toMatchObject({
    text: '',
    diagnostics: ['the confidence of the model is too low here'],
    numTokens: 1,
    chunks: [],
    suppressed: true,
  });
  // What ends by itself is whole; what may have no more tokens is not.
  expect(
    told([
      ['foo', 0.9],
      ['(bar', 0.4],
      [')', 0.9],
    ]).text,
  ).toBe('foo(bar)');
  expect(
    told(
      [
        ['foo', 0.9],
        ['(bar', 0.4],
        [')', 0.9],
      ],
      'length',
    ),
  ).toMatchObject({ text: 'foo', suppressed: true });
  expect(
    told(
      [
        ['foo', 0.3],
        ['(bar', 0.9],
      ],
      'length',
    ),
  ).toMatchObject({ text: '', diagnostics: ['the confidence of the model is too low here'], suppressed: true });
});

test('a request holds back lines with low confidence, also after a complete first line', () => {
  const [doubt, first] = [
    'cut where the confidence of the model is too low',
    [
      ['a', 0.5],
      [' = f();', 0.5],
      ['\n  ', 1],
      ['more', 1],
    ],
  ] as const;
  // Asked for by hand there is more.
  expect(told(first, 'stop', true)).toMatchObject({
    text: 'a = f();',
    diagnostics: [doubt],
    numTokens: 3,
    suppressed: true,
  });
  expect(
    told(
      [
        ['a', 0.9],
        ['\n', 0.9],
        ['b', 0.2],
        ['\n', 0.9],
      ],
      'stop',
      true,
    ),
  ).toMatchObject({ text: 'a', diagnostics: [doubt], numTokens: 3, suppressed: true });
  expect(
    told(
      [
        ['a', 0.9],
        ['\n', 0.9],
        ['b', 0.9],
      ],
      'stop',
      true,
    ),
  ).toMatchObject({ text: 'a\nb', diagnostics: [], suppressed: false });
  expect(told(first)).toMatchObject({ text: 'a = f();', diagnostics: [], suppressed: false });
});
