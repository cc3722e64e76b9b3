/**
 * FP8: E4M3 codes with a float32 scale per head and block of tokens, x = code * scale, scale = largest / 448. Per head and
 * block, because a float's precision does not depend on the scale until values are 2^14 below the largest, which a block's are
 * not; a scale per token would cost four bytes for nothing. Bytes: scales [kvHeads] float32, then codes [kvHeads, n, headSize].
 */
import { MalformedRun, type TokenFormat } from './codecFormat.ts';
import { finite, largestOf } from './scales.ts';
import { E4M3 } from './smallFloats.ts';

export const FP8: TokenFormat = {
  layout: 'byToken',

  bytes: (kvHeads, headSize, n) => kvHeads * (4 + headSize * n),

  encode(x, kvHeads, headSize, n, out, at) {
    const { codes, shift, rest, largest } = E4M3;
    const bits = new Int32Array(x.buffer, x.byteOffset, x.length);
    const view = new DataView(out.buffer, out.byteOffset);
    const length = headSize * n;
    for (let h = 0; h < kvHeads; h++) {
      const scale = largestOf(x, bits, h * length, length) / largest;
      view.setFloat32(at + 4 * h, scale, true);
      const inverse = scale > 1e-38 ? 1 / scale : 0;
      for (let i = h * length, end = i + length; i < end; i += 2) {
        x[i] = x[i]! * inverse;
        x[i + 1] = x[i + 1]! * inverse;
      }
    }
    at += 4 * kvHeads;
    for (let i = 0, end = kvHeads * length; i < end; i += 2) {
      const a = bits[i]!;
      const b = bits[i + 1]!;
      out[at + i] = codes[((a >>> shift) << 1) | ((0 - (a & rest)) >>> 31)]!;
      out[at + i + 1] = codes[((b >>> shift) << 1) | ((0 - (b & rest)) >>> 31)]!;
    }
  },

  decode(bytes, at, kvHeads, headSize, n, x) {
    const { values } = E4M3;
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    const length = headSize * n;
    const codes = at + 4 * kvHeads;
    // Bit 7 is set once a code is 0x7f or 0xff: a NaN in one row would spoil all that attends to it.
    let nan = 0;
    for (let h = 0; h < kvHeads; h++) {
      const scale = finite(view.getFloat32(at + 4 * h, true), E4M3.largest);
      for (let i = h * length, end = i + length; i < end; i += 2) {
        const a = bytes[codes + i]!;
        const b = bytes[codes + i + 1]!;
        nan |= ((a & 0x7f) + 1) | ((b & 0x7f) + 1);
        x[i] = values[a]! * scale;
        x[i + 1] = values[b]! * scale;
      }
    }
    if (nan & 0x80) throw new MalformedRun('there is a NaN in it');
  },
};
