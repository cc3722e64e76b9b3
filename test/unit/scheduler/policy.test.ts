/** The scheduling policy: orders, prefix sharing, turns, virtual token counters. See test/engine for the scheduler. */
import { expect, test } from 'vitest';
import { AGEING_MS, bySlotOrder, SchedulingPolicy, VirtualTokens } from '../../../engine/scheduler/policy.ts';
import type { Priority } from '../../../engine/protocol/tasks.ts';

const policy = new SchedulingPolicy();
const one = (priority: Priority, arrivalIndex: number, lastServedAt = 0) => ({ priority, arrivalIndex, lastServedAt });

test('slot order is by class, then by arrival', () => {
  const all = [one('summary', 0), one('completion', 3), one('idle', 1), one('completion', 2), one('chat', 4)];
  expect(all.sort(bySlotOrder((s) => policy.rank(s))).map((s) => s.arrivalIndex)).toEqual([2, 3, 4, 0, 1]);
  expect(all.sort(bySlotOrder((s) => (s.arrivalIndex === 0 ? 1 : policy.rank(s)))).map((s) => s.arrivalIndex)).toEqual([
    2, 3, 0, 4, 1,
  ]);
});

test('chats leave slots only to a summary that has waited long (starvation guard)', () => {
  const waited = (priority: Priority): boolean[] =>
    [2 * AGEING_MS, 60_000].map((now) => policy.isDueSlots(one(priority, 0), now));
  expect(waited('summary')).toEqual([false, true]);
  for (const priority of ['completion', 'chat', 'idle'] as const) expect(waited(priority)).toEqual([false, false]);
});

test('service order: waiting raises the class, and a step that yields a first token goes first', () => {
  const now = 10 * AGEING_MS;
  const merits = { givesToken: (_: { arrivalIndex: number }) => false, served: () => 0 };
  expect(policy.level(one('completion', 0, now), now)).toBe(0);
  expect(policy.level(one('summary', 0, now - 2 * AGEING_MS), now)).toBe(0);
  const all = [
    one('chat', 0, now),
    one('completion', 1, now),
    one('summary', 2, now - 3 * AGEING_MS),
    one('completion', 3, now),
  ];
  expect([...all].sort(policy.byService(now, merits)).map((s) => s.arrivalIndex)).toEqual([2, 1, 3, 0]);
  expect(
    [...all]
      .sort(policy.byService(now, { ...merits, givesToken: (s) => s.arrivalIndex === 3 }))
      .map((s) => s.arrivalIndex),
  ).toEqual([2, 3, 1, 0]);
});

test('a sequence waits only for one that computes its next token on the same tree path', () => {
  const leader = { tokenIds: [1, 2, 3, 4, 5, 6], startIndex: 2, count: 2 };
  expect(policy.waitsFor(leader, [1, 2, 3, 9], 2)).toBe(true);
  expect(policy.waitsFor(leader, [1, 2, 3, 4, 5], 3)).toBe(true);
  expect(policy.waitsFor(leader, [1, 2, 9], 2)).toBe(false);
  expect(policy.waitsFor(leader, [1, 9, 3], 2)).toBe(false);
  expect(policy.waitsFor(leader, [1, 2, 3], 1)).toBe(false);
  expect(policy.waitsFor(leader, [1, 2, 3, 4, 5], 4)).toBe(false);
});

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
  // The same holds for a client that changes its class. Its own counter never falls.
  tokens.move('summary', 1);
  expect(tokens.counter('summary', false)).toBe(2400);
  tokens.serve('summary', 600, 0);
  tokens.move('summary', 0);
  expect(tokens.counter('summary', false)).toBe(3000);
  tokens.move('nobody', 0);
});

test('turns go to the longest waiting kind; of prefills and background work only the first of a class gets one', () => {
  const one = (
    priority: 'completion' | 'chat' | 'summary' | 'idle',
    waited: number,
    decodes: boolean,
    deferred = true,
  ) => ({ priority, lastServedAt: 10_000 - waited, decodes, deferred });
  const next = (...running: ReturnType<typeof one>[]): number => running.indexOf(policy.nextTurn(running, 10_000)!);
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
