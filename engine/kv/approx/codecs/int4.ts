/**
 * 4 bits in groups of 32 consecutive values of a token and head, with one half-precision scale per group: x = (q - 8) d, q in
 * 0 .. 15, where d is the value of largest magnitude, sign included, over -8. Group for group the bytes of llama.cpp's Q4_0:
 * d, then 16 bytes with values 0 .. 15 in the low and 16 .. 31 in the high halves. A head size that is no multiple of 32 ends in
 * a shorter group. Bytes: groups of [kvHeads, n, headSize].
 */
import { MalformedRun, type TokenFormat } from './codecFormat.ts';
import { kernels } from './kernels.ts';

const GROUP = 32;

export const INT4: TokenFormat = {
  layout: 'byToken',

  bytes: (kvHeads, headSize, n) => kvHeads * n * (headSize / 2 + 2 * Math.ceil(headSize / GROUP)),

  encode(x, kvHeads, headSize, n, out) {
    kernels().int4Encode(x, kvHeads * n, headSize, out);
  },

  decode(from, kvHeads, headSize, n, x) {
    if (kernels().int4Decode(from, kvHeads * n, headSize, x))
      throw new MalformedRun('it has a scale that is not finite');
  },
};
