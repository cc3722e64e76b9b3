/**
 * The memory budget of the KV cache, in bytes: how large it is as the machine's memory changes, and how it is divided
 * among KV rows, the scratch of the prefill lane, disk buffers and approximate techniques. Derives the lane limit.
 */
import { totalmem } from 'node:os';
import { reservedBytes } from '../kv/approx/approximations.ts';
import type { KvCache } from '../kv/kvCache.ts';
import { Snapshots } from '../kv/snapshots.ts';
import { prefillRows, prefillTokensIn, scratchRows } from '../model/batch.ts';
import type { EngineStats } from '../protocol/stats.ts';
import type { EngineOptions } from './engineOptions.ts';

/** 2 GB. With more, a laptop's other programs suffer before the assistant gains. */
export const MAX_BYTES = 2e9;
/** Share of the available memory, unless the user sets a budget. For a GPU's memory, 50% to 70% would be usual. */
const USUAL_SHARE = 0.6;
/**
 * The smallest budget, 128 MB, unless the user's is smaller. With less, a request about an ordinary file would not fit,
 * and other programs would hardly gain.
 */
export const MIN_BYTES = 128e6;
/** Reserve: share of the machine's memory that stays free under a budget that the user has set. */
const RESERVE_SHARE = 0.05;
/** The budget stays while the wanted one is within these factors of it. */
const LESS = 0.9;
const MORE = 1.25;
/** ms after lowering the budget before it can be lowered again: freed memory is not available at once. */
const SETTLE_MS = 10_000;
/** ms with enough memory before the budget rises, and its largest factor each time. */
const CALM_MS = 60_000;
const MAX_RISE = 1.5;

export interface MemoryReading {
  /** Bytes that any program can get without swapping, within a container's limit. */
  availableBytes: number;
  /** Memory of the machine or of the container. */
  totalBytes: number;
  /** Bytes that the cache takes now. */
  usedBytes: number;
  /** Engines that share the budget, this one included; 1 when left out. */
  numEngines?: number;
}

/**
 * The budget for a reading, without regard to earlier ones. `maxBytes`: the user's budget; 0 lets the engine choose. If
 * the engine chooses, it is a share of the memory that others and the cache have together, at most MAX_BYTES. A budget
 * that the user has set is never exceeded, and lowered only so far that the machine keeps its reserve.
 *
 * Engines on one machine (one for each window with a model) share it: each has an equal part of the maximum and of the
 * free memory, and what it takes itself is its own. So all of them together want what a single engine would want.
 */
export function wantedBytes(maxBytes: number, reading: MemoryReading): number {
  const { availableBytes, totalBytes, usedBytes, numEngines = 1 } = reading;
  const own = availableBytes / numEngines + usedBytes;
  const most = mostShared(maxBytes, reading);
  const wanted = maxBytes ? own - (RESERVE_SHARE * totalBytes) / numEngines : USUAL_SHARE * own;
  return Math.floor(Math.max(Math.min(MIN_BYTES, most), Math.min(most, wanted)));
}

/** Most bytes of one engine, whatever the machine has. */
function mostShared(maxBytes: number, { numEngines = 1 }: MemoryReading): number {
  return Math.floor((maxBytes || MAX_BYTES) / numEngines);
}

/** The budget of a single engine on a machine without other programs. Even, so that two engines have a half each. */
export function mostWanted(maxBytes: number, totalBytes: number): number {
  return 2 * Math.floor(wantedBytes(maxBytes, { availableBytes: totalBytes, totalBytes, usedBytes: 0 }) / 2);
}

/**
 * The budget over time. Falls as soon as memory is short, and rises slowly once there has been enough for a while, so
 * that two such programs do not chase each other.
 */
export class MemoryBudget {
  #maxBytes: number;
  #most: number;
  #budget: number;
  /** When the budget was last lowered, and when there was last too little memory to raise it. */
  #loweredAt = Number.NEGATIVE_INFINITY;
  #shortAt: number;

  /** `maxBytes`: the user's budget; 0 lets the engine choose. `now`: ms, never going back. */
  constructor(maxBytes: number, reading: MemoryReading, now: number) {
    this.#maxBytes = maxBytes;
    this.#budget = wantedBytes(maxBytes, reading);
    this.#most = mostWanted(maxBytes, reading.totalBytes);
    this.#shortAt = now;
  }

