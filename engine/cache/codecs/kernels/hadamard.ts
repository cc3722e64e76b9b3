import { doublesAt } from './vectors';

/**
 * Fast Walsh-Hadamard transform, in place, of numValues floats, in blocks of block * unit of which each unit-th belongs to one
 * vector. Two steps at a time; sums are those of doubles, rounded once in two steps. With unit = 1 it writes up to 7 floats beyond x.
 */
export function hadamard(x: usize, numValues: i32, unit: i32, block: i32): void {
  const factor: f64 = 1 / sqrt<f64>(<f64>block);
  const end = block * unit;
  let span = unit;
  for (; 4 * span <= end; span *= 4) {
    const scale: f64 = 4 * span == end ? factor : 1;
    if (span == 1) neighbours(x, numValues, scale);
    else quads(x, numValues, span, scale);
  }
  if (span < end) pairs(x, numValues, span, factor);
}

function quads(x: usize, numValues: i32, span: i32, scale: f64): void {
  const step = span << 2;
  const two = step << 1;
  const three = two + step;
  const factor = f64x2.splat(scale);
  for (const last = x + (numValues << 2); x < last; x += 4 * step) {
    let at = x;
    for (const wide = x + ((span & ~1) << 2); at < wide; at += 8) {
      const a = doublesAt(at);
      const b = doublesAt(at + step);
      const c = doublesAt(at + two);
      const d = doublesAt(at + three);
      const sum = f64x2.add(a, b);
      const rest = f64x2.sub(a, b);
      const otherSum = f64x2.add(c, d);
      const otherRest = f64x2.sub(c, d);
      put(at, f64x2.mul(f64x2.add(sum, otherSum), factor));
      put(at + step, f64x2.mul(f64x2.add(rest, otherRest), factor));
      put(at + two, f64x2.mul(f64x2.sub(sum, otherSum), factor));
      put(at + three, f64x2.mul(f64x2.sub(rest, otherRest), factor));
    }
    if (span & 1) {
      const a = <f64>load<f32>(at);
      const b = <f64>load<f32>(at + step);
      const c = <f64>load<f32>(at + two);
      const d = <f64>load<f32>(at + three);
      store<f32>(at, <f32>((a + b + (c + d)) * scale));
      store<f32>(at + step, <f32>((a - b + (c - d)) * scale));
      store<f32>(at + two, <f32>((a + b - (c + d)) * scale));
      store<f32>(at + three, <f32>((a - b - (c - d)) * scale));
    }
  }
}

@inline
function put(x: usize, values: v128): void {
  v128.store_lane<u64>(x, f32x4.demote_f64x2_zero(values), 0);
}

/** As quads with a span of 1: two vectors of four neighbours at a time. */
function neighbours(x: usize, numValues: i32, scale: f64): void {
  const factor = f64x2.splat(scale);
  for (const last = x + (numValues << 2); x < last; x += 32) {
    const v = v128.load(x);
    const w = v128.load(x, 16);
    const ab = v128.shuffle<i32>(v, w, 0, 4, 1, 5);
    const cd = v128.shuffle<i32>(v, w, 2, 6, 3, 7);
    const a = f64x2.promote_low_f32x4(ab);
    const b = f64x2.promote_low_f32x4(v128.shuffle<i64>(ab, ab, 1, 1));
    const c = f64x2.promote_low_f32x4(cd);
    const d = f64x2.promote_low_f32x4(v128.shuffle<i64>(cd, cd, 1, 1));
    const sum = f64x2.add(a, b);
    const rest = f64x2.sub(a, b);
    const otherSum = f64x2.add(c, d);
    const otherRest = f64x2.sub(c, d);
    const first = f32x4.demote_f64x2_zero(f64x2.mul(f64x2.add(sum, otherSum), factor));
    const second = f32x4.demote_f64x2_zero(f64x2.mul(f64x2.add(rest, otherRest), factor));
    const third = f32x4.demote_f64x2_zero(f64x2.mul(f64x2.sub(sum, otherSum), factor));
    const fourth = f32x4.demote_f64x2_zero(f64x2.mul(f64x2.sub(rest, otherRest), factor));
    const low = v128.shuffle<i32>(first, second, 0, 4, 1, 5);
    const high = v128.shuffle<i32>(third, fourth, 0, 4, 1, 5);
    v128.store(x, v128.shuffle<i64>(low, high, 0, 2));
    v128.store(x, v128.shuffle<i64>(low, high, 1, 3), 16);
  }
}

/** The last step where there is an odd number of them. */
function pairs(x: usize, numValues: i32, span: i32, factor: f64): void {
  const step = span << 2;
  const factors = f64x2.splat(factor);
  for (const last = x + (numValues << 2); x < last; x += 2 * step) {
    let at = x;
    for (const wide = x + ((span & ~1) << 2); at < wide; at += 8) {
      const a = doublesAt(at);
      const b = doublesAt(at + step);
      put(at, f64x2.mul(f64x2.add(a, b), factors));
      put(at + step, f64x2.mul(f64x2.sub(a, b), factors));
    }
    if (span & 1) {
      const a = <f64>load<f32>(at);
      const b = <f64>load<f32>(at + step);
      store<f32>(at, <f32>((a + b) * factor));
      store<f32>(at + step, <f32>((a - b) * factor));
    }
  }
}
