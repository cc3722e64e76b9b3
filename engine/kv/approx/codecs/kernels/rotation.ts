/** unrotate.ts: the rotary embedding of keys. */
import { doublesAt, floatsOf } from './vectors';

/**
 * x [kvHeads, headSize, n], in place; cosines and sines [headSize / 2, stride], of n tokens and up to three more. Products and sums are
 * those of doubles, rounded once. Writes up to 3 floats beyond x.
 * @param direction 1 or -1
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
  // What follows is the next channel's, to be turned by itself.
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
