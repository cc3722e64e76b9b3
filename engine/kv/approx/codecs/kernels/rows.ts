/**
 * Converts between int8 rows and floats. By token: codes and floats [rows, width], a scale per row. By channel: n
 * tokens of codes [kvHeads, headSize, all], floats [kvHeads, headSize, n], scales [kvHeads, all]. Products and
 * quotients of scales are computed in doubles and rounded once.
 */
import { doublesAt, highBytes, highShorts, largestOf, lowBytes, lowShorts, MAGNITUDE, MIN_SCALE, ROUND, storeScaled } from './vectors';

/** Writes up to 15 floats beyond x. */
export function rowsToFloats(codes: usize, scales: usize, rows: i32, width: i32, x: usize): void {
  for (let row = 0; row < rows; row++) {
    const scale = v128.load32_splat(scales + (row << 2));
    for (let i = 0; i < width; i += 16) storeScaled(x + (i << 2), v128.load(codes + i), scale);
    codes += width;
    x += width << 2;
  }
}

export function floatsToRows(x: usize, rows: i32, width: i32, codes: usize, scales: usize): void {
  for (let row = 0; row < rows; row++) {
    const largest = <f64>largestOf(x, width);
    const scale = <f32>(largest / 127);
    store<f32>(scales + (row << 2), scale);
    const inverse = <f64>scale > MIN_SCALE ? 127 / largest : 0;
    if (width < 16) {
      for (let i = 0; i < width; i++) store<u8>(codes + i, <u8>reinterpret<u64>(<f64>load<f32>(x + (i << 2)) * inverse + ROUND));
    } else {
      const factor = f64x2.splat(inverse);
      for (let i = 0; i < width; i += 16) {
        // The last 16 again where 16 does not divide the width.
        i = min(i, width - 16);
        const at = x + (i << 2);
        v128.store(
          codes + i,
          i8x16.narrow_i16x8_s(
            i16x8.narrow_i32x4_s(nearest(at, factor, factor), nearest(at + 16, factor, factor)),
            i16x8.narrow_i32x4_s(nearest(at + 32, factor, factor), nearest(at + 48, factor, factor)),
          ),
        );
      }
    }
    codes += width;
    x += width << 2;
  }
}

/** Multiplies four floats by doubles and rounds to the nearest integers, in 32 bits. */
@inline
function nearest(x: usize, low: v128, high: v128): v128 {
  const round = f64x2.splat(ROUND);
  return v128.shuffle<i32>(f64x2.add(f64x2.mul(doublesAt(x), low), round), f64x2.add(f64x2.mul(doublesAt(x + 8), high), round), 0, 2, 4, 6);
}

/** Writes up to 15 floats beyond x. */
export function channelsToFloats(codes: usize, scales: usize, kvHeads: i32, headSize: i32, all: i32, n: i32, x: usize): void {
  for (let h = 0; h < kvHeads; h++) {
    for (let d = 0; d < headSize; d++) {
      for (let t = 0; t < n; t += 16) {
        const c = v128.load(codes + t);
        const low = i16x8.extend_low_i8x16_s(c);
        const high = i16x8.extend_high_i8x16_s(c);
        const s = scales + (t << 2);
        const to = x + (t << 2);
        v128.store(to, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_low_i16x8_s(low)), v128.load(s)));
        v128.store(to, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_high_i16x8_s(low)), v128.load(s, 16)), 16);
        v128.store(to, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_low_i16x8_s(high)), v128.load(s, 32)), 32);
        v128.store(to, f32x4.mul(f32x4.convert_i32x4_s(i32x4.extend_high_i16x8_s(high)), v128.load(s, 48)), 48);
      }
      codes += all;
      x += n << 2;
    }
    scales += all << 2;
  }
}

