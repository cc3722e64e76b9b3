/** Scales: what they are taken from, and what may be read back as one. */
import { MalformedRun } from './codecFormat.ts';

/** Of a float32's bits all but the sign: magnitudes ascend with them, and integers are compared faster than floats. */
export const MAGNITUDE = 0x7fffffff;

/** The largest magnitude of x[from .. from + length), an even number of values whose bits are `bits`. */
export function largestOf(x: Float32Array, bits: Int32Array, from: number, length: number): number {
  let most = 0;
  let at = from;
  for (let i = from, end = from + length; i < end; i += 2) {
    const a = bits[i]! & MAGNITUDE;
    const b = bits[i + 1]! & MAGNITUDE;
    if (a > most) {
      most = a;
      at = i;
    }
    if (b > most) {
      most = b;
      at = i + 1;
    }
  }
  return most === 0 ? 0 : Math.abs(x[at]!);
}

/** A scale as it was read, whose codes are up to `mostCode`. @throws MalformedRun when what they stand for is not finite. */
export function finite(scale: number, mostCode: number): number {
  if (!(scale >= 0 && scale * mostCode < 1e38)) throw new MalformedRun(`it has a scale of ${scale}`);
  return scale;
}
