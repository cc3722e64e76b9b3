/**
 * 3 bits as in KVQuant (arXiv 2401.18079): K per channel before the rotary embedding, V per token, eight non-uniform levels, and the
 * 1 % of values that are farthest out of their row kept sparse. Different from there: levels are fitted to each block
 * rather than calibrated with Fisher information, which an imported model does not come with. A row (a channel or a token)
 * spans lo .. hi, 8-bit codes as in int4Kivi; levels lie on that span and are shared by all rows, fitted to their squared
 * error.
 * Bytes: levels [8]; then for each head the unit of its bounds and of its outliers, float32, its outliers (index uint16, 8-bit
 * code) and its bounds lo, hi [rows]; then three bits per value.
 */
import { MalformedRun, type SideFormat, type TokenFormat } from './codecFormat.ts';
import { kernelMemory, kernels } from './kernels.ts';
import { fitLevels, NUM_LEVELS, nearestLevel } from './nonUniform.ts';
import { finite } from './scales.ts';
import { packedBytes, packThree, unpackThree } from './threeBits.ts';

const OUTLIER_SHARE = 0.01;
const OUTLIER_BYTES = 3;
const MOST_INDICES = 1 << 16;
/** Distances are sorted into bins of 1/32 standard deviation. */
const DISTANCE_BINS = 512;
const BINS_PER_DEVIATION = 32;

const outliersOf = (values: number): number => Math.floor(values * OUTLIER_SHARE);
const roundUp8 = (n: number): number => (n + 7) & ~7;

function bytes(kvHeads: number, rows: number, width: number): number {
  const values = rows * width;
  if (values > MOST_INDICES) throw new Error(`A block of ${rows} x ${width} values is too large for 16-bit indices.`);
  return NUM_LEVELS + kvHeads * (8 + OUTLIER_BYTES * outliersOf(values) + 2 * rows) + packedBytes(kvHeads * values);
}

/** Indices, ascending, of the `count` values of a head that are farthest from their row's mean in its deviations. */
function findOutliers(x: Float32Array, start: number, rows: number, width: number, count: number, bins: Uint16Array): Uint16Array {
  const histogram = new Uint32Array(DISTANCE_BINS);
  for (let r = 0; r < rows; r++) {
    const row = start + r * width;
    const origin = x[row]!;
    let sum = 0;
    let squares = 0;
    for (let j = row; j < row + width; j++) {
      const v = x[j]! - origin;
      sum += v;
      squares += v * v;
    }
    const mean = sum / width;
    const variance = squares / width - mean * mean;
    const perBin = variance > 1e-60 ? BINS_PER_DEVIATION / Math.sqrt(variance) : 0;
    const center = origin + mean;
    for (let j = 0; j < width; j++) {
      const bin = Math.min(DISTANCE_BINS - 1, Math.abs(x[row + j]! - center) * perBin) | 0;
      bins[r * width + j] = bin;
      histogram[bin]!++;
    }
  }
  // All above the threshold, and the first ones in it.
  let threshold = DISTANCE_BINS - 1;
  let above = 0;
  while (threshold > 0 && above + histogram[threshold]! < count) above += histogram[threshold--]!;
  let within = count - above;
  const found = new Uint16Array(count);
  let at = 0;
  for (let i = 0, end = rows * width; i < end; i++) {
    const bin = bins[i]!;
    if (bin < threshold || at === count) continue;
    if (bin === threshold && within-- <= 0) continue;
    found[at++] = i;
  }
  return found;
}

