/**
 * PURE: how much memory the KV cache may take as the machine's changes: its budget in bytes. Down as soon as memory is
 * short, up
 * slowly once it has been there for a while, so that two programs that do so do not chase each other.
 *
 * Chosen by the engine, it is a share of what is available to others and to the cache together, at most MAX_BYTES. One
 * that the
 * user has set is never exceeded, and kept as long as the machine has a reserve: only where less would be left is it
 * lowered,
 * so far that the reserve is there again.
 *
 * It is divided among the engines on the machine, one for each window that has a model loaded: of the most, and of what
 * nobody
 * takes, each has an equal part, and what it takes itself is its own. So all of them together want what one alone
 * would.
 */
import { totalmem } from 'node:os';
import type { EngineStats } from '../protocol/stats.ts';

/** 2 GB: above it a laptop's other programs notice before the assistant gains. */
export const MAX_BYTES = 2e9;
/** Of what is available; between half and 70% of a GPU's memory would be usual, too. */
export const USUAL_SHARE = 0.6;
/**
 * Below it a request about an ordinary file would not fit, and nobody else gains: 128 MB, or the user's budget where
 * that is less.
 */
export const MIN_BYTES = 128e6;
/** Of the machine's memory, left to others under a budget of the user's. */
const RESERVE_SHARE = 0.05;
/** It stays where it is up to changes of this share: a tenth less, a quarter more. */
const LESS = 0.9;
const MORE = 1.25;
/** After lowering it what was freed is not available at once: the next time at the earliest, ms. */
const SETTLE_MS = 10_000;
/** For so long there must have been enough before it rises, and by half at most each time, ms. */
const CALM_MS = 60_000;
const MAX_RISE = 1.5;

export interface MemoryReading {
  /** To any program without swapping; within a container's limit. */
  availableBytes: number;
  /** All that the machine, or the container, has. */
  totalBytes: number;
  /** What the cache takes now. */
  usedBytes: number;
  /** Engines that share the budget, this one included; 1 when left out. */
  numEngines?: number;
}

interface BudgetOptions {
  /** The user's budget; 0 lets the engine choose. */
  maxBytes: number;
  /** Of what is available, 0..1. */
  share: number;
}

/** What is left out or undefined stays. */
export type BudgetChange = { [K in keyof BudgetOptions]?: BudgetOptions[K] | undefined };

/** What the budget would be with nothing to go before it. */
export function wantedBytes(options: BudgetOptions, reading: MemoryReading): number {
  const { availableBytes, totalBytes, usedBytes, numEngines = 1 } = reading;
  const there = availableBytes / numEngines + usedBytes;
  const most = mostShared(options, reading);
  const wanted = options.maxBytes ? there - (RESERVE_SHARE * totalBytes) / numEngines : options.share * there;
  return Math.floor(Math.max(Math.min(MIN_BYTES, most), Math.min(most, wanted)));
}

/** No engine has more, whatever the machine has. */
function mostShared({ maxBytes }: BudgetOptions, { numEngines = 1 }: MemoryReading): number {
  return Math.floor((maxBytes || MAX_BYTES) / numEngines);
}

/**
 * What an engine alone would want, had the machine nothing else to do; even, so that each of two has the half of it.
 */
export function mostWanted(options: BudgetOptions, totalBytes: number): number {
  return 2 * Math.floor(wantedBytes(options, { availableBytes: totalBytes, totalBytes, usedBytes: 0 }) / 2);
}

export class MemoryBudget {
  #options: BudgetOptions;
  #most: number;
  #budget: number;
  /** When it was lowered last, and when there was too little for a higher one last. */
  #loweredAt = Number.NEGATIVE_INFINITY;
  #shortAt: number;

  /** @param now ms, never going back. */
  constructor(options: BudgetOptions, reading: MemoryReading, now: number) {
    this.#options = options;
    this.#budget = wantedBytes(options, reading);
    this.#most = mostWanted(options, reading.totalBytes);
    this.#shortAt = now;
  }

  /** Bytes. */
  get budget(): number {
    return this.#budget;
  }

  /**
   * What it may come to under these settings, in bytes: as long as they stay, so does this, however many engines there
   * are.
   */
  get most(): number {
    return this.#most;
  }

  /** Other settings hold at once. */
  configure(
    { maxBytes = this.#options.maxBytes, share = this.#options.share }: BudgetChange,
    reading: MemoryReading,
    now: number,
  ): void {
    this.#options = { maxBytes, share };
    this.#budget = wantedBytes(this.#options, reading);
    this.#most = mostWanted(this.#options, reading.totalBytes);
    this.#shortAt = now;
  }

  /** Whether the budget is another one now. */
  follow(reading: MemoryReading, now: number): boolean {
    const before = this.#budget;
    const wanted = wantedBytes(this.#options, reading);
    const most = mostShared(this.#options, reading);
    const isSettled = now - this.#loweredAt >= SETTLE_MS;
    // The last bit up to the most is worth it, however little.
    if (wanted <= before || (wanted < MORE * before && wanted < most)) this.#shortAt = now;
    // More engines than before: the most of all together is never exceeded.
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
 * The machine as it is now, beside a cache that takes so much. `process.availableMemory` honours a cgroup's limit and,
 * unlike
 * os.freemem on macOS, counts reclaimable pages; `process.constrainedMemory` is that limit, 0 or more than there is
 * without one.
 */
export function memoryReading(usedBytes: number): MemoryReading {
  const constrained = process.constrainedMemory();
  return {
    availableBytes: process.availableMemory(),
    totalBytes: Math.min(totalmem(), constrained || Number.POSITIVE_INFINITY),
    usedBytes,
  };
}

/**
 * As it is now. `processBytes` is of the whole process: with the thread transport, the extension host and what else
 * runs in it.
 */
export function memoryStats(): EngineStats['memory'] {
  return { processBytes: process.memoryUsage.rss(), totalBytes: totalmem(), availableBytes: process.availableMemory() };
}
