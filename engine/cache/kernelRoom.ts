/**
 * PURE: how much of the kernels' memory (codecs/kernels.ts) a cache comes to use. That memory never becomes smaller, so what it
 * comes to is kept free for it under the ceiling, as the prefill lane's scratch is.
 */
import { hadamardBytes } from './codecs/hadamard.ts';
import { kernelBytesWith } from './codecs/kernels.ts';
import type { Compression } from './compression.ts';
import type { SketchShape } from './keySketch.ts';
import { SPILLED_TOKENS } from './sparseRoom.ts';
import { BLOCK_TOKENS } from './storedBlocks.ts';

/** For coding what the store has, and decoding it again. */
export function codingBytes(compression: Compression | null): number {
  const codecs = compression?.rungs.map(({ codec }) => codec) ?? [];
  // As many of the store's blocks as it takes for one of a codec's. The last may reach beyond it, and be what a cut has left of a coded one.
  const mostTokens = 2 * Math.max(0, ...codecs.map(({ format }) => format.blockTokens)) + BLOCK_TOKENS;
  return kernelBytesWith(Math.max(0, ...codecs.map((codec) => codec.kernelBytes(mostTokens))));
}

/** For sketches of contexts that are longer than the window. */
export function sketchingBytes({ headSize }: SketchShape): number {
  return kernelBytesWith(hadamardBytes(headSize * SPILLED_TOKENS));
}
