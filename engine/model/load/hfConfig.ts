/**
 * Reads config.json and generation_config.json of a Hugging Face folder into a ModelConfig. Knows all spellings and
 * defaults of the three families. Refuses what the engine does not support, by name. Does not look at weights.
 */
import { count, FILE, flag, type Json, number, show, tokenIds } from './configFields.ts';
import { invalid, unsupported } from './modelFolder.ts';
import { hasInt8Weights } from './quantisationConfig.ts';
import { parseRope, type Rope } from './ropeConfig.ts';
import { MAX_TOKENS } from './tokenizerFile.ts';

type Architecture = 'qwen2' | 'qwen3' | 'llama';

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

/** The step graph and the native kernels sum so many products of 8-bit codes in 32 bits. 255 * 127 * 65,536 is just below 2^31. */
const MAX_CONTEXT = 65_536;
/** Bounds, several times the largest known model (Llama 3.1 405B: 126, 16,384, 53,248, 128, and heads of 128). */
const MAX_LAYERS = 1024;
const MAX_HIDDEN = 2 ** 17;
const MAX_FFN = 2 ** 20;
const MAX_HEADS = 1024;
const MAX_HEAD_SIZE = 1024;
const MAX_POSITIONS = 2 ** 31 - 1;
export const FAMILIES: readonly Architecture[] = ['qwen2', 'qwen3', 'llama'];

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
  const window = used ? count(config, 'sliding_window', MAX_POSITIONS, 4096) : null;
  const maxWindowLayers = number(config, 'max_window_layers', { least: 0, most: MAX_POSITIONS, fallback: 28 });
  const slides = Array.isArray(types)
    ? types.includes('sliding_attention')
    : used && config.sliding_window !== null && numLayers > maxWindowLayers;
  if (slides && (window === null || window < contextTokens)) {
    throw unsupported(
      `${FILE}: ${used ? 'use_sliding_window' : 'layer_types'} asks for a sliding window of ` +
        `${window ?? 'unknown'} tokens; only full attention is supported.`,
    );
  }
}

/** @throws RequestError for another kind of model */
function architectureOf(config: Json): Architecture {
  const family = config.model_type;
  if (family === undefined)
    throw invalid(`${FILE}: model_type is missing; the supported model types are ${FAMILIES.join(', ')}.`);
  if (!FAMILIES.includes(family as Architecture))
    throw unsupported(`${FILE}: model_type is ${show(family)}; the supported model types are ${FAMILIES.join(', ')}.`);
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
  return family as Architecture;
}

/** @throws RequestError with the file, the field and what is supported, in one sentence */
export function parseConfig(config: Json, generation: Json | null = null): ModelConfig {
  const architecture = architectureOf(config);
  const int8Weights = hasInt8Weights(config);

  const hiddenSize = count(config, 'hidden_size', MAX_HIDDEN);
  const ffnSize = count(config, 'intermediate_size', MAX_FFN);
  const numLayers = count(config, 'num_hidden_layers', MAX_LAYERS);
  const numHeads = count(config, 'num_attention_heads', MAX_HEADS);
  const vocabSize = count(config, 'vocab_size', MAX_TOKENS);
  const { rope, positions = MAX_CONTEXT } = parseRope(config);
  const contextTokens = Math.min(
    MAX_CONTEXT,
    positions,
    count(config, 'max_position_embeddings', MAX_POSITIONS, architecture === 'llama' ? 2048 : 32_768),
  );
  // A missing key and null differ. The default of the Qwen families is 32. Null means as many as query heads.
  const kvHeads = count(
    config,
    'num_key_value_heads',
    MAX_HEADS,
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
  const headSize = count(config, 'head_dim', MAX_HEAD_SIZE, architecture === 'qwen3' ? 128 : hiddenSize / numHeads);
  if (headSize % 2 !== 0) throw unsupported(`${FILE}: head_dim is ${headSize}; only even head sizes are supported.`);
  if (rope.type === 'factors' && rope.factors.length !== headSize / 2)
    throw invalid(
      `${FILE}: rope_scaling.factors has ${rope.factors.length} numbers; ` +
        `it must have ${headSize / 2}, half of the head size: choose another file.`,
    );
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
    rmsEps: number(config, 'rms_norm_eps', { least: 1e-20, most: 1, fallback: 1e-6 }),
    rope,
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
