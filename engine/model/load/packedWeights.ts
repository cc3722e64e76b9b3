/**
 * The layout of weights for the native kernels: groups of outputs (see engine/native/step.h). Pure functions. Does not
 * quantise to 4 bits (see quantise.ts).
 */
import type { ModelConfig } from './hfConfig.ts';
import { BLOCK, clamp, numBlocks, ROUND } from './quantise.ts';

/** Outputs of a group. A row of weights is padded to a multiple of WIDTH_MULTIPLE. */
export const GROUP = 16;
const WIDTH_MULTIPLE = 16;

/** Whether the native kernels can compute a model: they take four numbers of a head at a time. */
export function fitsKernels({ headSize }: ModelConfig): boolean {
  return headSize % 4 === 0;
}

/** Outputs with those that fill the last group. */
export function paddedRows(rows: number): number {
  return GROUP * Math.ceil(rows / GROUP);
}

/** Dimensions of a layer of 8 bits: [groups, paddedWidth / 4, GROUP, 4]. */
export function packedDims8(rows: number, width: number): number[] {
  return [paddedRows(rows) / GROUP, (WIDTH_MULTIPLE / 4) * Math.ceil(width / WIDTH_MULTIPLE), GROUP, 4];
}

/** Dimensions of a layer of 4 bits: [groups, numBlocks, BLOCK / 8, GROUP, 4]. */
export function packedDims4(rows: number, width: number): number[] {
  return [paddedRows(rows) / GROUP, numBlocks(width), BLOCK / 8, GROUP, 4];
}

/**
 * Codes rows [numRows, width] in 8 bits into out [groups, paddedWidth / 4, GROUP, 4], from row `firstRow` on. `scales`:
 * of these rows.
 */
export function packRows8(
  rows: Float32Array,
  numRows: number,
  width: number,
  scales: Float32Array,
  out: Int8Array,
  paddedWidth: number,
  firstRow: number,
): void {
  for (let r = 0; r < numRows; r++) {
    const inverse = scales[r]! > 0 ? 1 / scales[r]! : 0;
    const row = firstRow + r;
    const start = Math.floor(row / GROUP) * GROUP * paddedWidth + (row % GROUP) * 4;
    const source = r * width;
    for (let i = 0; i < width; i++)
      out[start + (i >> 2) * 4 * GROUP + (i & 3)] = clamp(rows[source + i]! * inverse + ROUND - ROUND);
  }
}

/**
 * Codes what the codes of rows from `firstRow` on leave, in steps of 1 / 254 of theirs, into rows from `firstRest` on.
 * `rows`: those that packRows8 got; they are overwritten. `restScales`: result.
 */
export function packRest8(
  rows: Float32Array,
  numRows: number,
  width: number,
  scales: Float32Array,
  restScales: Float32Array,
  out: Int8Array,
  paddedWidth: number,
  firstRow: number,
  firstRest: number,
): void {
  for (let r = 0; r < numRows; r++) {
    const row = firstRow + r;
    const start = Math.floor(row / GROUP) * GROUP * paddedWidth + (row % GROUP) * 4;
    for (let i = 0; i < width; i++) rows[r * width + i]! -= out[start + (i >> 2) * 4 * GROUP + (i & 3)]! * scales[r]!;
    restScales[r] = scales[r]! / 254;
  }
  packRows8(rows, numRows, width, restScales, out, paddedWidth, firstRest);
}

/**
 * Moves codes [numRows, numBlocks, BLOCK / 2] and scales [numRows, numBlocks] of quantiseBlocks4, from row `firstRow`
 * on, into `out` [groups, numBlocks, BLOCK / 8, GROUP, 4] and `outScales` [groups, numBlocks, GROUP]. Byte j of a
 * vector holds the codes 8 v + j and 8 v + 4 + j of its block.
 */
export function packBlocks4(
  codes: Uint8Array,
  scales: Float32Array,
  numRows: number,
  blocks: number,
  out: Uint8Array,
  outScales: Float32Array,
  firstRow: number,
): void {
  const half = BLOCK / 2;
  const codeOf = (block: number, i: number): number => (codes[block * half + (i >> 1)]! >> (4 * (i & 1))) & 15;
  for (let r = 0; r < numRows; r++) {
    const group = Math.floor((firstRow + r) / GROUP);
    const inGroup = (firstRow + r) % GROUP;
    for (let b = 0; b < blocks; b++) {
      const block = r * blocks + b;
      const to = group * blocks + b;
      outScales[to * GROUP + inGroup] = scales[block]!;
      for (let i = 0; i < half; i++) {
        const first = 8 * (i >> 2) + (i & 3);
        out[to * half * GROUP + (i >> 2) * 4 * GROUP + 4 * inGroup + (i & 3)] =
          codeOf(block, first) | (codeOf(block, first + 4) << 4);
      }
    }
  }
}
