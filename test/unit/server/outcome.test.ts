/** What a request made of several sequences came to. */
import { expect, test } from 'vitest';
import { type Outcome, outcomeOf } from '../../../engine/server/requestOutput.ts';

const part = (
  promptTokens: number,
  completionTokens: number,
  timings: Outcome['timings'],
  more: Partial<Outcome['usage']> = {},
): Outcome => ({
  finishReason: 'length',
  usage: { promptTokens, cachedTokens: promptTokens - 10, completionTokens, blockTokens: 20, ...more },
  timings,
});

test('the outcome of several sequences adds tokens, averages the time per token and takes the wait of the first', () => {
  const parts = [
    part(100, 11, { queueMs: 5, ttftMs: 50, tpotMs: 8 }, { shiftedTokens: 3 }),
    part(200, 31, { queueMs: 2, ttftMs: 90, tpotMs: 4 }, { inParts: true }),
    part(50, 1, { queueMs: 700, ttftMs: 40, tpotMs: 0 }, { shiftedTokens: 4 }),
  ];
  expect(outcomeOf(parts)).toEqual({
    finishReason: 'stop',
    usage: {
      promptTokens: 350,
      cachedTokens: 320,
      completionTokens: 43,
      blockTokens: 60,
      shiftedTokens: 7,
      inParts: true,
    },
    timings: { queueMs: 2, ttftMs: 0, tpotMs: (10 * 8 + 30 * 4) / 40 },
  });
});

test('one aborted sequence aborts the request; a request without sequences ends empty', () => {
  const aborted: Outcome = { ...part(100, 0, { queueMs: 0, ttftMs: 0, tpotMs: 0 }), finishReason: 'abort' };
  expect(outcomeOf([part(100, 5, { queueMs: 1, ttftMs: 1, tpotMs: 1 }), aborted]).finishReason).toBe('abort');
  expect(outcomeOf([])).toEqual({
    finishReason: 'stop',
    usage: { promptTokens: 0, cachedTokens: 0, completionTokens: 0, blockTokens: 0 },
    timings: { queueMs: 0, ttftMs: 0, tpotMs: 0 },
  });
});
