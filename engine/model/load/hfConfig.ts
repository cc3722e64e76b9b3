/**
 * Reads config.json and generation_config.json of a Hugging Face folder into a ModelConfig. Knows all spellings and
 * defaults of the three families. Refuses what the engine does not support, by name. Does not look at weights.
 */
import { invalid, unsupported } from './modelFolder.ts';

type Architecture = 'qwen2' | 'qwen3' | 'llama';

export type Rope =
  | { readonly type: 'default'; readonly theta: number }
  | { readonly type: 'linear'; readonly theta: number; readonly factor: number }
  | {
      readonly type: 'llama3';
      readonly theta: number;
      readonly factor: number;
      readonly lowFreqFactor: number;
      readonly highFreqFactor: number;
      readonly originalContext: number;
    };

export interface ModelConfig {
  readonly architecture: Architecture;
  readonly numLayers: number;
  readonly hiddenSize: number;
  readonly ffnSize: number;
  readonly numHeads: number;
  readonly kvHeads: number;
  /** May differ from hiddenSize / numHeads. */
  readonly headSize: number;
  readonly vocabSize: number;
  /** Longest sequence in tokens: the limit of the model, at most MAX_CONTEXT. */
  readonly contextTokens: number;
  readonly rmsEps: number;
  readonly rope: Rope;
  /** Whether the config ties head and embedding. The weights decide in the end (see isTied). */
  readonly tied: boolean;
  readonly qkvBias: boolean;
  readonly outputBias: boolean;
  readonly ffnBias: boolean;
  /** Queries and keys have an RMS norm per head. */
  readonly qkNorm: boolean;
  /** Matrices may be stored as 8-bit codes with one scale per row (see Weights). */
  readonly int8Weights: boolean;
  /** Each of these ends a generation. May be empty. */
  readonly eosIds: readonly number[];
  readonly bosId: number | null;
}

type Json = Record<string, unknown>;
const FILE = 'config.json';
/** The step graph sums so many products of 8-bit codes in 32 bits. 255 * 127 * 65,536 is just below 2^31. */
const MAX_CONTEXT = 65_536;
const FAMILIES: readonly Architecture[] = ['qwen2', 'qwen3', 'llama'];

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Shows a value of the file in a message. Objects and nested lists are shown by their kind only. */
function show(value: unknown): string {
  if (isObject(value)) return 'an object';
  if (Array.isArray(value))
    return value.some((v) => typeof v === 'object') ? 'a nested list' : JSON.stringify(value.slice(0, 8));
  return (JSON.stringify(value) ?? String(value)).slice(0, 80);
}

/** A positive integer below 2^31. `fallback` is used if the key is missing or null. */
function count(config: Json, key: string, fallback?: number): number {
  const value = config[key] ?? fallback;
  if (value === undefined) throw invalid(`${FILE}: ${key} is missing; it must be a positive integer.`);
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value >= 2 ** 31)
    throw invalid(`${FILE}: ${key} is ${show(value)}; it must be a positive integer.`);
  return value;
}

function positive(source: Json, key: string, where: string, fallback?: number): number {
  const value = source[key] ?? fallback;
  if (value === undefined) throw invalid(`${FILE}: ${where}${key} is missing; it must be a positive number.`);
  if (typeof value !== 'number' || !Number.isFinite(value) || value <= 0)
    throw invalid(`${FILE}: ${where}${key} is ${show(value)}; it must be a positive number.`);
  return value;
}

function flag(config: Json, key: string, fallback: boolean): boolean {
  const value = config[key] ?? fallback;
  if (typeof value !== 'boolean') throw invalid(`${FILE}: ${key} is ${show(value)}; it must be true or false.`);
  return value;
}

/**
 * Reads the spellings of transformers 4 and 5. A non-empty `rope_scaling` replaces `rope_parameters` as a whole. theta
 * comes from the chosen one, otherwise from the top level, otherwise it is 10000. The old key `type` is also read.
 */
