/**
 * Encodes runs of int8 rows to bytes and decodes them to rows for the pool, in one format and shape. Does not know
 * store or policy.
 * An encoded run is: header, exact tokens of the beginning, exact tokens of the end, then K and V block by block, layer
 * by layer. Pure:
 * the same rows at the same position give the same bytes, and the number of bytes depends on sizes and position only.
 */
import { type KvRows, newKvRows } from '../../kvRows.ts';
import {
  type CodecShape,
  type DecodedRun,
  type ExactTokens,
  type LayerSides,
  MalformedRun,
  type Rotation,
  type RunFormat,
  type RunPlace,
  exactBytes,
  HEADER_BYTES,
  readExact,
  readHeader,
  writeExact,
  writeHeader,
} from './codecFormat.ts';
import { LayerRoom, layerRoomBytes, hadamardAt, rotateKeys, writeTurns } from './layerBuffers.ts';

/** Tokens [from, from + count) of a run. Their bytes: of layer l from `at[l]` on, up to `at[l + 1]`. */
interface CodedBlock {
  readonly from: number;
  readonly count: number;
  readonly at: readonly number[];
}

/** Of all layers, how many of them have each of the finer sides. */
const FINER_SHARE = 0.2;

/** A run at this place stands before everything recent and after the sinks. */
const INSIDE: RunPlace = { startIndex: 1 << 10 };

export class KvCodec {
  readonly format: RunFormat;
  readonly shape: CodecShape;
  readonly #rotation: Rotation | null;
  /** Its layers, those first that lose most by being coded. */
  readonly order: readonly number[];
  /** By layer; null: all tokens are kept exactly. */
  readonly #sides: readonly LayerSides[] | null;

  /**
   * @param rotation of the model; formats that code K before it cannot do without.
   * @param needs its layers, those first that lose most by being coded (see layerNeeds); when left out the last come
   * first. Bytes are read with the one that they were written with.
   */
  constructor(format: RunFormat, shape: CodecShape, rotation: Rotation | null, needs?: readonly number[]) {
    if (format.unrotated && rotation?.half !== shape.headSize / 2)
      throw new Error(`The codec ${format.name} needs the rotary embedding of the whole head.`);
    this.format = format;
    this.shape = shape;
    this.#rotation = rotation;
    const { numLayers } = shape;
    this.order = needs ?? Array.from({ length: numLayers }, (_, i) => numLayers - 1 - i);
    const { sides, finer = [] } = format;
    const each = Math.max(1, Math.round(FINER_SHARE * numLayers));
    this.#sides =
      sides && Array.from({ length: numLayers }, (_, l) => finer[Math.floor(this.order.indexOf(l) / each)] ?? sides);
  }

  get name(): string {
    return this.format.name;
  }

  /** Layers that have the finest sides; all of them where all have the same. */
  get neediest(): ReadonlySet<number> {
    const finest = this.format.finer?.[0];
    return new Set(
      Array.from({ length: this.shape.numLayers }, (_, l) => l).filter((l) => !finest || this.#sides?.[l] === finest),
    );
  }

  /** Whether every row comes back as it was. */
  get lossless(): boolean {
    return this.format.sides === null;
  }

  /** Bytes per token of a long context outside what is kept exactly, in runs of `runTokens`, headers included. */
  bytesPerToken(runTokens: number): number {
    return this.encodedBytes(runTokens, INSIDE) / runTokens;
  }

  /** Length of an encoded run. */
  encodedBytes(numTokens: number, place: RunPlace): number {
    return this.#bytes(numTokens, this.#exact(numTokens, place));
  }

  /** Which tokens of a run come back changed, [from, to): all but those that are kept exactly at either end. */
  codedTokens(numTokens: number, place: RunPlace): [from: number, to: number] {
    const { first, last } = this.#exact(numTokens, place);
    return [first, numTokens - last];
  }

  /** Bytes of the kernels' memory that runs of up to so many tokens take. */
  kernelBytes(numTokens: number): number {
    if (!this.#sides) return 0;
    const n = Math.min(this.format.blockTokens, numTokens);
    return layerRoomBytes(this.shape, numTokens, n, this.#mostBytes(n));
  }

  encode(rows: KvRows, place: RunPlace): Uint8Array {
    const { format, shape } = this;
    const { kvHeads, headSize } = shape;
    const n = rows.numTokens;
    const exact = this.#exact(n, place);
    const out = new Uint8Array(this.#bytes(n, exact));
    writeHeader(out, format.id, shape, { numTokens: n, startIndex: place.startIndex, ...exact });
    writeExact(shape, rows, 0, exact.first, out, HEADER_BYTES);
    const last = HEADER_BYTES + exactBytes(shape, exact.first);
    writeExact(shape, rows, n - exact.last, exact.last, out, last);
    this.#eachLayer(n, place.positions ?? place.startIndex, exact, (room, { keys, values }, blocks, l) => {
      room.load(rows, l);
      for (const { from, count, at } of blocks) {
        const sizes = [kvHeads, headSize, count] as const;
        room.toFloats('keys', from, count, keys.layout);
        if (format.unrotated) rotateKeys(room.x, ...sizes, room.turns, from, -1);
        if (format.hadamard) hadamardAt(room.x, ...sizes, keys.layout);
        keys.encode(room.x, ...sizes, room.bytes, room.spare);
        room.toFloats('values', from, count, values.layout);
        if (format.hadamard) hadamardAt(room.x, ...sizes, values.layout);
        values.encode(room.x, ...sizes, room.bytes + keys.bytes(...sizes), room.spare);
        out.set(room.memory.subarray(room.bytes, room.bytes + at[l + 1]! - at[l]!), at[l]);
      }
    });
    return out;
  }

  /**
   * @param positions as they were given to `encode`. @throws MalformedRun unless `bytes` are a whole run of this format
   * and shape.
   */
  decode(bytes: Uint8Array, positions: Int32Array | null = null): DecodedRun {
    const { format, shape } = this;
    const { kvHeads, headSize } = shape;
    const { numTokens: n, startIndex, ...exact } = readHeader(bytes, format.id, format.name, shape);
    const expected = this.#bytes(n, exact);
    if (bytes.length !== expected)
      throw new MalformedRun(`${n} tokens take ${expected} bytes, and there are ${bytes.length}`);
    const rows = newKvRows({ ...shape, kv: 'int8' }, n);
    this.#eachLayer(n, positions ?? startIndex, exact, (room, { keys, values }, blocks, l) => {
      for (const { from, count, at } of blocks) {
        const sizes = [kvHeads, headSize, count] as const;
        room.memory.set(bytes.subarray(at[l], at[l + 1]), room.bytes);
        keys.decode(room.bytes, ...sizes, room.x, room.spare);
        if (format.hadamard) hadamardAt(room.x, ...sizes, keys.layout);
        if (format.unrotated) rotateKeys(room.x, ...sizes, room.turns, from, 1);
        room.toRows('keys', from, count, keys.layout);
        values.decode(room.bytes + keys.bytes(...sizes), ...sizes, room.x, room.spare);
        if (format.hadamard) hadamardAt(room.x, ...sizes, values.layout);
        room.toRows('values', from, count, values.layout);
      }
      room.save(rows, l);
    });
    // Over what the layers' rows had in their places.
    readExact(shape, bytes, HEADER_BYTES, rows, 0, exact.first);
    readExact(shape, bytes, HEADER_BYTES + exactBytes(shape, exact.first), rows, n - exact.last, exact.last);
    return { rows, startIndex };
  }

