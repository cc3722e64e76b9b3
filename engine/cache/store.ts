/**
 * The KV store: runs of tokens outside the window, in blocks of host memory. Owns the bytes and their accounting; which run
 * belongs to which tokens is the prefix tree's business, when to store, compress or drop is KvMemory's.
 * A run comes in losslessly and may be compressed later, block by block. Blocks keep a split cheap: it copies at most one.
 * A block says how its bytes are read; what its rows have been through is the run's to say (lossyRows.ts).
 */
import type { RunPlace } from './codecs/codecFormat.ts';
import type { KvCodec } from './codecs/kvCodec.ts';
import type { Compression } from './compression.ts';
import type { SpillFailure, SpillFile } from './disk/spillFile.ts';
import { arraysOf, copyTokens, joinRows, type KvRows, type KvShape, newKvRows, rowsFromBytes, rowsToBytes, sliceRows } from './kvRows.ts';
import { sketchKeys } from './keySketch.ts';
import { isExact, joinLossy, type Lossy } from './lossyRows.ts';
import type { KvWindow } from './window.ts';

/** Tokens per block; the last block of a run, and blocks beside a split, may be shorter, compressed ones longer. */
export const BLOCK_TOKENS = 32;

/** Tokens that are stored together. */
export interface StoredBlock {
  readonly numTokens: number;
  /** Fewer than tokens where some were let go (see keptRows). */
  readonly numRows: number;
  /** Of the rows, in their context, where not all of them are there; otherwise null: they stand side by side. */
  readonly positions: Int32Array | null;
  readonly bytes: number;
  /** What its rows are coded with; null: they are as the window had them. */
  readonly codec: KvCodec | null;
  /** Encoded by `codec`; null where that is null. */
  readonly encoded: Uint8Array | null;
  /** Of its keys (see keySketch), where that is all of it that is in memory. */
  readonly sketch?: Uint8Array;
  /** Gives back what it has elsewhere. */
  free?(): void;
  /** Its rows, decoded where need be; not to be changed. */
  rows(): KvRows;
}

/** A handle to stored rows; what is in its blocks concerns only the store. */
export interface StoredRun {
  readonly numTokens: number;
  readonly numRows: number;
  readonly bytes: number;
  readonly blocks: readonly StoredBlock[];
}

/** Rows as they are, whatever they have been through. */
export function plainBlock(rows: KvRows): StoredBlock {
  return { numTokens: rows.numTokens, numRows: rows.numTokens, positions: null, bytes: bytesOf(rows), codec: null, encoded: null, rows: () => rows };
}

/** Blocks of the usual length. */
export function plainBlocks(shape: KvShape, rows: KvRows): StoredBlock[] {
  return Array.from({ length: Math.ceil(rows.numTokens / BLOCK_TOKENS) }, (_, i) => plainBlock(sliceRows(shape, rows, i * BLOCK_TOKENS, Math.min(rows.numTokens, (i + 1) * BLOCK_TOKENS))));
}

/** @param rows what is left of so many tokens, at these positions of their context. The last block stands for the tokens that have none. */
export function keptBlocks(shape: KvShape, rows: KvRows, positions: Int32Array, numTokens: number): StoredBlock[] {
  const blocks: StoredBlock[] = [];
  for (let from = 0; from < positions.length; from += BLOCK_TOKENS) {
    const to = Math.min(positions.length, from + BLOCK_TOKENS);
    blocks.push(keptBlock(sliceRows(shape, rows, from, to), positions.slice(from, to), to === positions.length ? numTokens - from : to - from));
  }
  return blocks;
}

function keptBlock(rows: KvRows, positions: Int32Array, numTokens: number): StoredBlock {
  return { numTokens, numRows: rows.numTokens, positions, bytes: bytesOf(rows) + positions.byteLength, codec: null, encoded: null, rows: () => rows };
}

function bytesOf(rows: KvRows): number {
  return arraysOf(rows).reduce((bytes, { byteLength }) => bytes + byteLength, 0);
}

/** @param encoded a run that this codec has encoded, of so many tokens. @param positions of its rows, where those are fewer. */
export function codedBlock(codec: KvCodec, encoded: Uint8Array, numTokens: number, positions: Int32Array | null = null): StoredBlock {
  const rows = (): KvRows => codec.decode(encoded).rows;
  return { numTokens, numRows: positions?.length ?? numTokens, positions, bytes: encoded.length + (positions?.byteLength ?? 0), codec, encoded, rows };
}

