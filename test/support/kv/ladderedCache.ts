/** A cache with compression levels by age, and random rows for tokens. */
import { type CodecName, codecNamed } from '../../../engine/kv/approx/codecs/registry.ts';
import { type Compression, codingReserve } from '../../../engine/kv/approx/compression.ts';
import { KvCache } from '../../../engine/kv/kvCache.ts';
import { kvBytesPerToken, type KvRows } from '../../../engine/kv/kvRows.ts';
import { KvPool } from '../../../engine/kv/pool.ts';
import { randomRows, rope } from './codecRows.ts';

export const SHAPE = { numLayers: 2, kvHeads: 2, headSize: 16, kv: 'int8' as const };
export const codec = (name: CodecName) => codecNamed(name, SHAPE, rope(16));
export const contents = ({ keys, keyScales, values, valueScales }: KvRows): unknown[] => [
  keys,
  keyScales,
  values,
  valueScales,
];
export const minutes = (n: number): number => n * 60_000;

/**
 * A cache with the codec `mild` after a second and the codec `hard` after half an hour, at any fullness. `slots` is the
 * memory budget in slots of the pool.
 */
export function laddered({
  slots = 1536,
  mild = 'nvfp4',
  hard = 'turboquant',
  only = null,
}: {
  slots?: number;
  mild?: CodecName;
  hard?: CodecName;
  only?: Compression['only'];
} = {}) {
  const clock = { now: 0 };
  const pool = new KvPool(SHAPE, 0);
  const compression = {
    levels: [
      { codec: codec(mild), idleMs: 1000, fullness: 0 },
      { codec: codec(hard), idleMs: minutes(30), fullness: 0 },
    ],
    only,
  };
  const reserve = codingReserve(compression, SHAPE);
  const cache = new KvCache({
    pool,
    maxBytes: slots * kvBytesPerToken(SHAPE) + reserve,
    softSlots: 2000,
    clock: () => clock.now,
    compression,
  });
  const run = (seed: number, n: number): number[] => Array.from({ length: n }, (_, i) => 1000 * seed + i);
  return {
    cache,
    pool,
    run,
    clock,
    reserve,
    /** Computes those of these tokens that are missing. */
    compute(ids: readonly number[]): void {
      const lease = cache.open();
      const known = cache.advance(lease, ids, ids.length);
      const slots = cache.memory.allocate(ids.length - known)!;
      pool.write(slots, randomRows(SHAPE, ids.length - known, ids[0]!), 0, known);
      cache.append(lease, slots);
      cache.commit(lease, ids);
      cache.release(lease);
      cache.checkIntegrity();
    },
    /** All rows of a prefix, in the pool's format. */
    read(ids: readonly number[]): KvRows {
      const lease = cache.open();
      if (cache.advance(lease, ids, ids.length) < ids.length)
        throw new Error(`Not all of ${ids.length} tokens are cached.`);
      const rows = pool.read(cache.slotsOf(lease));
      cache.release(lease);
      cache.checkIntegrity();
      return rows;
    },
    /** Lets time pass, so that unused rows leave the pool. */
    rest(ms = minutes(2)): void {
      clock.now += ms;
      while (cache.shrink()) cache.checkIntegrity();
      cache.checkIntegrity();
    },
    /** Moves all rows to the pool, which then takes the whole budget. */
    toPool(ids: readonly number[]): void {
      const lease = cache.open();
      cache.advance(lease, ids, ids.length);
      cache.memory.free(cache.memory.allocate(cache.memory.available)!);
      cache.release(lease);
      cache.checkIntegrity();
    },
    /** Codes all rows that can be coded. Returns the number of blocks. */
    settle(): number {
      let numBlocks = 0;
      for (; cache.compression.compress(); numBlocks++) cache.checkIntegrity();
      return numBlocks;
    },
  };
}
