/** Which runs leave the window, and when it shrinks: the figures decide. */
import { expect, test } from 'vitest';
import { type DeadRun, isMuchWork, shouldLeave, shouldShrink, type Work } from '../../engine/policies/tidying.ts';

/** A small model: 6.5 kB a token, 1 us a token and column. */
const work = (tokens: number, msPerProduct = 0.001): Work => ({ tokens, msPerProduct, bytesPerToken: 6500 });
const old: DeadRun = { hasCopy: false, pinned: false, msSinceUse: 60_000, commonTokens: 0 };

test('a question of a few tokens moves nothing, a long prompt takes everything old out of its way', () => {
  expect(isMuchWork(work(20))).toBe(false);
  expect(isMuchWork(work(1000))).toBe(true);
  expect(shouldLeave(old, work(20))).toBe(false);
  expect(shouldLeave(old, work(1000))).toBe(true);
});

test('a run that the store has already leaves sooner', () => {
  expect(shouldLeave(old, work(38))).toBe(false);
  expect(shouldLeave({ ...old, hasCopy: true }, work(38))).toBe(true);
});

test('where columns cost next to nothing, nothing leaves', () => {
  expect(shouldLeave(old, work(4000, 1e-6))).toBe(false);
  expect(shouldLeave(old, work(4000, 0))).toBe(false);
});

test('what is hot or pinned stays, unless it is an old version of what runs', () => {
  for (const stays of [{ ...old, msSinceUse: 5000 }, { ...old, pinned: true }]) {
    expect(shouldLeave(stays, work(4000))).toBe(false);
    expect(shouldLeave({ ...stays, commonTokens: 4000 }, work(4000))).toBe(true);
  }
});

test('the window shrinks when the work ahead does not need its columns', () => {
  expect(shouldShrink(8192, 4096, 0, 512, work(4000))).toBe(true);
  expect(shouldShrink(8192, 4096, 0, 512, work(40))).toBe(true);
  expect(shouldShrink(8192, 4096, 0, 512, work(2))).toBe(false);
  expect(shouldShrink(8192, 8192, 0, 512, work(4000))).toBe(false);
});

test('rows that have to move are weighed, and so is the growth that follows', () => {
  // 60 tokens over 512 columns less: 29 ms, half of them needed again; a thousand scattered rows: 70 ms.
  expect(shouldShrink(2560, 2048, 0, 256, work(60))).toBe(true);
  expect(shouldShrink(2560, 2048, 1000, 256, work(60))).toBe(false);
  // 256 columns that the next 256 tokens need again.
  expect(shouldShrink(16384, 16128, 0, 256, work(256))).toBe(false);
});