export function runOf(blocks: readonly StoredBlock[]): StoredRun {
  let [numTokens, numRows, bytes] = [0, 0, 0];
  for (const block of blocks) {
    numTokens += block.numTokens;
    numRows += block.numRows;
    bytes += block.bytes;
  }
  return { numTokens, numRows, bytes, blocks };
}

/** Blocks [first, end) of a run, that is rows [from, to) of it. */
interface BlockRange {
  readonly first: number;
  readonly end: number;
  readonly from: number;
  readonly to: number;
}

/**
 * PURE: the next blocks of a run that one of `codec` may take the place of: none of their rows is lossy, and it would be smaller. What
 * a codec keeps exactly, recent tokens say, would only become larger. null: there are none. `lossy`: of the run.
 */
export function nextToCode(shape: KvShape, { blocks }: StoredRun, codec: KvCodec, { startIndex, contextEnd }: RunPlace, lossy: Lossy): BlockRange | null {
  const rowBytes = exactBytesPerToken(shape);
  for (let first = 0, from = 0; first < blocks.length; from += blocks[first++]!.numRows) {
    // Where rows are missing, each block has positions of its own.
    const most = blocks[first]!.positions ? 1 : codec.format.blockTokens;
    let [end, to] = [first, from];
    for (let block = blocks[end]; block && to - from < most && block.codec === null && !block.sketch && isExact(lossy, to, to + block.numRows); block = blocks[++end]) to += block.numRows;
    if (to > from && codec.encodedBytes(to - from, { startIndex: startIndex + from, contextEnd }) < (to - from) * rowBytes) return { first, end, from, to };
  }
  return null;
}

/** In the store, as computed. */
export function exactBytesPerToken(shape: KvShape): number {
  return plainBlock(newKvRows(shape, 1)).bytes;
}

/** Bytes that are kept free where blocks of all rows are compressed: what splitting one, of the codec with the largest, may take beyond what it took. */
export function splitReserve(compression: Compression | null, shape: KvShape): number {
  if (!compression || compression.only !== null) return 0;
  return Math.max(...compression.rungs.map(({ codec }) => codec.format.blockTokens)) * exactBytesPerToken(shape);
}

export class KvStore {
  readonly #shape: KvShape;
  readonly #spillFile: SpillFile | null;
  /** Bytes in memory of all stored runs. */
  bytes = 0;
  /** Of what has not been compressed; of a row whose position is stored with it. */
  readonly bytesPerToken: number;
  readonly bytesPerKeptRow: number;

  /** @param spillFile where blocks go that are not even to be in memory; null: nowhere */
  constructor(shape: KvShape, spillFile: SpillFile | null = null) {
    this.#shape = shape;
    this.#spillFile = spillFile;
    this.bytesPerToken = exactBytesPerToken(shape);
    this.bytesPerKeptRow = this.bytesPerToken + Int32Array.BYTES_PER_ELEMENT;
  }

  /** Copies the rows of `slots` out of the window. */
  put(window: KvWindow, slots: Int32Array): StoredRun {
    const blocks: StoredBlock[] = [];
    for (let at = 0; at < slots.length; at += BLOCK_TOKENS) blocks.push(plainBlock(window.read(slots.subarray(at, at + BLOCK_TOKENS))));
    return this.add(blocks);
  }

  /** Takes blocks over that come from elsewhere. */
  add(blocks: readonly StoredBlock[]): StoredRun {
    const run = runOf(blocks);
    this.bytes += run.bytes;
    return run;
  }

