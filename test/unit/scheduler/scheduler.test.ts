/** The scheduler's pure policies of order: leader, priorities. The scheduler itself is tested in test/engine. */
import { expect, test } from 'vitest';
import { isComputedBy } from '../../../engine/scheduler/schedule.ts';
import { ALL_POLICIES } from '../../../engine/scheduler/policies.ts';
import { AGEING_MS, byService, byStanding, isDueRoom, level, rank } from '../../../engine/scheduler/fairness.ts';
import type { Priority } from '../../../engine/protocol/tasks.ts';

const one = (priority: Priority, arrivalIndex: number, lastServedAt = 0) => ({ priority, arrivalIndex, lastServedAt });

test('standing is ordered by class, then by arrival', () => {
  const all = [one('summary', 0), one('completion', 3), one('idle', 1), one('completion', 2), one('chat', 4)];
  expect(all.sort(byStanding()).map((s) => s.arrivalIndex)).toEqual([2, 3, 4, 0, 1]);
  expect(
    all.sort(byStanding((s) => (s.arrivalIndex === 0 ? 1 : rank(s, ALL_POLICIES)))).map((s) => s.arrivalIndex),
  ).toEqual([2, 3, 0, 4, 1]);
});

test('chats leave room only for a summary that has waited long (starvation guard)', () => {
  const waited = (priority: Priority): boolean[] =>
    [2 * AGEING_MS, 60_000].map((now) => isDueRoom(one(priority, 0), now, ALL_POLICIES));
  expect(waited('summary')).toEqual([false, true]);
  for (const priority of ['completion', 'chat', 'idle'] as const) expect(waited(priority)).toEqual([false, false]);
  expect(isDueRoom(one('summary', 0), 60_000, { ageing: false })).toBe(false);
});

test('service order: waiting raises the class, and a step that yields a first token goes first', () => {
  const now = 10 * AGEING_MS;
  const merits = { givesToken: (_: { arrivalIndex: number }) => false, served: () => 0 };
  expect(level(one('completion', 0, now), now)).toBe(0);
  expect(level(one('summary', 0, now - 2 * AGEING_MS), now)).toBe(0);
  const all = [
    one('chat', 0, now),
    one('completion', 1, now),
    one('summary', 2, now - 3 * AGEING_MS),
    one('completion', 3, now),
  ];
  expect([...all].sort(byService(now, merits)).map((s) => s.arrivalIndex)).toEqual([2, 1, 3, 0]);
  expect(
    [...all].sort(byService(now, { ...merits, givesToken: (s) => s.arrivalIndex === 3 })).map((s) => s.arrivalIndex),
  ).toEqual([2, 3, 1, 0]);
});

test('a sequence waits only for one that computes its next token on the same tree path', () => {
  const leader = { tokenIds: [1, 2, 3, 4, 5, 6], startIndex: 2, count: 2 };
  expect(isComputedBy([1, 2, 3, 9], 2, leader)).toBe(true);
  expect(isComputedBy([1, 2, 3, 4, 5], 3, leader)).toBe(true);
  expect(isComputedBy([1, 2, 9], 2, leader)).toBe(false);
  expect(isComputedBy([1, 9, 3], 2, leader)).toBe(false);
  expect(isComputedBy([1, 2, 3], 1, leader)).toBe(false);
  expect(isComputedBy([1, 2, 3, 4, 5], 4, leader)).toBe(false);
});
