/** What groups of floats span, and how it is coded. */

/** To the nearest integer, half up. */
@inline
export function rounded(value: f64): f64 {
  const above = ceil(value);
  return above - 0.5 > value ? above - 1 : above;
}

/**
 * x [rows, width], groups along the rows: the least and the largest of each, in turn; what is NaN does not count, and where
 * all are both are 0. @returns the largest magnitude.
 */
export function findBounds(x: usize, rows: i32, width: i32, group: i32, bounds: usize): f32 {
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
          // The last four once more where the group is no multiple.
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
