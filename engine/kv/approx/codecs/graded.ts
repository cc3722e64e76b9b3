/**
 * 2, 3 or 4 bits for values that a Hadamard rotation has made about normal, at the levels that are best for a normal density (Max
 * 1960), as TurboQuant has them (arXiv 2504.19874): x = mean of the channel in the block + level * scale of the token. The means of K
 * before the rotary embedding are most of it in some heads; what is left takes up to two bits less for the same error. A scale is such that
 * products with the row are right on average, not its squared error least: that took a third off the divergence.
 * Bytes: for each head the units of means and scales, float32; means [channels] int8; scales [tokens], how far below their unit in
 * steps of about a 32nd of an octave, 255: 0; then the codes.
 */
import type { SideFormat, TokenFormat } from './codecFormat.ts';
import { finite } from './codecFormat.ts';
import { kernels } from './kernels.ts';

type Bits = 2 | 3 | 4;

const UNITS_BYTES = 8;
/** More than sums of a whole row's values may be in units of this, which is what the rotation has on its way. */
const MAX_UNITS = 127 * 1024;

const headBytes = (tokens: number, channels: number, bits: Bits): number =>
  UNITS_BYTES + channels + tokens + Math.ceil((tokens * channels * bits) / 8);

/** @throws MalformedRun when a unit is not finite. */
function checkUnits(from: number, kvHeads: number, bytesOfHead: number): void {
  const view = new DataView(kernels().memory.buffer, from);
  for (let h = 0; h < kvHeads; h++) {
    finite(view.getFloat32(h * bytesOfHead, true), MAX_UNITS);
    finite(view.getFloat32(h * bytesOfHead + 4, true), MAX_UNITS);
  }
}

/** x [kvHeads, headSize, n], by token [kvHeads, n, headSize]. */
function graded(bits: Bits, byToken: boolean): Omit<SideFormat, 'layout'> {
  const sizes = (headSize: number, n: number): [rows: number, width: number] =>
    byToken ? [n, headSize] : [headSize, n];
  return {
    bytes: (kvHeads, headSize, n) => kvHeads * headBytes(n, headSize, bits),
    encode: (x, kvHeads, headSize, n, out, spare) =>
      kernels().gradedEncode(x, kvHeads, ...sizes(headSize, n), byToken, bits, out, spare),
    decode(from, kvHeads, headSize, n, x, spare) {
      checkUnits(from, kvHeads, headBytes(n, headSize, bits));
      kernels().gradedDecode(from, kvHeads, ...sizes(headSize, n), byToken, bits, x, spare);
    },
  };
}

export const gradedKeys = (bits: Bits): SideFormat => ({ layout: 'byChannel', ...graded(bits, false) });
export const gradedValues = (bits: Bits): TokenFormat => ({ layout: 'byToken', ...graded(bits, true) });
