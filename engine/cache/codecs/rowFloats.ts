/**
 * Between int8 rows and floats: dequantises tokens of one layer's K or V in the layout that a format wants, and quantises
 * floats back to rows for the window, as the step graph does it (symmetric, per token and head, largest value = 127).
 */
import type { KvRows } from '../kvRows.ts';
import type { CodecShape, Layout } from './codecFormat.ts';

/** Adding and subtracting 1.5 * 2^52 rounds a double to the nearest integer, half to even. */
const ROUND = 6755399441055744;
/** Channels that a transposition handles at once, so that both of its sides stay in the first-level cache. */
const TILE = 16;

/** K of tokens [from, from + n) of layer `l` -> x in `layout`. */
export function keyFloats({ kvHeads, headSize }: CodecShape, rows: KvRows, l: number, from: number, n: number, layout: Layout, x: Float32Array): void {
  const { keys, keyScales, numTokens: all } = rows;
  const channelStep = layout === 'byChannel' ? n : 1;
  const tokenStep = layout === 'byChannel' ? 1 : headSize;
  for (let h = 0; h < kvHeads; h++) {
    const head = l * kvHeads + h;
    const scales = head * all + from;
    for (let d0 = 0; d0 < headSize; d0 += TILE) {
      const d1 = Math.min(headSize, d0 + TILE);
      for (let d = d0; d < d1; d++) {
        const source = (head * headSize + d) * all + from;
        let target = h * headSize * n + d * channelStep;
        for (let t = 0; t < n; t++, target += tokenStep) x[target] = keys[source + t]! * keyScales[scales + t]!;
      }
    }
  }
}

/** V of the same. */
export function valueFloats({ kvHeads, headSize }: CodecShape, rows: KvRows, l: number, from: number, n: number, layout: Layout, x: Float32Array): void {
  const { values, valueScales, numTokens: all } = rows;
  const channelStep = layout === 'byChannel' ? n : 1;
  const tokenStep = layout === 'byChannel' ? 1 : headSize;
  for (let h = 0; h < kvHeads; h++) {
    const head = l * kvHeads + h;
    for (let t = 0; t < n; t++) {
      const scale = valueScales[head * all + from + t]!;
      const source = (head * all + from + t) * headSize;
      let target = h * headSize * n + t * tokenStep;
      for (let d = 0; d < headSize; d++, target += channelStep) x[target] = values[source + d]! * scale;
    }
  }
}

/** The largest magnitude of each token and head of x -> largest [kvHeads, n]. */
function largestByToken(x: Float32Array, kvHeads: number, headSize: number, n: number, layout: Layout, largest: Float32Array): void {
  largest.fill(0, 0, kvHeads * n);
  let i = 0;
  for (let h = 0; h < kvHeads; h++) {
    if (layout === 'byChannel') {
      for (let d = 0; d < headSize; d++) {
        for (let t = h * n; t < (h + 1) * n; t++, i++) {
          const v = Math.abs(x[i]!);
          if (v > largest[t]!) largest[t] = v;
        }
      }
    } else {
      for (let t = h * n; t < (h + 1) * n; t++) {
        let max = 0;
        for (const end = i + headSize; i < end; i++) {
          const v = Math.abs(x[i]!);
          if (v > max) max = v;
        }
        largest[t] = max;
      }
    }
  }
}

/** What rounding divides by and what is stored, from the largest magnitudes. A row too small for a float32 scale is 0. */
function scalesOf(largest: Float32Array, h: number, n: number, scales: Float32Array, at: number, inverses: Float64Array): void {
  for (let t = 0; t < n; t++) {
    const max = largest[h * n + t]!;
    const scale = Math.fround(max / 127);
    scales[at + t] = scale;
    inverses[t] = scale > 1e-38 ? 127 / max : 0;
  }
}

/** x in `layout` -> K of tokens [from, from + n) of layer `l`. */
export function storeKeys({ kvHeads, headSize }: CodecShape, x: Float32Array, rows: KvRows, l: number, from: number, n: number, layout: Layout): void {
  const { keys, keyScales, numTokens: all } = rows;
  const largest = new Float32Array(kvHeads * n);
  const inverses = new Float64Array(n);
  largestByToken(x, kvHeads, headSize, n, layout, largest);
  const channelStep = layout === 'byChannel' ? n : 1;
  const tokenStep = layout === 'byChannel' ? 1 : headSize;
  for (let h = 0; h < kvHeads; h++) {
    const head = l * kvHeads + h;
    scalesOf(largest, h, n, keyScales, head * all + from, inverses);
    for (let d0 = 0; d0 < headSize; d0 += TILE) {
      const d1 = Math.min(headSize, d0 + TILE);
      for (let d = d0; d < d1; d++) {
        const target = (head * headSize + d) * all + from;
        let source = h * headSize * n + d * channelStep;
        for (let t = 0; t < n; t++, source += tokenStep) keys[target + t] = x[source]! * inverses[t]! + ROUND - ROUND;
      }
    }
  }
}

/** x in `layout` -> V of the same. */
export function storeValues({ kvHeads, headSize }: CodecShape, x: Float32Array, rows: KvRows, l: number, from: number, n: number, layout: Layout): void {
  const { values, valueScales, numTokens: all } = rows;
  const largest = new Float32Array(kvHeads * n);
  const inverses = new Float64Array(n);
  largestByToken(x, kvHeads, headSize, n, layout, largest);
  const channelStep = layout === 'byChannel' ? n : 1;
  const tokenStep = layout === 'byChannel' ? 1 : headSize;
  for (let h = 0; h < kvHeads; h++) {
    const head = l * kvHeads + h;
    scalesOf(largest, h, n, valueScales, head * all + from, inverses);
    for (let t = 0; t < n; t++) {
      const inverse = inverses[t]!;
      const target = (head * all + from + t) * headSize;
      let source = h * headSize * n + t * tokenStep;
      for (let d = 0; d < headSize; d++, source += channelStep) values[target + d] = x[source]! * inverse + ROUND - ROUND;
    }
  }
}
