/**
 * Encodes runs of int8 rows to bytes and decodes them again, in one format and shape. Knows neither store nor policy.
 * Pure: the same rows at the same position give the same bytes; the number of bytes depends on sizes and position only.
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
import { LayerBuffers, layerBufferBytes, hadamardAt, rotateKeys, writeTurns } from './layerBuffers.ts';

/** Tokens [from, from + count) of a run. The bytes of layer l are at[l] .. at[l + 1]. */
interface CodedBlock {
  readonly from: number;
  readonly count: number;
  readonly at: readonly number[];
}

/** Share of the layers that have each of the finer formats. */
const FINER_SHARE = 0.2;

/** A place behind the sinks and before all recent tokens. */
const INSIDE: RunPlace = { startIndex: 1 << 10 };

/**
 * An encoded run is: header, exact tokens of the beginning, exact tokens of the end, then K and V block by block, layer
 * by layer.
 */
export class KvCodec {
  readonly format: RunFormat;
  readonly shape: CodecShape;
  readonly #rotation: Rotation | null;
  /** The layers, those first that lose most by being coded. */
  readonly order: readonly number[];
  /** By layer. Null: all tokens are exact. */
  readonly #sides: readonly LayerSides[] | null;

  /**
   * `rotation`: of the model; needed by formats that are `unrotated`. `needs`: the layers, those first that lose most
   * by being coded (see layerNeeds); the last layers first when left out. Bytes must be decoded with the same `needs`.
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

  /** The layers with the finest format; all layers where all have the same. */
  get neediest(): ReadonlySet<number> {
    const finest = this.format.finer?.[0];
    return new Set(
      Array.from({ length: this.shape.numLayers }, (_, l) => l).filter((l) => !finest || this.#sides?.[l] === finest),
    );
  }

  /** Whether all rows come back exactly. */
  get lossless(): boolean {
    return this.format.sides === null;
  }

  /** Bytes per token of a long context without its exact tokens, in runs of `runTokens`, with headers. */
  bytesPerToken(runTokens: number): number {
    return this.encodedBytes(runTokens, INSIDE) / runTokens;
  }

  /** Length of an encoded run. */
  encodedBytes(numTokens: number, place: RunPlace): number {
    return this.#bytes(numTokens, this.#exact(numTokens, place));
  }

  /** The tokens [from, to) of a run that are not exact. */
  codedTokens(numTokens: number, place: RunPlace): [from: number, to: number] {
    const { first, last } = this.#exact(numTokens, place);
    return [first, numTokens - last];
  }

  /** Most bytes of the kernels' memory for runs of up to so many tokens. */
  kernelBytes(numTokens: number): number {
    if (!this.#sides) return 0;
    const n = Math.min(this.format.blockTokens, numTokens);
    return layerBufferBytes(this.shape, numTokens, n, this.#mostBytes(n));
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
    this.#eachLayer(n, place.positions ?? place.startIndex, exact, (buffers, { keys, values }, blocks, l) => {
      buffers.load(rows, l);
      for (const { from, count, at } of blocks) {
        const sizes = [kvHeads, headSize, count] as const;
        buffers.toFloats('keys', from, count, keys.layout);
        if (format.unrotated) rotateKeys(buffers.x, ...sizes, buffers.turns, from, -1);
        if (format.hadamard) hadamardAt(buffers.x, ...sizes, keys.layout);
        keys.encode(buffers.x, ...sizes, buffers.bytes, buffers.spare);
        buffers.toFloats('values', from, count, values.layout);
        if (format.hadamard) hadamardAt(buffers.x, ...sizes, values.layout);
        values.encode(buffers.x, ...sizes, buffers.bytes + keys.bytes(...sizes), buffers.spare);
        out.set(buffers.memory.subarray(buffers.bytes, buffers.bytes + at[l + 1]! - at[l]!), at[l]);
      }
    });
    return out;
  }

  /**
   * `positions`: as they were given to `encode`. @throws MalformedRun unless `bytes` are a whole run of this format and
   * shape.
   */
  decode(bytes: Uint8Array, positions: Int32Array | null = null): DecodedRun {
    const { format, shape } = this;
    const { kvHeads, headSize } = shape;
    const { numTokens: n, startIndex, ...exact } = readHeader(bytes, format.id, format.name, shape);
    const expected = this.#bytes(n, exact);
    if (bytes.length !== expected)
      throw new MalformedRun(`${n} tokens take ${expected} bytes, and there are ${bytes.length}`);
    const rows = newKvRows({ ...shape, kv: 'int8' }, n);
    this.#eachLayer(n, positions ?? startIndex, exact, (buffers, { keys, values }, blocks, l) => {
      for (const { from, count, at } of blocks) {
        const sizes = [kvHeads, headSize, count] as const;
        buffers.memory.set(bytes.subarray(at[l], at[l + 1]), buffers.bytes);
        keys.decode(buffers.bytes, ...sizes, buffers.x, buffers.spare);
        if (format.hadamard) hadamardAt(buffers.x, ...sizes, keys.layout);
        if (format.unrotated) rotateKeys(buffers.x, ...sizes, buffers.turns, from, 1);
        buffers.toRows('keys', from, count, keys.layout);
        values.decode(buffers.bytes + keys.bytes(...sizes), ...sizes, buffers.x, buffers.spare);
        if (format.hadamard) hadamardAt(buffers.x, ...sizes, values.layout);
        buffers.toRows('values', from, count, values.layout);
      }
      buffers.save(rows, l);
    });
    // Overwrites the layer's rows with decoded ones.
    readExact(shape, bytes, HEADER_BYTES, rows, 0, exact.first);
    readExact(shape, bytes, HEADER_BYTES + exactBytes(shape, exact.first), rows, n - exact.last, exact.last);
    return { rows, startIndex };
  }

  /** What rows become when they are encoded and decoded. */
  through(rows: KvRows, place: RunPlace): KvRows {
    return this.decode(this.encode(rows, place), place.positions).rows;
  }

  /** How many tokens at both ends stay exact: sinks, recent tokens, and an end that is too short for a block. */
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

  /** Bytes of a layer for a block of so many tokens. */
  #layerBytes({ keys, values }: LayerSides, count: number): number {
    const { kvHeads, headSize } = this.shape;
    return keys.bytes(kvHeads, headSize, count) + values.bytes(kvHeads, headSize, count);
  }

  /** Bytes of the layer that takes most. */
  #mostBytes(count: number): number {
    return Math.max(...this.#sides!.map((sides) => this.#layerBytes(sides, count)));
  }

  /** Calls `work` for each layer with its blocks. Does nothing where all tokens are exact. */
  #eachLayer(
    n: number,
    places: Int32Array | number,
    exact: ExactTokens,
    work: (buffers: LayerBuffers, sides: LayerSides, blocks: readonly CodedBlock[], l: number) => void,
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
    const buffers = new LayerBuffers(this.shape, n, blocks[0]!.count, this.#mostBytes(blocks[0]!.count));
    if (this.format.unrotated) writeTurns(buffers.turns, this.#rotation!, places);
    for (const [l, sides] of this.#sides.entries()) work(buffers, sides, blocks, l);
  }
}
