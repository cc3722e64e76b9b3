/** int4.ts: groups of 32 values in 4 bits. x [rows, width]. */
import { bitsOf, bytesOf, storeScaled } from './vectors';

const GROUP: i32 = 32;

/** Writes up to 15 bytes beyond the last. */
export function int4Encode(x: usize, rows: i32, width: i32, out: usize): void {
  for (let row = 0; row < rows; row++) {
    for (let i = 0; i < width; i += GROUP) {
      const half = min(GROUP, width - i) >> 1;
      const d = largestSigned(x, 2 * half) / -8;
      store<u16>(out, halfBits(d));
      const inverse: f32 = d == 0 ? 0 : <f32>1 / d;
      // What would be infinite, or no number, is 0.
      const finite = abs(inverse) < Infinity;
      const factor = f32x4.splat(finite ? inverse : <f32>0);
      const other = x + (half << 2);
      // Of a group that is shorter only the first bytes count; the others are written over.
      const codes = bytesOf(pairs(x, other, factor), pairs(x + 16, other + 16, factor), pairs(x + 32, other + 32, factor), pairs(x + 48, other + 48, factor));
      v128.store(out, finite ? codes : i64x2.splat(0), 2);
      out += 2 + half;
      x += half << 3;
    }
  }
}

/** Four codes in the low and four in the high halves of bytes, in 32 bits. Single precision, as in Q4_0; a value of the opposite sign and the same magnitude would be 16. */
@inline
function pairs(low: usize, high: usize, factor: v128): v128 {
  const middle = f32x4.splat(8.5);
  const most = f32x4.splat(15);
  const a = f32x4.pmin(f32x4.floor(f32x4.add(f32x4.mul(v128.load(low), factor), middle)), most);
  const b = f32x4.pmin(f32x4.floor(f32x4.add(f32x4.mul(v128.load(high), factor), middle)), most);
  return bitsOf(f32x4.add(a, f32x4.mul(b, f32x4.splat(16))));
}

/** The value of largest magnitude of n; of two with the same the first, as in Q4_0. */
@inline
function largestSigned(x: usize, n: i32): f32 {
  const end = x + (n << 2);
  let at = x;
  let tops = f32x4.splat(0);
  let bottoms = tops;
  for (const wide = x + ((n & ~3) << 2); at < wide; at += 16) {
    const v = v128.load(at);
    tops = f32x4.pmax(tops, v);
    bottoms = f32x4.pmin(bottoms, v);
  }
  tops = f32x4.pmax(tops, v128.shuffle<i32>(tops, tops, 2, 3, 0, 1));
  bottoms = f32x4.pmin(bottoms, v128.shuffle<i32>(bottoms, bottoms, 2, 3, 0, 1));
  let top = max(f32x4.extract_lane(tops, 0), f32x4.extract_lane(tops, 1));
  let bottom = min(f32x4.extract_lane(bottoms, 0), f32x4.extract_lane(bottoms, 1));
  for (; at < end; at += 4) {
    top = max(top, load<f32>(at));
    bottom = min(bottom, load<f32>(at));
  }
  if (top > -bottom) return top;
  if (top < -bottom) return bottom;
  if (top == 0) return 0;
  while (abs(load<f32>(x)) != top) x += 4;
  return load<f32>(x);
}

/** Writes up to 15 floats beyond x. @returns whether a scale is not finite. */
export function int4Decode(from: usize, rows: i32, width: i32, x: usize): bool {
  const nibble = i8x16.splat(15);
  const middle = i8x16.splat(8);
  for (let row = 0; row < rows; row++) {
    for (let i = 0; i < width; i += GROUP) {
      const half = min(GROUP, width - i) >> 1;
      const bits = <u32>load<u16>(from);
      if ((bits & 0x7c00) == 0x7c00) return true;
      const d = f32x4.splat(halfValue(bits));
      const codes = v128.load(from, 2);
      storeScaled(x, i8x16.sub(v128.and(codes, nibble), middle), d);
      storeScaled(x + (half << 2), i8x16.sub(i8x16.shr_u(codes, 4), middle), d);
      from += 2 + half;
      x += half << 3;
    }
  }
  return false;
}

/** Half precision, to nearest even; what is beyond 65504 becomes that. */
@inline
function halfBits(value: f32): u16 {
  const u = reinterpret<u32>(value);
  const sign = (u >> 16) & 0x8000;
  const x = abs(value);
  if (x >= 65504) return <u16>(sign | 0x7bff);
  // Below the least normal one, 2^-14.
  if (x < 0.00006103515625) return <u16>(sign | <u32>nearest(x * 16777216));
  const m = u & 0x7fffffff;
  return <u16>(sign | ((m + 0xfff + ((m >> 13) & 1) - (112 << 23)) >> 13));
}

/** Of bits that stand for a finite one. */
@inline
function halfValue(half: u32): f32 {
  // As float32 bits it is 2^112 too small, subnormals included.
  const value = reinterpret<f32>((half & 0x7fff) << 13) * reinterpret<f32>((112 + 127) << 23);
  return half & 0x8000 ? -value : value;
}
