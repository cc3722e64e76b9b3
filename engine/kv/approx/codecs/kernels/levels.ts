/**
 * Levels for a few bits: the 8 points on a scale of 0 .. 255 that are nearest to a weighted histogram in the least squares
 * (Lloyd's algorithm, from a start that is near the optimum for smooth densities).
 */
export const NUM_LEVELS: i32 = 8;
export const NUM_BINS: i32 = 256;
const ROUNDS: i32 = 8;

/**
 * @param weights float64 [256], of the values in each bin: whole numbers, so that sums of them are exact in any order
 * @param levels bytes [8], ascending
 * @param bounds bytes [7], between neighbouring levels: a bin's nearest level is the one after as many of them as are below it
 * @param spare room for float64 [8 + 3 * 257]
 */
export function fitLevels(weights: usize, levels: usize, bounds: usize, spare: usize): void {
  const points = spare;
  // Of all bins below each one, so that what a level gets is a difference.
  const sums = points + (NUM_LEVELS << 3);
  const moments = sums + ((NUM_BINS + 1) << 3);
  // Levels lie as dense as the cube roots where there are many.
  const densities = moments + ((NUM_BINS + 1) << 3);
  cubeRoots(weights, densities);
  let sum: f64 = 0;
  let moment: f64 = 0;
  let density: f64 = 0;
  store<f64>(sums, 0);
  store<f64>(moments, 0);
  for (let bin = 0; bin < NUM_BINS; bin++) {
    const weight = load<f64>(weights + (bin << 3));
    sum += weight;
    moment += weight * <f64>bin;
    density += load<f64>(densities + (bin << 3));
    store<f64>(sums + (bin << 3), sum, 8);
    store<f64>(moments + (bin << 3), moment, 8);
    store<f64>(densities + (bin << 3), density);
  }
  startLevels(densities, density, points);
  for (let round = 0; round < ROUNDS; round++) {
    let from = 0;
    let settled = true;
    for (let i = 0; i < NUM_LEVELS; i++) {
      const point = points + (i << 3);
      // Bins up to the midpoint to the next level, which is as it was before this round.
      const end = i + 1 < NUM_LEVELS ? max(from, <i32>floor((load<f64>(point) + load<f64>(point, 8)) / 2) + 1) : NUM_BINS;
      const own = load<f64>(sums + (end << 3)) - load<f64>(sums + (from << 3));
      if (own > 0) {
        const center = (load<f64>(moments + (end << 3)) - load<f64>(moments + (from << 3))) / own;
        settled = settled && center == load<f64>(point);
        store<f64>(point, center);
      }
      from = end;
    }
    if (settled) break;
  }
  for (let i = 0; i < NUM_LEVELS; i++) store<u8>(levels + i, <u8><i32>floor(load<f64>(points + (i << 3)) + 0.5));
  for (let i = 0; i < NUM_LEVELS - 1; i++) store<u8>(bounds + i, <u8>((<i32>load<u8>(levels + i) + <i32>load<u8>(levels + i, 1)) >> 1));
}

/** @param sums float64 [256], of the densities up to each bin */
function startLevels(sums: usize, total: f64, points: usize): void {
  let bin = 0;
  for (let level = 0; level < NUM_LEVELS; level++) {
    const share = ((<f64>level + 0.5) / NUM_LEVELS) * total;
    while (load<f64>(sums + (bin << 3)) < share) bin++;
    store<f64>(points + (level << 3), <f64>bin);
  }
}

/** What V8's Math.cbrt is (fdlibm's), of 256 whole numbers that are not negative: two at a time, and the same on every machine. */
function cubeRoots(values: usize, roots: usize): void {
  for (let i = 0; i < NUM_BINS << 3; i += 16) {
    const x = v128.load(values + i);
    // A third of the exponent: right to 5 bits. A high word over 3 is the product with 2 / 3 of 2^32, shifted by 33.
    const third = i64x2.shr_u(i64x2.extmul_low_i32x4_u(v128.shuffle<i32>(x, x, 1, 3, 1, 3), i32x4.splat(<i32>0xaaaaaaab)), 33);
    let t = i64x2.shl(i64x2.add(third, i64x2.splat(715094163)), 32);
    // To 23 bits.
    const r = f64x2.mul(f64x2.mul(t, t), f64x2.div(t, x));
    const low = f64x2.add(f64x2.splat(1.87595182427177009643), f64x2.mul(r, f64x2.add(f64x2.splat(-1.88497979543377169875), f64x2.mul(r, f64x2.splat(1.621429720105354466140)))));
    const high = f64x2.mul(f64x2.mul(f64x2.mul(r, r), r), f64x2.add(f64x2.splat(-0.758397934778766047437), f64x2.mul(r, f64x2.splat(0.145996192886612446982))));
    t = f64x2.mul(t, f64x2.add(low, high));
    t = v128.and(i64x2.add(t, i64x2.splat(0x80000000)), i64x2.splat(-0x40000000));
    // One of Newton's steps: to all of them.
    const quotient = f64x2.div(x, f64x2.mul(t, t));
    const step = f64x2.div(f64x2.sub(quotient, t), f64x2.add(f64x2.add(t, t), quotient));
    v128.store(roots + i, v128.and(f64x2.add(t, f64x2.mul(t, step)), f64x2.gt(x, f64x2.splat(0))));
  }
}
