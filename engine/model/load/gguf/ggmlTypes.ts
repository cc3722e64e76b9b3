/**
 * The storage types of GGUF tensors: size of their blocks, and how a block becomes float32. Gives the bits of the Python
 * package `gguf`, whose sums and products are rounded to float32 one by one. Does not read files.
 */
import { halfTable } from '../safetensors.ts';

/** Decodes blocks from raw[at ..] into out[to ..]. */
type DecodeBlock = (raw: Uint8Array, at: number, out: Float32Array, to: number) => void;

export interface GgmlType {
  readonly name: string;
  /** Values of a block. */
  readonly values: number;
  readonly bytes: number;
  /** Null for plain floats, whose `name` is that of safetensors. */
  readonly decode: DecodeBlock | null;
}

const { fround } = Math;
const halves = halfTable();
const half = (raw: Uint8Array, at: number): number => halves[raw[at]! | (raw[at + 1]! << 8)]!;
const signed = (byte: number): number => (byte << 24) >> 24;

/** The values of 4-bit codes in the IQ4 types. */
const IQ4 = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/** 16 bytes with 32 codes of 4 bits: the low halves come first. `high`: the fifth bits, or 0. */
function nibbles(raw: Uint8Array, at: number, high: number, use: (i: number, code: number) => void): void {
  for (let i = 0; i < 16; i++) {
    const byte = raw[at + i]!;
    use(i, (byte & 15) | (((high >>> i) & 1) << 4));
    use(i + 16, (byte >> 4) | (((high >>> (i + 16)) & 1) << 4));
  }
}

const uint32 = (raw: Uint8Array, at: number): number =>
  raw[at]! | (raw[at + 1]! << 8) | (raw[at + 2]! << 16) | (raw[at + 3]! << 24);

const q4_0: DecodeBlock = (raw, at, out, to) => {
  const d = half(raw, at);
  for (let i = 0; i < 16; i++) {
    const byte = raw[at + 2 + i]!;
    out[to + i] = d * ((byte & 15) - 8);
    out[to + 16 + i] = d * ((byte >> 4) - 8);
  }
};

const q4_1: DecodeBlock = (raw, at, out, to) => {
  const [d, least] = [half(raw, at), half(raw, at + 2)];
  nibbles(raw, at + 4, 0, (i, code) => (out[to + i] = fround(d * code) + least));
};

const q5_0: DecodeBlock = (raw, at, out, to) => {
  const d = half(raw, at);
  nibbles(raw, at + 6, uint32(raw, at + 2), (i, code) => (out[to + i] = d * (code - 16)));
};

const q5_1: DecodeBlock = (raw, at, out, to) => {
  const [d, least] = [half(raw, at), half(raw, at + 2)];
  nibbles(raw, at + 8, uint32(raw, at + 4), (i, code) => (out[to + i] = fround(d * code) + least));
};

const q8_0: DecodeBlock = (raw, at, out, to) => {
  const d = half(raw, at);
  for (let i = 0; i < 32; i++) out[to + i] = d * signed(raw[at + 2 + i]!);
};

const iq4Nl: DecodeBlock = (raw, at, out, to) => {
  const d = half(raw, at);
  nibbles(raw, at + 2, 0, (i, code) => (out[to + i] = d * IQ4[code]!));
};

/** Blocks of 256 have scales for groups of 16 or 32 values, which are coded themselves. */
const q2K: DecodeBlock = (raw, at, out, to) => {
  const [d, dLeast] = [half(raw, at + 80), half(raw, at + 82)];
  for (let i = 0; i < 256; i++) {
    const scale = raw[at + (i >> 4)]!;
    const code = (raw[at + 16 + 32 * (i >> 7) + (i & 31)]! >> (2 * ((i >> 5) & 3))) & 3;
    out[to + i] = fround(fround(d * (scale & 15)) * code) - fround(dLeast * (scale >> 4));
  }
};

