import { highBytes, highShorts, lowBytes, lowShorts } from './vectors';

/** Bytes [rows, columns] -> [columns, rows]; the strides are bytes from row to row. */
export function transpose(from: usize, fromStride: i32, rows: i32, columns: i32, to: usize, toStride: i32): void {
  if (rows < 8 || columns < 16) {
    for (let r = 0; r < rows; r++) for (let c = 0; c < columns; c++) store<u8>(to + c * toStride + r, load<u8>(from + r * fromStride + c));
    return;
  }
  for (let r = 0; r < rows; r += 8) {
    // The last ones once more where there is no whole tile left.
    r = min(r, rows - 8);
    for (let c = 0; c < columns; c += 16) {
      c = min(c, columns - 16);
      tile(from + r * fromStride + c, fromStride, to + c * toStride + r, toStride);
    }
  }
}

/** 8 rows of 16 columns. */
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

/** Pairs of rows, 8 columns of each -> 8 columns of 8 rows. */
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
