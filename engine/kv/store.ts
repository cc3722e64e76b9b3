/**
 * The KV store: rows outside the pool, in blocks of host memory. Owns and counts the bytes, compresses and spills
 * blocks. Does not know tokens, and does not decide when to store, compress or drop.
 */
import type { RunPlace } from './approx/codecs/codecFormat.ts';
import type { KvCodec } from './approx/codecs/kvCodec.ts';
import {
  joinLossy,
  type Lossy,
  BLOCK_TOKENS,
  codedBlock,
  exactBytesPerToken,
  keptBlocks,
  partOf,
  plainBlock,
  runOf,
  type StoredBlock,
  type StoredRun,
  wholeOf,
} from './storedBlocks.ts';
import { type BlockRange, nextToCode, toCode } from './approx/compression.ts';
import type { SpillFailure, SpillFile } from './disk/spillFile.ts';
import { copyTokens, joinRows, type KvRows, type KvShape, newKvRows, rowsFromBytes, rowsToBytes } from './kvRows.ts';
import type { KvPool } from './pool.ts';

/** A run, and which of its rows have been through a lossy codec. */
interface Coded {
  readonly run: StoredRun;
  readonly lossy: Lossy;
}

export class KvStore {
  readonly #shape: KvShape;
  readonly #spillFile: SpillFile | null;
  /** Bytes in memory of all stored runs. */
  bytes = 0;
  /** How many runs contain each block, or a part of it. */
  readonly #uses = new Map<StoredBlock, number>();
  /** Bytes of a row that is not compressed, without and with its stored position. */
  readonly bytesPerToken: number;
  readonly bytesPerKeptRow: number;

  /** `spillFile`: where `spill` writes blocks. Null: `spill` must not be called. */
  constructor(shape: KvShape, spillFile: SpillFile | null = null) {
    this.#shape = shape;
    this.#spillFile = spillFile;
    this.bytesPerToken = exactBytesPerToken(shape);
    this.bytesPerKeptRow = this.bytesPerToken + Int32Array.BYTES_PER_ELEMENT;
  }

