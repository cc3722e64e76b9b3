/**
 * Which blocks of a node one lossy block may replace, how many bytes the node takes then, and how many bytes are
 * reserved for that.
 * Pure. The same for stored nodes and for nodes on their way from the pool (KvStore.compress, KvStore.codedFrom).
 */

import type { KvShape } from '../kvRows.ts';
import { PAGE_SLOTS } from '../pool.ts';
import { BLOCK_TOKENS, exactBytesPerToken, type StoredRun } from '../storedBlocks.ts';
import type { RunPlace } from './codecs/codecFormat.ts';
import type { KvCodec } from './codecs/kvCodec.ts';
import type { Compression } from './compression.ts';
import { isExact, type Lossy } from './lossyRows.ts';

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
