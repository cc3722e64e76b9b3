/**
 * Levels for a few bits: the 8 points on a scale of 0 .. 255 that are nearest to a weighted histogram in the least squares
 * (Lloyd's algorithm, from a start that is near the optimum for smooth densities).
 */
export const NUM_LEVELS: i32 = 8;
export const NUM_BINS: i32 = 256;
const ROUNDS: i32 = 8;

/**
 * @param weights float64 [256], of the values in each bin: whole numbers, so that sums of them are exact in any order
 * @param densities float64 [256], their cube roots: levels lie as dense as that where there are many
 * @param levels bytes [8], ascending
 * @param bounds bytes [7], between neighbouring levels: a bin's nearest level is the one after as many of them as are below it
 * @param spare room for float64 [8 + 2 * 257]
 */
export function fitLevels(weights: usize, densities: usize, levels: usize, bounds: usize, spare: usize): void {
  const points = spare;
  // Of all bins below each one, so that what a level gets is a difference.
  const sums = points + (NUM_LEVELS << 3);
  const moments = sums + ((NUM_BINS + 1) << 3);
  startLevels(densities, points);
  let sum: f64 = 0;
  let moment: f64 = 0;
  store<f64>(sums, 0);
  store<f64>(moments, 0);
  for (let bin = 0; bin < NUM_BINS; bin++) {
    const weight = load<f64>(weights + (bin << 3));
    sum += weight;
    moment += weight * <f64>bin;
    store<f64>(sums + (bin << 3), sum, 8);
    store<f64>(moments + (bin << 3), moment, 8);
  }
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

function startLevels(densities: usize, points: usize): void {
  let total: f64 = 0;
  for (let bin = 0; bin < NUM_BINS << 3; bin += 8) total += load<f64>(densities + bin);
  let sum: f64 = 0;
  let level = 0;
  for (let bin = 0; bin < NUM_BINS; bin++) {
    sum += load<f64>(densities + (bin << 3));
    while (level < NUM_LEVELS && sum >= ((<f64>level + 0.5) / NUM_LEVELS) * total) store<f64>(points + (level++ << 3), <f64>bin);
  }
}
