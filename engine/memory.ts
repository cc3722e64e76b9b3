/** How much memory there is, and what of it a KV cache needs at work. */
import { totalmem } from 'node:os';
import { prefillRows, prefillTokensIn, scratchRows } from './batch.ts';
import { type MemoryReading, MOST_BYTES } from './memoryBudget.ts';
import type { EngineStats } from './protocol.ts';

/** Most that the prefill lane's scratch takes, of what the ceiling may come to or of what it is. Where it is full, a prompt goes on in the window lane. */
const PREFILL_SHARE = 0.25;
/** From this share of what the ceiling may come to on, the limit is that of the most. */
const KEPT_FROM = 0.5;

/**
 * The lane limit: most tokens of a prompt that are computed in the prefill lane, in steps of twice as much scratch. Rows of one lane
 * are no hit in the other, so what was computed behind it is found under the same limit only. It goes by `mostBytes`, what the ceiling
 * may come to under the settings, from the half of that on: what memory others take and give back changes nothing in between, and a
 * higher ceiling has more room for rows. Below, it goes by `maxBytes`, the ceiling of now: where the scratch becomes
 * twice as large, the last time at the half, there is less room for rows than just before. It remembers nothing: a ceiling has one limit, also after a restart.
 */
export function mostPrefillTokens(maxBytes: number, scratchBytesPerToken: number, maxContext: number, mostBytes = maxBytes): number {
  const rows = (PREFILL_SHARE * (maxBytes < KEPT_FROM * mostBytes ? maxBytes : mostBytes)) / scratchBytesPerToken;
  return Math.min(maxContext, prefillTokensIn(2 ** Math.floor(Math.log2(rows))));
}

/** Where a text of so many tokens may have gone over to the window lane, under whatever limit it was computed. Ascending. */
export function laneLimits(numTokens: number): number[] {
  const limits = [0];
  for (let rows = prefillRows(1); limits.at(-1)! < numTokens; rows *= 2) limits.push(Math.min(numTokens, prefillTokensIn(rows)));
  return limits;
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
