/**
 * Rotary position embedding: inverse frequencies of the three supported types, and a table of cosines and sines that
 * grows with the positions asked for.
 */
import type { Rope } from '../load/hfConfig.ts';

/**
 * [headSize / 2], rounded to float32 as transformers does. Formulas: transformers modeling_rope_utils
 * `_compute_default_rope_parameters`, `_compute_linear_scaling_rope_parameters`, `_compute_llama3_parameters`.
 */
export function inverseFrequencies(rope: Rope, headSize: number): Float32Array {
  const half = headSize / 2;
  const result = new Float32Array(half);
  for (let i = 0; i < half; i++) {
    const frequency = rope.theta ** ((-2 * i) / headSize);
    if (rope.type === 'default') result[i] = frequency;
    else if (rope.type === 'linear') result[i] = frequency / rope.factor;
    else {
      const { factor, lowFreqFactor, highFreqFactor, originalContext } = rope;
      const turns = (originalContext * frequency) / (2 * Math.PI);
      const smooth = Math.min(1, Math.max(0, (turns - lowFreqFactor) / (highFreqFactor - lowFreqFactor)));
      result[i] = (1 - smooth) * (frequency / factor) + smooth * frequency;
    }
  }
  return result;
}

export class RopeTable {
  readonly half: number;
  private readonly frequencies: Float32Array;
  private numPositions = 0;
  /** [numPositions, half]; replaced when it grows. */
  cos: Float32Array = new Float32Array(0);
  sin: Float32Array = new Float32Array(0);

  constructor(rope: Rope, headSize: number) {
    this.frequencies = inverseFrequencies(rope, headSize);
    this.half = headSize / 2;
  }

  /** Makes rows 0 .. numPositions-1 available. */
  ensure(numPositions: number): void {
    if (numPositions <= this.numPositions) return;
    const grown = Math.max(256, 2 ** Math.ceil(Math.log2(numPositions)));
    const cos = new Float32Array(grown * this.half);
    const sin = new Float32Array(grown * this.half);
    cos.set(this.cos);
    sin.set(this.sin);
    for (let p = this.numPositions; p < grown; p++) {
      for (let i = 0; i < this.half; i++) {
        // The angle is rounded to float32, as in training.
        const angle = Math.fround(p * this.frequencies[i]!);
        cos[p * this.half + i] = Math.cos(angle);
        sin[p * this.half + i] = Math.sin(angle);
      }
    }
    this.cos = cos;
    this.sin = sin;
    this.numPositions = grown;
  }
}
