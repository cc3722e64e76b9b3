/**
 * The families of models: what their configuration classes in transformers 5 say where config.json says nothing, and
 * which fields of it count. Does not read files.
 */

export type Architecture =
  | 'qwen2'
  | 'qwen3'
  | 'llama'
  | 'mistral'
  | 'ministral3'
  | 'smollm3'
  | 'granite'
  | 'phi3'
  | 'starcoder2'
  | 'olmo2'
  | 'gemma'
  | 'gemma2'
  | 'gemma3_text'
  | 'qwen3_moe'
  | 'mellum';

export interface Family {
  /** Norms subtract the mean and have a bias, and the feed-forward layers are c_fc, a GELU and c_proj. */
  readonly isGpt?: boolean;
  /**
   * As in Gemma: norms multiply by 1 + weight, the embedding is multiplied by the root of its size, gates are a GELU.
   */
  readonly isGemma?: boolean;
  /** query_pre_attn_scalar if it is missing, and the activation is named by hidden_activation. Default: neither. */
  readonly queryScalar?: number;
  /** Of missing keys. Default: they must be there. */
  readonly sizes?: Readonly<Record<string, number>>;
  /** attn_logit_softcapping and final_logit_softcapping of missing keys; null is none. Undefined: they do not count. */
  readonly softcaps?: { readonly scores?: number | null; readonly logits: number | null };
  readonly context: number;
  readonly normEps: number;
  readonly theta: number;
  readonly tied: boolean;
  /** Of a missing key. Default: as many as query heads. Null always means that. */
  readonly kvHeads?: number;
  /** Default: hidden_size / num_attention_heads. */
  readonly headSize?: number;
  /** Whether queries, keys and values have a bias, or the field that says so. */
  readonly qkvBias: boolean | 'attention_bias' | 'use_bias';
  /** Whether that field is also about the output projection. */
  readonly outputBias?: boolean;
  readonly mlpBias?: boolean;
  /** Whether queries and keys have an RMS norm: one for each head, or one for all heads together. Default: none. */
  readonly qkNorm?: 'head' | 'whole';
  /** See ModelConfig. Default: before. */
  readonly norms?: 'after' | 'both';
  /**
   * sliding_window if the key is missing; null is none. Undefined: the family has no window. `switched`: only
   * with use_sliding_window, and for the layers that layer_types or max_window_layers name (`all`: for all layers).
   * `windowPattern`: in the layers that layer_types names, otherwise in all except each so many-th; `key`: of that
   * number. `namedWindows`: in the layers that layer_types names, otherwise in all (`only`: in none).
   */
  readonly window?: number | null;
  readonly switched?: boolean | 'all';
  readonly namedWindows?: boolean | 'only';
  readonly windowPattern?: { readonly every: number; readonly key?: string };
  /** rope_local_base_freq of a missing key: layers with a window have their own rope. Default: they have not. */
  readonly localTheta?: number;
  /** Numbers of missing keys, and what names the layers without experts. Default: no layer has experts. */
  readonly experts?: {
    readonly count: number;
    readonly used: number;
    readonly size: number;
    readonly normed: boolean;
    readonly denseLayers: 'mlp_only_layers' | 'mlp_layer_types';
  };
  /** Whether no_rope_layers and no_rope_layer_interval count. */
  readonly noRopeLayers?: boolean;
  /** Whether partial_rotary_factor counts. */
  readonly partialRotary?: boolean;
  /** original_max_position_embeddings if it is missing. Default: max_position_embeddings. */
  readonly originalContext?: number;
  /** Whether llama_4_scaling_beta counts: beyond the original length queries are multiplied by another number. */
  readonly llama4Scaling?: boolean;
  /** The names of rope types that mean another one. */
  readonly ropeNames?: Readonly<Record<string, string>>;
}