  /** The same of a run of so many tokens that has fewer rows. */
  putKept(window: KvWindow, slots: Int32Array, numTokens: number): StoredRun {
    return this.add(keptBlocks(this.#shape, window.read(slots), window.positionsOf(slots), numTokens));
  }

  /** Copies a run's rows into `slots`; its first token stands at position `startIndex`. The run stays. */
  copyTo(window: KvWindow, run: StoredRun, slots: Int32Array, startIndex: number): void {
    let at = 0;
    for (const block of run.blocks) {
      window.write(slots.subarray(at, at + block.numRows), block.rows(), 0, block.positions ?? startIndex + at);
      at += block.numRows;
    }
  }

  /** Rows [from, to) of a run, a copy. */
  read(run: StoredRun, from: number, to: number): KvRows {
    const rows = newKvRows(this.#shape, to - from);
    let start = 0;
    for (const block of run.blocks) {
      const [first, last] = [Math.max(0, from - start), Math.min(block.numTokens, to - start)];
      if (first < last) copyTokens(this.#shape, block.rows(), first, last, rows, Math.max(0, start - from));
      start += block.numTokens;
    }
    return rows;
  }

  /**
   * The first `at` tokens and the rest; `run` is void afterwards. The two halves of a compressed block keep the rows that it has
   * now, uncompressed.
   */
  split(run: StoredRun, at: number): [StoredRun, StoredRun] {
    const upper: StoredBlock[] = [];
    const lower: StoredBlock[] = [];
    let start = 0;
    for (const block of run.blocks) {
      const cut = Math.max(0, Math.min(block.numTokens, at - start));
      if (cut === block.numTokens) upper.push(block);
      else if (cut === 0) lower.push(block);
      else {
        const rows = block.rows();
        const half = (from: number, to: number): StoredBlock => plainBlock(sliceRows(this.#shape, rows, from, to));
        const halves = [half(0, cut), half(cut, block.numTokens)] as const;
        const [first, second] = block.sketch ? halves.map((half) => this.#spilled(half) ?? half) : halves;
        upper.push(first!);
        lower.push(second!);
        block.free?.();
      }
      start += block.numTokens;
    }
    const runs = [runOf(upper), runOf(lower)] as [StoredRun, StoredRun];
    this.bytes += runs[0].bytes + runs[1].bytes - run.bytes;
    return runs;
  }

  /** A run with its next blocks as one of `codec` (see nextToCode), and which of its rows are lossy then; null: it has none. `run` is void afterwards. */
  compress(run: StoredRun, codec: KvCodec, place: RunPlace, lossy: Lossy): { run: StoredRun; lossy: Lossy } | null {
    const range = nextToCode(this.#shape, run, codec, place, lossy);
    if (!range) return null;
    const { first, end, from } = range;
    const blocks = run.blocks.slice(first, end);
    const rows = joinRows(this.#shape, blocks.map((block) => block.rows()));
    const at = { ...place, startIndex: place.startIndex + from };
    const coded = codedBlock(codec, codec.encode(rows, at), runOf(blocks).numTokens, blocks[0]!.positions);
    const compressed = runOf([...run.blocks.slice(0, first), coded, ...run.blocks.slice(end)]);
    this.bytes += compressed.bytes - run.bytes;
    const [firstCoded, endCoded] = codec.codedTokens(rows.numTokens, at);
    return { run: compressed, lossy: joinLossy(lossy, [{ from: from + firstCoded, to: from + endCoded, codec: codec.name }]) };
  }

  /** Blocks that are out of memory in the place of these, taken one by one, but for a sketch of the keys; null where the disk has no room. */
  spill(blocks: Iterable<StoredBlock>): StoredRun | null {
    const spilled: StoredBlock[] = [];
    const mine: StoredBlock[] = [];
    for (const block of blocks) {
      const next = block.sketch ? block : this.#spilled(block);
      if (!next) {
        for (const each of mine) each.free!();
        return null;
      }
      if (next !== block) mine.push(next);
      spilled.push(next);
    }
    return runOf(spilled);
  }

  /** Why `spill` has given null last. */
  get spillFailure(): SpillFailure | null {
    return this.#spillFile?.failure ?? null;
  }

  /** One run in the place of another. */
  replace(run: StoredRun | null, by: StoredRun): void {
    this.bytes += by.bytes - (run?.bytes ?? 0);
  }

  #spilled({ numTokens, numRows, positions, codec, ...block }: StoredBlock): StoredBlock | null {
    const [shape, file] = [this.#shape, this.#spillFile!];
    const rows = block.rows();
    const piece = file.put(block.encoded ?? rowsToBytes(rows));
    if (!piece) return null;
    const sketch = sketchKeys(shape, rows);
    const read = (): KvRows => (codec ? codec.decode(file.read(piece)).rows : rowsFromBytes(shape, numRows, file.read(piece)));
    return { numTokens, numRows, positions, codec, encoded: null, sketch, bytes: sketch.length + (positions?.byteLength ?? 0), rows: read, free: () => file.free(piece) };
  }

  /** Tokens of the longest beginning of a run that is whole blocks and at most `at` tokens. */
  wholeBlocks(run: StoredRun, at: number): number {
    let numTokens = 0;
    for (const block of run.blocks) {
      if (numTokens + block.numTokens > at) break;
      numTokens += block.numTokens;
    }
    return numTokens;
  }

  drop(run: StoredRun): void {
    for (const block of run.blocks) block.free?.();
    this.bytes -= run.bytes;
  }
}
