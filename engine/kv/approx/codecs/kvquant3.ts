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
import { areaEnd, kernels } from './kernels.ts';
import { finite } from './codecFormat.ts';

const OUTLIER_SHARE = 0.01;
const OUTLIER_BYTES = 3;
const MAX_INDICES = 1 << 16;
const NUM_LEVELS = 8;
/** Between a row's bounds. */
const NUM_BINS = 256;

const outliersOf = (values: number): number => Math.floor(values * OUTLIER_SHARE);
const headBytes = (rows: number, width: number): number => 8 + OUTLIER_BYTES * outliersOf(rows * width) + 2 * rows;

function bytes(kvHeads: number, rows: number, width: number): number {
  const values = rows * width;
  if (values > MAX_INDICES) throw new Error(`A block of ${rows} x ${width} values is too large for 16-bit indices.`);
  return NUM_LEVELS + kvHeads * headBytes(rows, width) + Math.ceil((3 * kvHeads * values) / 8);
}

/** x [kvHeads, rows, width]. */
function encode(x: number, kvHeads: number, rows: number, width: number, out: number, spare: number): void {
  const { kvquantBins, fitLevels, packThree } = kernels();
  const numValues = kvHeads * rows * width;
  const bounds = areaEnd(spare, 8 * NUM_BINS);
  const bins = areaEnd(bounds, NUM_LEVELS);
  const rest = areaEnd(bins, numValues);
  kvquantBins(x, kvHeads, rows, width, outliersOf(rows * width), out + NUM_LEVELS, bins, spare, rest);
  fitLevels(spare, out, bounds, rest);
  packThree(bins, bounds, numValues, out + NUM_LEVELS + kvHeads * headBytes(rows, width));
}

function decode(from: number, kvHeads: number, rows: number, width: number, x: number, spare: number): void {
  const { memory, kvquantDecode } = kernels();
  const view = new DataView(memory.buffer);
  for (let h = 0; h < kvHeads; h++) {
    const head = from + NUM_LEVELS + h * headBytes(rows, width);
    finite(view.getFloat32(head, true), 256);
    finite(view.getFloat32(head + 4, true), 128);
  }
  if (kvquantDecode(from, kvHeads, rows, width, outliersOf(rows * width), x, spare))
    throw new MalformedRun('it has an outlier outside its block');
}

export const KVQUANT_KEYS: SideFormat = {
  layout: 'byChannel',
  bytes: (kvHeads, headSize, n) => bytes(kvHeads, headSize, n),
  encode: (x, kvHeads, headSize, n, out, spare) => encode(x, kvHeads, headSize, n, out, spare),
  decode: (from, kvHeads, headSize, n, x, spare) => decode(from, kvHeads, headSize, n, x, spare),
};

export const KVQUANT_VALUES: TokenFormat = {
  layout: 'byToken',
  bytes: (kvHeads, headSize, n) => bytes(kvHeads, n, headSize),
  encode: (x, kvHeads, headSize, n, out, spare) => encode(x, kvHeads, n, headSize, out, spare),
  decode: (from, kvHeads, headSize, n, x, spare) => decode(from, kvHeads, n, headSize, x, spare),
};
