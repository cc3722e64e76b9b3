/**
 * KIVI (codecs/registry.ts): 4-bit codes between the bounds of groups. x [kvHeads, rows, width], with groups along the
 * rows.
 */
import { bitsOf, bytesOf, doublesAt, floatsOf, highBytes, lowBytes, MIN_SCALE } from './vectors';

/** @param bounds scratch for two floats per group of a head. Writes up to 15 bytes beyond the last. */
export function kiviEncode(x: usize, kvHeads: i32, rows: i32, width: i32, group: i32, out: usize, bounds: usize): void {
  let to = out + (kvHeads << 2);
  for (let h = 0; h < kvHeads; h++) {
    const unit = <f32>(<f64>findBounds(x, rows, width, group, bounds) / 127);
    store<f32>(out + (h << 2), unit);
    const perUnit: f64 = <f64>unit > MIN_SCALE ? 1 / <f64>unit : 0;
    let bound = bounds;
    for (let row = 0; row < rows; row++) {
      for (let i = 0; i < width; i += group) {
        const n = min(group, width - i);
        const lo = rounded(<f64>load<f32>(bound) * perUnit);
        const hi = rounded(<f64>load<f32>(bound, 4) * perUnit);
        bound += 8;
        store<u8>(to, <u8><i32>lo);
        store<u8>(to, <u8><i32>hi, 1);
        to += 2;
        const perStep: f64 = hi > lo ? (15 * perUnit) / (hi - lo) : 0;
        // A value becomes a number of steps above lo. Values outside the rounded bounds are clipped.
        const offset = f64x2.splat(0.5 - lo * <f64>unit * perStep);
        const factor = f64x2.splat(perStep);
        for (let j = 0; j < n; j += 32) {
          const at = x + (j << 2);
          v128.store(
            to + (j >> 1),
            bytesOf(
              pairs(at, factor, offset),
              pairs(at + 32, factor, offset),
              pairs(at + 64, factor, offset),
              pairs(at + 96, factor, offset),
            ),
          );
        }
        to += (n + 1) >> 1;
        if (n & 1) store<u8>(to - 1, load<u8>(to - 1) & 15);
        x += n << 2;
      }
    }
  }
}

/** Converts eight neighbours to four bytes of two codes, in 32 bits. */
@inline
function pairs(x: usize, factor: v128, offset: v128): v128 {
  const v = steps(x, factor, offset);
  const w = steps(x + 16, factor, offset);
  const first = v128.shuffle<i32>(v, w, 0, 2, 4, 6);
  const second = v128.shuffle<i32>(v, w, 1, 3, 5, 7);
  return bitsOf(f32x4.add(first, f32x4.mul(second, f32x4.splat(16))));
}

/**
 * Always 0 .. 15, also for what follows the last value of a group: half of its byte is kept, and it must be a number.
 */
@inline
function steps(x: usize, factor: v128, offset: v128): v128 {
  const low = f64x2.floor(f64x2.add(f64x2.mul(doublesAt(x), factor), offset));
  const high = f64x2.floor(f64x2.add(f64x2.mul(doublesAt(x + 8), factor), offset));
  return f32x4.pmin(f32x4.pmax(f32x4.splat(0), floatsOf(low, high)), f32x4.splat(15));
}

/** Writes up to 31 floats beyond x. */
export function kiviDecode(from: usize, kvHeads: i32, rows: i32, width: i32, group: i32, x: usize): void {
  let at = from + (kvHeads << 2);
  for (let h = 0; h < kvHeads; h++) {
    const unit = <f64>load<f32>(from + (h << 2));
    for (let row = 0; row < rows; row++) {
      for (let i = 0; i < width; i += group) {
        const n = min(group, width - i);
        const loCode = <i32>load<i8>(at);
        const hiCode = <i32>load<i8>(at, 1);
        at += 2;
        const lo = f64x2.splat(<f64>loCode * unit);
        const step = f64x2.splat((<f64>(hiCode - loCode) * unit) / 15);
        for (let j = 0; j < n; j += 32) {
          const codes = v128.load(at + (j >> 1));
          const low = v128.and(codes, i8x16.splat(15));
          const high = i8x16.shr_u(codes, 4);
          const to = x + (j << 2);
          put(to, lowBytes(low, high), lo, step);
          put(to + 64, highBytes(low, high), lo, step);
        }
        at += (n + 1) >> 1;
        x += n << 2;
      }
    }
  }
}

/** Decodes 16 codes. */
@inline
function put(x: usize, codes: v128, lo: v128, step: v128): void {
  const low = i16x8.extend_low_i8x16_u(codes);
  const high = i16x8.extend_high_i8x16_u(codes);
  v128.store(x, values(i32x4.extend_low_i16x8_u(low), lo, step));
  v128.store(x, values(i32x4.extend_high_i16x8_u(low), lo, step), 16);
  v128.store(x, values(i32x4.extend_low_i16x8_u(high), lo, step), 32);
  v128.store(x, values(i32x4.extend_high_i16x8_u(high), lo, step), 48);
}

@inline
function values(codes: v128, lo: v128, step: v128): v128 {
  const low = f64x2.add(lo, f64x2.mul(f64x2.convert_low_i32x4_s(codes), step));
  const high = f64x2.add(lo, f64x2.mul(f64x2.convert_low_i32x4_s(v128.shuffle<i64>(codes, codes, 1, 1)), step));
  return floatsOf(low, high);
}

/** Rounds to the nearest integer, half up. */
@inline
function rounded(value: f64): f64 {
  const above = ceil(value);
  return above - 0.5 > value ? above - 1 : above;
}

/**
 * Writes the least and the largest value of each group of x [rows, width] in turn, ignoring NaN; both are 0 where all
 * are NaN. @returns the largest magnitude.
 */
function findBounds(x: usize, rows: i32, width: i32, group: i32, bounds: usize): f32 {
  let largest: f32 = 0;
  for (let row = 0; row < rows; row++) {
    for (let i = 0; i < width; i += group) {
      const n = min(group, width - i);
      let lo: f32 = Infinity;
      let hi: f32 = -Infinity;
      if (n < 4) {
        for (let j = 0; j < n; j++) {
          const v = load<f32>(x + (j << 2));
          if (v < lo) lo = v;
          if (v > hi) hi = v;
        }
      } else {
        let least = f32x4.splat(lo);
        let most = f32x4.splat(hi);
        for (let j = 0; j < n; j += 4) {
          // The last four values again where 4 does not divide the group.
          j = min(j, n - 4);
          const v = v128.load(x + (j << 2));
          least = f32x4.pmin(least, v);
          most = f32x4.pmax(most, v);
        }
        least = f32x4.pmin(least, v128.shuffle<i32>(least, least, 2, 3, 0, 1));
        most = f32x4.pmax(most, v128.shuffle<i32>(most, most, 2, 3, 0, 1));
        lo = min(f32x4.extract_lane(least, 0), f32x4.extract_lane(least, 1));
        hi = max(f32x4.extract_lane(most, 0), f32x4.extract_lane(most, 1));
      }
      if (lo > hi) {
        lo = 0;
        hi = 0;
      }
      store<f32>(bounds, lo);
      store<f32>(bounds, hi, 4);
      bounds += 8;
      largest = max(largest, max(hi, -lo));
      x += n << 2;
    }
  }
  return largest;
}
