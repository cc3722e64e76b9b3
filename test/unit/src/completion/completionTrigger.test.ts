/** When a completion is asked for, and how it joins IntelliSense's selected suggestion. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type CompletionRecord, explain, logLine } from '../../../../src/completion/record.ts';
import { addedBy } from '../../../../src/completion/place.ts';
import { silence, Trigger } from '../../../../src/completion/trigger.ts';
import { english, portuguese } from '../../../support/editor/translate.ts';

test('the first request on a line is sent at once, later ones after a pause, explicit ones always at once', () => {
  const trigger = new Trigger();
  expect(trigger.delay('a', 1, 50, false)).toBe(0);
  expect(trigger.delay('a', 1, 50, false)).toBe(50);
  expect(trigger.delay('a', 1, 50, true)).toBe(0);
  expect(trigger.delay('a', 2, 50, false)).toBe(0);
  expect(trigger.delay('a', 2, 50, false)).toBe(50);
  expect(trigger.delay('b', 2, 50, false)).toBe(0);
});

describe('the pause', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('lasts as long as asked', async () => {
    let quiet: boolean | undefined;
    void silence(50, new AbortController().signal).then((value) => {
      quiet = value;
    });
    await vi.advanceTimersByTimeAsync(49);
    expect(quiet).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(quiet).toBe(true);
  });

  test('ends with an abort and leaves no timer', async () => {
    const abort = new AbortController();
    const waiting = silence(50, abort.signal);
    abort.abort();
    expect(await waiting).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
    expect(await silence(50, abort.signal)).toBe(false);
  });
});

describe('the suggestion selected in the list', () => {
  const text = 'console.lo';
  const selected = { start: 8, end: 10, text: 'log' };
  test('adds the rest of it', () => expect(addedBy(selected, text, 10)).toBe('g'));
  test('adds nothing after it is typed', () => expect(addedBy({ ...selected, text: 'lo' }, text, 10)).toBe(''));
  test('gets no completion if it replaces text behind the cursor', () =>
    expect(addedBy({ ...selected, end: 11 }, 'console.lox', 10)).toBeUndefined());
  test('gets no completion if the typed text is not its beginning', () =>
    expect(addedBy({ ...selected, text: 'clog' }, text, 10)).toBeUndefined());
});

test('the log line of a record says why nothing is shown', () => {
  const record: CompletionRecord = {
    place: 'a.ts:1:2',
    at: new Date(0),
    trigger: 'typing',
    waitedMs: 0,
    totalMs: 1.4,
    diagnostics: [],
    reason: 'the model has nothing to add here',
  };
  expect(logLine(record)).toBe(
    'completion at a.ts:1:2 (typing): nothing shown: the model has nothing to add here; 1 ms',
  );
  expect(explain(record, english)).toContain('Nothing was shown: the model has nothing to add here.');
  expect(explain(undefined, english)).toContain('No completion has been requested');
  const usage = { promptTokens: 900, cachedTokens: 800, completionTokens: 3, blockTokens: 700 };
  expect(explain({ ...record, usage }, english)).not.toContain('Approximated');
  expect(explain({ ...record, usage: { ...usage, shiftedTokens: 321 } }, english)).toContain(
    'Approximated: 321 of the reused tokens',
  );
  expect(
    explain(
      {
        ...record,
        totalMs: 1234,
        usage: { ...usage, promptTokens: 9000 },
        timings: { queueMs: 0, ttftMs: 1061, tpotMs: 17.25 },
      },
      portuguese,
    ),
  ).toMatch(/Time: 1\.234 ms[\s\S]*first token after 1\.061 ms, 17,3 ms[\s\S]*9\.000 tokens/);
});
