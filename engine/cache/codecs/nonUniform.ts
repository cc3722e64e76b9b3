/**
 * Levels for a few bits: the 8 points on a scale of 0 .. 255 that are nearest to a weighted histogram in the least squares
 * (Lloyd's algorithm, from a start that is near the optimum for smooth densities).
 */
export const NUM_LEVELS = 8;
const NUM_BINS = 256;
const ROUNDS = 8;

/** @param weights [256], of the values in each bin. @returns ascending levels [8]. */
export function fitLevels(weights: Float64Array): Uint8Array {
  const levels = startLevels(weights);
  const sums = new Float64Array(NUM_LEVELS);
  const moments = new Float64Array(NUM_LEVELS);
  for (let round = 0; round < ROUNDS; round++) {
    sums.fill(0);
    moments.fill(0);
    let level = 0;
    for (let bin = 0; bin < NUM_BINS; bin++) {
      while (level < NUM_LEVELS - 1 && bin > (levels[level]! + levels[level + 1]!) / 2) level++;
      sums[level]! += weights[bin]!;
      moments[level]! += weights[bin]! * bin;
    }
    for (let i = 0; i < NUM_LEVELS; i++) if (sums[i]! > 0) levels[i] = moments[i]! / sums[i]!;
  }
  return Uint8Array.from(levels, Math.round);
}

/** Levels lie as dense as the cube root of the density where there are many. */
function startLevels(weights: Float64Array): Float64Array {
  const densities = weights.map(Math.cbrt);
  let total = 0;
  for (const density of densities) total += density;
  const levels = new Float64Array(NUM_LEVELS);
  let sum = 0;
  let level = 0;
  for (let bin = 0; bin < NUM_BINS; bin++) {
    sum += densities[bin]!;
    while (level < NUM_LEVELS && sum >= ((level + 0.5) / NUM_LEVELS) * total) levels[level++] = bin;
  }
  return levels;
}

/** The code of the nearest level for each bin, [256]. */
export function nearestLevel(levels: Uint8Array): Uint8Array {
  const codes = new Uint8Array(NUM_BINS);
  let code = 0;
  for (let bin = 0; bin < NUM_BINS; bin++) {
    while (code < NUM_LEVELS - 1 && 2 * bin > levels[code]! + levels[code + 1]!) code++;
    codes[bin] = code;
  }
  return codes;
}
