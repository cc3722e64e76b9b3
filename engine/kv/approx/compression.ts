/**
 * Compression levels: which codec the store uses for a node, by how long it is unused and how full the budget is. Pure.
 *
 * A block that has been through a lossy codec is never compressed again, because only the loss of one pass is measured
 * with the model.
 * So a node keeps its codec as it gets older, and parts of one node may have different codecs.
 */
import { BLOCK_TOKENS } from '../storedBlocks.ts';
import { kernelBytesWith } from './codecs/kernels.ts';
import type { KvCodec } from './codecs/kvCodec.ts';
import type { CodecName } from './codecs/registry.ts';
import { KEPT_CODEC, KVZIP } from './pruned/keptRows.ts';

export interface CompressionLevel {
  /** Lossy. */
  readonly codec: KvCodec;
  /** Of runs that nobody has used for so long, in ms. */
  readonly idleMs: number;
  /** Share of the budget that must be taken, 0..1. */
  readonly fullness: number;
}

export interface Compression {
  /** Mildest first; not empty. */
  readonly levels: readonly CompressionLevel[];
  /** Only what is left of runs that rows have been let go of; null: everything. */
  readonly only: 'kept' | null;
}

const MINUTE = 60_000;
/** The setting that chooses by age and fullness. */
const AUTO = 'auto';
/**
 * Of `auto`. turboquant is four tenths smaller than 4 bits and diverges twice as much, so it is for what is hardly read
 * again: a file
 * left for half an hour is come back to seven times more rarely than one left for five to ten minutes, one left for ten
 * to thirty
 * minutes twice (test/bench/eviction/returns.ts, days of the model of behaviour). Nearly full, runs are about to be
 * dropped, and
 * to compute them again costs more than any codec: then ten minutes are enough.
 */
const AUTO_LEVELS: readonly (Omit<CompressionLevel, 'codec'> & { name: CodecName })[] = [
  { name: 'int4-kivi', idleMs: 5 * MINUTE, fullness: 0.75 },
  { name: 'turboquant', idleMs: 30 * MINUTE, fullness: 0.75 },
  { name: 'turboquant', idleMs: 10 * MINUTE, fullness: 0.9 },
];
/** Of a codec that is asked for by name. */
const ALWAYS = { idleMs: MINUTE, fullness: 0 };

/** The codecs that a setting may use, mildest first. */
export function codecNames(setting: string): string[] {
  if (setting === AUTO) return [...new Set(AUTO_LEVELS.map(({ name }) => name))];
  return [setting === KVZIP ? KEPT_CODEC : setting];
}

/** What is meant by a setting with those of its codecs that may be used; null: nothing is coded. */
export function compressionOf(setting: string, codecs: readonly KvCodec[]): Compression | null {
  const lossy = codecs.filter(({ lossless }) => !lossless);
  const levels =
    setting === AUTO
      ? AUTO_LEVELS.flatMap(({ name, ...when }) =>
          lossy.filter((codec) => codec.name === name).map((codec) => ({ codec, ...when })),
        )
      : lossy.map((codec) => ({ codec, ...ALWAYS }));
  return levels.length > 0 ? { levels, only: setting === KVZIP ? 'kept' : null } : null;
}

/**
 * The last level that is for a run which nobody has used for so long, with such a share of the budget taken; null: it
 * stays as it is.
 */
export function levelFor(
  levels: readonly CompressionLevel[],
  idleMs: number,
  fullness: number,
): CompressionLevel | null {
  return levels.findLast((level) => idleMs >= level.idleMs && fullness >= level.fullness) ?? null;
}

/**
 * PURE: how much of the kernels' memory (codecs/kernels.ts) a cache comes to use. That memory never becomes smaller, so
 * what it
 * comes to is kept free for it under the budget, as the prefill lane's scratch is.
 */

/** For coding what the store has, and decoding it again. */
export function codingBytes(compression: Compression | null): number {
  const codecs = compression?.levels.map(({ codec }) => codec) ?? [];
  // As many of the store's blocks as it takes for one of a codec's. The last may reach beyond it, and be what a cut has
  // left of a coded one.
  const mostTokens = 2 * Math.max(0, ...codecs.map(({ format }) => format.blockTokens)) + BLOCK_TOKENS;
  return kernelBytesWith(Math.max(0, ...codecs.map((codec) => codec.kernelBytes(mostTokens))));
}
