/**
 * Fast Walsh-Hadamard transform along the head, normalised, so that it is its own inverse and keeps dot products: what is
 * large in a few channels becomes a little in all. A head size that is no power of two is transformed in blocks of its
 * largest power of two.
 */
import type { Layout } from './codecFormat.ts';

/** In place; x as in `layout`. */
export function hadamard(x: Float32Array, kvHeads: number, headSize: number, n: number, layout: Layout): void {
  const block = headSize & -headSize;
  const factor = 1 / Math.sqrt(block);
  const numValues = kvHeads * headSize * n;
  // By token a vector's values are neighbours; by channel n values of one channel are, and go through the same steps together.
  const unit = layout === 'byToken' ? 1 : n;
  const end = block * unit;
  let span = unit;
  // Two steps at a time, for half the memory traffic.
  for (; 4 * span <= end; span *= 4) {
    const scale = 4 * span === end ? factor : 1;
    for (let i = 0; i < numValues; i += 4 * span) {
      for (let j = i; j < i + span; j++) {
        const a = x[j]!;
        const b = x[j + span]!;
        const c = x[j + 2 * span]!;
        const d = x[j + 3 * span]!;
        x[j] = (a + b + (c + d)) * scale;
        x[j + span] = (a - b + (c - d)) * scale;
        x[j + 2 * span] = (a + b - (c + d)) * scale;
        x[j + 3 * span] = (a - b - (c - d)) * scale;
      }
    }
  }
  if (span === end) return;
  for (let i = 0; i < numValues; i += 2 * span) {
    for (let j = i; j < i + span; j++) {
      const a = x[j]!;
      const b = x[j + span]!;
      x[j] = (a + b) * factor;
      x[j + span] = (a - b) * factor;
    }
  }
}
