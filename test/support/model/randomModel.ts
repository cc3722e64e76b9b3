/** Writes tiny random models in the Hugging Face folder layout, and safetensors files in general. */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { random } from './fixtures.ts';
import type { ReferenceConfig, Tensor } from './reference.ts';

export type StoredType = 'F32' | 'F16' | 'BF16';

/** Bytes of a safetensors file. */
export function safetensorsBytes(
  tensors: Iterable<readonly [string, { dtype: string; shape: readonly number[]; bytes: Uint8Array }]>,
): Uint8Array {
  const header: Record<string, unknown> = { __metadata__: { format: 'pt' } };
  const parts: Uint8Array[] = [];
  let position = 0;
  for (const [name, { dtype, shape, bytes }] of tensors) {
    header[name] = { dtype, shape, data_offsets: [position, position + bytes.length] };
    parts.push(bytes);
    position += bytes.length;
  }
  const json = Buffer.from(JSON.stringify(header));
  const padded = Buffer.concat([json, Buffer.alloc((8 - (json.length % 8)) % 8, ' ')]);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  return Buffer.concat([length, padded, ...parts]);
}

/** Stored bytes of float32 values. Rounds `values` in place to the precision of the type. */
export function encode(values: Float32Array, dtype: StoredType): Uint8Array {
  const bytes = new Uint8Array(values.length * (dtype === 'F32' ? 4 : 2));
  const view = new DataView(bytes.buffer);
  const word = new DataView(new ArrayBuffer(4));
  values.forEach((value, i) => {
    if (dtype === 'F32') view.setFloat32(i * 4, value, true);
    else if (dtype === 'BF16') {
      word.setFloat32(0, value);
      view.setUint16(i * 2, word.getUint16(0), true);
      word.setUint16(2, 0);
      values[i] = word.getFloat32(0);
    } else {
      const bits = halfBits(value);
      view.setUint16(i * 2, bits, true);
      const exponent = (bits >> 10) & 31;
      const magnitude = exponent ? (1 + (bits & 1023) / 1024) * 2 ** (exponent - 15) : (bits & 1023) * 2 ** -24;
      values[i] = bits & 0x8000 ? -magnitude : magnitude;
    }
  });
  return bytes;
}

/** Quantisation part of config.json in the style of compressed-tensors: format int-quantized, strategy channel. */
export const INT8_CONFIG = {
  quant_method: 'compressed-tensors',
  format: 'int-quantized',
  config_groups: {
    group_0: {
      weights: { num_bits: 8, type: 'int', symmetric: true, strategy: 'channel', dynamic: false, group_size: null },
      input_activations: null,
      output_activations: null,
      targets: ['Linear'],
    },
  },
  ignore: ['lm_head'],
  kv_cache_scheme: null,
  quantization_status: 'compressed',
};

/** Codes and scales [rows, 1] of a matrix. Replaces `values` with the values that the codes represent. */
function encodeInt8(
  values: Float32Array,
  rows: number,
  scaleType: StoredType,
): { codes: Int8Array; scales: Float32Array; scaleBytes: Uint8Array } {
  const width = values.length / rows;
  const scales = Float32Array.from(
    { length: rows },
    (_, r) => values.subarray(r * width, (r + 1) * width).reduce((max, v) => Math.max(max, Math.abs(v)), 0) / 127,
  );
  const scaleBytes = encode(scales, scaleType);
  // A truncated scale can make the code of the largest weight exceed 127.
  const codes = Int8Array.from(values, (v, i) =>
    Math.max(-127, Math.min(127, Math.round(v / scales[Math.floor(i / width)]!))),
  );
  codes.forEach((code, i) => {
    values[i] = code * scales[Math.floor(i / width)]!;
  });
  return { codes, scales, scaleBytes };
}

/** Truncating conversion of a number within the range of float16. */
function halfBits(value: number): number {
  const sign = value < 0 ? 0x8000 : 0;
  const x = Math.abs(value);
  if (x < 2 ** -14) return sign | Math.floor(x * 2 ** 24);
  const exponent = Math.floor(Math.log2(x));
  return sign | ((exponent + 15) << 10) | Math.floor((x / 2 ** exponent - 1) * 1024);
}

/** Of a model of type qwen3_moe. */
interface ExpertConfig {
  num_experts: number;
  num_experts_per_tok: number;
  moe_intermediate_size: number;
  norm_topk_prob: boolean;
}

export interface RandomModel {
  config: ReferenceConfig & Partial<ExpertConfig>;
  dtype: StoredType;
  /** Type of the scales if the layers' matrices are stored in 8 bits. */
  int8?: StoredType;
  seed: number;
  /** Spread of the key biases. Default: 0.1. */
  keyBias?: number;
  /** Attention adds nothing to the hidden rows. */
  withoutAttention?: boolean;
  /** Number of weight files. Default: 1. */
  shards?: number;
}