const q3K: DecodeBlock = (raw, at, out, to) => {
  const d = half(raw, at + 108);
  for (let i = 0; i < 256; i++) {
    const group = i >> 4;
    const low = (raw[at + 96 + (group & 7)]! >> (group < 8 ? 0 : 4)) & 15;
    const scale = low | (((raw[at + 104 + (group & 3)]! >> (2 * (group >> 2))) & 3) << 4);
    const code = (raw[at + 32 + 32 * (i >> 7) + (i & 31)]! >> (2 * ((i >> 5) & 3))) & 3;
    // A bit that is not set takes 4 away.
    const bit = (raw[at + (i & 31)]! >> (i >> 5)) & 1;
    out[to + i] = fround(d * (scale - 32)) * (code - 4 * (1 - bit));
  }
};

/** The scale of group 0..7, of 6 bits, from the 12 bytes of Q4_K and Q5_K. */
const scaleOf = (raw: Uint8Array, at: number, group: number): number =>
  group < 4 ? raw[at + group]! & 63 : (raw[at + 4 + group]! & 15) | ((raw[at + group - 4]! >> 2) & 48);

/** The same of the least value. */
const leastOf = (raw: Uint8Array, at: number, group: number): number =>
  group < 4 ? raw[at + 4 + group]! & 63 : (raw[at + 4 + group]! >> 4) | ((raw[at + group]! >> 2) & 48);

const q4K: DecodeBlock = (raw, at, out, to) => {
  const d = half(raw, at);
  const dLeast = half(raw, at + 2);
  // Two groups share the bytes of their codes.
  for (let pair = 0; pair < 4; pair++) {
    const low = fround(d * scaleOf(raw, at + 4, 2 * pair));
    const lowLeast = fround(dLeast * leastOf(raw, at + 4, 2 * pair));
    const high = fround(d * scaleOf(raw, at + 4, 2 * pair + 1));
    const highLeast = fround(dLeast * leastOf(raw, at + 4, 2 * pair + 1));
    const first = to + 64 * pair;
    const codes = at + 16 + 32 * pair;
    for (let i = 0; i < 32; i++) {
      const byte = raw[codes + i]!;
      out[first + i] = fround(low * (byte & 15)) - lowLeast;
      out[first + 32 + i] = fround(high * (byte >> 4)) - highLeast;
    }
  }
};

/** Q4_K with a fifth bit of each code in 32 bytes more. */
const q5K: DecodeBlock = (raw, at, out, to) => {
  const d = half(raw, at);
  const dLeast = half(raw, at + 2);
  for (let group = 0; group < 8; group++) {
    const step = fround(d * scaleOf(raw, at + 4, group));
    const least = fround(dLeast * leastOf(raw, at + 4, group));
    const codes = at + 48 + 32 * (group >> 1);
    for (let i = 0; i < 32; i++) {
      const low = (raw[codes + i]! >> (4 * (group & 1))) & 15;
      out[to + 32 * group + i] = fround(step * (low | (((raw[at + 16 + i]! >> group) & 1) << 4))) - least;
    }
  }
};

const q6K: DecodeBlock = (raw, at, out, to) => {
  const d = half(raw, at + 208);
  // Four groups of 16 share the bytes of their high bits.
  for (let part = 0; part < 4; part++) {
    const low = at + 64 * (part >> 1) + 16 * (part & 1);
    const high = at + 128 + 16 * part;
    const first = to + 128 * (part >> 1) + 16 * (part & 1);
    const group = at + 192 + 8 * (part >> 1) + (part & 1);
    const s0 = fround(d * signed(raw[group]!));
    const s1 = fround(d * signed(raw[group + 2]!));
    const s2 = fround(d * signed(raw[group + 4]!));
    const s3 = fround(d * signed(raw[group + 6]!));
    for (let i = 0; i < 16; i++) {
      const a = raw[low + i]!;
      const b = raw[low + 32 + i]!;
      const h = raw[high + i]!;
      out[first + i] = s0 * (((a & 15) | ((h & 3) << 4)) - 32);
      out[first + 32 + i] = s1 * (((b & 15) | ((h & 12) << 2)) - 32);
      out[first + 64 + i] = s2 * (((a >> 4) | (h & 48)) - 32);
      out[first + 96 + i] = s3 * (((b >> 4) | ((h & 192) >> 2)) - 32);
    }
  }
};

