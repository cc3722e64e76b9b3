/**
 * FP8: E4M3 codes with a float32 scale per head and block of tokens, x = code * scale, scale = largest / 448. Per head and
 * block, because a float's precision does not depend on the scale until values are 2^14 below the largest, which a block's are
 * not; a scale per token would cost four bytes for nothing. Bytes: scales [kvHeads] float32, then codes [kvHeads, n, headSize].
 */
import { MalformedRun, type TokenFormat } from './codecFormat.ts';
import { kernels } from './kernels.ts';
import { finiteScales } from './codecFormat.ts';

const LARGEST = 448;

export const FP8: TokenFormat = {
  layout: 'byToken',

  bytes: (kvHeads, headSize, n) => kvHeads * (4 + headSize * n),

  encode(x, kvHeads, headSize, n, out) {
    kernels().fp8Encode(x, kvHeads, headSize * n, out);
  },

  decode(from, kvHeads, headSize, n, x) {
    finiteScales(from, kvHeads, LARGEST);
    if (kernels().fp8Decode(from, kvHeads, headSize * n, x)) throw new MalformedRun('there is a NaN in it');
  },
};
