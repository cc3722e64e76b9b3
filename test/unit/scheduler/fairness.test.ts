/** Virtual token counters: who has been served least goes first, and nobody gains by being away. */
import { expect, test } from 'vitest';
import { VirtualTokens } from '../../../engine/scheduler/fairness.ts';

test("fairness counts all tokens served to a client's sequences, generated tokens twice", () => {
  const tokens = new VirtualTokens();
  tokens.arrive('folder', 0);
  tokens.arrive('folder', 0);
  tokens.arrive('other', 0);
  tokens.serve('folder', 100, 0);
  tokens.serve('other', 10, 20);
  expect(tokens.counter('folder', false)).toBe(100);
  expect(tokens.counter('other', false)).toBe(50);
  tokens.leave('folder');
  expect(tokens.counter('folder', false)).toBe(100);
});

test('a newcomer starts at the smallest counter of those present, so absence gives no credit', () => {
  const tokens = new VirtualTokens();
  tokens.arrive('a', 0);
  tokens.arrive('b', 0);
  tokens.serve('a', 5000, 0);
  tokens.serve('b', 3000, 0);
  tokens.arrive('c', 0);
  expect(tokens.counter('c', false)).toBe(3000);
  tokens.leave('c');
  tokens.serve('b', 4000, 0);
  tokens.arrive('c', 0);
  expect(tokens.counter('c', false)).toBe(5000);
  for (const client of ['a', 'b', 'c']) tokens.leave(client);
  tokens.arrive('d', 0);
  expect(tokens.counter('d', false)).toBe(0);
});

test('a started prefill keeps its turn for a while', () => {
  const tokens = new VirtualTokens();
  for (const client of ['a', 'b']) tokens.arrive(client, 0);
  tokens.serve('a', 500, 0);
  expect(tokens.counter('a', true)).toBeLessThan(tokens.counter('b', false));
  tokens.serve('a', 600, 0);
  expect(tokens.counter('a', true)).toBeGreaterThan(tokens.counter('b', false));
});

test('a newcomer is compared with its own class only: the wait of a lower class gives no credit', () => {
  const tokens = new VirtualTokens();
  tokens.arrive('summary', 2);
  tokens.arrive('chat', 1);
  tokens.serve('chat', 2400, 0);
  tokens.arrive('later chat', 1);
  expect(tokens.counter('later chat', false)).toBe(2400);
  expect(tokens.counter('summary', false)).toBe(0);
  // Of one that changes its class as well; what it has had, it has had.
  tokens.move('summary', 1);
  expect(tokens.counter('summary', false)).toBe(2400);
  tokens.serve('summary', 600, 0);
  tokens.move('summary', 0);
  expect(tokens.counter('summary', false)).toBe(3000);
  tokens.move('nobody', 0);
});
