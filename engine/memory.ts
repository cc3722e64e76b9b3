/** How much memory there is, and how much of it the KV cache may take when the user has not said. */
import { totalmem } from 'node:os';
import type { EngineStats } from './protocol.ts';

/** 2 GB: above it a laptop's other programs notice before the assistant gains. */
const MOST_BYTES = 2e9;
const SHARE_OF_AVAILABLE = 0.6;

/**
 * min(60% of what is available, 2 GB), in bytes. `process.availableMemory` honours a cgroup's limit and, unlike
 * os.freemem on macOS, counts reclaimable pages.
 */
export function automaticCacheBytes(availableBytes: number = process.availableMemory()): number {
  return Math.floor(Math.min(availableBytes * SHARE_OF_AVAILABLE, MOST_BYTES));
}

/** As it is now. `processBytes` is of the whole process: with the thread transport, the extension host and what else runs in it. */
export function memoryStats(): EngineStats['memory'] {
  return { processBytes: process.memoryUsage.rss(), totalBytes: totalmem(), availableBytes: process.availableMemory() };
}
