/**
 * The registry of the approximate techniques sparse/, shifted/ and pruned/: makes those that the options ask for. Does
 * not decide when they run. CONTRIBUTING.md has a recipe for removing one.
 */
import type { PrefixState } from '../cachedPrefixes.ts';
import type { KvCache, KvCacheOptions } from '../kvCache.ts';
import type { KvShape } from '../kvRows.ts';
import { isShifted } from '../laneIds.ts';
import { NO_REUSE, type RowReuse } from './interfaces.ts';
import { exactBytesPerToken } from '../storedBlocks.ts';
import type { PoolBudget } from '../poolBudget.ts';
import type { Rotation } from './codecs/codecFormat.ts';
import { kernelBytes } from './codecs/kernels.ts';
import type { KvCodec } from './codecs/kvCodec.ts';
import { codecNamed, type CodecName, FORMATS } from './codecs/registry.ts';
import { settingCodecs, codingBytes, type Compression, levelsOf } from './compression.ts';
import type { MeasuringRunner } from './pruned/attentionMeter.ts';
import { H2O, KEPT_CODEC, keptBytesPerToken, KVZIP, type PruningName } from './pruned/keptRows.ts';
import { type Context, Pruning, type PruningOptions } from './pruned/pruning.ts';
import { ShiftedReuse, type ShiftKeys } from './shifted/shiftedReuse.ts';
import { sketchingBytes, SparseBudget } from './sparse/sparseBudget.ts';
import { SparseLeases, type SparseOptions } from './sparse/sparseLeases.ts';

/** Bytes that contexts longer than the pool need beside rows. */
export { sketchingBytes };

/** Without these options nothing is approximated. */
export interface ApproximationOptions extends SparseOptions, Pick<KvCacheOptions, 'compression' | 'spillFile'> {
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
  return Math.max(codingBytes(compression), spillFile ? sketchingBytes(shape) : 0, kernelBytes());
}

/**
 * Most tokens of a context that is read in parts, with nothing else in the cache. May be fewer than fit in the pool;
 * then such contexts are of no use. `diskBytes`, `prefillTokens`: see SparseBudget.
 */
export function longContextTokens(
  shape: KvShape,
  options: { budget: PoolBudget; diskBytes: number; prefillTokens: number },
): number {
  const { budget, diskBytes, prefillTokens } = options;
  const sparse = new SparseBudget({ budget, shape, storeBytesPerToken: exactBytesPerToken(shape), diskBytes });
  sparse.prefillTokens = prefillTokens;
  return sparse.capacity;
}

/** Whether a compression setting drops rows too. */
export function dropsRows(setting: string): boolean {
  return setting === KVZIP;
}

/** The codecs that a compression setting uses, mildest first. */
export function codecNames(setting: string): string[] {
  return dropsRows(setting) ? [KEPT_CODEC] : settingCodecs(setting);
}

/** The compression of a setting, with those of its codecs that may be used. Null: nothing is compressed. */
export function compressionOf(setting: string, codecs: readonly KvCodec[]): Compression | null {
  const levels = levelsOf(setting, codecs);
  return levels.length > 0 ? { levels, only: dropsRows(setting) ? 'kept' : null } : null;
}

/** A form that stored rows may have. */
export interface StoredForm {
  readonly codec: CodecName | PruningName;
  /** In the store, for a long context, with headers and shared scales. */
  readonly bytesPerToken: number;
  /** The compression that makes it. */
  readonly compression: Compression | null;
}

/** All forms of stored rows. `rotation`: of the model. */
export function storedForms(shape: KvShape, rotation: Rotation): StoredForm[] {
  const kept = codecNamed(KEPT_CODEC, shape, rotation);
  return [
    ...FORMATS.map(({ name }) => {
      const codec = codecNamed(name, shape, rotation);
      const bytesPerToken = codec.bytesPerToken(codec.format.blockTokens);
      return { codec: name, bytesPerToken, compression: compressionOf(name, [codec]) };
    }),
    ...([KVZIP, H2O] as const).map((name) => ({
      codec: name,
      bytesPerToken: keptBytesPerToken(kept, name),
      compression: compressionOf(KVZIP, [kept]),
    })),
  ];
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
