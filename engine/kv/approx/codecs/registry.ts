/**
 * The codecs by name and id, and their number formats. Names and ids never change, because files on disk have them.
 * Sizes and errors: `npm run bench -- kv`. Does not encode runs; KvCodec does, with the loops in kernels/.
 */
import {
  type CodecShape,
  type LayerSides,
  type Rotation,
  type RunFormat,
  finite,
  finiteScales,
  MalformedRun,
  type SideFormat,
  type TokenFormat,
} from './codecFormat.ts';
import { KvCodec } from './kvCodec.ts';
import { kernels } from './kernels.ts';

/*
 * NVFP4: E2M1 codes, an E4M3 scale for 16 consecutive values of a token and head, and a float32 scale of the tensor,
 * which is K or V of one layer of a block of tokens: x = code * blockScale * tensorScale. As published, tensorScale =
 * largest / (6 * 448) and blockScale = (largest of the 16 / 6) / tensorScale. Two codes per byte, the first in the low
 * half. If 16 does not divide the head size, the last group is shorter. Bytes: tensorScale, block scales [kvHeads, n,
 * ceil(headSize / 16)], codes [kvHeads, n, headSize / 2].
 */

const NVFP4_BLOCK = 16;
const NVFP4_LARGEST = 6 * 448;

export const NVFP4: TokenFormat = {
  layout: 'byToken',

  bytes: (kvHeads, headSize, n) => 4 + kvHeads * n * (headSize / 2 + Math.ceil(headSize / NVFP4_BLOCK)),

  encode(x, kvHeads, headSize, n, out, spare) {
    kernels().nvfp4Encode(x, kvHeads * n, headSize, out, spare);
  },

  decode(from, kvHeads, headSize, n, x) {
    finiteScales(from, 1, NVFP4_LARGEST);
    if (kernels().nvfp4Decode(from, kvHeads * n, headSize, x))
      throw new MalformedRun('it has a block scale that is negative or NaN');
  },
};

/*
 * 4 bits as in KIVI (arXiv 2402.02750): K by channel over the tokens of a block, because channels differ far more than
 * tokens, and V by token in groups of 32 channels. Asymmetric: a group spans lo .. hi in 15 steps. KIVI keeps lo and
 * the step in 16 bits each, 5 bits per value. Here lo and hi are 8-bit codes in units of the head's largest value in
 * the block / 127, 4.5 bits per value, which is as precise as the pool's own rows. Bytes: units [kvHeads] float32; then
 * for each group lo, hi and its values, two per byte, the first in the low half.
 */

/** Channels of V that share bounds. */
const VALUE_GROUP = 32;

function kiviBytes(kvHeads: number, rows: number, width: number, group: number): number {
  const whole = Math.floor(width / group);
  const rest = width - whole * group;
  return kvHeads * (4 + rows * (whole * (2 + Math.ceil(group / 2)) + (rest > 0 ? 2 + Math.ceil(rest / 2) : 0)));
}

/** Decodes bytes to x [kvHeads, rows, width], with groups along the rows. */
function kiviDecode(from: number, kvHeads: number, rows: number, width: number, group: number, x: number): void {
  finiteScales(from, kvHeads, 128);
  kernels().kiviDecode(from, kvHeads, rows, width, group, x);
}

export const KIVI_KEYS: SideFormat = {
  layout: 'byChannel',
  bytes: (kvHeads, headSize, n) => kiviBytes(kvHeads, headSize, n, n),
  encode: (x, kvHeads, headSize, n, out, spare) => kernels().kiviEncode(x, kvHeads, headSize, n, n, out, spare),
  decode: (from, kvHeads, headSize, n, x) => kiviDecode(from, kvHeads, headSize, n, n, x),
};

const KIVI_VALUES: TokenFormat = {
  layout: 'byToken',
  bytes: (kvHeads, headSize, n) => kiviBytes(kvHeads, n, headSize, VALUE_GROUP),
  encode: (x, kvHeads, headSize, n, out, spare) =>
    kernels().kiviEncode(x, kvHeads, n, headSize, VALUE_GROUP, out, spare),
  decode: (from, kvHeads, headSize, n, x) => kiviDecode(from, kvHeads, n, headSize, VALUE_GROUP, x),
};

/*
 * 2, 3 or 4 bits as in TurboQuant (arXiv 2504.19874). A Hadamard rotation makes the values about normal; the levels are
 * the best ones for a normal density (Max 1960): x = mean of the channel in the block + level * scale of the token. In
 * some heads K before the rotary embedding is mostly the means; without them the rest takes up to two bits less for the
 * same error. The scale makes products with the row right on average; the scale of least squared error gave a third
 * more divergence. Bytes: for each head the units of means and scales, float32; means [channels] int8; scales [tokens],
 * how far below their unit in steps of about 1/32 octave (255: zero); then the codes.
 */

type Bits = 2 | 3 | 4;

const UNITS_BYTES = 8;
/** Largest code times unit that can occur: the sums of the Hadamard rotation add up a whole row. */
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

/** The format of x [kvHeads, headSize, n], or by token [kvHeads, n, headSize]. */
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

/** Tokens of a block of the store. */
const BLOCK = 32;
/** Fewest tokens for which bounds per channel are worth their bytes. */
const MIN_PER_CHANNEL = 16;

const byToken = {
  blockTokens: BLOCK,
  leastTokens: 1,
  sinkTokens: 0,
  recentTokens: 0,
  hadamard: false,
  unrotated: false,
};

/** Keys and values of a layer in so many bits. */
export const gradedSides = (bits: Bits): LayerSides => ({
  keys: { layout: 'byChannel', ...graded(bits, false) },
  values: { layout: 'byToken', ...graded(bits, true) },
});

export const FORMATS = [
  { ...byToken, name: 'int8', id: 1, sides: null },
  { ...byToken, name: 'nvfp4', id: 5, sides: { keys: NVFP4, values: NVFP4 } },
  {
    ...byToken,
    name: 'int4-kivi',
    id: 7,
    sides: { keys: KIVI_KEYS, values: KIVI_VALUES },
    leastTokens: MIN_PER_CHANNEL,
    sinkTokens: 4,
    recentTokens: 128,
  },
  {
    ...byToken,
    name: 'turboquant',
    id: 9,
    sides: gradedSides(2),
    finer: [gradedSides(4), gradedSides(3)],
    blockTokens: 128,
    leastTokens: MIN_PER_CHANNEL,
    sinkTokens: 1,
    hadamard: true,
    unrotated: true,
  },
] as const satisfies readonly RunFormat[];

export type CodecName = (typeof FORMATS)[number]['name'];

/**
 * `rotation`: of the model; needed by formats that are `unrotated`. `needs`: see KvCodec. @throws Error that names the
 * known codecs.
 */
export function codecNamed(
  name: CodecName | (string & {}),
  shape: CodecShape,
  rotation: Rotation | null,
  needs?: readonly number[],
): KvCodec {
  const format = FORMATS.find((format) => format.name === name);
  if (!format) throw new Error(`unknown codec ${name}; known are ${FORMATS.map((each) => each.name).join(', ')}`);
  return new KvCodec(format, shape, rotation, needs);
}
