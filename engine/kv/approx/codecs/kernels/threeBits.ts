/** Codes of three bits in bytes: eight in three bytes, the first in the lowest bits. */

/** Codes of bins: how many of the 7 bounds, bytes in ascending order, are below. Reads up to 15 bins and writes up to 7 bytes beyond the last. */
export function packThree(bins: usize, bounds: usize, n: i32, out: usize): void {
  const sign = i8x16.splat(-128);
  const b0 = bound(bounds);
  const b1 = bound(bounds + 1);
  const b2 = bound(bounds + 2);
  const b3 = bound(bounds + 3);
  const b4 = bound(bounds + 4);
  const b5 = bound(bounds + 5);
  const b6 = bound(bounds + 6);
  for (let i = 0; i < n; i += 16) {
    const v = v128.xor(v128.load(bins + i), sign);
    const low = i8x16.add(i8x16.add(i8x16.gt_s(v, b0), i8x16.gt_s(v, b1)), i8x16.add(i8x16.gt_s(v, b2), i8x16.gt_s(v, b3)));
    const high = i8x16.add(i8x16.add(i8x16.gt_s(v, b4), i8x16.gt_s(v, b5)), i8x16.gt_s(v, b6));
    const codes = i8x16.neg(i8x16.add(low, high));
    const two = v128.and(v128.or(codes, i16x8.shr_u(codes, 5)), i16x8.splat(0x3f));
    const four = v128.and(v128.or(two, i32x4.shr_u(two, 10)), i32x4.splat(0xfff));
    const eight = v128.or(four, i64x2.shr_u(four, 20));
    v128.store_lane<u64>(out, v128.shuffle<i8>(eight, eight, 0, 1, 2, 8, 9, 10, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3), 0);
    out += 6;
  }
}

@inline
function bound(at: usize): v128 {
  return v128.xor(v128.load8_splat(at), i8x16.splat(-128));
}

/** The n codes -> bytes. Reads up to 7 bytes and writes up to 15 codes beyond the last. */
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
