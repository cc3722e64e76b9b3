/**
 * The values of a head that are farthest out of their rows: by their distance from the row's mean in its deviations, in bins
 * of 1/32. x [rows, width]. Where a bin begins, a row's floats are compared with its bounds: only what is beyond them is reckoned.
 */
import { doublesAt, highDoubles, lowDoubles } from './vectors';

const BINS: i32 = 512;
const BINS_PER_DEVIATION: f64 = 32;
/** As a rule there are enough values from here on, so that those below need not be looked at. */
const LIKELY: i32 = 72;
/** What rounding a bound to a float, and reckoning it, may take away from it is far less, as a share of what it is made of. */
const MARGIN: f64 = 1e-6;

/** Room for far values, int32 [rows * width]; a histogram, int32 [512]; centers and bins per unit, float64 [rows up to a multiple of 4] each. */
@inline
function histogramAt(spare: usize, values: i32): usize {
  return (spare + (values << 2) + 15) & ~15;
}

/** Writes the indices of `count` values, ascending, to found, uint16. */
export function farthest(x: usize, rows: i32, width: i32, count: i32, found: usize, spare: usize): void {
  if (count == 0) return;
  const histogram = histogramAt(spare, rows * width);
  const centers = histogram + (BINS << 2);
  for (let r = 0; r < rows; r += 4) spreads(x, r, rows, width, centers + (r << 3), centers + ((((rows + 3) & ~3) + r) << 3));
  let end = farFrom(LIKELY, x, rows, width, centers, histogram, spare);
  if (<i32>((end - spare) >> 2) < count) end = farFrom(0, x, rows, width, centers, histogram, spare);
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
  for (let far = spare; far < end; far += 4) {
    const bin = <i32>load<u16>(far, 2);
    if (bin < threshold || (bin == threshold && within-- <= 0)) continue;
    store<u16>(found, load<u16>(far));
    found += 2;
  }
}

/** The values in bins from `first` on, in their order: index and bin of each, uint16; and how many each bin has. @returns the end of them. */
function farFrom(first: i32, x: usize, rows: i32, width: i32, centers: usize, histogram: usize, far: usize): usize {
  for (let b = 0; b < BINS << 2; b += 16) v128.store(histogram + b, i64x2.splat(0));
  const perUnits = centers + (((rows + 3) & ~3) << 3);
  for (let r = 0; r < rows; r++) {
    const center = load<f64>(centers + (r << 3));
    const perUnit = load<f64>(perUnits + (r << 3));
    const row = r * width;
    // Of a row without a spread the distance is infinite, and nothing is as far as that.
    const distance = first > 0 ? <f64>first / perUnit : -Infinity;
    const margin = (abs(center) + distance) * MARGIN;
    const above = f32x4.splat(first > 0 ? <f32>(center + distance - margin) : -Infinity);
    const below = f32x4.splat(first > 0 ? <f32>(center - distance + margin) : -Infinity);
    for (let j = 0; j < width; j += 16) {
      const at = x + ((row + j) << 2);
      const low = i16x8.narrow_i32x4_s(outside(at, below, above), outside(at + 16, below, above));
      const high = i16x8.narrow_i32x4_s(outside(at + 32, below, above), outside(at + 48, below, above));
      let mask = i8x16.bitmask(i8x16.narrow_i16x8_s(low, high));
      // What follows is the next row's.
      if (j + 16 > width) mask &= (1 << (width - j)) - 1;
      while (mask != 0) {
        const i = ctz(mask);
        mask &= mask - 1;
        const bin = <i32>min<f64>(<f64>(BINS - 1), abs(<f64>load<f32>(at + (i << 2)) - center) * perUnit);
        if (bin < first) continue;
        store<u16>(far, <u16>(row + j + i));
        store<u16>(far, <u16>bin, 2);
        far += 4;
        const count = histogram + (bin << 2);
        store<i32>(count, load<i32>(count) + 1);
      }
    }
  }
  return far;
}

@inline
function outside(x: usize, below: v128, above: v128): v128 {
  const v = v128.load(x);
  return v128.or(f32x4.le(v, below), f32x4.ge(v, above));
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
  const wide = (width & ~1) << 2;
  let j = 0;
  for (; j < wide; j += 8) {
    const va = doublesAt(a + j);
    const vb = doublesAt(b + j);
    const vc = doublesAt(c + j);
    const vd = doublesAt(d + j);
    let low = f64x2.sub(v128.shuffle<i64>(va, vb, 0, 2), originLow);
    let high = f64x2.sub(v128.shuffle<i64>(vc, vd, 0, 2), originHigh);
    sumLow = f64x2.add(sumLow, low);
    sumHigh = f64x2.add(sumHigh, high);
    squareLow = f64x2.add(squareLow, f64x2.mul(low, low));
    squareHigh = f64x2.add(squareHigh, f64x2.mul(high, high));
    low = f64x2.sub(v128.shuffle<i64>(va, vb, 1, 3), originLow);
    high = f64x2.sub(v128.shuffle<i64>(vc, vd, 1, 3), originHigh);
    sumLow = f64x2.add(sumLow, low);
    sumHigh = f64x2.add(sumHigh, high);
    squareLow = f64x2.add(squareLow, f64x2.mul(low, low));
    squareHigh = f64x2.add(squareHigh, f64x2.mul(high, high));
  }
  if (width & 1) {
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
