/** The two rotations of codecs: the rotary embedding of keys, removed and applied, and the Hadamard transform. */
import { doublesAt, floatsOf } from './vectors';

/**
 * x [kvHeads, headSize, n], in place; cosines and sines [headSize / 2, stride], of n tokens and up to three more.
 * Products and sums are computed in doubles and rounded once. Writes up to 3 floats beyond x. @param direction 1
 * applies it, -1 removes it
 */
export function rotate(x: usize, kvHeads: i32, headSize: i32, n: i32, cos: usize, sin: usize, stride: i32, direction: f64): void {
  const half = headSize >> 1;
  const sign = f64x2.splat(direction);
  for (let h = 0; h < kvHeads; h++) {
    for (let i = 0; i < half; i++) {
      const low = x + (((h * headSize + i) * n) << 2);
      const high = low + ((half * n) << 2);
      const c = cos + ((i * stride) << 2);
      const s = sin + ((i * stride) << 2);
      for (let t = 0; t < n; t += 4) {
        const at = t << 2;
        turn(low + at, high + at, c + at, s + at, sign, n - t);
      }
    }
  }
}

@inline
function turn(low: usize, high: usize, cos: usize, sin: usize, sign: v128, n: i32): void {
  const a = doublesAt(low);
  const aRest = doublesAt(low + 8);
  const b = doublesAt(high);
  const bRest = doublesAt(high + 8);
  const c = doublesAt(cos);
  const cRest = doublesAt(cos + 8);
  const s = f64x2.mul(doublesAt(sin), sign);
  const sRest = f64x2.mul(doublesAt(sin + 8), sign);
  const first = floatsOf(f64x2.sub(f64x2.mul(a, c), f64x2.mul(b, s)), f64x2.sub(f64x2.mul(aRest, cRest), f64x2.mul(bRest, sRest)));
  const second = floatsOf(f64x2.add(f64x2.mul(b, c), f64x2.mul(a, s)), f64x2.add(f64x2.mul(bRest, cRest), f64x2.mul(aRest, sRest)));
  if (n >= 4) {
    v128.store(low, first);
    v128.store(high, second);
    return;
  }
  // The values that follow belong to the next channel.
  v128.store_lane<u32>(low, first, 0);
  v128.store_lane<u32>(high, second, 0);
  if (n > 1) {
    v128.store_lane<u32>(low, first, 1, 4);
    v128.store_lane<u32>(high, second, 1, 4);
  }
  if (n > 2) {
    v128.store_lane<u32>(low, first, 2, 8);
    v128.store_lane<u32>(high, second, 2, 8);
  }
}

/**
 * Fast Walsh-Hadamard transform of numValues floats, in place, in blocks of block * unit floats. Every unit-th float of
 * a block belongs to the same vector. Does two steps at a time. With unit = 1 it writes up to 7 floats beyond x.
 */
export function hadamard(x: usize, numValues: i32, unit: i32, block: i32): void {
  const factor = <f32>(1 / sqrt<f64>(<f64>block));
  const end = block * unit;
  let span = unit;
  for (; 4 * span <= end; span *= 4) {
    const scale: f32 = 4 * span == end ? factor : 1;
    if (span == 1) neighbours(x, numValues, scale);
    else quads(x, numValues, span, scale);
  }
  if (span < end) pairs(x, numValues, span, factor);
}

function quads(x: usize, numValues: i32, span: i32, scale: f32): void {
  const step = span << 2;
  const two = step << 1;
  const three = two + step;
  const factor = f32x4.splat(scale);
  for (const last = x + (numValues << 2); x < last; x += 4 * step) {
    let at = x;
    for (const wide = x + ((span & ~3) << 2); at < wide; at += 16) {
      const a = v128.load(at);
      const b = v128.load(at + step);
      const c = v128.load(at + two);
      const d = v128.load(at + three);
      const sum = f32x4.add(a, b);
      const rest = f32x4.sub(a, b);
      const otherSum = f32x4.add(c, d);
      const otherRest = f32x4.sub(c, d);
      v128.store(at, f32x4.mul(f32x4.add(sum, otherSum), factor));
      v128.store(at + step, f32x4.mul(f32x4.add(rest, otherRest), factor));
      v128.store(at + two, f32x4.mul(f32x4.sub(sum, otherSum), factor));
      v128.store(at + three, f32x4.mul(f32x4.sub(rest, otherRest), factor));
    }
    for (const end = x + step; at < end; at += 4) {
      const a = load<f32>(at);
      const b = load<f32>(at + step);
      const c = load<f32>(at + two);
      const d = load<f32>(at + three);
      store<f32>(at, (a + b + (c + d)) * scale);
      store<f32>(at + step, (a - b + (c - d)) * scale);
      store<f32>(at + two, (a + b - (c + d)) * scale);
      store<f32>(at + three, (a - b - (c - d)) * scale);
    }
  }
}

/** Like quads with a span of 1: two vectors of four neighbours at a time. */
function neighbours(x: usize, numValues: i32, scale: f32): void {
  const factor = f32x4.splat(scale);
  for (const last = x + (numValues << 2); x < last; x += 32) {
    const v = v128.load(x);
    const w = v128.load(x, 16);
    // From the first and the second vector: a and c, b and d.
    const ac = v128.shuffle<i32>(v, w, 0, 4, 2, 6);
    const bd = v128.shuffle<i32>(v, w, 1, 5, 3, 7);
    const sums = f32x4.add(ac, bd);
    const rests = f32x4.sub(ac, bd);
    const first = v128.shuffle<i64>(sums, rests, 0, 2);
    const second = v128.shuffle<i64>(sums, rests, 1, 3);
    const low = f32x4.mul(f32x4.add(first, second), factor);
    const high = f32x4.mul(f32x4.sub(first, second), factor);
    v128.store(x, v128.shuffle<i32>(low, high, 0, 2, 4, 6));
    v128.store(x, v128.shuffle<i32>(low, high, 1, 3, 5, 7), 16);
  }
}

/** The last step where their number is odd. */
function pairs(x: usize, numValues: i32, span: i32, factor: f32): void {
  const step = span << 2;
  const factors = f32x4.splat(factor);
  for (const last = x + (numValues << 2); x < last; x += 2 * step) {
    let at = x;
    for (const wide = x + ((span & ~3) << 2); at < wide; at += 16) {
      const a = v128.load(at);
      const b = v128.load(at + step);
      v128.store(at, f32x4.mul(f32x4.add(a, b), factors));
      v128.store(at + step, f32x4.mul(f32x4.sub(a, b), factors));
    }
    for (const end = x + step; at < end; at += 4) {
      const a = load<f32>(at);
      const b = load<f32>(at + step);
      store<f32>(at, (a + b) * factor);
      store<f32>(at + step, (a - b) * factor);
    }
  }
}
