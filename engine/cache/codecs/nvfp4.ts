/**
 * NVFP4: E2M1 codes, an E4M3 scale per 16 consecutive values of a token and head, and a float32 scale of the tensor, which
 * is one layer's K or V of a block: x = code * blockScale * tensorScale. As published: tensorScale = largest / (6 * 448),
 * blockScale = (largest of the block / 6) / tensorScale; two codes per byte, the first in the low half. A head size that is no
 * multiple of 16 ends in a shorter block.
 * Bytes: tensorScale, block scales [kvHeads, n, ceil(headSize / 16)], codes [kvHeads, n, headSize / 2].
 */
import { MalformedRun, type TokenFormat } from './codecFormat.ts';
import { finite } from './scales.ts';
import { E2M1, E4M3 } from './smallFloats.ts';

const BLOCK = 16;

export const NVFP4: TokenFormat = {
  layout: 'byToken',

  bytes: (kvHeads, headSize, n) => 4 + kvHeads * n * (headSize / 2 + Math.ceil(headSize / BLOCK)),

  encode(x, kvHeads, headSize, n, out, at) {
    const numRows = kvHeads * n;
    const blocks = numRows * Math.ceil(headSize / BLOCK);
    const largest = new Float32Array(blocks);
    const tensorScale = Math.fround(findLargest(x, headSize, largest) / (E2M1.largest * E4M3.largest));
    new DataView(out.buffer, out.byteOffset).setFloat32(at, tensorScale, true);
    // A conversion looks at the bits of a float32.
    const bits = new Int32Array(x.buffer, x.byteOffset, x.length);
    const scaleBits = new Uint32Array(largest.buffer);
    const { codes: scaleCodes, shift: scaleShift, rest: scaleRest, values: scaleValues } = E4M3;
    const { codes, shift, rest } = E2M1;
    const toScale = tensorScale > 1e-38 ? 1 / (E2M1.largest * tensorScale) : 0;
    for (let b = 0; b < blocks; b++) largest[b] = largest[b]! * toScale;
    let block = 0;
    let codeAt = at + 4 + blocks;
    for (let row = 0, end = numRows * headSize; row < end; row += headSize) {
      for (let i = row; i < row + headSize; i += BLOCK) {
        const last = Math.min(i + BLOCK, row + headSize);
        const u = scaleBits[block]!;
        const scaleCode = scaleCodes[((u >>> scaleShift) << 1) | ((0 - (u & scaleRest)) >>> 31)]!;
        out[at + 4 + block++] = scaleCode;
        const inverse = scaleCode === 0 ? 0 : 1 / (scaleValues[scaleCode]! * tensorScale);
        for (let j = i; j < last; j++) x[j] = x[j]! * inverse;
        for (let j = i; j < last; j += 2) {
          const a = bits[j]!;
          const b = bits[j + 1]!;
          out[codeAt++] = codes[((a >>> shift) << 1) | ((0 - (a & rest)) >>> 31)]! | (codes[((b >>> shift) << 1) | ((0 - (b & rest)) >>> 31)]! << 4);
        }
      }
    }
  },

  decode(bytes, at, kvHeads, headSize, n, x) {
    const numRows = kvHeads * n;
    const tensorScale = finite(new DataView(bytes.buffer, bytes.byteOffset).getFloat32(at, true), E2M1.largest * E4M3.largest);
    let scaleAt = at + 4;
    let codeAt = scaleAt + numRows * Math.ceil(headSize / BLOCK);
    const { values } = E2M1;
    for (let row = 0, end = numRows * headSize; row < end; row += headSize) {
      for (let i = row; i < row + headSize; i += BLOCK) {
        const last = Math.min(i + BLOCK, row + headSize);
        const scaleCode = bytes[scaleAt++]!;
        if (scaleCode >= 0x7f) throw new MalformedRun('it has a block scale that is negative or NaN');
        const scale = E4M3.values[scaleCode]! * tensorScale;
        for (let j = i; j < last; j += 2) {
          const pair = bytes[codeAt++]!;
          x[j] = values[pair & 15]! * scale;
          x[j + 1] = values[pair >> 4]! * scale;
        }
      }
    }
  },
};

/** The largest magnitude of each block -> largest. @returns that of all. */
function findLargest(x: Float32Array, headSize: number, largest: Float32Array): number {
  let block = 0;
  let most = 0;
  for (let row = 0; row < x.length; row += headSize) {
    for (let i = row; i < row + headSize; i += BLOCK) {
      let max = 0;
      for (let j = i, last = Math.min(i + BLOCK, row + headSize); j < last; j++) {
        const v = Math.abs(x[j]!);
        if (v > max) max = v;
      }
      largest[block++] = max;
      if (max > most) most = max;
    }
  }
  return most;
}
