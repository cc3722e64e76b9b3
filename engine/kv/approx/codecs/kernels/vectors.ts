/** Helpers of the kernels: conversions between floats, doubles and integers, four values at a time. */

/**
 * Adding this to a double rounds it to the nearest integer, half to even; the lowest bits of the sum are that integer.
 * 1.5 * 2^52.
 */
export const ROUND: f64 = 6755399441055744;
/** Adding this to a float of an integer of 0 .. 2^22 leaves it in the lowest bits. 2^23. */
const TO_BITS: f32 = 8388608;
/** All bits of a float but the sign. As integers they have the order of the magnitudes. */
export const MAGNITUDE: i32 = 0x7fffffff;
/** A scale below this counts as 0. */
export const MIN_SCALE: f64 = 1e-38;

/** Loads two floats as doubles; no slower than a plain load. */
@inline
export function doublesAt(x: usize): v128 {
  return f64x2.promote_low_f32x4(v128.load64_zero(x));
}

@inline
export function floatsOf(low: v128, high: v128): v128 {
  return v128.shuffle<i64>(f32x4.demote_f64x2_zero(low), f32x4.demote_f64x2_zero(high), 0, 2);
}

/** Four floats in memory times a pair of equal doubles, rounded once. */
@inline
export function scaled(x: usize, factor: v128): v128 {
  return floatsOf(f64x2.mul(doublesAt(x), factor), f64x2.mul(doublesAt(x + 8), factor));
}

/** Converts floats that are integers of 0 .. 255 to 32-bit integers. */
@inline
export function bitsOf(integers: v128): v128 {
  return v128.and(f32x4.add(integers, f32x4.splat(TO_BITS)), i32x4.splat(0xff));
}

/** Converts 16 integers of 0 .. 255 from 32 bits to bytes. */
@inline
export function bytesOf(a: v128, b: v128, c: v128, d: v128): v128 {
  return i8x16.narrow_i16x8_u(i16x8.narrow_i32x4_u(a, b), i16x8.narrow_i32x4_u(c, d));
}

/** Writes 16 signed bytes times `scale` to x. */
@inline
export function storeScaled(x: usize, codes: v128, scale: v128): void {
  const low = i16x8.extend_low_i8x16_s(codes);
  const high = i16x8.extend_high_i8x16_s(codes);
  v128.store(x, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_low_i16x8_s(low)), scale));
  v128.store(x, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_high_i16x8_s(low)), scale), 16);
  v128.store(x, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_low_i16x8_s(high)), scale), 32);
  v128.store(x, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_high_i16x8_s(high)), scale), 48);
}

/** Interleaves the bytes, or shorts, of two vectors. */
@inline
export function lowBytes(a: v128, b: v128): v128 {
  return v128.shuffle<i8>(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

@inline
export function highBytes(a: v128, b: v128): v128 {
  return v128.shuffle<i8>(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

@inline
export function lowShorts(a: v128, b: v128): v128 {
  return v128.shuffle<i16>(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}

@inline
export function highShorts(a: v128, b: v128): v128 {
  return v128.shuffle<i16>(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

/** The largest magnitude of n floats. */
export function largestOf(x: usize, n: i32): f32 {
  const mask = i32x4.splat(MAGNITUDE);
  const end = x + (n << 2);
  const wide = x + ((n & ~7) << 2);
  let a = i32x4.splat(0);
  let b = a;
  for (; x < wide; x += 32) {
    a = i32x4.max_s(a, v128.and(v128.load(x), mask));
    b = i32x4.max_s(b, v128.and(v128.load(x, 16), mask));
  }
  a = i32x4.max_s(a, b);
  a = i32x4.max_s(a, v128.shuffle<i32>(a, a, 2, 3, 0, 1));
  a = i32x4.max_s(a, v128.shuffle<i32>(a, a, 1, 0, 3, 2));
  let most = i32x4.extract_lane(a, 0);
  for (; x < end; x += 4) most = max(most, load<i32>(x) & MAGNITUDE);
  return reinterpret<f32>(most);
}
