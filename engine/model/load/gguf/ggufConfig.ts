/**
 * Writes the metadata of a GGUF file as a config.json, and names its tensors as Hugging Face does. Refuses what
 * config.json cannot say. Does not check the result (see hfConfig.ts).
 */
import type { Json } from '../configFields.ts';
import { invalid, unsupported } from '../modelFolder.ts';
import type { TensorInfo } from '../safetensors.ts';
import type { GgufFields } from './ggufFields.ts';

const FAMILIES = ['qwen2', 'qwen3', 'llama'];
type Tensors = ReadonlyMap<string, TensorInfo>;

/** Factors of the wave lengths of the rope, made from the parameters of Llama 3. */
export const ROPE_FACTORS = 'rope_freqs.weight';
/** Old files have it. It follows from the other metadata. */
const IGNORED = /^blk\.\d+\.attn_rot_embd\.weight$/;
const NAMES: Readonly<Record<string, string>> = {
  'token_embd.weight': 'model.embed_tokens.weight',
  'output_norm.weight': 'model.norm.weight',
  'output.weight': 'lm_head.weight',
};
const LAYER_NAMES: Readonly<Record<string, string>> = {
  attn_norm: 'input_layernorm',
  attn_q: 'self_attn.q_proj',
  attn_k: 'self_attn.k_proj',
  attn_v: 'self_attn.v_proj',
  attn_output: 'self_attn.o_proj',
  attn_q_norm: 'self_attn.q_norm',
  attn_k_norm: 'self_attn.k_norm',
  ffn_norm: 'post_attention_layernorm',
  ffn_gate: 'mlp.gate_proj',
  ffn_up: 'mlp.up_proj',
  ffn_down: 'mlp.down_proj',
};

/** @throws RequestError for another kind of model, or for values of the wrong type */
export function ggufConfig(fields: GgufFields, tensors: Tensors, ropeFactors: Float32Array | null): Json {
  const family = familyOf(fields);
  const key = (name: string): string => `${family}.${name}`;
  const heads = fields.count(key('attention.head_count'));
  const hidden = fields.count(key('embedding_length'));
  const headSize = fields.count(key('attention.key_length'), { fallback: Math.ceil(hidden / heads) });
  for (const name of ['attention.value_length', 'rope.dimension_count'])
    if (fields.count(key(name), { fallback: headSize }) !== headSize)
      throw unsupported(
        `${fields.file}: ${key(name)} differs from the head size (${headSize}), which is not supported.`,
      );
  if (fields.flag(key('attention.causal'), true) !== true)
    throw unsupported(
      `${fields.file}: ${key('attention.causal')} is false, so the model writes no text: choose another file.`,
    );
  const experts = fields.count(key('expert_count'), { least: 0, fallback: 0 });
  if (experts > 0)
    throw unsupported(
      `${fields.file}: the model has ${experts} experts (${key('expert_count')}), which is not supported.`,
    );
  const embedding = tensors.get('token_embd.weight');
  if (embedding === undefined)
    throw invalid(`${fields.file} has no tensor "token_embd.weight"; it holds no whole model.`);
  const context = fields.count(key('context_length'));
  return {
    model_type: family,
    num_hidden_layers: fields.count(key('block_count')),
    hidden_size: hidden,
    intermediate_size: fields.count(key('feed_forward_length')),
    num_attention_heads: heads,
    num_key_value_heads: fields.count(key('attention.head_count_kv'), { fallback: heads }),
    head_dim: headSize,
    vocab_size: embedding.shape[0],
    // Up to the window, a layer with a sliding window attends to everything.
    max_position_embeddings: Math.min(
      context,
      fields.count(key('attention.sliding_window'), { least: 0, fallback: 0 }) || context,
    ),
    rms_norm_eps: fields.number(key('attention.layer_norm_rms_epsilon')),
    rope_theta: fields.number(key('rope.freq_base'), 10_000),
    rope_scaling: ropeScaling(fields, key, ropeFactors),
    tie_word_embeddings: !tensors.has('output.weight'),
    ...(family === 'qwen2' ? {} : { attention_bias: tensors.has('blk.0.attn_q.bias') }),
    ...(family === 'llama' ? { mlp_bias: tensors.has('blk.0.ffn_gate.bias') } : {}),
  };
}

