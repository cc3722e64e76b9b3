/** Who shares a step: shared prefixes always, windows of their own only where sharing the weights is worth it; and whose turn it is. */
import { expect, test } from 'vitest';
import { nextTurn, type Part, sharesStep } from '../../engine/policies/grouping.ts';

const machine = { a: 14, b: 0.8, c: 0.001 };

/** How many decodes with windows of `columns` of their own come to share a step. */
function together(columns: number, coefficients = machine): number {
  let n = 1;
  const part = (tokens: number): Part => ({ tokens, columns: tokens * columns });
  while (n < 100 && sharesStep(coefficients, part(n), part(1), (n + 1) * columns)) n++;
  return n;
}

test('long windows of their own are looked at one by one, short ones several together', () => {
  expect(together(8000)).toBe(1);
  expect(together(2000)).toBe(4);
  expect(together(300)).toBeGreaterThan(16);
  // Where weights are dear and columns cheap, all run together.
  expect(together(8000, { a: 200, b: 1, c: 1e-6 })).toBe(100);
});

test('over one prefix all run together, however long it is', () => {
  expect(sharesStep(machine, { tokens: 60, columns: 30_000 }, { tokens: 400, columns: 30_000 }, 30_000)).toBe(true);
});

test('a prompt over little of its own is not computed past the columns of an answer, nor the other way round', () => {
  const answer = { tokens: 1, columns: 4000 };
  expect(sharesStep(machine, answer, { tokens: 100, columns: 256 }, 4256)).toBe(false);
  expect(sharesStep(machine, answer, { tokens: 2, columns: 256 }, 4256)).toBe(true);
  // Few tokens beside many that have much the same window.
  expect(sharesStep(machine, { tokens: 100, columns: 4000 }, { tokens: 1, columns: 4000 }, 4128)).toBe(true);
});

test('of those left aside the one that waits longest has its turn; of what nobody reads along only the first of its class', () => {
  const of = (priority: 'completion' | 'chat' | 'summary' | 'idle', lastServedAt: number) => ({ priority, lastServedAt });
  const [chat, other, first, second] = [of('chat', 30), of('chat', 20), of('summary', 40), of('summary', 10)];
  const active = [chat, other, first, second];
  expect(nextTurn(active, new Set())).toBe(null);
  expect(nextTurn(active, new Set([chat, other]))).toBe(other);
  expect(nextTurn(active, new Set([chat, first, second]))).toBe(chat);
  expect(nextTurn(active, new Set([first, second]))).toBe(first);
  expect(nextTurn(active, new Set([second]))).toBe(null);
});
