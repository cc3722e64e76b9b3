/**
 * Encodes runs of int8 rows to bytes and decodes them to rows that are ready for the window, in one format and shape. Owns what
 * all formats share: header, tokens kept exactly at either end, blocks, layers, rotation. Knows neither store nor policy.
 * An encoded run is header, exact tokens of the beginning, exact tokens of the end, then block by block, layer by layer, K and
 * V. Pure: the same rows at the same place give the same bytes, and their number depends on sizes and place only.
 */
import { type KvRows, newKvRows } from '../kvRows.ts';
import { type CodecShape, type DecodedRun, type ExactTokens, MalformedRun, type Rotation, type RunFormat, type RunPlace } from './codecFormat.ts';
import { exactBytes, readExact, writeExact } from './exactRows.ts';
import { hadamard } from './hadamard.ts';
import { keyFloats, storeKeys, storeValues, valueFloats } from './rowFloats.ts';
import { HEADER_BYTES, readHeader, writeHeader } from './runHeader.ts';
import { rotateKeys } from './unrotate.ts';

/** A run at this place stands before everything recent and after the sinks. */
const INSIDE: RunPlace = { startIndex: 1 << 10 };

export class KvCodec {
  readonly format: RunFormat;
  readonly shape: CodecShape;
  readonly #rotation: Rotation | null;

  /** @param rotation of the model; formats that code K before it cannot do without. */
  constructor(format: RunFormat, shape: CodecShape, rotation: Rotation | null) {
    if (format.unrotated && rotation?.half !== shape.headSize / 2) throw new Error(`The codec ${format.name} needs the rotary embedding of the whole head.`);
    this.format = format;
    this.shape = shape;
    this.#rotation = rotation;
  }

  get name(): string {
    return this.format.name;
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

  encode(rows: KvRows, place: RunPlace): Uint8Array {
    const { format, shape } = this;
    const n = rows.numTokens;
    const exact = this.#exact(n, place);
    const out = new Uint8Array(this.#bytes(n, exact));
    writeHeader(out, format.id, shape, { numTokens: n, startIndex: place.startIndex, ...exact });
    let at = HEADER_BYTES;
    writeExact(shape, rows, 0, exact.first, out, at);
    at += exactBytes(shape, exact.first);
    writeExact(shape, rows, n - exact.last, exact.last, out, at);
    at += exactBytes(shape, exact.last);
    this.#eachBlock(n, exact, (x, from, count, { keys, values }, l) => {
      keyFloats(shape, rows, l, from, count, keys.layout, x);
      if (format.unrotated) rotateKeys(x, shape.kvHeads, shape.headSize, count, this.#rotation!, place.startIndex + from, -1);
      if (format.hadamard) hadamard(x, shape.kvHeads, shape.headSize, count, keys.layout);
      keys.encode(x, shape.kvHeads, shape.headSize, count, out, at);
      at += keys.bytes(shape.kvHeads, shape.headSize, count);
      valueFloats(shape, rows, l, from, count, x);
      if (format.hadamard) hadamard(x, shape.kvHeads, shape.headSize, count, values.layout);
      values.encode(x, shape.kvHeads, shape.headSize, count, out, at);
      at += values.bytes(shape.kvHeads, shape.headSize, count);
    });
    return out;
  }

  /** @throws MalformedRun unless `bytes` are a whole run of this format and shape. */
  decode(bytes: Uint8Array): DecodedRun {
    const { format, shape } = this;
    const { numTokens: n, startIndex, ...exact } = readHeader(bytes, format.id, format.name, shape);
    const expected = this.#bytes(n, exact);
    if (bytes.length !== expected) throw new MalformedRun(`${n} tokens take ${expected} bytes, and there are ${bytes.length}`);
    const rows = newKvRows({ ...shape, kv: 'int8' }, n);
    let at = HEADER_BYTES;
    readExact(shape, bytes, at, rows, 0, exact.first);
    at += exactBytes(shape, exact.first);
    readExact(shape, bytes, at, rows, n - exact.last, exact.last);
    at += exactBytes(shape, exact.last);
    this.#eachBlock(n, exact, (x, from, count, { keys, values }, l) => {
      keys.decode(bytes, at, shape.kvHeads, shape.headSize, count, x);
      at += keys.bytes(shape.kvHeads, shape.headSize, count);
      if (format.hadamard) hadamard(x, shape.kvHeads, shape.headSize, count, keys.layout);
      if (format.unrotated) rotateKeys(x, shape.kvHeads, shape.headSize, count, this.#rotation!, startIndex + from, 1);
      storeKeys(shape, x, rows, l, from, count, keys.layout);
      values.decode(bytes, at, shape.kvHeads, shape.headSize, count, x);
      at += values.bytes(shape.kvHeads, shape.headSize, count);
      if (format.hadamard) hadamard(x, shape.kvHeads, shape.headSize, count, values.layout);
      storeValues(shape, x, rows, l, from, count);
    });
    return { rows, startIndex };
  }

  /** What becomes of rows that are encoded. */
  through(rows: KvRows, place: RunPlace): KvRows {
    return this.decode(this.encode(rows, place)).rows;
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
    const { sides, blockTokens } = this.format;
    const { numLayers, kvHeads, headSize } = this.shape;
    const bytes = HEADER_BYTES + exactBytes(this.shape, first + last);
    const coded = n - first - last;
    if (!sides || coded === 0) return bytes;
    const blockBytes = (count: number): number => numLayers * (sides.keys.bytes(kvHeads, headSize, count) + sides.values.bytes(kvHeads, headSize, count));
    const rest = coded % blockTokens;
    return bytes + ((coded - rest) / blockTokens) * blockBytes(blockTokens) + (rest > 0 ? blockBytes(rest) : 0);
  }

  /** @param work gets room for the floats of one side of one layer. */
  #eachBlock(n: number, { first, last }: ExactTokens, work: (x: Float32Array, from: number, count: number, sides: NonNullable<RunFormat['sides']>, l: number) => void): void {
    const { sides, blockTokens } = this.format;
    if (!sides) return;
    const { numLayers, kvHeads, headSize } = this.shape;
    const end = n - last;
    for (let from = first; from < end; from += blockTokens) {
      const count = Math.min(blockTokens, end - from);
      const x = new Float32Array(kvHeads * headSize * count);
      for (let l = 0; l < numLayers; l++) work(x, from, count, sides, l);
    }
  }
}
