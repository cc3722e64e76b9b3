/**
 * The memory budget of the KV cache, in bytes, as the machine's memory changes. Falls as soon as memory is short, and
 * rises slowly once there has been enough for a while, so that two such programs do not chase each other.
 */
import { totalmem } from 'node:os';
import type { EngineStats } from '../protocol/stats.ts';

/** 2 GB. With more, a laptop's other programs suffer before the assistant gains. */
export const MAX_BYTES = 2e9;
/** Usual share of the available memory. For a GPU's memory, 50% to 70% would be usual. */
export const USUAL_SHARE = 0.6;
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

interface BudgetOptions {
  /** The user's budget; 0 lets the engine choose. */
  maxBytes: number;
  /** Share of the available memory, 0..1. */
  share: number;
}

/**
 * The budget for a reading, without regard to earlier ones. If the engine chooses, it is a share of the memory that
 * others and the cache have together, at most MAX_BYTES. A budget that the user has set is never exceeded, and lowered
 * only so far that the machine keeps its reserve.
 *
 * Engines on one machine (one for each window with a model) share it: each has an equal part of the maximum and of the
 * free memory, and what it takes itself is its own. So all of them together want what a single engine would want.
 */
export function wantedBytes(options: BudgetOptions, reading: MemoryReading): number {
  const { availableBytes, totalBytes, usedBytes, numEngines = 1 } = reading;
  const own = availableBytes / numEngines + usedBytes;
  const most = mostShared(options, reading);
  const wanted = options.maxBytes ? own - (RESERVE_SHARE * totalBytes) / numEngines : options.share * own;
  return Math.floor(Math.max(Math.min(MIN_BYTES, most), Math.min(most, wanted)));
}

/** Most bytes of one engine, whatever the machine has. */
function mostShared({ maxBytes }: BudgetOptions, { numEngines = 1 }: MemoryReading): number {
  return Math.floor((maxBytes || MAX_BYTES) / numEngines);
}

/** The budget of a single engine on a machine without other programs. Even, so that two engines have a half each. */
export function mostWanted(options: BudgetOptions, totalBytes: number): number {
  return 2 * Math.floor(wantedBytes(options, { availableBytes: totalBytes, totalBytes, usedBytes: 0 }) / 2);
}

export class MemoryBudget {
  #options: BudgetOptions;
  #most: number;
  #budget: number;
  /** When the budget was last lowered, and when there was last too little memory to raise it. */
  #loweredAt = Number.NEGATIVE_INFINITY;
  #shortAt: number;

  /** @param now ms, never going back. */
  constructor(options: BudgetOptions, reading: MemoryReading, now: number) {
    this.#options = options;
    this.#budget = wantedBytes(options, reading);
    this.#most = mostWanted(options, reading.totalBytes);
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
    this.#options = { ...this.#options, maxBytes };
    this.#budget = wantedBytes(this.#options, reading);
    this.#most = mostWanted(this.#options, reading.totalBytes);
    this.#shortAt = now;
  }

  /** Adapts the budget to a reading. Returns whether it has changed. */
  follow(reading: MemoryReading, now: number): boolean {
    const before = this.#budget;
    const wanted = wantedBytes(this.#options, reading);
    const most = mostShared(this.#options, reading);
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
