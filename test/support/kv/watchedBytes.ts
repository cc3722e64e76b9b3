/** Records the most bytes of pool and store during an operation. */
import type { KvCache } from '../../../engine/kv/kvCache.ts';
import type { KvPool } from '../../../engine/kv/pool.ts';

/** The most bytes that pool and store have had together, also within an operation: whatever changes them, here one or the other is read or resized. */
export function watched({ cache, pool }: { cache: KvCache; pool: KvPool }): { most: number } {
  const seen = { most: 0 };
  const look = (): void => {
    seen.most = Math.max(seen.most, cache.memory.pool.bytes + cache.memory.store.bytes);
  };
  const { read, resize, exchange } = pool;
  pool.read = (slots) => {
    look();
    return read.call(pool, slots);
  };
  pool.resize = (...sizes) => {
    // What has left the pool since is in the store by now.
    look();
    resize.apply(pool, sizes);
    look();
  };
  pool.exchange = (from, to) => {
    look();
    exchange.call(pool, from, to);
  };
  return seen;
}
