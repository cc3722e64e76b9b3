/** K/V rows of tokens, inside and outside the pool: shapes, allocation and copies. Does not know who owns a row. */
import type { KvPrecision } from '../protocol/tasks.ts';

export interface KvShape {
  readonly numLayers: number;
  readonly kvHeads: number;
  readonly headSize: number;
  readonly kv: KvPrecision;
  /** Bytes that the runner keeps beside each slot's rows; 0 when left out. */
  readonly runnerBytes?: number;
}

export type Rows = Int8Array | Float32Array;

/**
 * K/V rows of n tokens outside the pool, as a step emits them and the store keeps them. keys [numLayers, kvHeads,
 * headSize, n], keyScales [numLayers, kvHeads, n], values [numLayers, kvHeads, n, headSize], valueScales [numLayers,
 * kvHeads, n]. The scales are empty in float32.
 */
export interface KvRows {
  readonly numTokens: number;
  readonly keys: Rows;
  readonly keyScales: Float32Array;
  readonly values: Rows;
  readonly valueScales: Float32Array;
}

/**
 * Bytes of a slot in the pool: K and V of all layers, scales, position, stamp, and what the runner keeps beside them.
 */
export function kvBytesPerToken(shape: KvShape): number {
  const perHead = shape.kv === 'int8' ? 2 * shape.headSize + 8 : 8 * shape.headSize;
  return shape.numLayers * shape.kvHeads * perHead + 8 + (shape.runnerBytes ?? 0);
}

function newRows(kv: KvPrecision, length: number): Rows {
  return kv === 'int8' ? new Int8Array(length) : new Float32Array(length);
}

export function newKvRows(shape: KvShape, numTokens: number): KvRows {
  const heads = shape.numLayers * shape.kvHeads;
  const scales = shape.kv === 'int8' ? heads * numTokens : 0;
  return {
    numTokens,
    keys: newRows(shape.kv, heads * shape.headSize * numTokens),
    keyScales: new Float32Array(scales),
    values: newRows(shape.kv, heads * shape.headSize * numTokens),
    valueScales: new Float32Array(scales),
  };
}

/** From this length on one call that copies many elements is faster than a loop. */
const MIN_COPIED_AT_ONCE = 24;

/**
 * Copies `length` tokens of one head, from token `at` of head `h` to token `to` of head `g`. Heads are numbered over
 * all layers or pages: keys [.., headSize, numTokens], values [.., numTokens, headSize], scales [.., numTokens].
 */
export function copyRows(
  source: KvRows,
  h: number,
  at: number,
  target: KvRows,
  g: number,
  to: number,
  length: number,
  headSize: number,
): void {
  const { numTokens: n, keys: from } = source;
  const { numTokens: m, keys } = target;
  let s = h * headSize * n + at;
  let t = g * headSize * m + to;
  for (let d = 0; d < headSize; d++, s += n, t += m) {
    if (length >= MIN_COPIED_AT_ONCE) keys.set(from.subarray(s, s + length) as never, t);
    else for (let i = 0; i < length; i++) keys[t + i] = from[s + i]!;
  }
  const value = (h * n + at) * headSize;
  target.values.set(source.values.subarray(value, value + length * headSize) as never, (g * m + to) * headSize);
  if (source.keyScales.length === 0) return;
  for (let i = 0; i < length; i++) {
    target.keyScales[g * m + to + i] = source.keyScales[h * n + at + i]!;
    target.valueScales[g * m + to + i] = source.valueScales[h * n + at + i]!;
  }
}

/** Copies tokens [from, to) of `rows` to `target` from token `at` on. Does nothing where to <= from. */
export function copyTokens(
  { numLayers, kvHeads, headSize }: KvShape,
  rows: KvRows,
  from: number,
  to: number,
  target: KvRows,
  at: number,
): void {
  if (to <= from) return;
  for (let h = 0; h < numLayers * kvHeads; h++) copyRows(rows, h, from, target, h, at, to - from, headSize);
}

/** A copy of tokens [from, to) of `rows`. */
export function sliceRows(shape: KvShape, rows: KvRows, from: number, to: number): KvRows {
  const slice = newKvRows(shape, to - from);
  copyTokens(shape, rows, from, to, slice, 0);
  return slice;
}

/** The rows of all parts, in order. */
export function joinRows(shape: KvShape, parts: readonly KvRows[]): KvRows {
  const all = newKvRows(
    shape,
    parts.reduce((sum, { numTokens }) => sum + numTokens, 0),
  );
  let at = 0;
  for (const part of parts) {
    copyTokens(shape, part, 0, part.numTokens, all, at);
    at += part.numTokens;
  }
  return all;
}

/** The arrays of rows: keys, values and their scales. */
export function arraysOf({ keys, values, keyScales, valueScales }: KvRows): (Rows | Float32Array)[] {
  return [keys, values, keyScales, valueScales];
}

/** All arrays in order, as one. */
export function rowsToBytes(rows: KvRows): Uint8Array {
  const arrays = arraysOf(rows);
  const bytes = new Uint8Array(arrays.reduce((sum, { byteLength }) => sum + byteLength, 0));
  let at = 0;
  for (const { buffer, byteOffset, byteLength } of arrays) {
    bytes.set(new Uint8Array(buffer, byteOffset, byteLength), at);
    at += byteLength;
  }
  return bytes;
}

export function rowsFromBytes(shape: KvShape, numTokens: number, bytes: Uint8Array): KvRows {
  const rows = newKvRows(shape, numTokens);
  let at = 0;
  for (const { buffer, byteOffset, byteLength } of arraysOf(rows)) {
    new Uint8Array(buffer, byteOffset, byteLength).set(bytes.subarray(at, at + byteLength));
    at += byteLength;
  }
  return rows;
}
