/**
 * Tokens of a run as the window has them, byte for byte: per layer and head K [headSize, n] int8, V [n, headSize] int8, and
 * a float32 scale per token for each. The whole of the int8 format, and in all others the tokens that are kept exactly.
 * Floats are little endian, as on every processor that the engine runs on.
 */
import type { KvRows } from '../kvRows.ts';
import type { CodecShape } from './codecFormat.ts';
import { finite } from './scales.ts';

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

/** @throws MalformedRun when a scale is not finite: as one of the window's it would spoil every sequence, masked or not. */
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
