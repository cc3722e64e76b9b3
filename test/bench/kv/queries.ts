/**
 * Computes the queries of a text in every layer by a float32 forward pass in this process. The step graph does not
 * output them, and the effect of a codec on attention depends on them. Slow for a thousand tokens of a small model.
 */
import type { ModelConfig } from '../../../engine/model/load/hfConfig.ts';
import type { RopeTable } from '../../../engine/model/runtime/rope.ts';
import { Weights } from '../../../engine/model/load/weights.ts';
import { ModelFolder } from '../../../engine/model/load/modelFolder.ts';

/** x [n, width] -> [n, outputs]. */
type Linear = (x: Float32Array, name: string, width: number, outputs: number) => Promise<Float32Array>;

function dot(a: Float32Array, i: number, b: Float32Array, j: number, length: number): number {
  let s0 = 0;
  let s1 = 0;
  let s2 = 0;
  let s3 = 0;
  for (let k = 0; k < length; k += 4) {
    s0 += a[i + k]! * b[j + k]!;
    s1 += a[i + k + 1]! * b[j + k + 1]!;
    s2 += a[i + k + 2]! * b[j + k + 2]!;
    s3 += a[i + k + 3]! * b[j + k + 3]!;
  }
  return s0 + s1 + s2 + s3;
}

/** Normalises rows of `width` in place. */
function normRows(x: Float32Array, width: number, weight: Float32Array, epsilon: number): Float32Array {
  for (let row = 0; row < x.length; row += width) {
    const scale = 1 / Math.sqrt(dot(x, row, x, row, width) / width + epsilon);
    for (let i = 0; i < width; i++) x[row + i] = x[row + i]! * scale * weight[i]!;
  }
  return x;
}

/** Applies RoPE to rows of `count` heads, [n, count * headSize], in place. */
function turn(x: Float32Array, n: number, count: number, headSize: number, rope: RopeTable): void {
  const { half } = rope;
  rope.ensure(n);
  for (let t = 0; t < n; t++) {
    for (let h = 0; h < count; h++) {
      const at = (t * count + h) * headSize;
      for (let i = 0; i < half; i++) {
        const c = rope.cos[t * half + i]!;
        const s = rope.sin[t * half + i]!;
        const a = x[at + i]!;
        const b = x[at + half + i]!;
        x[at + i] = a * c - b * s;
        x[at + half + i] = b * c + a * s;
      }
    }
  }
}

function attend(
  q: Float32Array,
  k: Float32Array,
  v: Float32Array,
  n: number,
  { numHeads, kvHeads, headSize }: ModelConfig,
): Float32Array {
  const out = new Float32Array(q.length);
  const shares = new Float32Array(n);
  for (let h = 0; h < numHeads; h++) {
    const g = Math.floor((h * kvHeads) / numHeads);
    for (let t = 0; t < n; t++) {
      const at = (t * numHeads + h) * headSize;
      let max = Number.NEGATIVE_INFINITY;
      for (let s = 0; s <= t; s++) {
        shares[s] = dot(q, at, k, (s * kvHeads + g) * headSize, headSize) / Math.sqrt(headSize);
        max = Math.max(max, shares[s]!);
      }
      let total = 0;
      for (let s = 0; s <= t; s++) total += shares[s] = Math.exp(shares[s]! - max);
      for (let s = 0; s <= t; s++) {
        const share = shares[s]! / total;
        const from = (s * kvHeads + g) * headSize;
        for (let d = 0; d < headSize; d++) out[at + d]! += share * v[from + d]!;
      }
    }
  }
  return out;
}

/** Queries per layer after RoPE, [n, numHeads * headSize]. */
export async function queriesOf(
  modelDir: string,
  config: ModelConfig,
  rope: RopeTable,
  tokenIds: readonly number[],
): Promise<Float32Array[]> {
  const weights = await Weights.open(await ModelFolder.open(modelDir));
  try {
    const { hiddenSize, ffnSize, numHeads, kvHeads, headSize, rmsEps } = config;
    const n = tokenIds.length;
    const tensor = (name: string, rows: number, width: number): Promise<Float32Array> =>
      weights.rows(name, 0, rows, new Float32Array(rows * width));
    const linear: Linear = async (x, name, width, outputs) => {
      const matrix = await tensor(`${name}.weight`, outputs, width);
      const bias = weights.has(`${name}.bias`) ? await tensor(`${name}.bias`, 1, outputs) : new Float32Array(outputs);
      const y = new Float32Array(n * outputs);
      for (let o = 0; o < outputs; o++)
        for (let t = 0; t < n; t++) y[t * outputs + o] = dot(matrix, o * width, x, t * width, width) + bias[o]!;
      return y;
    };
    const heads = async (x: Float32Array, at: string, kind: 'q' | 'k', count: number): Promise<Float32Array> => {
      const y = await linear(x, `${at}.${kind}_proj`, hiddenSize, count * headSize);
      if (config.qkNorm) normRows(y, headSize, await tensor(`${at}.${kind}_norm.weight`, 1, headSize), rmsEps);
      turn(y, n, count, headSize, rope);
      return y;
    };
    const x = new Float32Array(n * hiddenSize);
    for (const [t, id] of tokenIds.entries())
      x.set(await weights.rows('model.embed_tokens.weight', id, 1, new Float32Array(hiddenSize)), t * hiddenSize);
    const add = (y: Float32Array): void => {
      for (let i = 0; i < x.length; i++) x[i]! += y[i]!;
    };
    const queries: Float32Array[] = [];
    for (let l = 0; l < config.numLayers; l++) {
      const layer = `model.layers.${l}`;
      const at = `${layer}.self_attn`;
      const normed = normRows(
        x.slice(),
        hiddenSize,
        await tensor(`${layer}.input_layernorm.weight`, 1, hiddenSize),
        rmsEps,
      );
      const q = await heads(normed, at, 'q', numHeads);
      const k = await heads(normed, at, 'k', kvHeads);
      const v = await linear(normed, `${at}.v_proj`, hiddenSize, kvHeads * headSize);
      queries.push(q);
      add(await linear(attend(q, k, v, n, config), `${at}.o_proj`, numHeads * headSize, hiddenSize));
      const between = normRows(
        x.slice(),
        hiddenSize,
        await tensor(`${layer}.post_attention_layernorm.weight`, 1, hiddenSize),
        rmsEps,
      );
      const gate = await linear(between, `${layer}.mlp.gate_proj`, hiddenSize, ffnSize);
      const up = await linear(between, `${layer}.mlp.up_proj`, hiddenSize, ffnSize);
      for (let i = 0; i < gate.length; i++) gate[i] = (gate[i]! / (1 + Math.exp(-gate[i]!))) * up[i]!;
      add(await linear(gate, `${layer}.mlp.down_proj`, ffnSize, hiddenSize));
    }
    return queries;
  } finally {
    await weights.close();
  }
}
