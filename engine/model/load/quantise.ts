/**
 * Symmetric quantisation of weight rows. Pure functions.
 * With one scale per row: 8 bits for products, written as the columns of the layout that the operator reads, and 16
 * bits for the embedding table. With one scale per block along the input: 4 or 8 bits, in the layout of MatMulNBits.
 */
import type { Precision } from '../../protocol/tasks.ts';

/** Rows and columns of a tile of the transposition. Both sides of a tile stay in the first-level cache. */
const TILE = 64;
/** Adding and subtracting 1.5 * 2^52 rounds a double to the nearest integer, half to even. */
const ROUND = 6755399441055744;

/** scales[i] = max |row i| / 127; an all-zero row has the scale 0. rows: [numRows, width]. */
export function rowScales(rows: Float32Array, numRows: number, width: number, scales: Float32Array): void {
  for (let r = 0; r < numRows; r++) {
    let max = 0;
    for (let i = r * width, end = i + width; i < end; i++) {
      const v = Math.abs(rows[i]!);
      if (v > max) max = v;
    }
    scales[r] = max / 127;
  }
}

/**
 * Codes rows [numRows, width] in 16 bits, x = code * scale, into out [numRows, width]. For tables that are only looked
 * up: 8 bits there would cost as much accuracy as all 8-bit products of a small model together.
 */
export function quantiseRows16(
  rows: Float32Array,
  numRows: number,
  width: number,
  scales: Float32Array,
  out: Int16Array,
): void {
  for (let r = 0; r < numRows; r++) {
    let max = 0;
    for (let i = r * width, end = i + width; i < end; i++) max = Math.max(max, Math.abs(rows[i]!));
    scales[r] = max / 32_767;
    const inverse = max > 0 ? 32_767 / max : 0;
    for (let i = r * width, end = i + width; i < end; i++) out[i] = rows[i]! * inverse + ROUND - ROUND;
  }
}

/** rows [numRows, width] -> columns firstColumn .. firstColumn+numRows-1 of out [width, numColumns]. */
export function quantiseToColumns(
  rows: Float32Array,
  numRows: number,
  width: number,
  scales: Float32Array,
  out: Int8Array,
  numColumns: number,
  firstColumn: number,
): void {
  for (let r0 = 0; r0 < numRows; r0 += TILE) {
    const r1 = Math.min(numRows, r0 + TILE);
    for (let i0 = 0; i0 < width; i0 += TILE) {
      const i1 = Math.min(width, i0 + TILE);
      for (let r = r0; r < r1; r++) {
        const inverse = scales[r]! > 0 ? 1 / scales[r]! : 0;
        const source = r * width;
        let target = i0 * numColumns + firstColumn + r;
        for (let i = i0; i < i1; i++, target += numColumns)
          out[target] = clamp(rows[source + i]! * inverse + ROUND - ROUND);
      }
    }
  }
}

/**
 * A scale that underflows to a denormal can be too small by more than half a step. The code -128 must not occur (see
 * stepGraph).
 */
function clamp(value: number): number {
  return Math.min(127, Math.max(-127, value));
}

/**
 * Blocks. 4 bits: x = (code - 8) * scale; 8 bits: x = (code - 128) * scale.
 *
 * With 4 bits the scale with which the largest weight just fits is not the best. A smaller one costs that weight a
 * little and gives all others a finer step. So a few scales are tried, and the codes with the least squared error are
 * kept, with the scale that fits them best. Measured on the built-in model, blocks of 128: 20.0 dB of signal to error,
 * against 19.5 with the plain scale and 20.1 with ten times as many trials.
 */

/** Weights of a block. */
export const BLOCK = 128;
/** Code of the weight zero, with 4 bits and with 8. */
const ZERO = 8;
const ZERO8 = 128;
/**
 * Where the largest weight would lie in codes, before it is clamped to -8. With 7 neither it nor its counterpart is
 * clamped: the plain scale.
 */
const TRIALS = [7, 7.7, 8.4, 9.2, 10.2, 11.4];

/** Blocks of a row. The last one may be shorter and is filled with zeros. */
export function numBlocks(width: number): number {
  return Math.ceil(width / BLOCK);
}

/** 8 bits: rows [numRows, width] -> codes [numRows, numBlocks, BLOCK] and scales [numRows, numBlocks]. */
export function quantiseBlocks8(
  rows: Float32Array,
  numRows: number,
  width: number,
  codes: Uint8Array,
  scales: Float32Array,
): void {
  const blocks = numBlocks(width);
  codes.fill(ZERO8);
  for (let r = 0; r < numRows; r++) {
    for (let b = 0; b < blocks; b++) {
      const start = r * width + b * BLOCK;
      const end = Math.min((r + 1) * width, start + BLOCK);
      let largest = 0;
      for (let i = start; i < end; i++) largest = Math.max(largest, Math.abs(rows[i]!));
      scales[r * blocks + b] = largest / 127;
      const inverse = largest > 0 ? 127 / largest : 0;
      const out = (r * blocks + b) * BLOCK - start;
      for (let i = start; i < end; i++) codes[out + i] = rows[i]! * inverse + ROUND - ROUND + ZERO8;
    }
  }
}