/** @returns the tensors as the files hold them. Tensors in 8 bits have the values that their codes represent. */
export function writeRandomModel(
  dir: string,
  { config, dtype, int8, seed, keyBias = 0.1, withoutAttention = false, shards = 1 }: RandomModel,
): Map<string, Tensor> {
  const next = random(seed);
  const gauss = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  const tensors = new Map<string, Tensor>();
  const stored = new Map<string, { dtype: string; shape: number[]; bytes: Uint8Array }>();
  const add = (name: string, shape: number[], spread: number, mean = 0, scaleType?: StoredType) => {
    const data = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => mean + spread * gauss());
    if (scaleType) {
      const { codes, scaleBytes } = encodeInt8(data, shape[0]!, scaleType);
      stored.set(name, { dtype: 'I8', shape, bytes: new Uint8Array(codes.buffer) });
      stored.set(`${name}_scale`, { dtype: scaleType, shape: [shape[0]!, 1], bytes: scaleBytes });
    } else stored.set(name, { dtype, shape, bytes: encode(data, dtype) });
    tensors.set(name, { shape, data });
  };
  const experts = config.model_type === 'qwen3_moe' ? (config as ExpertConfig) : null;
  const hidden = config.hidden_size;
  const ffn = config.intermediate_size;
  const headDim = config.head_dim ?? hidden / config.num_attention_heads;
  const qRows = config.num_attention_heads * headDim;
  const kvRows = config.num_key_value_heads * headDim;
  const bias = config.model_type === 'qwen2' || config.attention_bias === true;
  add('model.embed_tokens.weight', [config.vocab_size, hidden], 1);
  for (let l = 0; l < config.num_hidden_layers; l++) {
    const at = `model.layers.${l}`;
    const linear = (name: string, rows: number, width: number, withBias: boolean, spread = 0.1) => {
      const isZero = withoutAttention && name === 'self_attn.o_proj';
      add(`${at}.${name}.weight`, [rows, width], isZero ? 0 : 1.3 / Math.sqrt(width), 0, int8);
      if (withBias) add(`${at}.${name}.bias`, [rows], spread);
    };
    add(`${at}.input_layernorm.weight`, [hidden], 0.2, 1);
    linear('self_attn.q_proj', qRows, hidden, bias);
    linear('self_attn.k_proj', kvRows, hidden, bias, keyBias);
    linear('self_attn.v_proj', kvRows, hidden, bias);
    linear('self_attn.o_proj', hidden, qRows, config.attention_bias === true);
    if (config.model_type === 'qwen3' || experts)
      for (const n of ['q_norm', 'k_norm']) add(`${at}.self_attn.${n}.weight`, [headDim], 0.2, 1);
    add(`${at}.post_attention_layernorm.weight`, [hidden], 0.2, 1);
    if (experts) linear('mlp.gate', experts.num_experts, hidden, false);
    const [parts, size] = experts
      ? [Array.from({ length: experts.num_experts }, (_, e) => `mlp.experts.${e}`), experts.moe_intermediate_size]
      : [['mlp'], ffn];
    for (const part of parts) {
      for (const n of ['gate_proj', 'up_proj']) linear(`${part}.${n}`, size, hidden, config.mlp_bias === true);
      linear(`${part}.down_proj`, hidden, size, config.mlp_bias === true);
    }
  }
  add('model.norm.weight', [hidden], 0.2, 1);
  if (!config.tie_word_embeddings) add('lm_head.weight', [config.vocab_size, hidden], 1.5 / Math.sqrt(hidden));

  mkdirSync(dir, { recursive: true });
  const entries = [...stored];
  if (shards === 1) writeFileSync(path.join(dir, 'model.safetensors'), safetensorsBytes(entries));
  else {
    const weightMap: Record<string, string> = {};
    for (let s = 0; s < shards; s++) {
      const file = `model-${s + 1}-of-${shards}.safetensors`;
      const part = entries.filter((_, i) => i % shards === s);
      for (const [name] of part) weightMap[name] = file;
      writeFileSync(path.join(dir, file), safetensorsBytes(part));
    }
    writeFileSync(
      path.join(dir, 'model.safetensors.index.json'),
      JSON.stringify({ metadata: {}, weight_map: weightMap }),
    );
  }
  writeFileSync(
    path.join(dir, 'config.json'),
    JSON.stringify(int8 ? { ...config, quantization_config: INT8_CONFIG } : config),
  );
  writeFileSync(
    path.join(dir, 'tokenizer.json'),
    JSON.stringify({ version: '1.0', added_tokens: [], model: { type: 'BPE', vocab: {}, merges: [] } }),
  );
  return tensors;
}
