/** What a weight plan consists of: stored tensors, and what they are made from. */
import { packedDims4, packedDims8, paddedRows } from './packedWeights.ts';
import { BLOCK, type Form, numBlocks } from './quantise.ts';

/** A tensor of the weight file. */
export interface StoredTensor {
  readonly name: string;
  readonly type: 'uint8' | 'int8' | 'int16' | 'float32';
  readonly dims: readonly number[];
  /** Bytes from the start of the file. */
  readonly offset: number;
  readonly length: number;
}

/** Consecutive output rows of a fused linear layer, taken from one [rows, width] tensor. */
export interface RowSource {
  readonly tensor: string;
  readonly rows: number;
  /** Row r is multiplied by factors[r modulo their number]. */
  readonly factors: readonly number[];
}

/** Consecutive entries of a vector: `repeat` copies of (`tensor` + `plus`) * `factor`. Zeros if `tensor` is null. */
export interface VectorSource {
  readonly tensor: string | null;
  readonly length: number;
  readonly plus?: number;
  readonly factor: number;
  readonly repeat: number;
}

/**
 * A linear layer with R = the sum of the rows of its sources. Its stored weights, by form:
 * int8: [width, R], and scales [R].
 * fine8: [width, 2 R], and scales [2 R]: of the weights, then of what these codes leave.
 * blocks8, blocks4: [R, numBlocks, BLOCK] or [R, numBlocks, BLOCK / 2], and scales [R * numBlocks].
 * float32: [R, width].
 * packed8, packed4: see packRows8 and packBlocks4. packedFine8: as packed8, twice R padded to whole groups: of the
 * weights, then of what these codes leave.
 */
export interface LinearItem {
  readonly kind: 'linear';
  readonly form: Form;
  readonly width: number;
  readonly sources: readonly RowSource[];
  readonly weight: StoredTensor;
  readonly scales: StoredTensor | null;
}

/**
 * How stored tensors are made.
 * embedding: int16 [rows, width] and scales [rows, 1] in int8 and int4, [rows, width] in float32.
 * keyBias: see keyBiasMatrix.
 */
export type PlanItem =
  | LinearItem
  | {
      readonly kind: 'embedding';
      readonly width: number;
      readonly rows: number;
      readonly tensor: string;
      readonly factor: number;
      readonly weight: StoredTensor;
      readonly scales: StoredTensor | null;
    }
  | { readonly kind: 'vector'; readonly sources: readonly VectorSource[]; readonly weight: StoredTensor }
  | { readonly kind: 'keyBias'; readonly tensor: string; readonly weight: StoredTensor };

/** Bits per weight of a layer that is stored in blocks. */
export function linearBits({ dims }: StoredTensor): 4 | 8 {
  return dims[2] === BLOCK ? 8 : 4;
}

/** How the weights of a linear layer of `rows` outputs are stored, and the number of their scales. */
export function layoutOf(
  form: Form,
  rows: number,
  width: number,
): { type: StoredTensor['type']; dims: readonly number[]; scales: number } {
  switch (form) {
    case 'blocks4':
    case 'blocks8': {
      const blockBytes = form === 'blocks4' ? BLOCK / 2 : BLOCK;
      return { type: 'uint8', dims: [rows, numBlocks(width), blockBytes], scales: rows * numBlocks(width) };
    }
    case 'int8':
      return { type: 'int8', dims: [width, rows], scales: rows };
    case 'fine8':
      return { type: 'int8', dims: [width, 2 * rows], scales: 2 * rows };
    case 'float32':
      return { type: 'float32', dims: [rows, width], scales: 0 };
    case 'packed8':
      return { type: 'int8', dims: packedDims8(rows, width), scales: paddedRows(rows) };
    case 'packedFine8':
      return { type: 'int8', dims: packedDims8(2 * paddedRows(rows), width), scales: 2 * paddedRows(rows) };
    case 'packed4':
      return { type: 'uint8', dims: packedDims4(rows, width), scales: paddedRows(rows) * numBlocks(width) };
  }
}
