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
  // Four codes at once: single bytes take several times as long.
  const words = new Int32Array(out.buffer, out.byteOffset, out.length / 4);
  for (let r = 0; r < numRows; r++) {
    const inverse = scales[r]! > 0 ? 1 / scales[r]! : 0;
    const row = firstRow + r;
    let word = (Math.floor(row / GROUP) * GROUP * paddedWidth) / 4 + (row % GROUP);
    const end = (r + 1) * width;
    let i = r * width;
    for (; i + 4 <= end; i += 4, word += GROUP)
      words[word] =
        (code8(rows[i]!, inverse) & 255) |
        ((code8(rows[i + 1]!, inverse) & 255) << 8) |
        ((code8(rows[i + 2]!, inverse) & 255) << 16) |
        (code8(rows[i + 3]!, inverse) << 24);
    for (let j = 0; i + j < end; j++) out[4 * word + j] = code8(rows[i + j]!, inverse);
  }
}

const code8 = (weight: number, inverse: number): number => clamp(weight * inverse + ROUND - ROUND);

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
  const words = new Int32Array(out.buffer, out.byteOffset, out.length / 4);
  for (let r = 0; r < numRows; r++) {
    const group = Math.floor((firstRow + r) / GROUP);
    const inGroup = (firstRow + r) % GROUP;
    for (let b = 0; b < blocks; b++) {
      const block = r * blocks + b;
      const to = group * blocks + b;
      outScales[to * GROUP + inGroup] = scales[block]!;
      let word = (to * half * GROUP) / 4 + inGroup;
      for (let i = block * half; i < (block + 1) * half; i += 4, word += GROUP) {
        // Codes 0 and 1 of eight, then 2 and 3, ...
        const [c01, c23, c45, c67] = [codes[i]!, codes[i + 1]!, codes[i + 2]!, codes[i + 3]!];
        words[word] =
          (c01 & 15) |
          ((c45 & 15) << 4) |
          (((c01 >> 4) | (c45 & 240)) << 8) |
          (((c23 & 15) | ((c67 & 15) << 4)) << 16) |
          (((c23 >> 4) | (c67 & 240)) << 24);
      }
    }
  }
}
