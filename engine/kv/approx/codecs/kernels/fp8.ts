/** fp8.ts: E4M3 codes, a scale per head. x [kvHeads, length]; bytes: scales [kvHeads], codes [kvHeads, length]. */
import { e4m3Codes, e4m3Values } from './smallFloats';
import { bytesOf, MIN_SCALE, largestOf, scaled } from './vectors';

/** Writes up to 15 bytes beyond the last. */
export function fp8Encode(x: usize, kvHeads: i32, length: i32, out: usize): void {
  let to = out + (kvHeads << 2);
  for (let h = 0; h < kvHeads; h++) {
    const scale = <f64>largestOf(x, length) / 448;
    store<f32>(out + (h << 2), <f32>scale);
    const inverse = f64x2.splat(scale > MIN_SCALE ? 1 / scale : 0);
    for (let i = 0; i < length; i += 16) {
      const at = x + (i << 2);
      v128.store(to + i, bytesOf(codes(at, inverse), codes(at + 16, inverse), codes(at + 32, inverse), codes(at + 48, inverse)));
    }
    to += length;
    x += length << 2;
  }
}

@inline
function codes(x: usize, inverse: v128): v128 {
  return e4m3Codes(scaled(x, inverse));
}

/** Writes up to 15 floats beyond x. @returns whether a code is NaN: one in one row would spoil all that attends to it. */
export function fp8Decode(from: usize, kvHeads: i32, length: i32, x: usize): bool {
  let at = from + (kvHeads << 2);
  let nan = i64x2.splat(0);
  let rest = false;
  for (let h = 0; h < kvHeads; h++) {
    const scale = v128.load32_splat(from + (h << 2));
    for (let i = 0; i < length; i += 16) {
      const c = v128.load(at + i);
      if (i + 16 <= length) nan = v128.or(nan, isNan(c));
      else for (let j = i; j < length; j++) rest = rest || (load<u8>(at + j) & 0x7f) == 0x7f;
      const to = x + (i << 2);
      const low = i16x8.extend_low_i8x16_u(c);
      const high = i16x8.extend_high_i8x16_u(c);
      v128.store(to, f32x4.mul(e4m3Values(i32x4.extend_low_i16x8_u(low)), scale));
      v128.store(to, f32x4.mul(e4m3Values(i32x4.extend_high_i16x8_u(low)), scale), 16);
      v128.store(to, f32x4.mul(e4m3Values(i32x4.extend_low_i16x8_u(high)), scale), 32);
      v128.store(to, f32x4.mul(e4m3Values(i32x4.extend_high_i16x8_u(high)), scale), 48);
    }
    at += length;
    x += length << 2;
  }
  return rest || v128.any_true(nan);
}

@inline
function isNan(codes: v128): v128 {
  const magnitude = i8x16.splat(0x7f);
  return i8x16.eq(v128.and(codes, magnitude), magnitude);
}
