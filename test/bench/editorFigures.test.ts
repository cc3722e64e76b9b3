import { expect, test } from 'vitest';
import { editorFigures, readLog } from './editorFigures.ts';

const stamp = (ms: number) => {
  const date = new Date(ms);
  const two = (n: number) => String(n).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, '0')}`;
};

test('the log shows what was computed, what was not, and why nothing was shown', () => {
  const at = new Date(2026, 3, 5, 6, 7, 8, 90).getTime();
  const log = [
    `${stamp(at)} [info] loaded kvasir-starter (int8, 2048 tokens) in 753 ms, imported`,
    `${stamp(at)} [info] completion at a.ts:1:2 (typing): 21 characters, 1 lines from engine; 95 ms; 445 of 446 tokens reused`,
    `${stamp(at)} [info] completion at a.ts:1:2 (typing): 21 characters, 1 lines from engine, first part; 95 ms; 445 of 446 tokens reused`,
    `${stamp(at)} [info] completion at a.ts:1:2 (typing): 20 characters, 1 lines from typed as suggested; 0 ms`,
    `${stamp(at)} [info] completion at a.ts:1:2 (explicit): 20 characters, 1 lines from engine, one of 3; 9 ms`,
    `${stamp(at)} [info] completion at a.ts:1:2 (typing): nothing shown: the model has nothing to add here; 67 ms; 456 of 457 tokens reused`,
    `${stamp(at)} [info] completion accepted`,
  ].join('\n');
  expect(readLog(log)).toEqual([
    { at, source: 'engine', computed: true },
    { at, source: 'engine, first part', computed: true },
    { at, source: 'typed as suggested', computed: false },
    { at, source: 'engine', computed: true },
    { at, reason: 'the model has nothing to add here', computed: true },
  ]);
});

test('pauses count completions that were in time, late or never shown', () => {
  const strokes = [
    // Shown after 100 ms.
    { at: 0, key: 'a', pauseMs: 400 },
    // The user types through the completion without a request. It is shown again after 10 ms.
    { at: 400, key: 'b', pauseMs: 900 },
    // Late: shown after 500 ms.
    { at: 1300, key: 'x', pauseMs: 800 },
    // The model had nothing to add.
    { at: 2100, key: 'y', pauseMs: 300 },
    // Never shown; the log gives no reason.
    { at: 2400, key: 'z', pauseMs: 800 },
    { at: 3200, key: 'Tab', accepted: 'four' },
  ];
  const shown = [
    { at: 100, text: 'bc' },
    { at: 410, text: 'c' },
    { at: 1310, text: '' },
    { at: 1800, text: 'late' },
    { at: 2110, text: '' },
  ];
  const log = [
    { at: 90, source: 'engine', computed: true },
    { at: 405, source: 'typed as suggested', computed: false },
    { at: 1790, source: 'engine', computed: true },
    { at: 2200, reason: 'the confidence of the model is too low here', computed: true },
  ];
  const figures = editorFigures(
    { startedAt: 0, endedAt: 4000, strokes, wrong: ['a.ts after accepting'], recording: { shown, keys: [] } },
    log,
  );
  expect(figures).toMatchObject({
    strokes: 6,
    accepted: 1,
    acceptedCharacters: 4,
    wrong: 1,
    within: {
      300: { count: 5, nothingToAdd: 1, shownInTime: 2, share: 0.5 },
      750: { count: 3, nothingToAdd: 0, shownInTime: 2, share: 2 / 3 },
    },
    latencyMs: { count: 3, p50: 100 },
    typedThrough: { keys: 1, withoutRequest: 1, share: 1 },
    computed: 3,
    answeredWithout: 1,
  });
});
