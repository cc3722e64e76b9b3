/**
 * The forms in which weights are stored, and the symmetric quantisation of float32 rows into them. Pure functions. Does
 * not know the layers of a model (see weightPlan.ts).
 */
import type { Precision } from '../../protocol/tasks.ts';

/**
 * How this processor multiplies by 8-bit weights (see productForm).
 * narrow: 7-bit codes on the left-hand side of integer products. For processors whose 8-bit products add pairs in 16
 * bits and saturate (x86 without VNNI): 127 * 127 * 2 fits in 16 bits. Blocks of 8 bits would saturate.
 * blocks: 8-bit weights in blocks multiply a few rows fastest.
 * rows: 8-bit weights with one scale per output multiply a few rows fastest.
 * native: the native kernels multiply (see model/native). The only form that is not for onnxruntime.
 */
export type ProductForm = 'narrow' | 'rows' | 'blocks' | 'native';

/** How the weights of a linear layer are stored (see LinearItem). */
export type Form = 'blocks4' | 'blocks8' | 'int8' | 'fine8' | 'float32' | 'packed4' | 'packed8' | 'packedFine8';

export type Forms = Readonly<Record<'feedForward' | 'attention' | 'head' | 'router' | 'experts', Form>>;

/**
 * The form of each kind of layer. In int4 the attention layers and the head keep 8 bits, because they are a small part
 * of most models and lose most. Mean KL divergence of the built-in model from float32: 0.015 in this form, 0.023 with a
 * head of 4 bits, 0.047 with attention layers of 4 bits, 0.054 with both.
 * The 8-bit layers of int4 and the head of int8 get few rows, so they are in blocks if blocks are faster. The layers of
 * int8 also get whole prompts, which are faster without blocks.
 * In onnxruntime experts always have 8 bits, because the products of blocks need weights that are known when the graph is
 * loaded, not those of the expert whose turn it is. The router decides between experts, so it has twice the bits.
 */
export function formsOf(precision: Precision, products: ProductForm): Forms {
  const float = 'float32';
  if (precision === float) return { feedForward: float, attention: float, head: float, router: float, experts: float };
  if (products === 'native') {
    const feedForward = precision === 'int4' ? 'packed4' : 'packed8';
    return { feedForward, attention: 'packed8', head: 'packed8', router: 'packedFine8', experts: feedForward };
  }
  const routed = { router: 'fine8', experts: 'int8' } as const;
  const few = products === 'blocks' ? 'blocks8' : 'int8';
  return precision === 'int4'
    ? { feedForward: 'blocks4', attention: few, head: few, ...routed }
    : { feedForward: 'int8', attention: 'int8', head: few, ...routed };
}

const isBlocks = (form: Form): boolean => form === 'blocks4' || form === 'blocks8';

/**
 * Whether the rows of the layers and of the head must be padded to a multiple (see blockRowMultiple). That is so for
 * weights in blocks.
 */
export function paddedProducts({ precision, products }: { precision: Precision; products: ProductForm }): {
  readonly layers: boolean;
  readonly head: boolean;
} {
  const { feedForward, attention, head } = formsOf(precision, products);
  return { layers: isBlocks(feedForward) || isBlocks(attention), head: isBlocks(head) };
}

// --- one scale per row --------------------------------------------------------------

/** Rows and columns of a tile of the transposition. The source and the target of a tile stay in the L1 cache. */
const TILE = 64;
/** Adding and subtracting 1.5 * 2^52 rounds a double to the nearest integer, half to even. */
export const ROUND = 6755399441055744;

/** scales[i] = max |row i| / 127. A row of zeros has the scale 0. rows: [numRows, width]. */
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
 * Codes rows [numRows, width] in 16 bits, x = code * scale, into out [numRows, width]. For the embedding table: 8 bits
 * would lose as much there as all 8-bit products of a small model together.
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
    for (let i = r * width, end = i + width; i < end; i++) {
      const v = Math.abs(rows[i]!);
      if (v > max) max = v;
    }
    scales[r] = max / 32_767;
    const inverse = max > 0 ? 32_767 / max : 0;
    for (let i = r * width, end = i + width; i < end; i++) out[i] = rows[i]! * inverse + ROUND - ROUND;
  }
}