function encode(x: Float32Array, kvHeads: number, rows: number, width: number, out: Uint8Array, at: number): void {
  const values = rows * width;
  const view = new DataView(out.buffer, out.byteOffset);
  const numOutliers = outliersOf(values);
  // Later the rows' weights.
  const lows = new Float64Array(rows);
  const highs = new Float64Array(rows);
  const distances = new Uint16Array(values);
  const bins = new Uint8Array(roundUp8(kvHeads * values));
  const weights = new Float64Array(256);
  let to = at + NUM_LEVELS;
  for (let h = 0; h < kvHeads; h++) {
    const start = h * values;
    const outliers = findOutliers(x, start, rows, width, numOutliers, distances);
    let farthest = 0;
    for (const index of outliers) farthest = Math.max(farthest, Math.abs(x[start + index]!));
    const outlierUnit = Math.fround(farthest / 127);
    const perOutlierUnit = outlierUnit > 1e-38 ? 1 / outlierUnit : 0;
    const sparse = to + 8;
    for (const [i, index] of outliers.entries()) {
      view.setUint16(sparse + OUTLIER_BYTES * i, index, true);
      view.setInt8(sparse + OUTLIER_BYTES * i + 2, Math.round(x[start + index]! * perOutlierUnit));
      // Neither below nor above anything: it does not widen its row.
      x[start + index] = Number.NaN;
    }
    let largest = 0;
    for (let r = 0; r < rows; r++) {
      const row = start + r * width;
      let lo = Number.POSITIVE_INFINITY;
      let hi = Number.NEGATIVE_INFINITY;
      for (let j = row; j < row + width; j++) {
        const v = x[j]!;
        if (v < lo) lo = v;
        if (v > hi) hi = v;
      }
      lows[r] = lo <= hi ? lo : 0;
      highs[r] = lo <= hi ? hi : 0;
      largest = Math.max(largest, -lows[r]!, highs[r]!);
    }
    const unit = Math.fround(largest / 127);
    const perUnit = unit > 1e-38 ? 1 / unit : 0;
    view.setFloat32(to, unit, true);
    view.setFloat32(to + 4, outlierUnit, true);
    const bounds = sparse + OUTLIER_BYTES * numOutliers;
    for (let r = 0; r < rows; r++) {
      const lo = Math.round(lows[r]! * perUnit);
      const hi = Math.round(highs[r]! * perUnit);
      out[bounds + 2 * r] = lo;
      out[bounds + 2 * r + 1] = hi;
      const weight = (hi - lo) * (hi - lo);
      const perBin = hi > lo ? (255 * perUnit) / (hi - lo) : 0;
      const offset = 0.5 - lo * unit * perBin;
      for (let j = start + r * width, end = j + width; j < end; j++) {
        const bin = x[j]! * perBin + offset;
        const clipped = bin > 0 ? (bin < 255 ? bin | 0 : 255) : 0;
        bins[j] = clipped;
        weights[clipped]! += weight;
      }
      lows[r] = weight;
    }
    // They have no level to ask for; their bin is the first.
    for (const index of outliers) weights[0]! -= lows[(index / width) | 0]!;
    to = bounds + 2 * rows;
  }
  const levels = fitLevels(weights);
  out.set(levels, at);
  packThree(bins, nearestLevel(levels), kvHeads * values, out, to);
}

function decode(from: Uint8Array, at: number, kvHeads: number, rows: number, width: number, x: Float32Array): void {
  const values = rows * width;
  const view = new DataView(from.buffer, from.byteOffset);
  const numOutliers = outliersOf(values);
  const codes = new Uint8Array(roundUp8(kvHeads * values));
  const headBytes = 8 + OUTLIER_BYTES * numOutliers + 2 * rows;
  unpackThree(from, at + NUM_LEVELS + kvHeads * headBytes, kvHeads * values, codes);
  const points = new Float64Array(NUM_LEVELS);
  for (let h = 0; h < kvHeads; h++) {
    const start = h * values;
    const head = at + NUM_LEVELS + h * headBytes;
    const unit = finite(view.getFloat32(head, true), 256);
    const outlierUnit = finite(view.getFloat32(head + 4, true), 128);
    const bounds = head + 8 + OUTLIER_BYTES * numOutliers;
    for (let r = 0; r < rows; r++) {
      const lo = view.getInt8(bounds + 2 * r);
      const span = view.getInt8(bounds + 2 * r + 1) - lo;
      for (let i = 0; i < NUM_LEVELS; i++) points[i] = (lo + (span * from[at + i]!) / 255) * unit;
      for (let j = start + r * width, end = j + width; j < end; j++) x[j] = points[codes[j]!]!;
    }
    for (let i = 0, outlier = head + 8; i < numOutliers; i++, outlier += OUTLIER_BYTES) {
      const index = view.getUint16(outlier, true);
      if (index >= values) throw new MalformedRun('it has an outlier outside its block');
      x[start + index] = view.getInt8(outlier + 2) * outlierUnit;
    }
  }
}

const floatsAt = (x: number, length: number): Float32Array => new Float32Array(kernels().memory.buffer, x, length);
const memory = (): Uint8Array => kernelMemory(0);

export const KVQUANT_KEYS: SideFormat = {
  layout: 'byChannel',
  bytes: (kvHeads, headSize, n) => bytes(kvHeads, headSize, n),
  encode: (x, kvHeads, headSize, n, out) => encode(floatsAt(x, kvHeads * headSize * n), kvHeads, headSize, n, memory(), out),
  decode: (from, kvHeads, headSize, n, x) => decode(memory(), from, kvHeads, headSize, n, floatsAt(x, kvHeads * headSize * n)),
};

export const KVQUANT_VALUES: TokenFormat = {
  layout: 'byToken',
  bytes: (kvHeads, headSize, n) => bytes(kvHeads, n, headSize),
  encode: (x, kvHeads, headSize, n, out) => encode(floatsAt(x, kvHeads * headSize * n), kvHeads, n, headSize, memory(), out),
  decode: (from, kvHeads, headSize, n, x) => decode(memory(), from, kvHeads, n, headSize, floatsAt(x, kvHeads * headSize * n)),
};
