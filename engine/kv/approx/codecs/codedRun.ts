/**
 * Header and exact tokens of an encoded run. Exact tokens are stored as the pool has them, byte for byte: per layer and
 * head K
 * [headSize, n] int8, V [n, headSize] int8, and a float32 scale per token for each. The int8 format has nothing else;
 * other formats
 * keep some tokens that way. Floats are little endian, as on every processor that the engine runs on.
 */
import type { KvRows } from '../../kvRows.ts';
import { type CodecShape, type ExactTokens, finite, MalformedRun } from './codecFormat.ts';

export function exactBytes({ numLayers, kvHeads, headSize }: CodecShape, n: number): number {
  return numLayers * kvHeads * n * (2 * headSize + 8);
}

const bytesOf = (a: Int8Array | Float32Array): Uint8Array => new Uint8Array(a.buffer, a.byteOffset, a.byteLength);

/** Moves the pieces of tokens [from, from + n) of `rows` to or from the bytes, in their order there. */
function eachPiece(
  shape: CodecShape,
  rows: KvRows,
  from: number,
  n: number,
  at: number,
  move: (rows: Uint8Array, start: number, at: number, length: number) => void,
): void {
  const { headSize } = shape;
  const heads = shape.numLayers * shape.kvHeads;
  const all = rows.numTokens;
  const keys = bytesOf(rows.keys);
  const values = bytesOf(rows.values);
  if (n === all) {
    for (const array of [keys, values, bytesOf(rows.keyScales), bytesOf(rows.valueScales)]) {
      move(array, 0, at, array.length);
      at += array.length;
    }
    return;
  }
  for (let row = 0; row < heads * headSize; row++, at += n) move(keys, row * all + from, at, n);
  for (let head = 0; head < heads; head++, at += n * headSize)
    move(values, (head * all + from) * headSize, at, n * headSize);
  for (const scales of [bytesOf(rows.keyScales), bytesOf(rows.valueScales)]) {
    for (let head = 0; head < heads; head++, at += 4 * n) move(scales, 4 * (head * all + from), at, 4 * n);
  }
}

/** Writes tokens [from, from + n) of `rows` to out[at] and on. */
export function writeExact(
  shape: CodecShape,
  rows: KvRows,
  from: number,
  n: number,
  out: Uint8Array,
  at: number,
): void {
  if (n > 0)
    eachPiece(shape, rows, from, n, at, (source, start, target, length) =>
      out.set(source.subarray(start, start + length), target),
    );
}

/**
 * @throws MalformedRun when a scale is not finite: as one of the pool's it would spoil every sequence, masked or not.
 */
export function readExact(
  shape: CodecShape,
  bytes: Uint8Array,
  at: number,
  rows: KvRows,
  from: number,
  n: number,
): void {
  if (n === 0) return;
  eachPiece(shape, rows, from, n, at, (target, start, source, length) =>
    target.set(bytes.subarray(source, source + length), start),
  );
  for (const scales of [rows.keyScales, rows.valueScales]) {
    for (let head = 0; head < scales.length; head += rows.numTokens)
      for (let t = from; t < from + n; t++) finite(scales[head + t]!, 128);
  }
}

/**
 * The header of an encoded run, 32 bytes, little endian: magic "KVR1", format id u16, flags u16 (0), layers u32,
 * kvHeads
 * u16, headSize u16, tokens u32, position of the first token u32, tokens kept exactly at the beginning u16, 0 u16, and
 * at the end u32.
 */

export const HEADER_BYTES = 32;

/** "KVR1". */
const MAGIC = 0x3152564b;
/** No context is longer (see hfConfig). Positions beyond it are damage, and would size a table of cosines. */
const MAX_TOKENS = 65_536;

export interface RunHeader extends ExactTokens {
  readonly numTokens: number;
  readonly startIndex: number;
}

export function writeHeader(out: Uint8Array, formatId: number, shape: CodecShape, header: RunHeader): void {
  const view = new DataView(out.buffer, out.byteOffset, HEADER_BYTES);
  view.setUint32(0, MAGIC, true);
  view.setUint16(4, formatId, true);
  view.setUint16(6, 0, true);
  view.setUint32(8, shape.numLayers, true);
  view.setUint16(12, shape.kvHeads, true);
  view.setUint16(14, shape.headSize, true);
  view.setUint32(16, header.numTokens, true);
  view.setUint32(20, header.startIndex, true);
  view.setUint16(24, header.first, true);
  view.setUint16(26, 0, true);
  view.setUint32(28, header.last, true);
}

/** @throws MalformedRun unless the bytes begin with the header of a run of this format and shape. */
export function readHeader(bytes: Uint8Array, formatId: number, formatName: string, shape: CodecShape): RunHeader {
  if (bytes.length < HEADER_BYTES) throw new MalformedRun(`${bytes.length} bytes are less than a header`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, HEADER_BYTES);
  if (view.getUint32(0, true) !== MAGIC || view.getUint16(6, true) !== 0 || view.getUint16(26, true) !== 0)
    throw new MalformedRun('they have another header');
  if (view.getUint16(4, true) !== formatId) throw new MalformedRun(`the format is not ${formatName}`);
  const sizes = [view.getUint32(8, true), view.getUint16(12, true), view.getUint16(14, true)];
  const expected = [shape.numLayers, shape.kvHeads, shape.headSize];
  if (sizes.some((size, i) => size !== expected[i]))
    throw new MalformedRun(`layers x heads x head size are ${sizes.join(' x ')}, not ${expected.join(' x ')}`);
  const header = {
    numTokens: view.getUint32(16, true),
    startIndex: view.getUint32(20, true),
    first: view.getUint16(24, true),
    last: view.getUint32(28, true),
  };
  if (header.first + header.last > header.numTokens || header.startIndex + header.numTokens > MAX_TOKENS)
    throw new MalformedRun('its counts of tokens contradict each other');
  return header;
}
