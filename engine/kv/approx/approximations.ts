/**
 * The registry of the approximate techniques: makes those that the options ask for. To remove a technique, delete its
 * folder and its lines here. Does not decide when they run; that is up to engine and scheduler.
 */
import type { PrefixState } from '../cachedPrefixes.ts';
import type { KvCache, KvCacheOptions } from '../kvCache.ts';
import type { KvShape } from '../kvRows.ts';
import { isShifted } from '../laneIds.ts';
import { NO_REUSE, type RowReuse } from './approximation.ts';
import { kernelBytes } from './codecs/kernels.ts';
import { codingBytes } from './compression.ts';
import type { MeasuringRunner } from './pruned/attentionMeter.ts';
import { type Context, Pruning, type PruningOptions } from './pruned/pruning.ts';
import { ShiftedReuse } from './shifted/shiftedReuse.ts';
import type { ShiftKeys } from './shifted/shiftedRuns.ts';
import { canSketch } from './sparse/keySketch.ts';
import { sketchingBytes } from './sparse/sparseBudget.ts';
import { SparseLeases, type SparseOptions } from './sparse/sparseLeases.ts';

/** Without these options nothing is approximated. */
export interface ApproximationOptions extends SparseOptions, Pick<KvCacheOptions, 'compression'> {
  /** Drops rows that receive little attention, of contexts that were not used for a while. */
  pruning?: PruningOptions | null;
  /** Whether a request may take over rows of an older version of its text. */
  reuseShifted?: boolean;
}

/** What the techniques need of the model. */
interface Runner extends MeasuringRunner {
  shiftKeys?: ShiftKeys;
}

/** The options that the cache needs. */
export function cacheOptions(options: ApproximationOptions): Partial<KvCacheOptions> {
  const { compression, spillFile, pruning } = options;
  return {
    compression,
    spillFile,
    longContexts: (memory) => new SparseLeases(memory, options),
    staleMs: pruning?.idleMs,
  };
}

/** Most bytes that the techniques need beside rows: the memory of the codecs' kernels, which never shrinks. */
export function reservedBytes({ compression = null, spillFile = null }: ApproximationOptions, shape: KvShape): number {
  // Other models of this thread may have needed more already.
  return Math.max(codingBytes(compression), spillFile && canSketch(shape) ? sketchingBytes(shape) : 0, kernelBytes());
}

/** How many of the first `n` tokens have rows that were taken over. */
export function numTakenOver(cacheIds: readonly number[], n: number): number {
  let count = 0;
  for (let i = 0; i < n; i++) if (isShifted(cacheIds[i]!)) count++;
  return count;
}

export class Approximations {
  readonly reuse: RowReuse;
  readonly #cache: KvCache;
  readonly #shape: KvShape;
  readonly #pruning: Pruning | null;

  constructor(
    { pruning, reuseShifted }: ApproximationOptions,
    parts: { cache: KvCache; runner: Runner; shape: KvShape; maxContext: number; clock: () => number },
  ) {
    const { cache, runner, shape } = parts;
    this.#cache = cache;
    this.#shape = shape;
    this.#pruning = pruning ? new Pruning(pruning, parts) : null;
    const shiftKeys = reuseShifted ? runner.shiftKeys?.bind(runner) : undefined;
    this.reuse = shiftKeys ? new ShiftedReuse(cache, shiftKeys) : NO_REUSE;
  }

  /** Bytes beside rows that the techniques use now. */
  get bytes(): number {
    return kernelBytes() + this.#cache.memory.budget.borrowed;
  }

  /**
   * A small part of the idle maintenance: compresses or prunes what was not used for a while. No step may run
   * meanwhile. Ends soon after `mustEnd` is true. Returns false when there is nothing to do.
   */
  async maintain(contexts: () => readonly Context[], mustEnd: () => boolean): Promise<boolean> {
    // Compression works on the store only. Contexts that are being measured stay in the pool, because they are read
    // there.
    return this.#cache.compression.compress() || ((await this.#pruning?.step(contexts(), mustEnd)) ?? false);
  }

  /** Cancels maintenance that has begun, and frees its memory. */
  cancel(): void {
    this.#pruning?.drop();
  }

  /** What is cached of a prefix, and what its rows have been through. */
  describe(cacheIds: readonly number[]): PrefixState & { shiftedTokens: number } {
    const found = this.#cache.prefixes.describe(cacheIds);
    return {
      ...found,
      codecs: found.codecs.length > 0 ? found.codecs : [this.#shape.kv],
      shiftedTokens: this.reuse.numStandingIn(cacheIds),
    };
  }

  /** Counters for EngineStats. */
  stats(): { promptShifted: number } {
    return { promptShifted: this.reuse.numTokens };
  }
}
