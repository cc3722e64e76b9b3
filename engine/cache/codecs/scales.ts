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

/** A scale as it was read. @throws MalformedRun when it is none. */
export function finite(scale: number): number {
  if (!(scale >= 0 && scale <= 3.4e38)) throw new MalformedRun(`it has a scale of ${scale}`);
  return scale;
}