/** @param inverses scratch for n doubles. */
export function floatsToChannels(
  x: usize,
  kvHeads: i32,
  headSize: i32,
  n: i32,
  codes: usize,
  scales: usize,
  all: i32,
  inverses: usize,
): void {
  for (let h = 0; h < kvHeads; h++) {
    scalesOfTokens(x, headSize, n, scales, inverses);
    for (let d = 0; d < headSize; d++) {
      if (n < 16) {
        for (let t = 0; t < n; t++) {
          const value = <f64>load<f32>(x + (t << 2)) * load<f64>(inverses + (t << 3));
          store<u8>(codes + t, <u8>reinterpret<u64>(value + ROUND));
        }
      } else {
        for (let t = 0; t < n; t += 16) {
          t = min(t, n - 16);
          const at = x + (t << 2);
          const factors = inverses + (t << 3);
          const a = nearest(at, v128.load(factors), v128.load(factors, 16));
          const b = nearest(at + 16, v128.load(factors, 32), v128.load(factors, 48));
          const c = nearest(at + 32, v128.load(factors, 64), v128.load(factors, 80));
          const e = nearest(at + 48, v128.load(factors, 96), v128.load(factors, 112));
          v128.store(codes + t, i8x16.narrow_i16x8_s(i16x8.narrow_i32x4_s(a, b), i16x8.narrow_i32x4_s(c, e)));
        }
      }
      codes += all;
      x += n << 2;
    }
    scales += all << 2;
  }
}

/** The scales of tokens over the channels of x [headSize, n], and the factors of their values. */
function scalesOfTokens(x: usize, headSize: i32, n: i32, scales: usize, inverses: usize): void {
  const mask = i32x4.splat(MAGNITUDE);
  for (let t = 0; t < n; t += 4) {
    let most = i32x4.splat(0);
    let at = x + (t << 2);
    for (let d = 0; d < headSize; d++, at += n << 2) most = i32x4.max_s(most, v128.and(v128.load(at), mask));
    // The last vector may have fewer than four tokens; the other lanes are not stored.
    v128.store(inverses, most);
    for (let i = 0, end = min(4, n - t); i < end; i++) store<i32>(scales + ((t + i) << 2), load<i32>(inverses + (i << 2)));
  }
  for (let t = n - 1; t >= 0; t--) {
    const largest = <f64>load<f32>(scales + (t << 2));
    const scale = <f32>(largest / 127);
    store<f32>(scales + (t << 2), scale);
    store<f64>(inverses + (t << 3), <f64>scale > MIN_SCALE ? 127 / largest : 0);
  }
}

/** Transposes bytes [rows, columns] to [columns, rows]. Strides are bytes from row to row. */
export function transpose(from: usize, fromStride: i32, rows: i32, columns: i32, to: usize, toStride: i32): void {
  if (rows < 8 || columns < 16) {
    for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) store<u8>(to + c * toStride + r, load<u8>(from + r * fromStride + c));
    return;
  }
  for (let r = 0; r < rows; r += 8) {
    // The last rows again where no whole tile is left.
    r = min(r, rows - 8);
    for (let c = 0; c < columns; c += 16) {
      c = min(c, columns - 16);
      tile(from + r * fromStride + c, fromStride, to + c * toStride + r, toStride);
    }
  }
}

/** Transposes 8 rows of 16 columns. */
@inline
function tile(from: usize, stride: i32, to: usize, toStride: i32): void {
  const a = v128.load(from);
  const b = v128.load((from += stride));
  const c = v128.load((from += stride));
  const d = v128.load((from += stride));
  const e = v128.load((from += stride));
  const f = v128.load((from += stride));
  const g = v128.load((from += stride));
  const h = v128.load((from += stride));
  half(lowBytes(a, b), lowBytes(c, d), lowBytes(e, f), lowBytes(g, h), to, toStride);
  half(highBytes(a, b), highBytes(c, d), highBytes(e, f), highBytes(g, h), to + 8 * toStride, toStride);
}

/** Pairs of rows with 8 columns each become 8 columns of 8 rows. */
@inline
function half(ab: v128, cd: v128, ef: v128, gh: v128, to: usize, stride: i32): void {
  quarter(lowShorts(ab, cd), lowShorts(ef, gh), to, stride);
  quarter(highShorts(ab, cd), highShorts(ef, gh), to + 4 * stride, stride);
}

@inline
function quarter(abcd: v128, efgh: v128, to: usize, stride: i32): void {
  const low = v128.shuffle<i32>(abcd, efgh, 0, 4, 1, 5);
  const high = v128.shuffle<i32>(abcd, efgh, 2, 6, 3, 7);
  v128.store_lane<u64>(to, low, 0);
  v128.store_lane<u64>((to += stride), low, 1);
  v128.store_lane<u64>((to += stride), high, 0);
  v128.store_lane<u64>(to + stride, high, 1);
}
