/** How much memory there is, and what of it a KV cache needs at work. */
import { totalmem } from 'node:os';
import { prefillRows, prefillTokensIn, scratchRows } from './batch.ts';
import { type MemoryReading, MOST_BYTES } from './memoryBudget.ts';
import type { EngineStats } from './protocol.ts';

/** Most that the prefill lane's scratch takes of what the ceiling may come to. Where it is full, a prompt goes on in the window lane. */
const PREFILL_SHARE = 0.25;
/** From this share of what the ceiling may come to on, the scratch is that of the most. */
const KEPT_FROM = 0.5;

/** What a ceiling is for, but for what needs as much under any: buffers and kernels. */
export interface DividedCeiling {
  /** The lane limit: most tokens of a prompt that are computed in the prefill lane. */
  prefillTokens: number;
  /** For window and store. With the scratch less than all of it where the next larger scratch is near. */
  rowBytes: number;
}

/**
 * Rows of one lane are no hit in the other, so what was computed behind the lane limit is found under the same limit only. It goes in steps
 * of twice as much scratch, and by `mostBytes`, what the ceiling may come to under the settings, from the half of that on: what memory
 * others take and give back changes nothing in between. Below, the scratch takes a quarter of `maxBytes`, the ceiling of now, or
 * what that has beyond the rows of the half. Where the scratch becomes twice as large, rows have before what is left for them then: a
 * higher ceiling never has less room for rows, and just below such a place some of it is left over, up to 29%, or half of it where there
 * is no scratch yet. It remembers nothing: a ceiling has one limit, also after a restart.
 */
export function divideCeiling(
  maxBytes: number,
  scratchBytesPerToken: number,
  maxContext: number,
  mostBytes = maxBytes,
): DividedCeiling {
  const steps = [{ from: 0, tokens: 0, bytes: 0 }];
  for (let rows = prefillRows(1); steps.at(-1)!.from <= mostBytes; rows *= 2) {
    const tokens = Math.min(maxContext, prefillTokensIn(rows));
    steps.push({
      from: (rows * scratchBytesPerToken) / PREFILL_SHARE,
      tokens,
      bytes: scratchRows(tokens) * scratchBytesPerToken,
    });
  }
  // All but the last are those that there may be.
  const most = steps.at(-2)!;
  for (const step of steps.slice(0, -1))
    step.from = Math.min(step.from, KEPT_FROM * mostBytes - (most.bytes - step.bytes));
  const nextAt = steps.findIndex(({ from }) => from > Math.min(maxBytes, mostBytes));
  const [step, next] = [steps[nextAt - 1]!, steps[nextAt]!];
  return { prefillTokens: step.tokens, rowBytes: Math.min(maxBytes - step.bytes, next.from - next.bytes) };
}

/** Of the same: the lane limit. */
export function mostPrefillTokens(
  maxBytes: number,
  scratchBytesPerToken: number,
  maxContext: number,
  mostBytes = maxBytes,
): number {
  return divideCeiling(maxBytes, scratchBytesPerToken, maxContext, mostBytes).prefillTokens;
}

/** Where a text of so many tokens may have gone over to the window lane, under whatever limit it was computed. Ascending. */
export function laneLimits(numTokens: number): number[] {
  const limits = [0];
  for (let rows = prefillRows(1); limits.at(-1)! < numTokens; rows *= 2)
    limits.push(Math.min(numTokens, prefillTokensIn(rows)));
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
  return (
    tokens * bytesPerToken +
    scratchRows(mostPrefillTokens(MOST_BYTES, scratchBytesPerToken, tokens)) * scratchBytesPerToken
  );
}

/**
 * The machine as it is now, beside a cache that takes so much. `process.availableMemory` honours a cgroup's limit and, unlike
 * os.freemem on macOS, counts reclaimable pages; `process.constrainedMemory` is that limit, 0 or more than there is without one.
 */
export function memoryReading(usedBytes: number): MemoryReading {
  const constrained = process.constrainedMemory();
  return {
    availableBytes: process.availableMemory(),
    totalBytes: Math.min(totalmem(), constrained || Number.POSITIVE_INFINITY),
    usedBytes,
  };
}

/** As it is now. `processBytes` is of the whole process: with the thread transport, the extension host and what else runs in it. */
export function memoryStats(): EngineStats['memory'] {
  return { processBytes: process.memoryUsage.rss(), totalBytes: totalmem(), availableBytes: process.availableMemory() };
}