  /** The budget in bytes. */
  get budget(): number {
    return this.#budget;
  }

  /** The largest budget under these settings, in bytes. It does not depend on the number of engines. */
  get most(): number {
    return this.#most;
  }

  /** Changes the user's budget. It applies at once. */
  configure(maxBytes: number, reading: MemoryReading, now: number): void {
    this.#maxBytes = maxBytes;
    this.#budget = wantedBytes(maxBytes, reading);
    this.#most = mostWanted(maxBytes, reading.totalBytes);
    this.#shortAt = now;
  }

  /** Adapts the budget to a reading. Returns whether it has changed. */
  follow(reading: MemoryReading, now: number): boolean {
    const before = this.#budget;
    const wanted = wantedBytes(this.#maxBytes, reading);
    const most = mostShared(this.#maxBytes, reading);
    const isSettled = now - this.#loweredAt >= SETTLE_MS;
    // It rises to the maximum even if that is less than MORE.
    if (wanted <= before || (wanted < MORE * before && wanted < most)) this.#shortAt = now;
    // With more engines than before, all of them together must not exceed the maximum.
    if (before > most || (wanted < LESS * before && isSettled)) {
      this.#budget = isSettled ? wanted : most;
      this.#loweredAt = now;
    } else if (now - this.#shortAt >= CALM_MS) {
      this.#budget = Math.min(wanted, Math.floor(MAX_RISE * before));
      this.#shortAt = now;
    }
    return this.#budget !== before;
  }
}

/**
 * The machine's memory now, with a cache of `usedBytes`. `process.availableMemory` respects a cgroup's limit and counts
 * reclaimable pages, which os.freemem on macOS does not. `process.constrainedMemory` is that limit; without one it is 0
 * or more than the machine has.
 */
export function memoryReading(usedBytes: number): MemoryReading {
  const constrained = process.constrainedMemory();
  return {
    availableBytes: process.availableMemory(),
    totalBytes: Math.min(totalmem(), constrained || Number.POSITIVE_INFINITY),
    usedBytes,
  };
}

/** Memory now. In the editor, `processBytes` includes the extension host and all that runs in it. */
export function memoryStats(): EngineStats['memory'] {
  return { processBytes: process.memoryUsage.rss(), totalBytes: totalmem(), availableBytes: process.availableMemory() };
}

// --- division of the budget --------------------------------------------------------

/** Largest share of the budget for the scratch of the prefill lane. Longer prompts continue in the paged lane. */
const PREFILL_SHARE = 0.25;
/** From this share of the largest budget on, the scratch is as large as under the largest budget. */
const KEPT_FROM = 0.5;

/** A divided budget, before buffers and kernels, which take the same under any budget. */
export interface DividedBudget {
  /** The lane limit: most tokens of a prompt that are computed in the prefill lane. */
  prefillTokens: number;
  /** Bytes for pool and store. Less than the scratch leaves if the next larger scratch is near. */
  rowBytes: number;
}

/**
 * The lane limit should seldom change: a row computed in one lane is not found in the other, so rows behind the limit
 * are found again only under the same limit.
 *
 * - The limit has steps. Each step doubles the scratch.
 * - From half of `mostBytes` on, the budget that the settings allow, it is the limit of `mostBytes`. So memory that
 *   other programs take and give back changes nothing in that range.
 * - Below, the scratch takes a quarter of the present `maxBytes`, or what `maxBytes` has beyond the rows of the half.
 *
 * Just below a step, rows get no more than just above it, so a larger budget never holds fewer rows. There a part of
 * the budget stays unused: up to 29%, or half of it if there is no scratch yet. The result depends on the arguments
 * alone, so a budget has the same limit after a restart. `scratchBytesPerToken`: 0 for a runner with one lane.
 */
export function divideBudget(
  maxBytes: number,
  scratchBytesPerToken: number,
  maxContext: number,
  mostBytes = maxBytes,
): DividedBudget {
  // The one lane of the native kernels has no limit.
  if (scratchBytesPerToken === 0) return { prefillTokens: maxContext, rowBytes: maxBytes };
  const steps = [{ from: 0, tokens: 0, bytes: 0 }];
  for (let rows = prefillRows(1); steps.at(-1)!.from <= mostBytes; rows *= 2) {
    const tokens = Math.min(maxContext, prefillTokensIn(rows));
    steps.push({
      from: (rows * scratchBytesPerToken) / PREFILL_SHARE,
      tokens,
      bytes: scratchRows(tokens) * scratchBytesPerToken,
    });
  }
  // The last step is beyond `mostBytes`.
  const most = steps.at(-2)!;
  for (const step of steps.slice(0, -1))
    step.from = Math.min(step.from, KEPT_FROM * mostBytes - (most.bytes - step.bytes));
  const nextAt = steps.findIndex(({ from }) => from > Math.min(maxBytes, mostBytes));
  const [step, next] = [steps[nextAt - 1]!, steps[nextAt]!];
  return { prefillTokens: step.tokens, rowBytes: Math.min(maxBytes - step.bytes, next.from - next.bytes) };
}

/** The lane limit of a budget, in tokens. */
export function mostPrefillTokens(
  maxBytes: number,
  scratchBytesPerToken: number,
  maxContext: number,
  mostBytes = maxBytes,
): number {
  return divideBudget(maxBytes, scratchBytesPerToken, maxContext, mostBytes).prefillTokens;
}

/** Each lane limit under which a text of `numTokens` tokens may have been computed. Ascending. */
export function laneLimits(numTokens: number): number[] {
  const limits = [0];
  for (let rows = prefillRows(1); limits.at(-1)! < numTokens; rows *= 2)
    limits.push(Math.min(numTokens, prefillTokensIn(rows)));
  return limits;
}

/** Tokens of an ordinary file and conversation, for the memory need of a model as users see it. */
const USUAL_TOKENS = 8192;

/**
 * Bytes of the KV cache during the prefill of USUAL_TOKENS tokens, or of the whole context if shorter: its rows and the
 * float32 scratch of the prefill lane (0 bytes if there is none), under the largest budget.
 */
export function cacheBytesAtWork(bytesPerToken: number, scratchBytesPerToken: number, contextTokens: number): number {
  const tokens = Math.min(USUAL_TOKENS, contextTokens);
  return (
    tokens * bytesPerToken +
    scratchRows(mostPrefillTokens(MAX_BYTES, scratchBytesPerToken, tokens)) * scratchBytesPerToken
  );
}

/** The present division of one engine's budget. */
export class MemoryDivision {
  readonly #options: EngineOptions;
  readonly #diskBufferBytes: number;
  /** The whole budget, in bytes. */
  maxBytes = 0;
  /** See EngineOptions. */
  mostBytes: number;
  usesDisk: boolean;
  /** The lane limit, in tokens. */
  prefillTokens = 0;

  constructor(options: EngineOptions) {
    const { snapshots, pool, mostBytes = options.maxBytes, usesDisk = true } = options;
    this.#options = options;
    this.#diskBufferBytes = snapshots ? Snapshots.bufferBytes(pool.shape) : 0;
    this.mostBytes = mostBytes;
    this.usesDisk = usesDisk;
  }

  /** Most bytes of the disk tier's buffers. */
  get bufferBytes(): number {
    return this.usesDisk ? this.#diskBufferBytes : 0;
  }

  /** Sets the budget. Returns the bytes for pool and store. */
  divide(maxBytes: number): number {
    const { prefillTokens, rowBytes } = this.#division(maxBytes);
    this.maxBytes = maxBytes;
    this.prefillTokens = prefillTokens;
    return rowBytes - this.bufferBytes - reservedBytes(this.#options, this.#options.pool.shape);
  }

  /** Most tokens of a context in the prefill lane: all of a long context, if the scratch holds the parts in use. */
  laneLimit(numTokens: number, { capacity, longContexts }: KvCache): number {
    return numTokens > capacity && longContexts.slotsFor(numTokens) <= this.prefillTokens
      ? numTokens
      : this.prefillTokens;
  }

  #division(maxBytes: number): DividedBudget {
    const { runner, prefillBytesPerToken: perToken = 0, prefillTokens, maxContext } = this.#options;
    // A float32 pool has only the paged lane.
    if (perToken === 0 && !runner.hasOneLane) return { prefillTokens: 0, rowBytes: maxBytes };
    if (prefillTokens === undefined || perToken === 0)
      return divideBudget(maxBytes, perToken, maxContext, this.mostBytes);
    return { prefillTokens, rowBytes: maxBytes - scratchRows(prefillTokens) * perToken };
  }
}
