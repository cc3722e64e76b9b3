/** The token meter measures one question at a time, uses the last result, and reports sizes and what does not fit. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ChipSizes } from '../../../../src/chat/chatContext.ts';
import type { Meter } from '../../../../src/chat/chatMessages.ts';
import { type Measured, TokenMeter } from '../../../../src/chat/meter.ts';
import { RequestError } from '../../../../engine/protocol/errors.ts';
import { english } from '../../../support/editor/translate.ts';

vi.mock('../../../../src/vscode.ts', () => ({}));
beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const SIZE: Measured = {
  size: {
    contextTokens: 2048,
    answerTokens: 200,
    promptTokens: 1024,
    parts: [
      { path: 'a', tokens: 500, omittedTokens: 0 },
      { path: 'src/b', tokens: 100, omittedTokens: 7 },
      { path: 'src/c', tokens: 0, omittedTokens: 1200 },
    ],
    notes: ['src/c: left out'],
  },
  owners: ['a', 'src', 'src'],
  notes: ['x is left out: no such file'],
};

function meterOf(measure: () => Promise<Measured | null>) {
  const results: { meter: Meter | null; sizes: ChipSizes }[] = [];
  const meter = new TokenMeter({
    measure,
    onResult: (shown, sizes) => results.push({ meter: shown, sizes }),
    speech: english,
  });
  meter.watch(true);
  return { meter, results };
}

test('the meter shows the size of each attachment, shares of the context, and everything that is left out', async () => {
  const { results } = meterOf(async () => SIZE);
  await vi.advanceTimersByTimeAsync(1000);
  expect(results).toHaveLength(1);
  expect(results[0]!.meter).toMatchObject({
    label: '1,024 of 2,048 tokens',
    prompt: 0.5,
    over: false,
    notes: ['x is left out: no such file', 'src/c: left out'],
  });
  expect([...results[0]!.sizes]).toEqual([
    ['a', { tokens: '500', omitted: null }],
    ['src', { tokens: '100', omitted: '1,207 left out' }],
  ]);
});

test('changes during a measurement cause exactly one more measurement', async () => {
  const waiting: ((value: Measured | null) => void)[] = [];
  const { meter, results } = meterOf(() => new Promise((resolve) => waiting.push(resolve)));
  await vi.advanceTimersByTimeAsync(1000);
  for (let i = 0; i < 5; i++) {
    meter.changed();
    await vi.advanceTimersByTimeAsync(300);
  }
  expect(waiting).toHaveLength(1);
  waiting[0]!(SIZE);
  await vi.advanceTimersByTimeAsync(1000);
  // A result from before the change is not shown.
  expect([waiting.length, results.length]).toEqual([2, 0]);
  waiting[1]!(null);
  await vi.advanceTimersByTimeAsync(1000);
  expect(results).toEqual([{ meter: null, sizes: new Map() }]);
});

test('the meter reports a question that does not fit, and no other failure', async () => {
  const failures = [
    new RequestError('contextTooLong', 'too long by far'),
    new RequestError('badRequest', 'no chat template'),
  ];
  const { meter, results } = meterOf(() => Promise.reject(failures.shift()));
  await vi.advanceTimersByTimeAsync(1000);
  meter.changed();
  await vi.advanceTimersByTimeAsync(1000);
  expect(results.map(({ meter: shown }) => shown && [shown.over, shown.notes])).toEqual([
    [true, ['too long by far']],
    null,
  ]);
  meter.watch(false);
  meter.changed();
  await vi.advanceTimersByTimeAsync(1000);
  expect(results).toHaveLength(2);
});
