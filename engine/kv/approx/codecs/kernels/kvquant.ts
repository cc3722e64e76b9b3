/** kvquant3.ts: x [kvHeads, rows, width]. Bytes of a head: two units, outliers, bounds of rows. */
import { findBounds, rounded } from './bounds';
import { NUM_BINS as BINS, NUM_LEVELS } from './levels';
import { farthest } from './outliers';
import { unpackThree } from './threeBits';
import { bitsOf, bytesOf, floatsOf, highBytes, highShorts, MIN_SCALE, lowBytes, lowShorts } from './vectors';

const OUTLIER_BYTES: i32 = 3;

/**
 * Writes all heads' bytes, and the bin of each value between its row's bounds, bytes [kvHeads, rows, width] and zeros behind them.
 * @param weights [256] float64: the sum of the squared spans of the rows that a bin's values are in
 */
export function kvquantBins(x: usize, kvHeads: i32, rows: i32, width: i32, numOutliers: i32, out: usize, bins: usize, weights: usize, spare: usize): void {
  const values = rows * width;
  // Four, int64, so that neighbours that are alike need not wait for each other.
  const sums = spare;
  const bounds = sums + (BINS << 5);
  const found = bounds + (rows << 3);
  const rest = (found + (numOutliers << 1) + 31) & ~15;
  for (let b = 0; b < BINS << 5; b += 16) v128.store(sums + b, i64x2.splat(0));
  for (let h = 0; h < kvHeads; h++) {
    farthest(x, rows, width, numOutliers, found, rest);
    const sparse = out + 8;
    store<f32>(out, takeOutliers(x, found, numOutliers, sparse), 4);
    const unit = <f32>(<f64>findBounds(x, rows, width, width, bounds) / 127);
    store<f32>(out, unit);
    const perUnit: f64 = <f64>unit > MIN_SCALE ? 1 / <f64>unit : 0;
    out = sparse + OUTLIER_BYTES * numOutliers;
    let row = x;
    let outlier = found;
    for (let r = 0; r < rows; r++) {
      const lo = rounded(<f64>load<f32>(bounds + (r << 3)) * perUnit);
      const hi = rounded(<f64>load<f32>(bounds + (r << 3), 4) * perUnit);
      store<u8>(out, <u8><i32>lo);
      store<u8>(out, <u8><i32>hi, 1);
      out += 2;
      const perBin: f64 = hi > lo ? (255 * perUnit) / (hi - lo) : 0;
      rowBins(row, width, <f32>perBin, <f32>(0.5 - lo * <f64>unit * perBin), bins);
      const weight = <i64>((hi - lo) * (hi - lo));
      addWeights(bins, width, weight, sums);
      // Outliers have no level to ask for; their bin is the first.
      for (const end = (r + 1) * width; outlier < found + (numOutliers << 1) && <i32>load<u16>(outlier) < end; outlier += 2) store<i64>(sums, load<i64>(sums) - weight);
      row += width << 2;
      bins += width;
    }
    x += values << 2;
  }
  v128.store(bins, i64x2.splat(0));
  // Whole numbers below 2^52: in the lowest bits of a double they are what that is beyond 2^52.
  const whole = f64x2.splat(4503599627370496);
  for (let b = sums; b < sums + (BINS << 3); b += 16) {
    const sum = i64x2.add(i64x2.add(v128.load(b), v128.load(b, BINS << 3)), i64x2.add(v128.load(b, BINS << 4), v128.load(b, 3 * (BINS << 3))));
    v128.store(weights, f64x2.sub(v128.or(sum, whole), whole));
    weights += 16;
  }
}

/** Index, uint16, and code of each; in its row it becomes NaN, which is neither below nor above anything. @returns their unit. */
function takeOutliers(x: usize, found: usize, count: i32, out: usize): f32 {
  let most: f32 = 0;
  for (let i = 0; i < count; i++) most = max(most, abs(load<f32>(x + (<i32>load<u16>(found + (i << 1)) << 2))));
  const unit = <f32>(<f64>most / 127);
  const perUnit: f64 = <f64>unit > MIN_SCALE ? 1 / <f64>unit : 0;
  for (let i = 0; i < count; i++) {
    const index = load<u16>(found + (i << 1));
    const value = x + (<i32>index << 2);
    store<u16>(out, index);
    store<i8>(out, <i8><i32>rounded(<f64>load<f32>(value) * perUnit), 2);
    store<f32>(value, NaN);
    out += OUTLIER_BYTES;
  }
  return unit;
}

/** Writes up to 15 bins beyond. In floats: at worst, where a row spans one unit far from 0, that moves a bin's bounds by a hundredth of it. */
@inline
function rowBins(x: usize, width: i32, perBin: f32, offset: f32, bins: usize): void {
  const factor = f32x4.splat(perBin);
  const offsets = f32x4.splat(offset);
  for (let j = 0; j < width; j += 16) {
    const at = x + (j << 2);
    v128.store(bins + j, bytesOf(binsOf(v128.load(at), factor, offsets), binsOf(v128.load(at, 16), factor, offsets), binsOf(v128.load(at, 32), factor, offsets), binsOf(v128.load(at, 48), factor, offsets)));
  }
}

