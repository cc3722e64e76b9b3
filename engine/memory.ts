/** How much memory there is, and what of it a KV cache needs at work. */
import { totalmem } from 'node:os';
import { prefillTokensIn, scratchRows } from './batch.ts';
import { type MemoryReading, MOST_BYTES } from './memoryBudget.ts';
import type { EngineStats } from './protocol.ts';

/** Most of the ceiling that the prefill lane's scratch may take. Where it is full, a prompt goes on in the window lane. */
const PREFILL_SHARE = 0.25;

/** Most tokens of a prompt that the prefill lane's scratch holds under this ceiling. */
export function mostPrefillTokens(maxBytes: number, scratchBytesPerToken: number, maxContext: number): number {
  return Math.min(maxContext, prefillTokensIn((maxBytes * PREFILL_SHARE) / scratchBytesPerToken));
}

/** Tokens of an ordinary file and conversation, for which a model's need of memory is told. */
const USUAL_TOKENS = 8192;

/**
 * What the KV cache takes while a prompt of USUAL_TOKENS, or of the whole context, is read: its rows, and the scratch of
 * the prefill lane, whose rows are float32. Under the ceiling of a machine with memory to spare.
 */
export function cacheBytesAtWork(bytesPerToken: number, scratchBytesPerToken: number, contextTokens: number): number {
  const tokens = Math.min(USUAL_TOKENS, contextTokens);
  return tokens * bytesPerToken + scratchRows(mostPrefillTokens(MOST_BYTES, scratchBytesPerToken, tokens)) * scratchBytesPerToken;
}

/**
 * The machine as it is now, beside a cache that takes so much. `process.availableMemory` honours a cgroup's limit and, unlike
 * os.freemem on macOS, counts reclaimable pages; `process.constrainedMemory` is that limit, 0 or more than there is without one.
 */
export function memoryReading(usedBytes: number): MemoryReading {
  const constrained = process.constrainedMemory();
  return { availableBytes: process.availableMemory(), totalBytes: Math.min(totalmem(), constrained || Number.POSITIVE_INFINITY), usedBytes };
}

/** As it is now. `processBytes` is of the whole process: with the thread transport, the extension host and what else runs in it. */
export function memoryStats(): EngineStats['memory'] {
  return { processBytes: process.memoryUsage.rss(), totalBytes: totalmem(), availableBytes: process.availableMemory() };
}
