/**
 * Compression: which codec a node gets, by its age and by how full the budget is, which blocks one coded block
 * replaces, and how many bytes that takes. Pure; does not compress.
 */
import { BLOCK_TOKENS, exactBytesPerToken, type StoredRun, isExact, type Lossy } from '../storedBlocks.ts';
import { kernelBytesWith } from './codecs/kernels.ts';
import type { KvCodec } from './codecs/kvCodec.ts';
import type { CodecName } from './codecs/registry.ts';
import type { KvShape } from '../kvRows.ts';
import { PAGE_SLOTS } from '../pool.ts';
import type { RunPlace } from './codecs/codecFormat.ts';

/*
 * Lossy rows are never compressed again, because the loss is measured for one pass only. So a node keeps its codec as
 * it gets older, and parts of one node may have different codecs.
 */

export interface CompressionLevel {
  /** A lossy codec. */
  readonly codec: KvCodec;
  /** For nodes that were not used for so long, in ms. */
  readonly idleMs: number;
  /** Share of the budget that must be in use, 0..1. */
  readonly fullness: number;
}

export interface Compression {
  /** Mildest first; not empty. */
  readonly levels: readonly CompressionLevel[];
  /** 'kept': only what is left of pruned nodes is compressed. Null: all nodes. */
  readonly only: 'kept' | null;
}

const MINUTE = 60_000;
/** The setting that chooses by age and fullness. */
const AUTO = 'auto';
/**
 * Levels of `auto`. turboquant is smaller than 4 bits and loses more (docs/compression.md), so it is for nodes that are
 * rarely used again: a file that was left for half an hour is used again seven times more rarely than one left for five
 * to ten minutes, one left for ten to thirty minutes twice as rarely (test/bench/eviction/returns.ts, days of the
 * behaviour model). When memory is nearly full, nodes are about to be dropped, and computing them again costs more than
 * any codec, so ten minutes are enough.
 */
const AUTO_LEVELS: readonly (Omit<CompressionLevel, 'codec'> & { name: CodecName })[] = [
  { name: 'int4-kivi', idleMs: 5 * MINUTE, fullness: 0.75 },
  { name: 'turboquant', idleMs: 30 * MINUTE, fullness: 0.75 },
  { name: 'turboquant', idleMs: 10 * MINUTE, fullness: 0.9 },
];
/** Level of a codec that the setting names. */
const ALWAYS = { idleMs: MINUTE, fullness: 0 };

/** The codecs of a setting, mildest first: those of `auto`, or the one that it names. */
export function settingCodecs(setting: string): string[] {
  return setting === AUTO ? [...new Set(AUTO_LEVELS.map(({ name }) => name))] : [setting];
}

/** The levels of a setting, mildest first, with those of its codecs that may be used. */
export function levelsOf(setting: string, codecs: readonly KvCodec[]): CompressionLevel[] {
  const lossy = codecs.filter(({ lossless }) => !lossless);
  if (setting !== AUTO) return lossy.map((codec) => ({ codec, ...ALWAYS }));
  return AUTO_LEVELS.flatMap(({ name, ...when }) =>
    lossy.filter((codec) => codec.name === name).map((codec) => ({ codec, ...when })),
  );
}

/**
 * The hardest level for a node that was not used for so long, with such a share of the budget in use. Null: the node is
 * not compressed.
 */
export function levelFor(
  levels: readonly CompressionLevel[],
  idleMs: number,
  fullness: number,
): CompressionLevel | null {
  return levels.findLast((level) => idleMs >= level.idleMs && fullness >= level.fullness) ?? null;
}

/**
 * Bytes of the kernels' memory (codecs/kernels.ts) that compressing stored rows and decoding them takes. That memory
 * never shrinks, so the budget keeps these bytes free.
 */
export function codingBytes(compression: Compression | null): number {
  const codecs = compression?.levels.map(({ codec }) => codec) ?? [];
  // The most tokens of one coded block: as many blocks of the store as make a block of the codec. The last of them may
  // be longer, when it is a part of a coded block that was cut.
  const mostTokens = 2 * Math.max(0, ...codecs.map(({ format }) => format.blockTokens)) + BLOCK_TOKENS;
  return kernelBytesWith(Math.max(0, ...codecs.map((codec) => codec.kernelBytes(mostTokens))));
}

/** Blocks [first, end) of a run with rows [from, to). */
export interface BlockRange {
  readonly first: number;
  readonly end: number;
  readonly from: number;
  readonly to: number;
}

/** What is needed of a block here. */
type Sized = Pick<StoredRun['blocks'][number], 'numRows' | 'codec' | 'sketch'>;

/**
 * The ranges of blocks that one block of `codec` each can replace, in order: exact rows that get smaller. What a codec
 * keeps exactly, recent tokens for example, would get larger. Compressing one range does not change the others.
 * `lossy`: of the run.
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

/** The first such range. Null: there is none. */
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
 * The first row of a run in the pool that gets smaller when it leaves compressed. Null: none does. `lossy`: of the run.
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
 * Bytes in the store of a run that leaves the pool compressed. Lossy rows are not compressed again. `lossy`: of the
 * run.
 */
export function codedBytes(shape: KvShape, numRows: number, codec: KvCodec, place: RunPlace, lossy: Lossy): number {
  const rowBytes = exactBytesPerToken(shape);
  let bytes = numRows * rowBytes;
  for (const { from, to } of toCode(shape, plainSizes(numRows), codec, place, lossy))
    bytes += codec.encodedBytes(to - from, { ...place, startIndex: place.startIndex + from }) - (to - from) * rowBytes;
  return bytes;
}

/** The blocks that so many rows of the pool would be in the store. */
function plainSizes(numRows: number): Sized[] {
  return Array.from({ length: Math.ceil(numRows / BLOCK_TOKENS) }, (_, i) => ({
    numRows: Math.min(BLOCK_TOKENS, numRows - i * BLOCK_TOKENS),
    codec: null,
  }));
}

/**
 * Bytes that are kept free where all nodes are compressed: a page of the pool is compressed before it is freed. It
 * takes no more bytes than its exact rows, however many contexts are in it. A budget without space for two more pages
 * keeps fewer free (see PoolBudget).
 */
export function codingReserve(compression: Compression | null, shape: KvShape): number {
  return compression?.only === null ? PAGE_SLOTS * exactBytesPerToken(shape) : 0;
}