/** 0 .. 255; of NaN 0. */
@inline
function binsOf(x: v128, factor: v128, offset: v128): v128 {
  const bins = f32x4.floor(f32x4.add(f32x4.mul(x, factor), offset));
  return bitsOf(f32x4.pmin(f32x4.pmax(f32x4.splat(0), bins), f32x4.splat(255)));
}

@inline
function addWeights(bins: usize, width: i32, weight: i64, sums: usize): void {
  const end = bins + width;
  for (const whole = bins + (width & ~3); bins < whole; bins += 4) {
    const first = sums + (<usize>load<u8>(bins) << 3);
    const second = sums + (<usize>load<u8>(bins, 1) << 3);
    const third = sums + (<usize>load<u8>(bins, 2) << 3);
    const fourth = sums + (<usize>load<u8>(bins, 3) << 3);
    store<i64>(first, load<i64>(first) + weight);
    store<i64>(second, load<i64>(second, BINS << 3) + weight, BINS << 3);
    store<i64>(third, load<i64>(third, BINS << 4) + weight, BINS << 4);
    store<i64>(fourth, load<i64>(fourth, 3 * (BINS << 3)) + weight, 3 * (BINS << 3));
  }
  for (; bins < end; bins++) {
    const first = sums + (<usize>load<u8>(bins) << 3);
    store<i64>(first, load<i64>(first) + weight);
  }
}

/**
 * @param levels 8 bytes, then the heads' bytes, then codes
 * @param codes room for a byte for each value and 15 more
 * @returns whether an outlier is outside its head. Writes up to 15 floats beyond x.
 */
export function kvquantDecode(levels: usize, kvHeads: i32, rows: i32, width: i32, numOutliers: i32, x: usize, codes: usize): bool {
  const values = rows * width;
  let head = levels + NUM_LEVELS;
  unpackThree(head + kvHeads * (8 + OUTLIER_BYTES * numOutliers + 2 * rows), kvHeads * values, codes);
  const level = i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(v128.load64_zero(levels)));
  const rest = i32x4.extend_high_i16x8_u(i16x8.extend_low_i8x16_u(v128.load64_zero(levels)));
  for (let h = 0; h < kvHeads; h++) {
    const unit = f64x2.splat(<f64>load<f32>(head));
    const outlierUnit = <f64>load<f32>(head, 4);
    const sparse = head + 8;
    head = sparse + OUTLIER_BYTES * numOutliers;
    const start = x;
    for (let r = 0; r < rows; r++) {
      const lo = <i32>load<i8>(head);
      const span = i32x4.splat(<i32>load<i8>(head, 1) - lo);
      head += 2;
      const first = points(i32x4.mul(level, span), f64x2.splat(<f64>lo), unit);
      const last = points(i32x4.mul(rest, span), f64x2.splat(<f64>lo), unit);
      lookUp(codes, width, first, last, x);
      codes += width;
      x += width << 2;
    }
    for (let i = 0; i < numOutliers; i++) {
      const outlier = sparse + OUTLIER_BYTES * i;
      const index = <i32>load<u16>(outlier);
      if (index >= values) return true;
      store<f32>(start + (index << 2), <f32>(<f64>load<i8>(outlier, 2) * outlierUnit));
    }
  }
  return false;
}

/** Four levels times their row's span -> values. */
@inline
function points(levels: v128, lo: v128, unit: v128): v128 {
  const most = f64x2.splat(255);
  const low = f64x2.mul(f64x2.add(lo, f64x2.div(f64x2.convert_low_i32x4_s(levels), most)), unit);
  const high = f64x2.mul(f64x2.add(lo, f64x2.div(f64x2.convert_low_i32x4_s(v128.shuffle<i64>(levels, levels, 1, 1)), most)), unit);
  return floatsOf(low, high);
}

/** Codes of 0 .. 7 -> the floats in `first` and `last`, byte by byte. */
@inline
function lookUp(codes: usize, width: i32, first: v128, last: v128, x: usize): void {
  const bytes0 = v128.shuffle<i8>(first, last, 0, 4, 8, 12, 16, 20, 24, 28, 0, 0, 0, 0, 0, 0, 0, 0);
  const bytes1 = v128.shuffle<i8>(first, last, 1, 5, 9, 13, 17, 21, 25, 29, 0, 0, 0, 0, 0, 0, 0, 0);
  const bytes2 = v128.shuffle<i8>(first, last, 2, 6, 10, 14, 18, 22, 26, 30, 0, 0, 0, 0, 0, 0, 0, 0);
  const bytes3 = v128.shuffle<i8>(first, last, 3, 7, 11, 15, 19, 23, 27, 31, 0, 0, 0, 0, 0, 0, 0, 0);
  for (let j = 0; j < width; j += 16) {
    const c = v128.load(codes + j);
    const b0 = v128.swizzle(bytes0, c);
    const b1 = v128.swizzle(bytes1, c);
    const b2 = v128.swizzle(bytes2, c);
    const b3 = v128.swizzle(bytes3, c);
    putEight(x + (j << 2), lowBytes(b0, b1), lowBytes(b2, b3));
    putEight(x + (j << 2) + 32, highBytes(b0, b1), highBytes(b2, b3));
  }
}

/** Eight floats, of their low and their high halves. */
@inline
function putEight(x: usize, low: v128, high: v128): void {
  v128.store(x, lowShorts(low, high));
  v128.store(x, highShorts(low, high), 16);
}
