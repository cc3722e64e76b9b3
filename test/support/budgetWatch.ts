/**
 * For all tests: whatever changes the bytes of a cache's pool or store, they are never more than its budget, not for a moment
 * between two changes either. `checkIntegrity` sees what is there after an operation; this sees what is there within it.
 */
import { vi } from 'vitest';
import type { KvMemory as Memory, KvMemoryOptions } from '../../engine/kv/kvMemory.ts';
import type { KvPool } from '../../engine/kv/pool.ts';

/** A pool may be another cache's, once the one before has failed. */
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
