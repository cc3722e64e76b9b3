/**
 * Fast Walsh-Hadamard transform along the head, normalised, so that it is its own inverse and keeps dot products: what is
 * large in a few channels becomes a little in all. A head size that is no power of two is transformed in blocks of its
 * largest power of two.
 */
import type { Layout } from './codecFormat.ts';
import { kernelMemory, kernels, SLACK } from './kernels.ts';

/** Bytes of the kernels' memory that so many values take. */
export function hadamardBytes(numValues: number): number {
  return 4 * numValues + SLACK;
}

/** In place; x as in `layout`. */
export function hadamard(x: Float32Array, kvHeads: number, headSize: number, n: number, layout: Layout): void {
  const memory = kernelMemory(hadamardBytes(x.length));
  memory.set(new Uint8Array(x.buffer, x.byteOffset, x.byteLength));
  hadamardAt(0, kvHeads, headSize, n, layout);
  x.set(new Float32Array(memory.buffer, 0, x.length));
}

/** As above, of floats at an address of the kernels' memory. */
export function hadamardAt(x: number, kvHeads: number, headSize: number, n: number, layout: Layout): void {
  // By token a vector's values are neighbours; by channel n values of one channel are, and go through the same steps together.
  kernels().hadamard(x, kvHeads * headSize * n, layout === 'byToken' ? 1 : n, headSize & -headSize);
}
