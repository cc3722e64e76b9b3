/** Scales: what they are taken from, and what may be read back as one. */
import { MalformedRun } from './codecFormat.ts';

/** The largest magnitude of x[from .. from + length). */
export function largestOf(x: Float32Array, from: number, length: number): number {
  let max = 0;
  for (let i = from, end = from + length; i < end; i++) {
    const v = Math.abs(x[i]!);
    if (v > max) max = v;
  }
  return max;
}

/** A scale as it was read, whose codes are up to `mostCode`. @throws MalformedRun when what they stand for is not finite. */
export function finite(scale: number, mostCode: number): number {
  if (!(scale >= 0 && scale * mostCode < 1e38)) throw new MalformedRun(`it has a scale of ${scale}`);
  return scale;
}