function familyOf(fields: GgufFields): string {
  const type = fields.text('general.type') ?? 'model';
  if (type !== 'model')
    throw unsupported(
      `${fields.file}: general.type is ${JSON.stringify(type.slice(0, 40))}; choose the file of a model.`,
    );
  const family = fields.text('general.architecture');
  if (family === undefined) throw fields.wrong('general.architecture', 'a text');
  if (!FAMILIES.includes(family))
    throw unsupported(
      `${fields.file}: general.architecture is ${JSON.stringify(family.slice(0, 40))}; ` +
        `the supported architectures are ${FAMILIES.join(', ')}.`,
    );
  return family;
}

/** Missing keys mean what they mean in llama.cpp: the type is linear, and the factor may have its old key. */
function ropeScaling(fields: GgufFields, key: (name: string) => string, factors: Float32Array | null): Json | null {
  const type = fields.text(key('rope.scaling.type')) ?? 'linear';
  if (type !== 'none' && type !== 'linear')
    throw unsupported(
      `${fields.file}: ${key('rope.scaling.type')} is ${JSON.stringify(type.slice(0, 40))}; ` +
        'the supported types are none and linear: choose another file.',
    );
  const size = fields.number(key('rope.scaling.attn_factor'), 1);
  if (size !== 1)
    throw unsupported(
      `${fields.file}: ${key('rope.scaling.attn_factor')} is ${size}; only 1 is supported: choose another file.`,
    );
  const given = fields.number(key('rope.scaling.factor'), fields.number(key('rope.scale_linear'), 1));
  // 0 stands for no factor.
  const factor = type === 'none' ? 1 : given || 1;
  if (factors === null) return factor === 1 ? null : { rope_type: 'linear', factor };
  if (factor !== 1)
    throw unsupported(
      `${fields.file} has both ${ROPE_FACTORS} and a linear rope scaling, which is not supported: choose another file.`,
    );
  return { rope_type: 'factors', factors: [...factors] };
}

/** The name of Hugging Face for a tensor. Null for one that is not read as a weight. */
export function tensorName(file: string, name: string): string | null {
  if (name === ROPE_FACTORS || IGNORED.test(name)) return null;
  const [, layer, part, kind] = /^blk\.(\d+)\.(\w+)\.(weight|bias)$/.exec(name) ?? [];
  const known = part === undefined ? NAMES[name] : LAYER_NAMES[part];
  if (known === undefined)
    throw unsupported(
      `${file}: tensor ${JSON.stringify(name.slice(0, 100))} is no part of a ${FAMILIES.join(', ')} model: choose another file.`,
    );
  return part === undefined ? known : `model.layers.${layer}.${known}.${kind}`;
}

/** The name in the file, of a tensor with a name of Hugging Face. */
export function nameInFile(tensor: string): string {
  const [, layer, part, kind] = /^model\.layers\.(\d+)\.(.+)\.(weight|bias)$/.exec(tensor) ?? [];
  const [names, wanted] = part === undefined ? [NAMES, tensor] : [LAYER_NAMES, part];
  const found = Object.entries(names).find(([, known]) => known === wanted)?.[0] ?? tensor;
  return part === undefined ? found : `blk.${layer}.${found}.${kind}`;
}

/**
 * Whether the rows of a head are interleaved: llama.cpp rotates the pairs (2 i, 2 i + 1) of a llama model, but halves of
 * the others.
 */
export function isInterleaved(family: unknown, name: string): boolean {
  return family === 'llama' && /^blk\.\d+\.attn_[qk]\.(?:weight|bias)$/.test(name);
}