  /** What becomes of rows that are encoded. */
  through(rows: KvRows, place: RunPlace): KvRows {
    return this.decode(this.encode(rows, place), place.positions).rows;
  }

  /** Which tokens at either end are kept exactly: sinks, recent ones, and what is too short for a block. */
  #exact(n: number, { startIndex, contextEnd = Number.POSITIVE_INFINITY }: RunPlace): ExactTokens {
    const { sides, sinkTokens, recentTokens, blockTokens, leastTokens } = this.format;
    if (sides === null) return { first: 0, last: n };
    const first = Math.max(0, Math.min(n, sinkTokens - startIndex));
    const recentFrom = contextEnd - recentTokens - startIndex;
    const coded = Math.max(0, Math.min(n, recentFrom) - first);
    const rest = coded % blockTokens;
    return { first, last: n - first - (rest < leastTokens ? coded - rest : coded) };
  }

  #bytes(n: number, { first, last }: ExactTokens): number {
    const { blockTokens } = this.format;
    const bytes = HEADER_BYTES + exactBytes(this.shape, first + last);
    const coded = n - first - last;
    if (!this.#sides || coded === 0) return bytes;
    const blockBytes = (count: number): number =>
      this.#sides!.reduce((sum, sides) => sum + this.#layerBytes(sides, count), 0);
    const rest = coded % blockTokens;
    return bytes + ((coded - rest) / blockTokens) * blockBytes(blockTokens) + (rest > 0 ? blockBytes(rest) : 0);
  }

  /** Of so many tokens of a block. */
  #layerBytes({ keys, values }: LayerSides, count: number): number {
    const { kvHeads, headSize } = this.shape;
    return keys.bytes(kvHeads, headSize, count) + values.bytes(kvHeads, headSize, count);
  }

  /** Of the layer that takes most. */
  #mostBytes(count: number): number {
    return Math.max(...this.#sides!.map((sides) => this.#layerBytes(sides, count)));
  }

  /** Nothing where all tokens are kept exactly. */
  #eachLayer(
    n: number,
    places: Int32Array | number,
    exact: ExactTokens,
    work: (room: LayerRoom, sides: LayerSides, blocks: readonly CodedBlock[], l: number) => void,
  ): void {
    const { blockTokens } = this.format;
    const end = n - exact.last;
    if (!this.#sides || exact.first === end) return;
    const blocks: CodedBlock[] = [];
    let at = HEADER_BYTES + exactBytes(this.shape, exact.first + exact.last);
    for (let from = exact.first; from < end; from += blockTokens) {
      const count = Math.min(blockTokens, end - from);
      const starts = [at];
      for (const sides of this.#sides) {
        at += this.#layerBytes(sides, count);
        starts.push(at);
      }
      blocks.push({ from, count, at: starts });
    }
    const room = new LayerRoom(this.shape, n, blocks[0]!.count, this.#mostBytes(blocks[0]!.count));
    if (this.format.unrotated) writeTurns(room.turns, this.#rotation!, places);
    for (const [l, sides] of this.#sides.entries()) work(room, sides, blocks, l);
  }
}