function code(weight: number, inverse: number): number {
  return Math.min(7, Math.max(-8, weight * inverse + ROUND - ROUND));
}

/**
 * 4 bits: rows [numRows, width] -> codes [numRows, numBlocks, BLOCK / 2], two per byte, the first in the low half, and
 * scales [numRows, numBlocks].
 */
export function quantiseBlocks4(
  rows: Float32Array,
  numRows: number,
  width: number,
  codes: Uint8Array,
  scales: Float32Array,
): void {
  const blocks = numBlocks(width);
  for (let r = 0; r < numRows; r++) {
    for (let b = 0; b < blocks; b++) {
      const start = r * width + b * BLOCK;
      const end = Math.min((r + 1) * width, start + BLOCK);
      const scale = bestScale(rows, start, end);
      const inverse = scale.divisor === 0 ? 0 : 1 / scale.divisor;
      scales[r * blocks + b] = scale.factor;
      let out = (r * blocks + b) * (BLOCK / 2);
      for (let i = start; i < start + BLOCK; i += 2, out++) {
        const low = i < end ? code(rows[i]!, inverse) : 0;
        const high = i + 1 < end ? code(rows[i + 1]!, inverse) : 0;
        codes[out] = (low + ZERO) | ((high + ZERO) << 4);
      }
    }
  }
}

/**
 * The divisor of the weights of a block that gives its codes, and the factor of the codes that gives the weights back.
 * Both are 0 for a block of zeros.
 */
function bestScale(rows: Float32Array, start: number, end: number): { divisor: number; factor: number } {
  let largest = 0;
  for (let i = start; i < end; i++) if (Math.abs(rows[i]!) > Math.abs(largest)) largest = rows[i]!;
  const best = { divisor: 0, factor: 0 };
  if (largest === 0) return best;
  let bestGain = 0;
  for (const trial of TRIALS) {
    // The largest weight gets the code -8, which has no counterpart.
    const divisor = -largest / trial;
    const inverse = 1 / divisor;
    let product = 0;
    let square = 0;
    for (let i = start; i < end; i++) {
      const c = code(rows[i]!, inverse);
      product += c * rows[i]!;
      square += c * c;
    }
    // With the factor product / square, this is what the squared error is lower than that of zeros.
    const gain = (product * product) / square;
    if (gain <= bestGain) continue;
    bestGain = gain;
    best.divisor = divisor;
    best.factor = product / square;
  }
  return best;
}

/**
 * What the processor is best at (see calibrate/productForm).
 * narrow: 7-bit codes on the left-hand side of integer products, for processors whose 8-bit products add pairs in 16
 * bits and
 * saturate (x86 without VNNI). 127 * 127 * 2 fits, blocks of 8 bits would not.
 * blocks, rows: a few rows are multiplied faster by 8-bit weights in blocks, or by those with one scale per output.
 */
export type ProductForm = 'narrow' | 'rows' | 'blocks';

/** How the weights of a linear layer are stored (see LinearItem). */
export type Form = 'blocks4' | 'blocks8' | 'int8' | 'float32';

export type Forms = Readonly<Record<'feedForward' | 'attention' | 'head', Form>>;

/**
 * In int4 the attention's layers and the head keep 8 bits. They are a small part of most models, and their loss weighs
 * most.
 * Measured on the built-in model, mean KL divergence from float32: 0.015 in this form, 0.023 with a head of 4 bits,
 * 0.047
 * with the attention's layers of 4 bits, 0.054 with both.
 * These 8 bits are in blocks where the processor multiplies a few rows faster by blocks. So is the head of int8, which
 * gets
 * few rows. The layers of int8 get whole prompts as well, which are faster without blocks.
 */
export function formsOf(precision: Precision, products: ProductForm): Forms {
  if (precision === 'float32') return { feedForward: 'float32', attention: 'float32', head: 'float32' };
  const few = products === 'blocks' ? 'blocks8' : 'int8';
  return precision === 'int4'
    ? { feedForward: 'blocks4', attention: few, head: few }
    : { feedForward: 'int8', attention: 'int8', head: few };
}

const isBlocks = (form: Form): boolean => form === 'blocks4' || form === 'blocks8';

/**
 * Whether the rows of the layers and of the head must be padded to a multiple (see blockRowMultiple): those multiplied
 * by blocks.
 */
export function paddedProducts({ precision, products }: { precision: Precision; products: ProductForm }): {
  readonly layers: boolean;
  readonly head: boolean;
} {
  const { feedForward, attention, head } = formsOf(precision, products);
  return { layers: isBlocks(feedForward) || isBlocks(attention), head: isBlocks(head) };
}