  /** Copies the rows of `slots` from the pool, as exact blocks. */
  put(pool: KvPool, slots: Int32Array): StoredRun {
    return this.add(this.#blocksIn(pool, slots).map((block) => plainBlock(block.rows())));
  }

  /**
   * Copies the rows of `slots` from the pool and compresses them, as `compress` does for stored rows. Once they are
   * added, they take `codedBytes(..)` bytes. `lossy`: of the rows, before and after.
   */
  codedFrom(
    pool: KvPool,
    slots: Int32Array,
    codec: KvCodec,
    place: RunPlace,
    lossy: Lossy,
  ): { blocks: StoredBlock[]; lossy: Lossy } {
    const rows = this.#blocksIn(pool, slots);
    const blocks: StoredBlock[] = [];
    const coded: Lossy[number][] = [];
    let rest = 0;
    for (const range of toCode(this.#shape, rows, codec, place, lossy)) {
      const next = this.#coded(rows, range, codec, place);
      blocks.push(...rows.slice(rest, range.first).map((block) => plainBlock(block.rows())), next.block);
      coded.push(next.lossy);
      rest = range.end;
    }
    blocks.push(...rows.slice(rest).map((block) => plainBlock(block.rows())));
    return { blocks, lossy: joinLossy(lossy, coded) };
  }

  /** Makes a run of these blocks. The store owns them until the run is dropped. */
  add(blocks: readonly StoredBlock[]): StoredRun {
    this.#exchange([], blocks);
    return runOf(blocks);
  }

  /** Copies the rows of a pruned run with so many tokens from the pool. */
  putKept(pool: KvPool, slots: Int32Array, numTokens: number): StoredRun {
    return this.add(keptBlocks(this.#shape, pool.read(slots), pool.positionsOf(slots), numTokens));
  }

  /** Copies a run's rows into `slots`. `startIndex`: position of its first token. The run stays. */
  copyTo(pool: KvPool, run: StoredRun, slots: Int32Array, startIndex: number): void {
    let at = 0;
    for (const block of run.blocks) {
      pool.write(slots.subarray(at, at + block.numRows), block.rows(), 0, block.positions ?? startIndex + at);
      at += block.numRows;
    }
  }

  /** A copy of rows [from, to) of a run. */
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
   * Splits a run after `at` tokens; `run` becomes invalid. The parts take no more bytes than the run, and nothing is
   * read for them (see partOf).
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
        upper.push(partOf(this.#shape, block, 0, cut));
        lower.push(partOf(this.#shape, block, cut, block.numTokens));
      }
      start += block.numTokens;
    }
    this.#exchange(run.blocks, [...upper, ...lower]);
    return [runOf(upper), runOf(lower)];
  }

  /**
   * Compresses the next blocks of a run (see nextToCode) into one block of `codec`; `run` becomes invalid. Null when
   * there are no such blocks.
   */
  compress(run: StoredRun, codec: KvCodec, place: RunPlace, lossy: Lossy): Coded | null {
    const range = nextToCode(this.#shape, run, codec, place, lossy);
    if (!range) return null;
    const coded = this.#coded(run.blocks, range, codec, place);
    const compressed = [...run.blocks.slice(0, range.first), coded.block, ...run.blocks.slice(range.end)];
    return { run: this.replace(run, compressed), lossy: joinLossy(lossy, [coded.lossy]) };
  }

  /** One block of `codec` with the rows of these blocks, and which rows of the run it makes lossy. */
  #coded(
    all: readonly StoredBlock[],
    { first, end, from }: BlockRange,
    codec: KvCodec,
    place: RunPlace,
  ): { block: StoredBlock; lossy: Lossy[number] } {
    const blocks = all.slice(first, end);
    const rows = joinRows(
      this.#shape,
      blocks.map((block) => block.rows()),
    );
    const positions = blocks[0]!.positions && Int32Array.from(blocks.flatMap((block) => [...block.positions!]));
    const at = { ...place, startIndex: place.startIndex + from, positions };
    const [firstCoded, endCoded] = codec.codedTokens(rows.numTokens, at);
    return {
      block: codedBlock(codec, codec.encode(rows, at), runOf(blocks).numTokens, positions),
      lossy: { from: from + firstCoded, to: from + endCoded, codec: codec.name },
    };
  }

  /** Blocks whose rows are read from the pool on demand. */
  #blocksIn(pool: KvPool, slots: Int32Array): StoredBlock[] {
    return Array.from({ length: Math.ceil(slots.length / BLOCK_TOKENS) }, (_, i) => {
      const own = slots.subarray(i * BLOCK_TOKENS, (i + 1) * BLOCK_TOKENS);
      const { length } = own;
      return {
        numTokens: length,
        numRows: length,
        positions: null,
        bytes: length * this.bytesPerToken,
        codec: null,
        encoded: null,
        rows: () => pool.read(own),
      };
    });
  }

  /**
   * Moves blocks, taken one by one, to the spill file and returns what replaces them. Only what `sketchOf` makes of
   * their rows stays in memory. Null when the file has no space.
   */
  spill(blocks: Iterable<StoredBlock>, sketchOf: (rows: KvRows) => Uint8Array): StoredBlock[] | null {
    const spilled: StoredBlock[] = [];
    const mine: StoredBlock[] = [];
    for (const block of blocks) {
      const next = block.sketch ? block : this.#spilled(block, sketchOf);
      if (!next) {
        for (const each of mine) each.free!();
        return null;
      }
      if (next !== block) mine.push(next);
      spilled.push(next);
    }
    return spilled;
  }

  /** Why the last `spill` returned null. */
  get spillFailure(): SpillFailure | null {
    return this.#spillFile?.failure ?? null;
  }

  /** Makes a run of these blocks and drops another one. Both may have blocks in common. */
  replace(run: StoredRun | null, by: readonly StoredBlock[]): StoredRun {
    this.#exchange(run?.blocks ?? [], by);
    return runOf(by);
  }

  #spilled(
    { numTokens, numRows, positions, codec, encoded, ...block }: StoredBlock,
    sketchOf: (rows: KvRows) => Uint8Array,
  ): StoredBlock | null {
    const [shape, file] = [this.#shape, this.#spillFile!];
    const rows = block.rows();
    const piece = file.put(encoded ?? rowsToBytes(rows));
    if (!piece) return null;
    const sketch = sketchOf(rows);
    const read = (): KvRows =>
      encoded ? codec!.decode(file.read(piece), positions).rows : rowsFromBytes(shape, numRows, file.read(piece));
    // A part of a compressed block is spilled as decoded rows.
    return {
      numTokens,
      numRows,
      positions,
      codec: encoded && codec,
      encoded: null,
      sketch,
      bytes: sketch.length + (positions?.byteLength ?? 0),
      rows: read,
      free: () => file.free(piece),
    };
  }

  /** Tokens of the longest sequence of whole blocks at the beginning of a run, at most `at`. */
  wholeBlocks(run: StoredRun, at: number): number {
    let numTokens = 0;
    for (const block of run.blocks) {
      if (numTokens + block.numTokens > at) break;
      numTokens += block.numTokens;
    }
    return numTokens;
  }

  drop(run: StoredRun): void {
    this.#exchange(run.blocks, []);
  }

  /** Counts the blocks of runs that go and come. Blocks may be in both. */
  #exchange(going: readonly StoredBlock[], coming: readonly StoredBlock[]): void {
    let more = 0;
    for (const whole of coming.map(wholeOf)) {
      const numUses = this.#uses.get(whole) ?? 0;
      if (numUses === 0) more += whole.bytes;
      this.#uses.set(whole, numUses + 1);
    }
    for (const whole of going.map(wholeOf)) {
      const numLeft = this.#uses.get(whole)! - 1;
      if (numLeft > 0) this.#uses.set(whole, numLeft);
      else {
        this.#uses.delete(whole);
        more -= whole.bytes;
        whole.free?.();
      }
    }
    this.bytes += more;
  }

  /** Bytes that dropping these runs frees. A block that was cut is freed with its last part. */
  bytesOf(runs: Iterable<StoredRun>): number {
    const numGoing = new Map<StoredBlock, number>();
    let bytes = 0;
    for (const { blocks } of runs) {
      for (const whole of blocks.map(wholeOf)) {
        const n = (numGoing.get(whole) ?? 0) + 1;
        numGoing.set(whole, n);
        if (n === this.#uses.get(whole)) bytes += whole.bytes;
      }
    }
    return bytes;
  }
}
