/**
 * The values of a head that are farthest out of their rows: by their distance from the row's mean in its deviations, in bins
 * of 1/32. x [rows, width].
 */
import { highDoubles, lowDoubles, ROUND } from './vectors';

const BINS: i32 = 512;
const BINS_PER_DEVIATION: f64 = 32;
/** As a rule there are enough values from here on, so that those below need not be counted. */
const LIKELY: i32 = 64;

/** Room for bins, uint16 [rows * width]; a histogram, int32 [512]; centers and bins per unit, float64 [rows up to a multiple of 4] each. */
@inline
function histogramAt(spare: usize, values: i32): usize {
  return (spare + (values << 1) + 31) & ~15;
}

/** Writes the indices of `count` values, ascending, to found, uint16. */
export function farthest(x: usize, rows: i32, width: i32, count: i32, found: usize, spare: usize): void {
  const values = rows * width;
  const histogram = histogramAt(spare, values);
  const centers = histogram + (BINS << 2);
  const perUnits = centers + (((rows + 3) & ~3) << 3);
  for (let r = 0; r < rows; r += 4) spreads(x, r, rows, width, centers + (r << 3), perUnits + (r << 3));
  for (let r = 0; r < rows; r++) distances(x + ((r * width) << 2), width, load<f64>(centers + (r << 3)), load<f64>(perUnits + (r << 3)), spare + ((r * width) << 1));
  if (count == 0) return;
  // Of less than eight at the end those beyond count for nothing.
  v128.store(spare + (values << 1), i64x2.splat(0));
  if (countFrom(LIKELY, spare, values, histogram) < count) countFrom(0, spare, values, histogram);
  // All above the threshold, and the first ones in it.
  let threshold = BINS - 1;
  let above = 0;
  while (threshold > 0) {
    const next = above + load<i32>(histogram + (threshold << 2));
    if (next >= count) break;
    above = next;
    threshold--;
  }
  let within = count - above;
  const least = i16x8.splat(<i16>(threshold - 1));
  const end = found + (count << 1);
  for (let i = 0; i < values; i += 8) {
    let mask = i16x8.bitmask(i16x8.gt_s(v128.load(spare + (i << 1)), least));
    while (mask != 0) {
      const at = i + ctz(mask);
      mask &= mask - 1;
      if (<i32>load<u16>(spare + (at << 1)) == threshold && within-- <= 0) continue;
      if (found == end) return;
      store<u16>(found, <u16>at);
      found += 2;
    }
  }
}

/** Counts the values in bins from `first` on. */
function countFrom(first: i32, bins: usize, values: i32, histogram: usize): i32 {
  memory.fill(histogram, 0, BINS << 2);
  const below = i16x8.splat(<i16>(first - 1));
  let counted = 0;
  for (let i = 0; i < values; i += 8) {
    let mask = i16x8.bitmask(i16x8.gt_s(v128.load(bins + (i << 1)), below));
    if (i + 8 > values) mask &= (1 << (values - i)) - 1;
    counted += popcnt(mask);
    while (mask != 0) {
      const bin = histogram + (<i32>load<u16>(bins + ((i + ctz(mask)) << 1)) << 2);
      store<i32>(bin, load<i32>(bin) + 1);
      mask &= mask - 1;
    }
  }
  return counted;
}

