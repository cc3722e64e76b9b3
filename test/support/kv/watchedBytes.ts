/** Records the most bytes of pool and store during an operation. */
import type { KvCache } from '../../../engine/kv/kvCache.ts';
import type { KvPool } from '../../../engine/kv/pool.ts';

/**
 * Records the most bytes that pool and store have had together, also within an operation. Every change of these bytes
 * reads, resizes or exchanges rows of the pool, and the bytes are checked there.
 */
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
    // Rows that have left the pool are in the store by now.
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
