/**
 * Levels for a few bits: the 8 points on a scale of 0 .. 255 that are nearest to a weighted histogram in the least squares
 * (Lloyd's algorithm, from a start that is near the optimum for smooth densities).
 */
export const NUM_LEVELS = 8;
const NUM_BINS = 256;
const ROUNDS = 8;

/** @param weights [256], of the values in each bin: whole numbers, so that sums of them are exact in any order. @returns ascending levels [8]. */
export function fitLevels(weights: Float64Array): Uint8Array {
  const levels = startLevels(weights);
  // Of all bins below each one, so that what a level gets is a difference.
  const sums = new Float64Array(NUM_BINS + 1);
  const moments = new Float64Array(NUM_BINS + 1);
  for (let bin = 0; bin < NUM_BINS; bin++) {
    sums[bin + 1] = sums[bin]! + weights[bin]!;
    moments[bin + 1] = moments[bin]! + weights[bin]! * bin;
  }
  for (let round = 0; round < ROUNDS; round++) {
    let from = 0;
    for (let i = 0; i < NUM_LEVELS; i++) {
      // Bins up to the midpoint to the next level, which is as it was before this round.
      const end = i + 1 < NUM_LEVELS ? Math.max(from, Math.floor((levels[i]! + levels[i + 1]!) / 2) + 1) : NUM_BINS;
      const sum = sums[end]! - sums[from]!;
      if (sum > 0) levels[i] = (moments[end]! - moments[from]!) / sum;
      from = end;
    }
  }
  return Uint8Array.from(levels, Math.round);
}

/** Levels lie as dense as the cube root of the density where there are many. */
function startLevels(weights: Float64Array): Float64Array {
  const densities = new Float64Array(NUM_BINS);
  let total = 0;
  for (let bin = 0; bin < NUM_BINS; bin++) {
    const weight = weights[bin]!;
    if (weight === 0) continue;
    densities[bin] = Math.cbrt(weight);
    total += densities[bin]!;
  }
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