export const FAMILIES: Readonly<Record<Architecture, Family>> = {
  qwen2: {
    context: 32_768,
    normEps: 1e-6,
    theta: 10_000,
    tied: false,
    kvHeads: 32,
    qkvBias: true,
    window: 4096,
    switched: true,
  },
  qwen3: {
    context: 32_768,
    normEps: 1e-6,
    theta: 10_000,
    tied: false,
    kvHeads: 32,
    headSize: 128,
    qkvBias: 'attention_bias',
    outputBias: true,
    qkNorm: 'head',
    window: 4096,
    switched: true,
  },
  llama: {
    context: 2048,
    normEps: 1e-6,
    theta: 10_000,
    tied: false,
    qkvBias: 'attention_bias',
    outputBias: true,
    mlpBias: true,
  },
  mistral: {
    context: 131_072,
    normEps: 1e-6,
    theta: 10_000,
    tied: false,
    kvHeads: 8,
    qkvBias: false,
    window: 4096,
    namedWindows: true,
  },
  ministral3: {
    context: 262_144,
    normEps: 1e-5,
    theta: 10_000,
    tied: false,
    kvHeads: 8,
    headSize: 128,
    qkvBias: false,
    window: null,
    llama4Scaling: true,
  },
  smollm3: {
    context: 32_768,
    normEps: 1e-6,
    theta: 2_000_000,
    noRopeLayers: true,
    tied: true,
    kvHeads: 4,
    qkvBias: 'attention_bias',
    outputBias: true,
    mlpBias: true,
    window: null,
    switched: true,
  },
  granite: {
    context: 2048,
    normEps: 1e-6,
    theta: 10_000,
    tied: false,
    qkvBias: 'attention_bias',
    outputBias: true,
    mlpBias: true,
  },
  phi3: {
    context: 4096,
    normEps: 1e-5,
    theta: 10_000,
    tied: false,
    qkvBias: false,
    window: null,
    partialRotary: true,
    originalContext: 4096,
    ropeNames: { su: 'longrope', yarn: 'longrope' },
  },
  starcoder2: {
    context: 4096,
    normEps: 1e-5,
    theta: 10_000,
    tied: true,
    kvHeads: 2,
    qkvBias: 'use_bias',
    outputBias: true,
    mlpBias: true,
    window: null,
    isGpt: true,
  },
  olmo2: {
    context: 2048,
    normEps: 1e-5,
    theta: 10_000,
    tied: false,
    qkvBias: 'attention_bias',
    outputBias: true,
    qkNorm: 'whole',
    norms: 'after',
  },
  gemma: {
    isGemma: true,
    context: 8192,
    normEps: 1e-6,
    theta: 10_000,
    tied: true,
    kvHeads: 16,
    headSize: 256,
    qkvBias: 'attention_bias',
    outputBias: true,
  },
  gemma2: {
    isGemma: true,
    queryScalar: 256,
    context: 8192,
    normEps: 1e-6,
    theta: 10_000,
    tied: true,
    kvHeads: 4,
    headSize: 256,
    qkvBias: 'attention_bias',
    outputBias: true,
    norms: 'both',
    window: 4096,
    windowPattern: { every: 2 },
    softcaps: { scores: 50, logits: 30 },
  },
  gemma3_text: {
    isGemma: true,
    queryScalar: 256,
    sizes: {
      vocab_size: 262_208,
      hidden_size: 2304,
      intermediate_size: 9216,
      num_hidden_layers: 26,
      num_attention_heads: 8,
    },
    context: 131_072,
    normEps: 1e-6,
    theta: 1_000_000,
    localTheta: 10_000,
    tied: true,
    kvHeads: 4,
    headSize: 256,
    qkvBias: 'attention_bias',
    outputBias: true,
    qkNorm: 'head',
    norms: 'both',
    window: 4096,
    windowPattern: { every: 6, key: 'sliding_window_pattern' },
    softcaps: { logits: null },
  },
  qwen3_moe: {
    context: 32_768,
    normEps: 1e-6,
    theta: 10_000,
    tied: false,
    kvHeads: 4,
    qkvBias: 'attention_bias',
    outputBias: true,
    qkNorm: 'head',
    window: 4096,
    switched: 'all',
    experts: { count: 128, used: 8, size: 768, normed: false, denseLayers: 'mlp_only_layers' },
  },
  mellum: {
    context: 131_072,
    normEps: 1e-6,
    theta: 500_000,
    localTheta: 10_000,
    tied: false,
    kvHeads: 4,
    headSize: 128,
    qkvBias: 'attention_bias',
    outputBias: true,
    qkNorm: 'head',
    window: 1024,
    namedWindows: 'only',
    experts: { count: 64, used: 8, size: 896, normed: true, denseLayers: 'mlp_layer_types' },
  },
};

/** Names in messages. */
export const FAMILY_NAMES = Object.keys(FAMILIES).join(', ');

/** Models with a recurrent state, or with compressed keys and values: they have no rows by token that could be shared. */
const OTHER_STATE = new RegExp(
  '^(?:qwen3_5|qwen3_next|qwen4_exp|granitemoehybrid|deepseek_v[234]|lfm2|nemotron_h|mamba|falcon_h1|falcon_mamba|' +
    'jamba|bamba|zamba|recurrent_gemma|rwkv|minimax|kimi_linear|glm4_moe_lite|olmo_hybrid)',
);

export function isServed(modelType: unknown): boolean {
  return typeof modelType === 'string' && OTHER_STATE.test(modelType);
}
