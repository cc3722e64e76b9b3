/**
 * 4 bits as in KIVI (arXiv 2402.02750): K per channel over the tokens of a block, whose channels differ far more than its tokens
 * do, and V per token in groups of 32 channels. Asymmetric: a group spans lo .. hi in 15 steps. KIVI keeps lo and the step in 16
 * bits each, 5 bits per value; here lo and hi are 8-bit codes in units of the head's largest value in the block / 127, 4.5
 * bits: that is as fine as the pool's own rows. Bytes: units [kvHeads] float32, then for each group lo, hi and its values,
 * two per byte, the first in the low half.
 */
import type { SideFormat, TokenFormat } from './codecFormat.ts';
import { finiteScales } from './codecFormat.ts';
import { kernels } from './kernels.ts';

/** Channels that share bounds in V. */
const VALUE_GROUP = 32;

function bytes(kvHeads: number, rows: number, width: number, group: number): number {
  const whole = Math.floor(width / group);
  const rest = width - whole * group;
  return kvHeads * (4 + rows * (whole * (2 + Math.ceil(group / 2)) + (rest > 0 ? 2 + Math.ceil(rest / 2) : 0)));
}

/** Bytes -> x [kvHeads, rows, width], groups along the rows. */
function decode(from: number, kvHeads: number, rows: number, width: number, group: number, x: number): void {
  finiteScales(from, kvHeads, 128);
  kernels().kiviDecode(from, kvHeads, rows, width, group, x);
}

export const KIVI_KEYS: SideFormat = {
  layout: 'byChannel',
  bytes: (kvHeads, headSize, n) => bytes(kvHeads, headSize, n, n),
  encode: (x, kvHeads, headSize, n, out, spare) => kernels().kiviEncode(x, kvHeads, headSize, n, n, out, spare),
  decode: (from, kvHeads, headSize, n, x) => decode(from, kvHeads, headSize, n, n, x),
};

export const KIVI_VALUES: TokenFormat = {
  layout: 'byToken',
  bytes: (kvHeads, headSize, n) => bytes(kvHeads, n, headSize, VALUE_GROUP),
  encode: (x, kvHeads, headSize, n, out, spare) =>
    kernels().kiviEncode(x, kvHeads, n, headSize, VALUE_GROUP, out, spare),
  decode: (from, kvHeads, headSize, n, x) => decode(from, kvHeads, n, headSize, VALUE_GROUP, x),
};