function parseRope(config: Json): Rope {
  for (const key of ['rope_scaling', 'rope_parameters']) {
    if (config[key] !== undefined && config[key] !== null && !isObject(config[key]))
      throw invalid(`${FILE}: ${key} is ${show(config[key])}; it must be an object or null.`);
  }
  const scaling = config.rope_scaling as Json | null | undefined;
  const where = scaling && Object.keys(scaling).length > 0 ? 'rope_scaling' : 'rope_parameters';
  const rope = (config[where] as Json | null | undefined) ?? {};
  const at = `${where}.`;
  if (Object.values(rope).some(isObject))
    throw unsupported(
      `${FILE}: ${where} differs by layer type; only one set of rope parameters for all layers is supported.`,
    );
  const type = rope.rope_type ?? rope.type ?? 'default';
  const theta = positive(rope, 'rope_theta', at, positive(config, 'rope_theta', '', 10_000));
  const partial = rope.partial_rotary_factor ?? config.partial_rotary_factor ?? 1;
  if (partial !== 1)
    throw unsupported(
      `${FILE}: partial_rotary_factor is ${show(partial)}; only models that rotate whole heads (1) are supported.`,
    );
  switch (type) {
    case 'default':
      return { type: 'default', theta };
    case 'linear':
      return { type: 'linear', theta, factor: positive(rope, 'factor', at) };
    case 'llama3': {
      const lowFreqFactor = positive(rope, 'low_freq_factor', at);
      const highFreqFactor = positive(rope, 'high_freq_factor', at);
      if (highFreqFactor <= lowFreqFactor)
        throw invalid(
          `${FILE}: ${at}high_freq_factor is ${highFreqFactor}; it must be greater than low_freq_factor (${lowFreqFactor}).`,
        );
      const context = config.original_max_position_embeddings as number | undefined;
      const originalContext = positive(rope, 'original_max_position_embeddings', at, context);
      return {
        type: 'llama3',
        theta,
        factor: positive(rope, 'factor', at),
        lowFreqFactor,
        highFreqFactor,
        originalContext,
      };
    }
    default:
      throw unsupported(
        `${FILE}: ${at}${rope.rope_type !== undefined ? 'rope_type' : 'type'} is ${show(type)}; ` +
          'the supported rope types are default, linear and llama3.',
      );
  }
}

/** Refuses a sliding window if it is shorter than the context, so that a layer would forget tokens. */
function refuseSlidingWindow(config: Json, family: Architecture, numLayers: number, contextTokens: number): void {
  const types = config.layer_types;
  if (types !== undefined && types !== null) {
    if (!Array.isArray(types) || types.length !== numLayers)
      throw invalid(`${FILE}: layer_types must be an array with one entry for each of the ${numLayers} layers.`);
    const other = types.find((t) => t !== 'full_attention' && t !== 'sliding_attention');
    if (other !== undefined)
      throw unsupported(`${FILE}: layer_types has ${show(other)}; only full_attention is supported.`);
  }
  // llama has no sliding window: transformers ignores the key there.
  if (family === 'llama') return;
  const used = flag(config, 'use_sliding_window', false);
  const window = used ? count(config, 'sliding_window', 4096) : null;
  const maxWindowLayers = config.max_window_layers ?? 28;
  const slides = Array.isArray(types)
    ? types.includes('sliding_attention')
    : used && config.sliding_window !== null && numLayers > Number(maxWindowLayers);
  if (slides && (window === null || window < contextTokens)) {
    throw unsupported(
      `${FILE}: ${used ? 'use_sliding_window' : 'layer_types'} asks for a sliding window of ` +
        `${window ?? 'unknown'} tokens; only full attention is supported.`,
    );
  }
}

/** Reads a token id or a list of them. Returns the ids that exist in the vocabulary. Null if the key is missing. */
function tokenIds(source: Json, file: string, key: string, vocabSize: number): number[] | null {
  const value = source[key];
  if (value === undefined || value === null) return null;
  const ids: unknown[] = Array.isArray(value) ? value : [value];
  for (const id of ids)
    if (typeof id !== 'number' || !Number.isInteger(id))
      throw invalid(`${file}: ${key} is ${show(value)}; it must be a token id or a list of token ids.`);
  return (ids as number[]).filter((id) => id >= 0 && id < vocabSize);
}

/**
 * Whether the weights are quantised in the one supported form: int8 of compressed-tensors with one symmetric scale per
 * row. The format of activations does not matter, because the engine quantises them in its own way. Missing fields have
 * the defaults of that library.
 */
function hasInt8Weights(config: Json): boolean {
  const quantisation = config.quantization_config;
  if (!isObject(quantisation)) return false;
  const refuse = (where: string, value: unknown): never => {
    throw unsupported(
      `${FILE}: quantization_config${where} is ${value === undefined ? 'missing' : show(value)}; ` +
        'supported are float32, float16 and bfloat16, and compressed-tensors with 8 bits and one symmetric scale ' +
        'per row (format int-quantized, strategy channel).',
    );
  };
  const need = (source: Json, where: string, key: string, wanted: unknown, fallback?: unknown): void => {
    if ((source[key] ?? fallback) !== wanted) refuse(`${where}.${key}`, source[key]);
  };
  need(quantisation, '', 'quant_method', 'compressed-tensors');
  need(quantisation, '', 'format', 'int-quantized');
  const { config_groups: groups, sparsity_config: sparsity, transform_config: transform } = quantisation;
  if (isObject(sparsity)) need(sparsity, '.sparsity_config', 'format', 'dense', 'dense');
  // These are rotations that the model would have to compute.
  if (isObject(transform) && Object.keys(transform).length > 0) refuse('.transform_config', transform);
  if (!isObject(groups) || Object.keys(groups).length === 0)
    return refuse('.config_groups', isObject(groups) ? undefined : groups);
  for (const [name, group] of Object.entries(groups)) {
    const where = `.config_groups[${show(name)}]`;
    if (!isObject(group) || !isObject(group.weights))
      return refuse(`${where}.weights`, isObject(group) ? group.weights : group);
    need(group, where, 'format', 'int-quantized', 'int-quantized');
    for (const [key, wanted] of Object.entries({ num_bits: 8, type: 'int', symmetric: true, dynamic: false }))
      need(group.weights, `${where}.weights`, key, wanted, wanted);
    need(group.weights, `${where}.weights`, 'strategy', 'channel');
  }
  return true;
}

