/**
 * Between int8 rows and floats: dequantises tokens of one layer's K or V in the layout that a format wants, and quantises
 * floats back to rows for the window, as the step graph does it (symmetric, per token and head, largest value = 127).
 * K goes two channels at a time, which a head always has, so that a token's scale is fetched once for both.
 */
import type { KvRows } from '../kvRows.ts';
import type { CodecShape, Layout } from './codecFormat.ts';
import { largestOf, MAGNITUDE } from './scales.ts';

/** Adding and subtracting 1.5 * 2^52 rounds a double to the nearest integer, half to even. */
const ROUND = 6755399441055744;

/** K of tokens [from, from + n) of layer `l` -> x in `layout`. */
export function keyFloats({ kvHeads, headSize }: CodecShape, rows: KvRows, l: number, from: number, n: number, layout: Layout, x: Float32Array): void {
  const { keys, keyScales, numTokens: all } = rows;
  for (let h = 0; h < kvHeads; h++) {
    const scales = (l * kvHeads + h) * all + from;
    for (let d = 0; d < headSize; d += 2) {
      const even = ((l * kvHeads + h) * headSize + d) * all + from;
      const odd = even + all;
      if (layout === 'byChannel') {
        const target = (h * headSize + d) * n;
        for (let t = 0; t < n; t++) {
          const scale = keyScales[scales + t]!;
          x[target + t] = keys[even + t]! * scale;
          x[target + n + t] = keys[odd + t]! * scale;
        }
      } else {
        let target = h * headSize * n + d;
        for (let t = 0; t < n; t++, target += headSize) {
          const scale = keyScales[scales + t]!;
          x[target] = keys[even + t]! * scale;
          x[target + 1] = keys[odd + t]! * scale;
        }
      }
    }
  }
}

/** V of the same, by token. */
export function valueFloats({ kvHeads, headSize }: CodecShape, rows: KvRows, l: number, from: number, n: number, x: Float32Array): void {
  const { values, valueScales, numTokens: all } = rows;
  let target = 0;
  for (let h = 0; h < kvHeads; h++) {
    const first = (l * kvHeads + h) * all + from;
    for (let row = first; row < first + n; row++) {
      const scale = valueScales[row]!;
      const source = row * headSize;
      for (let d = 0; d < headSize; d += 2) {
        x[target + d] = values[source + d]! * scale;
        x[target + d + 1] = values[source + d + 1]! * scale;
      }
      target += headSize;
    }
  }
}

/** Of a row whose largest magnitude is `max`: stores its scale. @returns what its values are multiplied by. One too small for a float32 scale is 0. */
function scaleOf(max: number, scales: Float32Array, row: number): number {
  const scale = Math.fround(max / 127);
  scales[row] = scale;
  return scale > 1e-38 ? 127 / max : 0;
}

/** The largest magnitude of each token of n, as float32 bits, over the channels of x[start ..], [headSize, n]. */
function largestByChannel(bits: Int32Array, start: number, headSize: number, n: number, largest: Int32Array): void {
  largest.fill(0);
  for (let even = start; even < start + headSize * n; even += 2 * n) {
    for (let t = 0; t < n; t++) {
      const a = bits[even + t]! & MAGNITUDE;
      const b = bits[even + n + t]! & MAGNITUDE;
      const most = a > b ? a : b;
      if (most > largest[t]!) largest[t] = most;
    }
  }
}

/** x in `layout` -> K of tokens [from, from + n) of layer `l`. */
export function storeKeys({ kvHeads, headSize }: CodecShape, x: Float32Array, rows: KvRows, l: number, from: number, n: number, layout: Layout): void {
  const { keys, keyScales, numTokens: all } = rows;
  const bits = new Int32Array(x.buffer, x.byteOffset, x.length);
  const inverses = new Float64Array(n);
  const largest = new Float32Array(n);
  for (let h = 0; h < kvHeads; h++) {
    const start = h * headSize * n;
    const row = (l * kvHeads + h) * all + from;
    if (layout === 'byChannel') largestByChannel(bits, start, headSize, n, new Int32Array(largest.buffer));
    else for (let t = 0; t < n; t++) largest[t] = largestOf(x, bits, start + t * headSize, headSize);
    for (let t = 0; t < n; t++) inverses[t] = scaleOf(largest[t]!, keyScales, row + t);
    for (let d = 0; d < headSize; d += 2) {
      const even = ((l * kvHeads + h) * headSize + d) * all + from;
      const odd = even + all;
      if (layout === 'byChannel') {
        const source = start + d * n;
        for (let t = 0; t < n; t++) {
          const inverse = inverses[t]!;
          keys[even + t] = x[source + t]! * inverse + ROUND - ROUND;
          keys[odd + t] = x[source + n + t]! * inverse + ROUND - ROUND;
        }
      } else {
        let source = start + d;
        for (let t = 0; t < n; t++, source += headSize) {
          const inverse = inverses[t]!;
          keys[even + t] = x[source]! * inverse + ROUND - ROUND;
          keys[odd + t] = x[source + 1]! * inverse + ROUND - ROUND;
        }
      }
    }
  }
}

/** x by token -> V of the same. */
export function storeValues({ kvHeads, headSize }: CodecShape, x: Float32Array, rows: KvRows, l: number, from: number, n: number): void {
  const { values, valueScales, numTokens: all } = rows;
  const bits = new Int32Array(x.buffer, x.byteOffset, x.length);
  let source = 0;
  for (let h = 0; h < kvHeads; h++) {
    const first = (l * kvHeads + h) * all + from;
    for (let row = first; row < first + n; row++) {
      const inverse = scaleOf(largestOf(x, bits, source, headSize), valueScales, row);
      const target = row * headSize;
      for (let d = 0; d < headSize; d += 2) {
        values[target + d] = x[source + d]! * inverse + ROUND - ROUND;
        values[target + d + 1] = x[source + d + 1]! * inverse + ROUND - ROUND;
      }
      source += headSize;
    }
  }
}
