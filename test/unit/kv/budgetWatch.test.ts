/** test/support/budgetWatch.ts checks every cache. Without it tests of memory during an operation could not fail. */
import { expect, test } from 'vitest';
import { KvMemory } from '../../../engine/kv/kvMemory.ts';
import { kvBytesPerToken } from '../../../engine/kv/kvRows.ts';
import { Lru } from '../../support/kv/lru.ts';
import { KvPool } from '../../../engine/kv/pool.ts';
import { fakeShape } from '../../support/engine/fakeRunner.ts';

const BYTES = kvBytesPerToken(fakeShape());

function opened(slots: number): KvMemory {
  return new KvMemory({
    pool: new KvPool(fakeShape(), 0),
    maxBytes: slots * BYTES,
    softSlots: slots,
    clock: () => 0,
    eviction: new Lru(),
    compression: null,
    spillFile: null,
    staleMs: 0,
  });
}

test('a store that has a byte too many is loud at once', () => {
  const { store, pool, budget } = opened(100);
  const most = budget.maxBytes - pool.bytes;
  store.bytes = most;
  expect(() => (store.bytes = most + 1)).toThrow('exceed the budget');
});

test('so is a pool that is a slot too large', () => {
  const { pool } = opened(100);
  pool.resize(100, 100);
  expect(() => pool.resize(101, 101)).toThrow('exceed the budget');
});
