/**
 * NVFP4 (codecs/registry.ts): E2M1 codes, an E4M3 scale for 16 values, a scale of the tensor. x [rows, width].
 *
 * The small floats are those of the OCP formats: E4M3 (sign, 4 bits of exponent with bias 7, 3 of mantissa; no
 * infinities, NaN is 0x7f, largest 448) and E2M1 (bias 1, 1 bit of mantissa; 0 .5 1 1.5 2 3 4 6). Conversion from
 * float32 rounds to nearest even and saturates: adding a large enough power of two leaves only the bits of the
 * mantissa.
 */
import { bytesOf, floatsOf, largestOf, lowBytes, MAGNITUDE, MIN_SCALE, scaled } from './vectors';

const BLOCK: i32 = 16;

/** @param largest scratch for one float per block and three more. Writes up to 7 bytes beyond the last. */
export function nvfp4Encode(x: usize, rows: i32, width: i32, out: usize, largest: usize): void {
  const blocks = rows * ((width + BLOCK - 1) / BLOCK);
  const tensorScale = <f32>(<f64>findLargest(x, rows, width, largest) / 2688);
  store<f32>(out, tensorScale);
  const scales = out + 4;
  // The codes overwrite what is written beyond the scales.
  let codes = scales + blocks;
  const toScale = f64x2.splat(<f64>tensorScale > MIN_SCALE ? 1 / (6 * <f64>tensorScale) : 0);
  for (let b = 0; b < blocks; b += 4) {
    const four = e4m3Codes(scaled(largest + (b << 2), toScale));
    v128.store_lane<u32>(scales + b, bytesOf(four, four, four, four), 0);
  }
  let scale = scales;
  for (let row = 0; row < rows; row++) {
    for (let i = 0; i < width; i += BLOCK) {
      const n = min(BLOCK, width - i);
      const code = load<u8>(scale++);
      const inverse = f64x2.splat(code == 0 ? 0 : 1 / (<f64>e4m3Value(code) * <f64>tensorScale));
      const c = bytesOf(codesOf(x, inverse), codesOf(x + 16, inverse), codesOf(x + 32, inverse), codesOf(x + 48, inverse));
      const pairs = v128.and(v128.or(c, i16x8.shr_u(c, 4)), i16x8.splat(0xff));
      v128.store_lane<u64>(codes, i8x16.narrow_i16x8_u(pairs, pairs), 0);
      codes += n >> 1;
      x += n << 2;
    }
  }
}

@inline
function codesOf(x: usize, inverse: v128): v128 {
  return e2m1Codes(scaled(x, inverse));
}

/** Writes the largest magnitude of each block to `largest`. @returns the largest of all. */
function findLargest(x: usize, rows: i32, width: i32, largest: usize): f32 {
  let most: f32 = 0;
  for (let row = 0; row < rows; row++) {
    for (let i = 0; i < width; i += BLOCK) {
      const n = min(BLOCK, width - i);
      const own = largestOf(x, n);
      store<f32>(largest, own);
      most = max(most, own);
      largest += 4;
      x += n << 2;
    }
  }
  return most;
}

/** Writes up to 15 floats beyond x. @returns whether a block's scale is negative or NaN. */
export function nvfp4Decode(from: usize, rows: i32, width: i32, x: usize): bool {
  // A double, because only the values are rounded.
  const tensorScale = <f64>load<f32>(from);
  let scale = from + 4;
  let codes = scale + rows * ((width + BLOCK - 1) / BLOCK);
  // Twice the values of the codes.
  const doubled = i8x16(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
  for (let row = 0; row < rows; row++) {
    for (let i = 0; i < width; i += BLOCK) {
      const n = min(BLOCK, width - i);
      const code = load<u8>(scale++);
      if (code >= 0x7f) return true;
      const half = f64x2.splat(<f64>e4m3Value(code) * tensorScale * 0.5);
      const eight = v128.load64_zero(codes);
      const low = v128.and(eight, i8x16.splat(15));
      const high = i8x16.shr_u(eight, 4);
      const values = v128.swizzle(doubled, lowBytes(low, high));
      const first = i16x8.extend_low_i8x16_s(values);
      const second = i16x8.extend_high_i8x16_s(values);
      v128.store(x, products(i32x4.extend_low_i16x8_s(first), half));
      v128.store(x, products(i32x4.extend_high_i16x8_s(first), half), 16);
      v128.store(x, products(i32x4.extend_low_i16x8_s(second), half), 32);
      v128.store(x, products(i32x4.extend_high_i16x8_s(second), half), 48);
      codes += n >> 1;
      x += n << 2;
    }
  }
  return false;
}

@inline
function products(integers: v128, factor: v128): v128 {
  return floatsOf(
    f64x2.mul(f64x2.convert_low_i32x4_s(integers), factor),
    f64x2.mul(f64x2.convert_low_i32x4_s(v128.shuffle<i64>(integers, integers, 1, 1)), factor),
  );
}

/** Converts four floats to codes with signs, in 32 bits. */
@inline
function smallFloats(x: v128, mantissaBits: i32, bias: i32, most: i32): v128 {
  const shift = 23 - mantissaBits;
  const least = (128 - bias) << 23;
  const magnitude = v128.and(x, i32x4.splat(MAGNITUDE));
  // Below the least normal value the steps stay the same.
  const exponent = i32x4.max_s(v128.and(x, i32x4.splat(0x7f800000)), i32x4.splat(least));
  const power = i32x4.add(exponent, i32x4.splat(shift << 23));
  const steps = i32x4.sub(f32x4.add(magnitude, power), power);
  const code = i32x4.add(steps, i32x4.shr_u(i32x4.sub(exponent, i32x4.splat(least)), shift));
  const sign = v128.and(i32x4.shr_u(x, 31 - 3 - (mantissaBits == 3 ? 4 : 0)), i32x4.splat(mantissaBits == 3 ? 0x80 : 8));
  return v128.or(i32x4.min_s(code, i32x4.splat(most)), sign);
}

@inline
function e4m3Codes(x: v128): v128 {
  return smallFloats(x, 3, 7, 0x7e);
}

@inline
function e2m1Codes(x: v128): v128 {
  return smallFloats(x, 1, 1, 7);
}

/** Value of a code without sign. */
@inline
function e4m3Value(code: i32): f32 {
  return code < 8 ? <f32>code * 0.001953125 : reinterpret<f32>((code << 20) + (120 << 23));
}