/**
 * Codes rows [numRows, width] in 8 bits into columns firstColumn .. firstColumn+numRows-1 of out [width, numColumns],
 * the layout that the operator reads.
 */
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

/** A denormal scale may be too small by more than half a step. The code -128 must not occur (see stepGraph.ts). */
export function clamp(value: number): number {
  return value > 127 ? 127 : value < -127 ? -127 : value;
}

// --- one scale per block along the input, in the layout of MatMulNBits --------------
// 4 bits: x = (code - 8) * scale. 8 bits: x = (code - 128) * scale.

/** Weights of a block. */
export const BLOCK = 128;
/** The code of the weight 0, with 4 bits and with 8 bits. */
const ZERO = 8;
const ZERO8 = 128;
/** The codes that the largest weight would have before it is clamped to -8. With 7 nothing is clamped. */
const TRIALS = [7, 7.7, 8.4, 9.2, 10.2, 11.4];

/** Number of blocks of a row. The last block may be shorter and is filled with zeros. */
export function numBlocks(width: number): number {
  return Math.ceil(width / BLOCK);
}

/** Calls `use` for each block of rows [numRows, width] with its index and the range of its weights. */
function eachBlock(numRows: number, width: number, use: (block: number, start: number, end: number) => void): void {
  const blocks = numBlocks(width);
  for (let r = 0; r < numRows; r++) {
    for (let b = 0; b < blocks; b++) {
      const start = r * width + b * BLOCK;
      use(r * blocks + b, start, Math.min((r + 1) * width, start + BLOCK));
    }
  }
}

type CodeRows = (rows: Float32Array, numRows: number, width: number, codes: Uint8Array, scales: Float32Array) => void;

/** Codes rows [numRows, width] in 8 bits: codes [numRows, numBlocks, BLOCK] and scales [numRows, numBlocks]. */
export const quantiseBlocks8: CodeRows = (rows, numRows, width, codes, scales) => {
  codes.fill(ZERO8);
  eachBlock(numRows, width, (block, start, end) => {
    let largest = 0;
    for (let i = start; i < end; i++) largest = Math.max(largest, Math.abs(rows[i]!));
    scales[block] = largest / 127;
    const inverse = largest > 0 ? 127 / largest : 0;
    const out = block * BLOCK - start;
    for (let i = start; i < end; i++) codes[out + i] = rows[i]! * inverse + ROUND - ROUND + ZERO8;
  });
};

function code(weight: number, inverse: number): number {
  const rounded = weight * inverse + ROUND - ROUND;
  return rounded > 7 ? 7 : rounded < -8 ? -8 : rounded;
}

/**
 * Codes rows [numRows, width] in 4 bits: codes [numRows, numBlocks, BLOCK / 2] with two per byte, the first in the low
 * half, and scales [numRows, numBlocks].
 */
export const quantiseBlocks4: CodeRows = (rows, numRows, width, codes, scales) => {
  eachBlock(numRows, width, (block, start, end) => {
    const scale = bestScale(rows, start, end);
    const inverse = scale.divisor === 0 ? 0 : 1 / scale.divisor;
    scales[block] = scale.factor;
    let out = block * (BLOCK / 2);
    for (let i = start; i < start + BLOCK; i += 2, out++) {
      const low = i < end ? code(rows[i]!, inverse) : 0;
      const high = i + 1 < end ? code(rows[i + 1]!, inverse) : 0;
      codes[out] = (low + ZERO) | ((high + ZERO) << 4);
    }
  });
};

/**
 * Weights / divisor gives the codes of a block, and codes * factor the weights. Both are 0 for a block of zeros.
 * Tries a few divisors and takes the codes with the least squared error, because a smaller scale than that of the
 * largest weight costs that weight a little and gives all others a finer step. Signal to error of the built-in model,
 * in blocks of 128: 20.0 dB, 19.5 dB with the plain scale, 20.1 dB with ten times as many trials.
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
    // By this much the squared error is lower than that of zeros, with the factor product / square.
    const gain = (product * product) / square;
    if (gain <= bestGain) continue;
    bestGain = gain;
    best.divisor = divisor;
    best.factor = product / square;
  }
  return best;
}
