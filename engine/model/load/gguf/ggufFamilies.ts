/**
 * The families in GGUF files: what their metadata say in words of config.json, and how their tensors are named. Follows
 * llama.cpp. Does not read files.
 */
import type { Json } from '../configFields.ts';
import { unsupported } from '../modelFolder.ts';
import type { TensorInfo } from '../safetensors.ts';
import type { GgufFields } from './ggufFields.ts';

/** A file of a known family. */
export interface GgufShape {
  readonly fields: GgufFields;
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  /** The name of a key of the family. */
  readonly key: (name: string) => string;
  readonly numLayers: number;
  readonly hiddenSize: number;
  readonly numHeads: number;
  readonly headSize: number;
}

export interface GgufFamily {
  /** model_type of Hugging Face. Default: the name of the family. */
  readonly type?: string;
  /** Parts of a layer that have other names than usual, by their names in the file. Null: the family has no such part. */
  readonly parts?: Readonly<Record<string, string | null>>;
  /** Whether llama.cpp rotates the pairs (2 i, 2 i + 1) of a head, and the file has its rows in that order. */
  readonly isInterleaved?: boolean;
  /** Whether every layer has experts. */
  readonly hasExperts?: boolean;
  /** Whether fewer numbers of a head may be rotated than it has. */
  readonly rotatesPart?: boolean;
  /** Whether the file has factors of the rope for short and long contexts. */
  readonly hasLongrope?: boolean;
  /** Whether yarn would not be about all layers alike. */
  readonly hasNoYarn?: boolean;
  /** What is added to weights that end with this name, to get those of Hugging Face. */
  readonly normShift?: number;
  /** Fields of config.json beside those of all families. */
  fields?(shape: GgufShape): Json;
}

