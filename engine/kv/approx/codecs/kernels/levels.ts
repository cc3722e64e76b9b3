/** Levels of 2, 3 and 4 bits, and the code of a value among them. Does not know scales or means of blocks. */

/** -1 where a value is above the bound, 0 elsewhere. */
@inline
function greater(values: v128, bound: f32): v128 {
  return f32x4.gt(values, f32x4.splat(bound));
}

/**
 * Four codes in 32 bits: the number of bounds below the magnitude, counted down from the middle for negative values.
 */
@inline
export function codeOf(x: usize, means: usize, factors: usize, bits: i32): v128 {
  const v = f32x4.mul(f32x4.sub(v128.load(x), v128.load(means)), v128.load(factors));
  const a = f32x4.abs(v);
  let above: v128;
  if (bits == 2) above = greater(a, 0.9816);
  else if (bits == 3) above = i32x4.add(i32x4.add(greater(a, 0.5006), greater(a, 1.05)), greater(a, 1.748));
  else {
    const low = i32x4.add(greater(a, 0.2582), greater(a, 0.5224));
    const middle = i32x4.add(greater(a, 0.7996), greater(a, 1.0993));
    const high = i32x4.add(i32x4.add(greater(a, 1.4371), greater(a, 1.8435)), greater(a, 2.4008));
    above = i32x4.add(i32x4.add(low, middle), high);
  }
  return i32x4.add(i32x4.splat(1 << (bits - 1)), v128.xor(i32x4.neg(above), f32x4.lt(v, f32x4.splat(0))));
}

/** Levels with least squared error for a normal density (Max 1960), by code, in any unit. */
@inline
export function levelsOf(bits: i32): v128 {
  if (bits == 2) return i8x16(-127, -38, 38, 127, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  if (bits == 3) return i8x16(-127, -79, -45, -14, 14, 45, 79, 127, 0, 0, 0, 0, 0, 0, 0, 0);
  return i8x16(-126, -95, -74, -58, -43, -30, -18, -6, 6, 18, 30, 43, 58, 74, 95, 126);
}
