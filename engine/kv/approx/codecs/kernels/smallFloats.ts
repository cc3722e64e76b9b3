/**
 * The small floats of the OCP formats: E4M3 (sign, 4 bits of exponent with bias 7, 3 of mantissa; no infinities, NaN is 0x7f,
 * largest 448) and E2M1 (bias 1, 1 bit of mantissa; 0 .5 1 1.5 2 3 4 6). Conversion from float32 rounds to nearest even and
 * saturates: adding a power of two that is large enough leaves just the mantissa's bits.
 */
import { MAGNITUDE } from './vectors';

/** Four floats -> codes with their signs, in 32 bits. */
@inline
function codesOf(x: v128, mantissaBits: i32, bias: i32, most: i32): v128 {
  const shift = 23 - mantissaBits;
  const least = (128 - bias) << 23;
  const magnitude = v128.and(x, i32x4.splat(MAGNITUDE));
  // Below the least normal one steps no longer become smaller.
  const exponent = i32x4.max_s(v128.and(x, i32x4.splat(0x7f800000)), i32x4.splat(least));
  const power = i32x4.add(exponent, i32x4.splat(shift << 23));
  const steps = i32x4.sub(f32x4.add(magnitude, power), power);
  const code = i32x4.add(steps, i32x4.shr_u(i32x4.sub(exponent, i32x4.splat(least)), shift));
  const sign = v128.and(i32x4.shr_u(x, 31 - 3 - (mantissaBits == 3 ? 4 : 0)), i32x4.splat(mantissaBits == 3 ? 0x80 : 8));
  return v128.or(i32x4.min_s(code, i32x4.splat(most)), sign);
}

@inline
export function e4m3Codes(x: v128): v128 {
  return codesOf(x, 3, 7, 0x7e);
}

@inline
export function e2m1Codes(x: v128): v128 {
  return codesOf(x, 1, 1, 7);
}

/** Of codes in the bytes 0 .. 3. */
@inline
export function e4m3Values(codes: v128): v128 {
  const signs = i32x4.shl(codes, 24);
  const bits = i32x4.shl(v128.and(codes, i32x4.splat(0x7f)), 20);
  const normal = i32x4.add(bits, i32x4.splat(120 << 23));
  // Without the bit that normal ones have.
  const subnormal = f32x4.sub(i32x4.add(bits, i32x4.splat(121 << 23)), i32x4.splat(121 << 23));
  const value = v128.bitselect(subnormal, normal, i32x4.lt_s(bits, i32x4.splat(1 << 23)));
  return v128.or(value, v128.and(signs, i32x4.splat(~MAGNITUDE)));
}

/** Of a code without a sign. */
@inline
export function e4m3Value(code: i32): f32 {
  return code < 8 ? <f32>code * 0.001953125 : reinterpret<f32>((code << 20) + (120 << 23));
}