/** @throws RequestError with the file, the field and what is supported, in one sentence */
export function parseConfig(config: Json, generation: Json | null = null): ModelConfig {
  const family = config.model_type;
  if (family === undefined)
    throw invalid(`${FILE}: model_type is missing; the supported model types are ${FAMILIES.join(', ')}.`);
  if (!FAMILIES.includes(family as Architecture))
    throw unsupported(`${FILE}: model_type is ${show(family)}; the supported model types are ${FAMILIES.join(', ')}.`);
  const architecture = family as Architecture;
  const names = config.architectures;
  if (
    Array.isArray(names) &&
    names.length > 0 &&
    !names.some((n) => typeof n === 'string' && /ForCausalLM$/i.test(n))
  ) {
    throw unsupported(
      `${FILE}: architectures is ${show(names)}; only text generation models (ForCausalLM) are supported.`,
    );
  }
  const int8Weights = hasInt8Weights(config);

  const hiddenSize = count(config, 'hidden_size');
  const ffnSize = count(config, 'intermediate_size');
  const numLayers = count(config, 'num_hidden_layers');
  const numHeads = count(config, 'num_attention_heads');
  const vocabSize = count(config, 'vocab_size');
  const contextTokens = Math.min(
    MAX_CONTEXT,
    count(config, 'max_position_embeddings', architecture === 'llama' ? 2048 : 32_768),
  );
  // A missing key and null differ. The default of the Qwen families is 32. Null means as many as query heads.
  const kvHeads = count(
    config,
    'num_key_value_heads',
    config.num_key_value_heads === undefined && architecture !== 'llama' ? 32 : numHeads,
  );
  if (numHeads % kvHeads !== 0)
    throw invalid(
      `${FILE}: num_key_value_heads is ${kvHeads}` +
        `${config.num_key_value_heads === undefined ? ` (the default of ${architecture})` : ''}; ` +
        `num_attention_heads (${numHeads}) must be a multiple of it.`,
    );
  if (architecture !== 'qwen3' && (config.head_dim ?? null) === null && hiddenSize % numHeads !== 0)
    throw invalid(
      `${FILE}: hidden_size (${hiddenSize}) must be a multiple of num_attention_heads (${numHeads}) when head_dim is missing.`,
    );
  const headSize = count(config, 'head_dim', architecture === 'qwen3' ? 128 : hiddenSize / numHeads);
  if (headSize % 2 !== 0) throw unsupported(`${FILE}: head_dim is ${headSize}; only even head sizes are supported.`);
  const activation = config.hidden_act ?? 'silu';
  if (activation !== 'silu' && activation !== 'swish')
    throw unsupported(`${FILE}: hidden_act is ${show(activation)}; only silu is supported.`);
  refuseSlidingWindow(config, architecture, numLayers, contextTokens);

  const ids = (key: string): number[] =>
    (generation && tokenIds(generation, 'generation_config.json', key, vocabSize)) ??
    tokenIds(config, FILE, key, vocabSize) ??
    [];
  const attentionBias = architecture !== 'qwen2' && flag(config, 'attention_bias', false);
  return {
    architecture,
    numLayers,
    hiddenSize,
    ffnSize,
    numHeads,
    kvHeads,
    headSize,
    vocabSize,
    contextTokens,
    rmsEps: positive(config, 'rms_norm_eps', '', 1e-6),
    rope: parseRope(config),
    tied: flag(config, 'tie_word_embeddings', false),
    qkvBias: architecture === 'qwen2' || attentionBias,
    outputBias: attentionBias,
    ffnBias: architecture === 'llama' && flag(config, 'mlp_bias', false),
    qkNorm: architecture === 'qwen3',
    int8Weights,
    eosIds: ids('eos_token_id'),
    bosId: ids('bos_token_id')[0] ?? null,
  };
}
