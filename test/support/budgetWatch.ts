/**
 * Makes every test check that a cache's pool and store never exceed its memory budget, not even between two changes of
 * one operation. `checkIntegrity` checks the state after an operation; this file checks the states within it.
 */
import { vi } from 'vitest';
import type { KvMemory as Memory, KvMemoryOptions } from '../../engine/kv/kvMemory.ts';
import type { KvPool } from '../../engine/kv/pool.ts';

/** The memory that owns each pool. A pool gets a new owner after its cache has failed. */
const inCharge = new WeakMap<KvPool, Memory>();

function watchCeiling(memory: Memory): void {
  const { pool, store } = memory;
  const check = ({ bytes, budget, store }: Memory): void => {
    if (bytes > Math.max(0, budget.maxBytes))
      throw new Error(
        `KV cache: ${pool.bytes} bytes of the pool and ${store.bytes} of the store exceed the budget of ${budget.maxBytes}`,
      );
  };
  let { bytes } = store;
  Object.defineProperty(store, 'bytes', {
    get: () => bytes,
    set: (value: number) => {
      bytes = value;
      check(memory);
    },
  });
  const isWatched = inCharge.has(pool);
  inCharge.set(pool, memory);
  if (isWatched) return;
  const resize = pool.resize.bind(pool);
  pool.resize = (...sizes) => {
    resize(...sizes);
    check(inCharge.get(pool)!);
  };
}

vi.mock('../../engine/kv/kvMemory.ts', async (original) => {
  const { KvMemory, ...rest } = await original<typeof import('../../engine/kv/kvMemory.ts')>();
  class WatchedMemory extends KvMemory {
    constructor(options: KvMemoryOptions) {
      super(options);
      watchCeiling(this);
    }
  }
  return { ...rest, KvMemory: WatchedMemory };
});
