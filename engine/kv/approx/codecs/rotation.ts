/**
 * The two rotations of codecs. The rotary embedding of keys is taken off before coding and put on again: without it a
 * channel's values
 * are about equal from token to token, which per-channel codes rely on. Both steps together lose the rounding of a
 * float32.
 */
import type { Layout, Rotation } from './codecFormat.ts';
import { kernelMemory, kernels, SLACK } from './kernels.ts';

/** Cosines and sines of a run's n tokens, in the kernels' memory from these addresses on, [half, n] each. */
export interface Turns {
  readonly cos: number;
  readonly sin: number;
  readonly n: number;
}

/** Writes those of tokens at these positions, or at startIndex and on. */
export function writeTurns({ cos, sin, n }: Turns, rotation: Rotation, places: Int32Array | number): void {
  const positions = typeof places === 'number' ? Int32Array.from({ length: n }, (_, t) => places + t) : places;
  rotation.ensure(Math.max(0, ...positions) + 1);
  const { half } = rotation;
  const { buffer } = kernels().memory;
  for (const [angles, at] of [
    [rotation.cos, cos],
    [rotation.sin, sin],
  ] as const) {
    const turned = new Float32Array(buffer, at, half * n);
    for (let i = 0; i < half; i++) for (let t = 0; t < n; t++) turned[i * n + t] = angles[positions[t]! * half + i]!;
  }
}

/**
 * x [kvHeads, headSize, n] of the run's tokens from `from` on, in place. @param direction -1 takes it off, 1 puts it
 * on.
 */
export function rotateKeys(
  x: number,
  kvHeads: number,
  headSize: number,
  n: number,
  turns: Turns,
  from: number,
  direction: 1 | -1,
): void {
  kernels().rotate(x, kvHeads, headSize, n, turns.cos + 4 * from, turns.sin + 4 * from, turns.n, direction);
}

/**
 * Fast Walsh-Hadamard transform along the head, normalised, so that it is its own inverse and keeps dot products: what
 * is
 * large in a few channels becomes a little in all. A head size that is no power of two is transformed in blocks of its
 * largest power of two.
 */

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
  // By token a vector's values are neighbours; by channel n values of one channel are, and go through the same steps
  // together.
  kernels().hadamard(x, kvHeads * headSize * n, layout === 'byToken' ? 1 : n, headSize & -headSize);
}
