/**
 * Compression levels: which codec the store uses for a node, by how long it is unused and how full the budget is. Pure.
 *
 * A block that has been through a lossy codec is never compressed again, because only the loss of one pass is measured
 * with the model.
 * So a node keeps its codec as it gets older, and parts of one node may have different codecs.
 */
import { BLOCK_TOKENS, exactBytesPerToken, type StoredRun } from '../storedBlocks.ts';
import { kernelBytesWith } from './codecs/kernels.ts';
import type { KvCodec } from './codecs/kvCodec.ts';
import type { CodecName } from './codecs/registry.ts';
import { KEPT_CODEC, KVZIP } from './pruned/keptRows.ts';
import type { KvShape } from '../kvRows.ts';
import { PAGE_SLOTS } from '../pool.ts';
import type { RunPlace } from './codecs/codecFormat.ts';
import { isExact, type Lossy } from './lossyRows.ts';

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

/** Blocks [first, end) of a run, that is rows [from, to) of it. */
export interface BlockRange {
  readonly first: number;
  readonly end: number;
  readonly from: number;
  readonly to: number;
}

/** What is asked of a block here. */
type Sized = Pick<StoredRun['blocks'][number], 'numRows' | 'codec' | 'sketch'>;

/**
 * Those that one block of `codec` each may take the place of, first to last: none of their rows is lossy, and it would
 * be smaller. What
 * a codec keeps exactly, recent tokens say, would only become larger. `lossy`: of the run. Coding one leaves the others
 * as they are.
 */
export function* toCode(
  shape: KvShape,
  blocks: readonly Sized[],
  codec: KvCodec,
  { startIndex, contextEnd }: RunPlace,
  lossy: Lossy,
): Generator<BlockRange> {
  const rowBytes = exactBytesPerToken(shape);
  for (let first = 0, from = 0; first < blocks.length; ) {
    const most = codec.format.blockTokens;
    let [end, to] = [first, from];
    for (
      let block = blocks[end];
      block && to - from < most && block.codec === null && !block.sketch && isExact(lossy, to, to + block.numRows);
      block = blocks[++end]
    )
      to += block.numRows;
    if (
      to > from &&
      codec.encodedBytes(to - from, { startIndex: startIndex + from, contextEnd }) < (to - from) * rowBytes
    ) {
      yield { first, end, from, to };
      [first, from] = [end, to];
    } else from += blocks[first++]!.numRows;
  }
}

/** The first of them; null: there are none. */
export function nextToCode(
  shape: KvShape,
  { blocks }: StoredRun,
  codec: KvCodec,
  place: RunPlace,
  lossy: Lossy,
): BlockRange | null {
  return toCode(shape, blocks, codec, place, lossy).next().value ?? null;
}

/**
 * The first row of a run of the pool that `codec` makes smaller on its way into the store; null: there is none.
 * `lossy`: of the run.
 */
export function firstToCode(
  shape: KvShape,
  numRows: number,
  codec: KvCodec,
  place: RunPlace,
  lossy: Lossy,
): number | null {
  return toCode(shape, plainSizes(numRows), codec, place, lossy).next().value?.from ?? null;
}

/**
 * Bytes of a run that comes out of the pool into the store coded. `lossy`: of the run; what has been coded takes as
 * much as it did.
 */
export function codedBytes(shape: KvShape, numRows: number, codec: KvCodec, place: RunPlace, lossy: Lossy): number {
  const rowBytes = exactBytesPerToken(shape);
  let bytes = numRows * rowBytes;
  for (const { from, to } of toCode(shape, plainSizes(numRows), codec, place, lossy))
    bytes += codec.encodedBytes(to - from, { ...place, startIndex: place.startIndex + from }) - (to - from) * rowBytes;
  return bytes;
}

/** Of the blocks that so many rows of the pool would be in the store. */
function plainSizes(numRows: number): Sized[] {
  return Array.from({ length: Math.ceil(numRows / BLOCK_TOKENS) }, (_, i) => ({
    numRows: Math.min(BLOCK_TOKENS, numRows - i * BLOCK_TOKENS),
    codec: null,
  }));
}

/**
 * Bytes that are kept free where blocks of all rows are compressed, for a page of the pool that is coded before it is
 * given back: it
 * takes no more than its rows, whatever contexts begin and end in it. Where the budget has no two pages beside them,
 * fewer are (see PoolBudget).
 */
export function codingReserve(compression: Compression | null, shape: KvShape): number {
  return compression?.only === null ? PAGE_SLOTS * exactBytesPerToken(shape) : 0;
}
