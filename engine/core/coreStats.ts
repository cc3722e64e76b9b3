/** The engine's part of the statistics. Pure functions. */
import type { Approximations } from '../kv/approx/approximations.ts';
import type { Snapshots } from '../kv/snapshots.ts';
import type { KvCache } from '../kv/kvCache.ts';
import type { EngineStats } from '../protocol/stats.ts';
import type { Journal } from './journal.ts';

export type CoreStats = Omit<EngineStats, 'model' | 'files' | 'memory' | 'tree'>;

interface Sources {
  readonly journal: ReturnType<Journal['stats']>;
  /** Requests that wait for the disk. */
  readonly numFetching: number;
  readonly cache: KvCache;
  readonly approximations: Approximations;
  readonly disk: Snapshots | null;
  /** Why the last write to the disk failed. */
  readonly diskFault: string | null;
  readonly maxBytes: number;
  readonly scratchBytes: number;
  readonly bufferBytes: number;
}

export function coreStats({
  journal,
  numFetching,
  cache,
  approximations,
  disk,
  diskFault,
  ...bytes
}: Sources): CoreStats {
  return {
    ...journal,
    requests: { ...journal.requests, waiting: journal.requests.waiting + numFetching },
    tokens: { ...journal.tokens, ...approximations.stats(), promptFromDisk: disk?.numFetched ?? 0 },
    ...bytes,
    poolBytes: cache.memory.pool.bytes,
    storeBytes: cache.memory.store.bytes,
    diskBytes: disk?.disk.bytes ?? 0,
    diskMaxBytes: disk?.disk.maxBytes ?? 0,
    ...(diskFault ? { diskFault } : {}),
    kvBytesPerToken: cache.memory.budget.bytesPerSlot,
    poolSlots: cache.memory.poolSlots,
  };
}
