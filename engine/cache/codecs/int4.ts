/**
 * 4 bits in groups of 32 consecutive values of a token and head, with one half-precision scale per group: x = (q - 8) d, q in
 * 0 .. 15, where d is the value of largest magnitude, sign included, over -8. Group for group the bytes of llama.cpp's Q4_0:
 * d, then 16 bytes with values 0 .. 15 in the low and 16 .. 31 in the high halves. A head size that is no multiple of 32 ends in
 * a shorter group. Bytes: groups of [kvHeads, n, headSize].
 */
import { MalformedRun, type TokenFormat } from './codecFormat.ts';
import { halfBits, halfValue } from './float16.ts';

const GROUP = 32;

export const INT4: TokenFormat = {
  layout: 'byToken',

  bytes: (kvHeads, headSize, n) => kvHeads * n * (headSize / 2 + 2 * Math.ceil(headSize / GROUP)),

  encode(x, kvHeads, headSize, n, out, at) {
    for (let row = 0, end = kvHeads * n * headSize; row < end; row += headSize) {
      for (let i = row; i < row + headSize; i += GROUP) {
        const half = Math.min(GROUP, row + headSize - i) >> 1;
        // Of two with the same magnitude the first, as there.
        let largest = 0;
        let most = 0;
        for (let j = i; j < i + 2 * half; j++) {
          const magnitude = Math.abs(x[j]!);
          if (magnitude > most) {
            most = magnitude;
            largest = x[j]!;
          }
        }
        const d = Math.fround(largest / -8);
        const inverse = d === 0 ? 0 : Math.fround(1 / d);
        const bits = halfBits(d);
        out[at] = bits;
        out[at + 1] = bits >> 8;
        at += 2;
        for (let j = i; j < i + half; j++) {
          // Single precision as there; a value of the opposite sign and the same magnitude would be 16.
          const low = Math.fround(Math.fround(x[j]! * inverse) + 8.5) | 0;
          const high = Math.fround(Math.fround(x[j + half]! * inverse) + 8.5) | 0;
          out[at++] = (low < 15 ? low : 15) | ((high < 15 ? high : 15) << 4);
        }
      }
    }
  },

  decode(bytes, at, kvHeads, headSize, n, x) {
    for (let row = 0, end = kvHeads * n * headSize; row < end; row += headSize) {
      for (let i = row; i < row + headSize; i += GROUP) {
        const half = Math.min(GROUP, row + headSize - i) >> 1;
        const bits = bytes[at]! | (bytes[at + 1]! << 8);
        if ((bits & 0x7c00) === 0x7c00) throw new MalformedRun('it has a scale that is not finite');
        const d = halfValue(bits);
        at += 2;
        for (let j = i; j < i + half; j++) {
          const pair = bytes[at++]!;
          x[j] = ((pair & 15) - 8) * d;
          x[j + half] = ((pair >> 4) - 8) * d;
        }
      }
    }
  },
};