const PARTS: Readonly<Record<string, string>> = {
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
const EXPERT_PARTS = {
  ffn_gate: null,
  ffn_up: null,
  ffn_down: null,
  ffn_gate_inp: 'mlp.gate',
  ffn_gate_exps: 'mlp.experts.gate_proj',
  ffn_up_exps: 'mlp.experts.up_proj',
  ffn_down_exps: 'mlp.experts.down_proj',
};
const NORMS_AFTER = {
  post_attention_norm: 'post_attention_layernorm',
  post_ffw_norm: 'post_feedforward_layernorm',
};

const attentionBias = ({ tensors }: GgufShape): Json => ({ attention_bias: tensors.has('blk.0.attn_q.bias') });
const bothBiases = (shape: GgufShape): Json => ({
  ...attentionBias(shape),
  mlp_bias: shape.tensors.has('blk.0.ffn_gate.bias'),
});

/** llama.cpp always lets the shares of the used experts add up to 1. */
function expertsOf({ fields, key }: GgufShape): Json {
  const used = fields.count(key('expert_used_count'));
  const size = Math.floor(fields.count(key('feed_forward_length')) / used);
  return {
    num_experts: fields.count(key('expert_count')),
    num_experts_per_tok: used,
    moe_intermediate_size: fields.count(key('expert_feed_forward_length'), { fallback: size }),
    norm_topk_prob: true,
  };
}

/** `fallback`: if the key is missing. Null: all layers see everything. */
function windowOf({ fields, key }: GgufShape, fallback: number | null): number | null {
  return fields.count(key('attention.sliding_window'), { least: 0, fallback: fallback ?? 0 }) || null;
}

/** Of `every` layers the last one sees everything. A file may name the others instead. */
function layerTypes({ fields, key, numLayers }: GgufShape, every: number): string[] {
  const name = key('attention.sliding_window_pattern');
  const listed = fields.flags(name);
  if (listed && listed.length !== numLayers) throw fields.wrong(name, `a list of ${numLayers} truth values`);
  const whole = listed === undefined ? fields.count(name, { least: 0, fallback: every }) : 0;
  return Array.from({ length: numLayers }, (_, l) =>
    (listed ? listed[l] : whole === 0 || l % whole < whole - 1) ? 'sliding_attention' : 'full_attention',
  );
}

/** llama.cpp knows by the number of layers which models divide by the root of another number than the head size. */
function gemma(shape: GgufShape, largest: number): Json {
  const { numLayers, hiddenSize, numHeads, headSize } = shape;
  return {
    ...attentionBias(shape),
    query_pre_attn_scalar: numLayers === largest ? Math.floor(hiddenSize / numHeads) : headSize,
  };
}

/** 0 stands for none. */
function softcap({ fields, key }: GgufShape, name: string, fallback: number): number | null {
  return fields.number(key(name), fallback) || null;
}

export const GGUF_FAMILIES: Readonly<Record<string, GgufFamily>> = {
  qwen2: {},
  qwen3: { fields: attentionBias },
  qwen3moe: {
    type: 'qwen3_moe',
    parts: EXPERT_PARTS,
    hasExperts: true,
    fields: (shape) => ({ ...attentionBias(shape), ...expertsOf(shape) }),
  },
  llama: { isInterleaved: true, fields: bothBiases },
  granite: {
    isInterleaved: true,
    fields(shape) {
      const { fields, key, headSize } = shape;
      if (!fields.flag(key('rope.scaling.finetuned'), true))
        throw unsupported(
          `${fields.file}: ${key('rope.scaling.finetuned')} is false: models without rope are not supported.`,
        );
      const scale = (name: string, usual: number): number => fields.number(key(name), usual) || usual;
      return {
        ...bothBiases(shape),
        embedding_multiplier: scale('embedding_scale', 1),
        attention_multiplier: scale('attention.scale', 1 / Math.sqrt(headSize)),
        residual_multiplier: scale('residual_scale', 1),
        logits_scaling: fields.number(key('logit_scale')),
      };
    },
  },
  phi3: {
    parts: {
      attn_q: null,
      attn_k: null,
      attn_v: null,
      ffn_gate: null,
      attn_qkv: 'self_attn.qkv_proj',
      ffn_up: 'mlp.gate_up_proj',
    },
    rotatesPart: true,
    hasLongrope: true,
    fields: (shape) => ({
      sliding_window: windowOf(shape, null),
      original_max_position_embeddings: shape.fields.count(shape.key('rope.scaling.original_context_length'), {
        fallback: shape.fields.count(shape.key('context_length')),
      }),
    }),
  },
  smollm3: { isInterleaved: true, fields: (shape) => ({ ...bothBiases(shape), no_rope_layer_interval: 4 }) },
  starcoder2: {
    parts: { ffn_gate: null, ffn_up: 'mlp.c_fc', ffn_down: 'mlp.c_proj' },
    fields: (shape) => ({
      use_bias: shape.tensors.has('blk.0.attn_q.bias'),
      sliding_window: windowOf(shape, null),
      norm_epsilon: shape.fields.number(shape.key('attention.layer_norm_epsilon')),
    }),
  },
  olmo2: {
    parts: { attn_norm: null, ffn_norm: null, ...NORMS_AFTER },
    fields(shape) {
      if (windowOf(shape, null) !== null)
        throw unsupported(
          `${shape.fields.file}: ${shape.key('attention.sliding_window')} is set, as in OLMo 3, which is not supported.`,
        );
      return attentionBias(shape);
    },
  },
  gemma: { normShift: -1, fields: attentionBias },
  gemma2: {
    parts: { ...NORMS_AFTER, ffn_norm: 'pre_feedforward_layernorm' },
    normShift: -1,
    fields: (shape) => ({
      ...gemma(shape, 46),
      sliding_window: windowOf(shape, 4096),
      layer_types: layerTypes(shape, 2),
      attn_logit_softcapping: softcap(shape, 'attn_logit_softcapping', 50),
      final_logit_softcapping: softcap(shape, 'final_logit_softcapping', 30),
    }),
  },
  gemma3: {
    type: 'gemma3_text',
    hasNoYarn: true,
    parts: { ...NORMS_AFTER, ffn_norm: 'pre_feedforward_layernorm' },
    normShift: -1,
    fields(shape) {
      const window = windowOf(shape, null);
      const none = new Array<string>(shape.numLayers).fill('full_attention');
      return {
        ...gemma(shape, 62),
        sliding_window: window,
        layer_types: window === null ? none : layerTypes(shape, 6),
        rope_local_base_freq: shape.fields.number(shape.key('rope.freq_base_swa'), 10_000),
        final_logit_softcapping: softcap(shape, 'final_logit_softcapping', 0),
      };
    },
  },
};

/** Keys whose lists are read. */
export const SHAPE_LISTS = ['gemma2', 'gemma3'].map((family) => `${family}.attention.sliding_window_pattern`);

/** The parts of a layer of a family, by their names in the file. */
export function partsOf(family: string): ReadonlyMap<string, string> {
  const parts = { ...PARTS, ...GGUF_FAMILIES[family]?.parts };
  return new Map(Object.entries(parts).filter((entry): entry is [string, string] => entry[1] !== null));
}
