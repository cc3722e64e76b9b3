/**
 * IEEE half precision: float32 to bits, to nearest even, and back, exactly. Values beyond 65504 become 65504, so that
 * scales stay finite.
 */
const word = new Float32Array(1);
const bits = new Uint32Array(word.buffer);

const MOST = 65_504;
/** 2^-14, the least normal one. */
const MIN_NORMAL = 2 ** -14;
/** Adding and subtracting 1.5 * 2^52 rounds a double to the nearest integer, half to even. */
const ROUND = 6755399441055744;

export function halfBits(value: number): number {
  const x = Math.abs(value);
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  if (Number.isNaN(x)) return 0x7e00;
  if (x >= MOST) return sign | 0x7bff;
  if (x < MIN_NORMAL) return sign | (x * 2 ** 24 + ROUND - ROUND);
  word[0] = x;
  const u = bits[0]!;
  return sign | ((u + 0xfff + ((u >>> 13) & 1) - (112 << 23)) >>> 13);
}

export function halfValue(half: number): number {
  const magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00)
    return magnitude > 0x7c00 ? Number.NaN : half & 0x8000 ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  // As float32 bits it is 2^112 too small, subnormals included.
  bits[0] = magnitude << 13;
  const value = word[0]! * 2 ** 112;
  return half & 0x8000 ? -value : value;
}
