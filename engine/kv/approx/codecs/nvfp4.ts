/**
 * NVFP4: E2M1 codes, an E4M3 scale per 16 consecutive values of a token and head, and a float32 scale of the tensor, which
 * is one layer's K or V of a block: x = code * blockScale * tensorScale. As published: tensorScale = largest / (6 * 448),
 * blockScale = (largest of the block / 6) / tensorScale; two codes per byte, the first in the low half. A head size that is no
 * multiple of 16 ends in a shorter block.
 * Bytes: tensorScale, block scales [kvHeads, n, ceil(headSize / 16)], codes [kvHeads, n, headSize / 2].
 */
import { finiteScales, MalformedRun, type TokenFormat } from './codecFormat.ts';
import { kernels } from './kernels.ts';

const BLOCK = 16;
const LARGEST = 6 * 448;

export const NVFP4: TokenFormat = {
  layout: 'byToken',

  bytes: (kvHeads, headSize, n) => 4 + kvHeads * n * (headSize / 2 + Math.ceil(headSize / BLOCK)),

  encode(x, kvHeads, headSize, n, out, spare) {
    kernels().nvfp4Encode(x, kvHeads * n, headSize, out, spare);
  },

  decode(from, kvHeads, headSize, n, x) {
    finiteScales(from, 1, LARGEST);
    if (kernels().nvfp4Decode(from, kvHeads * n, headSize, x))
      throw new MalformedRun('it has a block scale that is negative or NaN');
  },
};
