/**
 * Large key biases. Some Qwen2 models have biases of hundreds on keys of a few units, so 8-bit codes would hold little
 * but the bias. Such layers code their keys without the bias, and the exact R(p) b is added back in float.
 */
import type { KvPrecision } from '../../protocol/tasks.ts';
import type { ModelConfig } from './hfConfig.ts';
import type { Weights } from './weights.ts';

/** A bias above so many standard deviations of the keys is large. There it doubles the step of the codes. */
const LARGE = 3;

/** Not with a norm between bias and rotation: then the bias is no constant part of the key, and the norm bounds it. */
function hasKeyBias(config: ModelConfig): boolean {
  return config.qkvBias && !config.qkNorm;
}

/** All layers that can have a large key bias. */
export function keyBiasLayers(config: ModelConfig): number[] {
  const { numLayers, rope } = config;
  // The bias is added back rotated.
  return hasKeyBias(config)
    ? Array.from({ length: numLayers }, (_, l) => l).filter((l) => !rope.unrotated?.includes(l))
    : [];
}

/**
 * The layers whose key bias is large in some head. Compares the largest rotated pair of the bias with the largest
 * standard deviation of the keys of that head without bias, for a white normed input: sigma_d = |W_d * norm|.
 */
export async function largeKeyBiasLayers(config: ModelConfig, weights: Weights): Promise<number[]> {
  const { hiddenSize, kvHeads, headSize, normOffset } = config;
  const half = headSize / 2;
  const rows = kvHeads * headSize;
  const isLarge = async (l: number): Promise<boolean> => {
    const from = `model.layers.${l}.`;
    const bias = await weights.rows(`${from}self_attn.k_proj.bias`, 0, 1, new Float32Array(rows));
    const norm = await weights.rows(`${from}input_layernorm.weight`, 0, 1, new Float32Array(hiddenSize));
    const keys = await weights.rows(`${from}self_attn.k_proj.weight`, 0, rows, new Float32Array(rows * hiddenSize));
    for (let head = 0; head < rows; head += headSize) {
      let largestBias = 0;
      let largestDeviation = 0;
      for (let d = head; d < head + headSize; d++) {
        if (d < head + half) largestBias = Math.max(largestBias, Math.hypot(bias[d]!, bias[d + half]!));
        let variance = 0;
        for (let i = 0; i < hiddenSize; i++) variance += (keys[d * hiddenSize + i]! * (norm[i]! + normOffset)) ** 2;
        largestDeviation = Math.max(largestDeviation, Math.sqrt(variance));
      }
      if (largestBias > LARGE * largestDeviation) return true;
    }
    return false;
  };
  const large: number[] = [];
  for (const l of keyBiasLayers(config)) if (await isLarge(l)) large.push(l);
  return large;
}

/**
 * For each KV head a matrix M [headSize, headSize] such that (q M) . [cos pθ, sin pθ] = q . R(p) b for any query row q
 * and position p. With h = headSize / 2, and R rotating the pair (b_i, b_i+h) by p θ_i:
 * q . R(p) b = sum over i of cos(p θ_i) (q_i b_i + q_i+h b_i+h) + sin(p θ_i) (q_i+h b_i - q_i b_i+h).
 * @param bias [kvHeads * headSize]
 * @returns [kvHeads, headSize, headSize], row major
 */
export function keyBiasMatrix(bias: Float32Array, headSize: number): Float32Array {
  const half = headSize / 2;
  const kvHeads = bias.length / headSize;
  const result = new Float32Array(kvHeads * headSize * headSize);
  for (let g = 0; g < kvHeads; g++) {
    for (let i = 0; i < half; i++) {
      const low = bias[g * headSize + i]!;
      const high = bias[g * headSize + half + i]!;
      const lowRow = (g * headSize + i) * headSize;
      const highRow = (g * headSize + half + i) * headSize;
      result[lowRow + i] = low;
      result[highRow + i] = high;
      result[highRow + half + i] = low;
      result[lowRow + half + i] = -high;
    }
  }
  return result;
}

/** Whether a step feeds the rotations of all positions (see FEEDS). `biased`: layers with a large key bias. */
export function usesRotations(biased: readonly number[], kv: KvPrecision): boolean {
  return kv === 'int8' && biased.length > 0;
}
