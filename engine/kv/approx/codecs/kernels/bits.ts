/**
 * Codes of two, three or four bits: their levels, the code of a value, and packing codes into bytes. The first code is
 * in the lowest bits; eight codes of three bits take three bytes. Does not know scales or means of blocks.
 */

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

/** Reads up to 15 codes and writes up to 3 bytes beyond the last. */
export function packTwo(codes: usize, n: i32, out: usize): void {
  for (let i = 0; i < n; i += 16) {
    const v = v128.load(codes + i);
    const two = v128.and(v128.or(v, i16x8.shr_u(v, 6)), i16x8.splat(15));
    const four = v128.or(two, i32x4.shr_u(two, 12));
    v128.store_lane<u32>(out, v128.shuffle<i8>(four, four, 0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), 0);
    out += 4;
  }
}

/** Reads up to 3 bytes and writes up to 15 codes beyond the last. */
export function unpackTwo(from: usize, n: i32, codes: usize): void {
  for (let i = 0; i < n; i += 16) {
    const four = i32x4.extend_low_i16x8_u(i16x8.extend_low_i8x16_u(v128.load32_zero(from)));
    const two = v128.and(v128.or(four, i32x4.shl(four, 12)), i16x8.splat(15));
    v128.store(codes + i, v128.and(v128.or(two, i16x8.shl(two, 6)), i8x16.splat(3)));
    from += 4;
  }
}

/** Reads up to 15 codes and writes up to 7 bytes beyond the last. */
export function packFour(codes: usize, n: i32, out: usize): void {
  for (let i = 0; i < n; i += 16) {
    const v = v128.load(codes + i);
    const two = v128.and(v128.or(v, i16x8.shr_u(v, 4)), i16x8.splat(255));
    v128.store_lane<u64>(out, i8x16.narrow_i16x8_u(two, two), 0);
    out += 8;
  }
}

/** Reads up to 7 bytes and writes up to 15 codes beyond the last. */
export function unpackFour(from: usize, n: i32, codes: usize): void {
  for (let i = 0; i < n; i += 16) {
    const two = i16x8.extend_low_i8x16_u(v128.load64_zero(from));
    v128.store(codes + i, v128.and(v128.or(two, i16x8.shl(two, 4)), i8x16.splat(15)));
    from += 8;
  }
}

/** Reads up to 15 codes and writes up to 7 bytes beyond the last. */
export function packThree(codes: usize, n: i32, out: usize): void {
  for (let i = 0; i < n; i += 16) {
    const v = v128.load(codes + i);
    const two = v128.and(v128.or(v, i16x8.shr_u(v, 5)), i16x8.splat(0x3f));
    const four = v128.and(v128.or(two, i32x4.shr_u(two, 10)), i32x4.splat(0xfff));
    const eight = v128.or(four, i64x2.shr_u(four, 20));
    v128.store_lane<u64>(out, v128.shuffle<i8>(eight, eight, 0, 1, 2, 8, 9, 10, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3), 0);
    out += 6;
  }
}

/** Reads up to 7 bytes and writes up to 15 codes beyond the last. */
export function unpackThree(from: usize, n: i32, codes: usize): void {
  for (let i = 0; i < n; i += 16) {
    const bytes = v128.load64_zero(from);
    // Bytes from 8 on are 0.
    const eight = v128.shuffle<i8>(bytes, bytes, 0, 1, 2, 8, 8, 8, 8, 8, 3, 4, 5, 8, 8, 8, 8, 8);
    const four = v128.and(v128.or(eight, i64x2.shl(eight, 20)), i32x4.splat(0xfff));
    const two = v128.and(v128.or(four, i32x4.shl(four, 10)), i16x8.splat(0x3f));
    v128.store(codes + i, v128.and(v128.or(two, i16x8.shl(two, 5)), i8x16.splat(7)));
    from += 6;
  }
}