const iq4Xs: DecodeBlock = (raw, at, out, to) => {
  const d = half(raw, at);
  const highScales = raw[at + 2]! | (raw[at + 3]! << 8);
  for (let group = 0; group < 8; group++) {
    const low = (raw[at + 4 + (group >> 1)]! >> (4 * (group & 1))) & 15;
    const step = fround(d * ((low | (((highScales >> (2 * group)) & 3) << 4)) - 32));
    const first = to + 32 * group;
    nibbles(raw, at + 8 + 16 * group, 0, (i, code) => (out[first + i] = step * IQ4[code]!));
  }
};

const type = (name: string, values: number, bytes: number, decode: DecodeBlock | null = null): GgmlType => ({
  name,
  values,
  bytes,
  decode,
});

/** By their number in the file. */
const TYPES: ReadonlyMap<number, GgmlType> = new Map([
  [0, type('F32', 1, 4)],
  [1, type('F16', 1, 2)],
  [30, type('BF16', 1, 2)],
  [2, type('Q4_0', 32, 18, q4_0)],
  [3, type('Q4_1', 32, 20, q4_1)],
  [6, type('Q5_0', 32, 22, q5_0)],
  [7, type('Q5_1', 32, 24, q5_1)],
  [8, type('Q8_0', 32, 34, q8_0)],
  [10, type('Q2_K', 256, 84, q2K)],
  [11, type('Q3_K', 256, 110, q3K)],
  [12, type('Q4_K', 256, 144, q4K)],
  [13, type('Q5_K', 256, 176, q5K)],
  [14, type('Q6_K', 256, 210, q6K)],
  [20, type('IQ4_NL', 32, 18, iq4Nl)],
  [23, type('IQ4_XS', 256, 136, iq4Xs)],
]);
const BY_NAME = new Map([...TYPES.values()].map((each) => [each.name, each]));

/** Others that files have, for messages. */
const OTHERS: Readonly<Record<number, string>> = {
  16: 'IQ2_XXS',
  17: 'IQ2_XS',
  18: 'IQ3_XXS',
  19: 'IQ1_S',
  21: 'IQ3_S',
  22: 'IQ2_S',
  29: 'IQ1_M',
  34: 'TQ1_0',
  35: 'TQ2_0',
  39: 'MXFP4',
};

export const SUPPORTED_TYPES = [...BY_NAME.keys()].join(', ');

export function ggmlType(id: number): GgmlType | undefined {
  return TYPES.get(id);
}

/** The name of a type that is not supported, or its number. */
export function otherTypeName(id: number): string {
  return OTHERS[id] ?? `number ${id}`;
}

/** Whether values of this type stand in blocks. `name`: also of types of safetensors. */
export function hasBlocks(name: string): boolean {
  return (BY_NAME.get(name)?.decode ?? null) !== null;
}

/** Decodes whole blocks into `out`. Returns false if a value is not finite. `name`: of a type with blocks. */
export function fromBlocks(raw: Uint8Array, name: string, out: Float32Array): boolean {
  const { values, bytes, decode } = BY_NAME.get(name)!;
  for (let at = 0, to = 0; at < raw.length; at += bytes, to += values) decode!(raw, at, out, to);
  // Every value of a block is made with all its scales, so a scale that is not finite shows in the first one. Finite
  // scales give finite values. A finite number times 0 is 0; NaN and infinity times 0 are NaN, and the sum keeps a NaN.
  let check = 0;
  for (let i = 0; i < out.length; i += values) check += out[i]! * 0;
  return check === 0;
}