/** Mean of four rows from `first` on, and bins per unit. Sums are taken in a row's order. */
function spreads(x: usize, first: i32, rows: i32, width: i32, centers: usize, perUnits: usize): void {
  // Of less than four the last one once more.
  const a = x + ((first * width) << 2);
  const b = x + ((min(first + 1, rows - 1) * width) << 2);
  const c = x + ((min(first + 2, rows - 1) * width) << 2);
  const d = x + ((min(first + 3, rows - 1) * width) << 2);
  const origins = four(a, b, c, d);
  const originLow = lowDoubles(origins);
  const originHigh = highDoubles(origins);
  let sumLow = f64x2.splat(0);
  let sumHigh = sumLow;
  let squareLow = sumLow;
  let squareHigh = sumLow;
  const wide = (width & ~3) << 2;
  let j = 0;
  for (; j < wide; j += 16) {
    const va = v128.load(a + j);
    const vb = v128.load(b + j);
    const vc = v128.load(c + j);
    const vd = v128.load(d + j);
    const ab = v128.shuffle<i32>(va, vb, 0, 4, 1, 5);
    const abRest = v128.shuffle<i32>(va, vb, 2, 6, 3, 7);
    const cd = v128.shuffle<i32>(vc, vd, 0, 4, 1, 5);
    const cdRest = v128.shuffle<i32>(vc, vd, 2, 6, 3, 7);
    let low = f64x2.sub(lowDoubles(ab), originLow);
    let high = f64x2.sub(lowDoubles(cd), originHigh);
    sumLow = f64x2.add(sumLow, low);
    sumHigh = f64x2.add(sumHigh, high);
    squareLow = f64x2.add(squareLow, f64x2.mul(low, low));
    squareHigh = f64x2.add(squareHigh, f64x2.mul(high, high));
    low = f64x2.sub(highDoubles(ab), originLow);
    high = f64x2.sub(highDoubles(cd), originHigh);
    sumLow = f64x2.add(sumLow, low);
    sumHigh = f64x2.add(sumHigh, high);
    squareLow = f64x2.add(squareLow, f64x2.mul(low, low));
    squareHigh = f64x2.add(squareHigh, f64x2.mul(high, high));
    low = f64x2.sub(lowDoubles(abRest), originLow);
    high = f64x2.sub(lowDoubles(cdRest), originHigh);
    sumLow = f64x2.add(sumLow, low);
    sumHigh = f64x2.add(sumHigh, high);
    squareLow = f64x2.add(squareLow, f64x2.mul(low, low));
    squareHigh = f64x2.add(squareHigh, f64x2.mul(high, high));
    low = f64x2.sub(highDoubles(abRest), originLow);
    high = f64x2.sub(highDoubles(cdRest), originHigh);
    sumLow = f64x2.add(sumLow, low);
    sumHigh = f64x2.add(sumHigh, high);
    squareLow = f64x2.add(squareLow, f64x2.mul(low, low));
    squareHigh = f64x2.add(squareHigh, f64x2.mul(high, high));
  }
  for (; j < width << 2; j += 4) {
    const v = four(a + j, b + j, c + j, d + j);
    const low = f64x2.sub(lowDoubles(v), originLow);
    const high = f64x2.sub(highDoubles(v), originHigh);
    sumLow = f64x2.add(sumLow, low);
    sumHigh = f64x2.add(sumHigh, high);
    squareLow = f64x2.add(squareLow, f64x2.mul(low, low));
    squareHigh = f64x2.add(squareHigh, f64x2.mul(high, high));
  }
  spread(originLow, sumLow, squareLow, width, centers, perUnits);
  spread(originHigh, sumHigh, squareHigh, width, centers + 16, perUnits + 16);
}

@inline
function four(a: usize, b: usize, c: usize, d: usize): v128 {
  return v128.load_lane<u32>(d, v128.load_lane<u32>(c, v128.load_lane<u32>(b, v128.load32_zero(a), 1), 2), 3);
}

@inline
function spread(origin: v128, sum: v128, squares: v128, width: i32, center: usize, perUnit: usize): void {
  const n = f64x2.splat(<f64>width);
  const mean = f64x2.div(sum, n);
  const variance = f64x2.sub(f64x2.div(squares, n), f64x2.mul(mean, mean));
  v128.store(center, f64x2.add(origin, mean));
  v128.store(perUnit, v128.and(f64x2.div(f64x2.splat(BINS_PER_DEVIATION), f64x2.sqrt(variance)), f64x2.gt(variance, f64x2.splat(1e-60))));
}

/** Writes up to 7 bins beyond. */
@inline
function distances(x: usize, width: i32, center: f64, perUnit: f64, bins: usize): void {
  const centers = f64x2.splat(center);
  const factor = f64x2.splat(perUnit);
  for (let j = 0; j < width; j += 8) v128.store(bins + (j << 1), i16x8.narrow_i32x4_s(binsOf(x + (j << 2), centers, factor), binsOf(x + (j << 2) + 16, centers, factor)));
}

@inline
function binsOf(x: usize, center: v128, factor: v128): v128 {
  const v = v128.load(x);
  return v128.shuffle<i32>(binOf(lowDoubles(v), center, factor), binOf(highDoubles(v), center, factor), 0, 2, 4, 6);
}

@inline
function binOf(v: v128, center: v128, factor: v128): v128 {
  const distance = f64x2.mul(f64x2.abs(f64x2.sub(v, center)), factor);
  return f64x2.add(f64x2.floor(f64x2.pmin(f64x2.splat(<f64>(BINS - 1)), distance)), f64x2.splat(ROUND));
}
