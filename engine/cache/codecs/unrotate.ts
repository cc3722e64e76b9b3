/**
 * Takes the rotary embedding of keys off and puts it on again: before it, a channel's values stay about the same from token to
 * token, which per-channel codes live on. What is lost by both is the rounding of a float32.
 */
import type { Rotation } from './codecFormat.ts';

/** x [kvHeads, headSize, n] of tokens at positions startIndex and on, in place. @param direction -1 takes it off, 1 puts it on. */
export function rotateKeys(x: Float32Array, kvHeads: number, headSize: number, n: number, rotation: Rotation, startIndex: number, direction: 1 | -1): void {
  const { half } = rotation;
  rotation.ensure(startIndex + n);
  const { cos, sin } = rotation;
  for (let i = 0; i < half; i++) {
    for (let h = 0; h < kvHeads; h++) {
      const low = (h * headSize + i) * n;
      const high = low + half * n;
      let turn = startIndex * half + i;
      for (let t = 0; t < n; t++, turn += half) {
        const c = cos[turn]!;
        const s = sin[turn]! * direction;
        const a = x[low + t]!;
        const b = x[high + t]!;
        x[low + t] = a * c - b * s;
        x[high + t] = b * c + a * s;
      }
    }
  }
}
