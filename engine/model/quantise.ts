/**
 * Symmetric quantisation of weight rows, one scale per row: 8 bits for products, written as the columns of the operator's
 * layout, and 16 bits for the embedding table.
 */

/** Rows and columns of a tile of the transposition: both sides of a tile stay in the first-level cache. */
const TILE = 64;
/** Adding and subtracting 1.5 * 2^52 rounds a double to the nearest integer, half to even. */
const ROUND = 6755399441055744;

/** scales[i] = max |row i| / 127; an all-zero row has the scale 0. rows: [numRows, width]. */
export function rowScales(rows: Float32Array, numRows: number, width: number, scales: Float32Array): void {
  for (let r = 0; r < numRows; r++) {
    let max = 0;
    for (let i = r * width, end = i + width; i < end; i++) {
      const v = Math.abs(rows[i]!);
      if (v > max) max = v;
    }
    scales[r] = max / 127;
  }
}

/**
 * rows [numRows, width] -> out [numRows, width] of 16-bit codes, x = code * scale. For tables that are only looked up: 8
 * bits there would cost as much accuracy as all 8-bit products of a small model together.
 */
export function quantiseRows16(
  rows: Float32Array,
  numRows: number,
  width: number,
  scales: Float32Array,
  out: Int16Array,
): void {
  for (let r = 0; r < numRows; r++) {
    let max = 0;
    for (let i = r * width, end = i + width; i < end; i++) max = Math.max(max, Math.abs(rows[i]!));
    scales[r] = max / 32_767;
    const inverse = max > 0 ? 32_767 / max : 0;
    for (let i = r * width, end = i + width; i < end; i++) out[i] = rows[i]! * inverse + ROUND - ROUND;
  }
}

/** rows [numRows, width] -> columns firstColumn .. firstColumn+numRows-1 of out [width, numColumns]. */
export function quantiseToColumns(
  rows: Float32Array,
  numRows: number,
  width: number,
  scales: Float32Array,
  out: Int8Array,
  numColumns: number,
  firstColumn: number,
): void {
  for (let r0 = 0; r0 < numRows; r0 += TILE) {
    const r1 = Math.min(numRows, r0 + TILE);
    for (let i0 = 0; i0 < width; i0 += TILE) {
      const i1 = Math.min(width, i0 + TILE);
      for (let r = r0; r < r1; r++) {
        const inverse = scales[r]! > 0 ? 1 / scales[r]! : 0;
        const source = r * width;
        let target = i0 * numColumns + firstColumn + r;
        for (let i = i0; i < i1; i++, target += numColumns)
          out[target] = clamp(rows[source + i]! * inverse + ROUND - ROUND);
      }
    }
  }
}

/** A scale that underflows to a denormal can be too small by more than half a step; -128 must not occur (see stepGraph). */
function clamp(value: number): number {
  return Math.min(127, Math.max(-127, value));
}
