/** Which sequences share a step: with a common prefix always, otherwise only if it costs less; and whose turn it is. */
import { expect, test } from 'vitest';
import { nextTurn, type Part, sharesStep } from '../../../engine/scheduler/grouping.ts';

const machine = { a: 14, b: 0.8, c: 0.001, d: 0 };

/** How many decodes with pools of `columns` of their own come to share a step. */
function together(columns: number, coefficients = machine): number {
  let n = 1;
  const part = (tokens: number): Part => ({ tokens, columns: tokens * columns });
  while (n < 100 && sharesStep(coefficients, part(n), part(1), (n + 1) * columns)) n++;
  return n;
}

test('long separate contexts run in separate steps, short ones share steps', () => {
  expect(together(8000)).toBe(1);
  expect(together(2000)).toBe(4);
  expect(together(300)).toBeGreaterThan(16);
  // Where weights are dear and columns cheap, all run together.
  expect(together(8000, { a: 200, b: 1, c: 1e-6, d: 0 })).toBe(100);
});

test('the cost of columns alone is no reason to separate, but a reason to share common prefixes', () => {
  const one = { tokens: 8, columns: 4000 };
  expect(sharesStep(machine, one, one, 6000)).toBe(false);
  expect(sharesStep({ ...machine, d: 0.01 }, one, one, 6000)).toBe(true);
});

test('sequences with one shared prefix always share steps', () => {
  expect(sharesStep(machine, { tokens: 60, columns: 30_000 }, { tokens: 400, columns: 30_000 }, 30_000)).toBe(true);
});

test('a short prompt and an answer with a long context do not share steps', () => {
  const answer = { tokens: 1, columns: 4000 };
  expect(sharesStep(machine, answer, { tokens: 100, columns: 256 }, 4256)).toBe(false);
  expect(sharesStep(machine, answer, { tokens: 2, columns: 256 }, 4256)).toBe(true);
  // Few tokens beside many that have much the same pool.
  expect(sharesStep(machine, { tokens: 100, columns: 4000 }, { tokens: 1, columns: 4000 }, 4128)).toBe(true);
});

test('turns go to the longest waiting kind; of prefills and background work only the first of a class gets one', () => {
  const one = (
    priority: 'completion' | 'chat' | 'summary' | 'idle',
    waited: number,
    decodes: boolean,
    deferred = true,
  ) => ({ priority, lastServedAt: 10_000 - waited, decodes, deferred });
  const next = (...running: ReturnType<typeof one>[]): number => running.indexOf(nextTurn(running, 10_000)!);
  expect(next()).toBe(-1);
  expect(next(one('chat', 100, true, false))).toBe(-1);
  expect(next(one('chat', 30, true), one('chat', 40, true))).toBe(1);
  // An answer that is read before a prompt, unless that has waited four times as long.
  expect(next(one('chat', 300, false), one('chat', 100, true))).toBe(1);
  expect(next(one('chat', 500, false), one('chat', 100, true))).toBe(0);
  expect(next(one('chat', 100, false), one('chat', 500, false))).toBe(0);
  expect(next(one('summary', 100, true), one('summary', 500, true))).toBe(0);
  // The first is served in any case.
  expect(next(one('summary', 100, true, false), one('summary', 500, true))).toBe(-1);
  expect(next(one('summary', 900, true), one('chat', 100, true))).toBe(0);
});
