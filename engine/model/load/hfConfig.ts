/**
 * Reads config.json and generation_config.json of a Hugging Face folder into a ModelConfig. Refuses what the engine does
 * not support, by name. Does not look at weights.
 */
import { count, FILE, flag, isObject, type Json, number, show, tokenIds } from './configFields.ts';
import { type Experts, expertsOf } from './experts.ts';
import { type Architecture, FAMILIES, FAMILY_NAMES, type Family, isServed } from './families.ts';
import { invalid, unsupported } from './modelFolder.ts';
import { type Quantisation, quantisationOf } from './quantisationConfig.ts';
import { layersWithoutRope, parseRope, parseRopes, type Rope } from './ropeConfig.ts';
import { slidingWindow, type Window } from './slidingWindow.ts';
import { MAX_TOKENS } from './tokenizerFile.ts';

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
  /** The text part of a model for text and images. */
  readonly isText: boolean;
  /** Norms have a mean and a bias, and feed-forward layers no gate, but a GELU. */
  readonly isGpt: boolean;
  /** Null: every layer has one feed-forward layer of size ffnSize. */
  readonly experts: Experts | null;
  /** The activation of gates. */
  readonly gate: 'silu' | 'gelu';
  /** What is added to the weights of norms. */
  readonly normOffset: 0 | 1;
  /** Where the RMS norms of a layer are: before attention and feed-forward layers, after them, or both. */
  readonly norms: 'before' | 'after' | 'both';
  /** The RMS norms of queries and keys: one for each head, or one for all heads together. */
  readonly qkNorm: 'head' | 'whole' | null;
  /** Layers with a sliding window shorter than the context. `rope`: of these layers, if they have their own. */
  readonly sliding: (Window & { readonly rope: Rope | null }) | null;
  /** c of c * tanh(x / c), which limits scores and logits. Null if there is none. */
  readonly softcaps: { readonly scores: number | null; readonly logits: number | null };
  /** Folded into the weights. */
  readonly factors: Factors;
  /** How matrices may be stored. Null: as floats, all of them. */
  readonly quantisation: Quantisation | null;
  /** Each of these ends a generation. May be empty. */
  readonly eosIds: readonly number[];
  readonly bosId: number | null;
}

/** Multipliers of parts of the model. */
interface Factors {
  readonly embedding: number;
  /** Of queries times keys. */
  readonly scores: number;
  /** Of what a layer adds to the residual stream. */
  readonly residual: number;
  readonly logits: number;
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

/** The rope of layer l. */
export function ropeOf({ rope, sliding }: Pick<ModelConfig, 'rope' | 'sliding'>, l: number): Rope {
  return sliding?.rope && sliding.layers.includes(l) ? sliding.rope : rope;
}

function isKnown(modelType: unknown): modelType is Architecture {
  return typeof modelType === 'string' && Object.hasOwn(FAMILIES, modelType);
}

/**
 * What the whole model says counts before what its text part says. Programs differ in where they say that the head is
 * tied, so one place is enough, and without a word of the whole model the weights decide (see isTied).
 */
function textConfig(whole: Json, text: Json): Json {
  const { quantization_config = text.quantization_config, architectures } = whole;
  const result: Json = { ...text, quantization_config, architectures };
  for (const key of ['eos_token_id', 'bos_token_id']) result[key] = whole[key] ?? text[key];
  // In transformers they make a Ministral of a whole Mistral only.
  if (text.model_type === 'mistral') delete result.layer_types;
  result.tie_word_embeddings = text.tie_word_embeddings === true ? true : (whole.tie_word_embeddings ?? true);
  return result;
}

/** @throws RequestError for another kind of model */
function architectureOf(config: Json): Architecture {
  const family = config.model_type;
  if (family === undefined)
    throw invalid(`${FILE}: model_type is missing; the supported model types are ${FAMILY_NAMES}.`);
  if (isServed(family))
    throw unsupported(`${FILE}: model_type is ${show(family)}; this build cannot run such models: they need a server.`);
  if (!isKnown(family))
    throw unsupported(`${FILE}: model_type is ${show(family)}; the supported model types are ${FAMILY_NAMES}.`);
  const names = config.architectures;
  if (
    Array.isArray(names) &&
    names.length > 0 &&
    !names.some((n) => typeof n === 'string' && /For(?:CausalLM|ConditionalGeneration)$/i.test(n))
  ) {
    throw unsupported(
      `${FILE}: architectures is ${show(names)}; only text generation models (ForCausalLM) are supported.`,
    );
  }
  return family;
}

/** @throws RequestError for another activation than the one of the family */
function checkActivation(config: Json, { isGpt, isGemma, queryScalar }: Family): void {
  const [known, ...others] = isGpt || isGemma ? ['gelu_pytorch_tanh', 'gelu_new'] : ['silu', 'swish'];
  const field = queryScalar === undefined ? 'hidden_act' : 'hidden_activation';
  // The first files of Gemma say gelu, but mean the approximation.
  if (isGemma && field === 'hidden_act') others.push('gelu');
  const activation = config[field] ?? known;
  if (![known, ...others].includes(activation as string))
    throw unsupported(`${FILE}: ${field} is ${show(activation)}; only ${known} is supported.`);
}

/** @throws RequestError for a model whose tokens see those after them */
function checkDirection(config: Json, { isGemma }: Family, whole: Json): void {
  const wanted = 'only models that read from left to right are supported';
  if (isGemma && flag(config, 'use_bidirectional_attention', false))
    throw unsupported(`${FILE}: use_bidirectional_attention is true; ${wanted}.`);
  // It sees its whole prompt at once.
  if (whole.model_type === 'paligemma') throw unsupported(`${FILE}: model_type is "paligemma"; ${wanted}.`);
  const { is_causal: isCausal = true } = config;
  if (isCausal !== true) throw unsupported(`${FILE}: is_causal is ${show(isCausal)}; ${wanted}.`);
}

function softcapsOf(config: Json, { softcaps }: Family): ModelConfig['softcaps'] {
  const of = (key: string, usual: number | null | undefined): number | null => {
    const value = config[key] === undefined ? usual : config[key];
    return usual === undefined || value === null ? null : number({ [key]: value }, key, { least: 1e-3, most: 1e6 });
  };
  return {
    scores: of('attn_logit_softcapping', softcaps?.scores),
    logits: of('final_logit_softcapping', softcaps?.logits),
  };
}

function windowOf(
  config: Json,
  family: Family,
  numLayers: number,
  contextTokens: number,
  { rope, local = null }: { rope: Rope; local?: Rope | null },
): ModelConfig['sliding'] {
  const window = slidingWindow(config, family, numLayers, rope.unrotated ?? []);
  return window && (local || window.tokens < contextTokens) ? { ...window, rope: local } : null;
}

function biasOf(config: Json, { qkvBias }: Family): boolean {
  return typeof qkvBias === 'string' && flag(config, qkvBias, qkvBias === 'use_bias');
}

/** Without factors only the size of a head counts. */
function factorsOf(config: Json, architecture: Architecture, headSize: number, hiddenSize: number): Factors {
  const { isGemma, queryScalar }: Family = FAMILIES[architecture];
  if (isGemma) {
    const key = 'query_pre_attn_scalar';
    const scalar =
      queryScalar === undefined ? headSize : number(config, key, { least: 1e-6, most: 1e6, fallback: queryScalar });
    return { embedding: Math.sqrt(hiddenSize), scores: 1 / Math.sqrt(scalar), residual: 1, logits: 1 };
  }
  if (architecture !== 'granite') return { embedding: 1, scores: 1 / Math.sqrt(headSize), residual: 1, logits: 1 };
  const factor = (key: string): number => number(config, key, { least: 1e-6, most: 1e6, fallback: 1 });
  return {
    embedding: factor('embedding_multiplier'),
    scores: factor('attention_multiplier'),
    residual: factor('residual_multiplier'),
    logits: 1 / factor('logits_scaling'),
  };
}

/** Sizes of the heads: of queries, and of keys and values. */
function headsOf(
  config: Json,
  architecture: Architecture,
  hiddenSize: number,
): Pick<ModelConfig, 'numHeads' | 'kvHeads' | 'headSize'> {
  const family = FAMILIES[architecture];
  const numHeads = count(config, 'num_attention_heads', MAX_HEADS, family.sizes?.num_attention_heads);
  // A missing key and null differ. Null means as many as query heads.
  const isMissing = config.num_key_value_heads === undefined;
  const kvHeads = count(config, 'num_key_value_heads', MAX_HEADS, isMissing ? (family.kvHeads ?? numHeads) : numHeads);
  if (numHeads % kvHeads !== 0)
    throw invalid(
      `${FILE}: num_key_value_heads is ${kvHeads}${isMissing ? ` (the default of ${architecture})` : ''}; ` +
        `num_attention_heads (${numHeads}) must be a multiple of it.`,
    );
  if (family.headSize === undefined && (config.head_dim ?? null) === null && hiddenSize % numHeads !== 0)
    throw invalid(
      `${FILE}: hidden_size (${hiddenSize}) must be a multiple of num_attention_heads (${numHeads}) when head_dim is missing.`,
    );
  const headSize = count(config, 'head_dim', MAX_HEAD_SIZE, family.headSize ?? hiddenSize / numHeads);
  if (headSize % 2 !== 0) throw unsupported(`${FILE}: head_dim is ${headSize}; only even head sizes are supported.`);
  return { numHeads, kvHeads, headSize };
}

/** @throws RequestError with the file, the field and what is supported, in one sentence */
export function parseConfig(whole: Json, generation: Json | null = null): ModelConfig {
  const isText = isObject(whole.text_config) && !isKnown(whole.model_type);
  const config = isText ? textConfig(whole, whole.text_config as Json) : whole;
  const architecture = architectureOf(config);
  const family: Family = FAMILIES[architecture];
  const quantisation = quantisationOf(config);

  const size = (key: string, most: number): number => count(config, key, most, family.sizes?.[key]);
  const hiddenSize = size('hidden_size', MAX_HIDDEN);
  const ffnSize = size('intermediate_size', MAX_FFN);
  const numLayers = size('num_hidden_layers', MAX_LAYERS);
  const vocabSize = size('vocab_size', MAX_TOKENS);
  const heads = headsOf(config, architecture, hiddenSize);
  const context = count(config, 'max_position_embeddings', MAX_POSITIONS, family.context);
  const parsed = (family.localTheta === undefined ? parseRope : parseRopes)(config, family, heads.headSize, context);
  const contextTokens = Math.min(MAX_CONTEXT, parsed.positions ?? context, context);
  const unrotated = family.noRopeLayers ? layersWithoutRope(config, numLayers) : [];
  const rope = unrotated.length > 0 ? { ...parsed.rope, unrotated } : parsed.rope;
  checkActivation(config, family);
  checkDirection(config, family, whole);

  const ids = (key: string): number[] =>
    (generation && tokenIds(generation, 'generation_config.json', key, vocabSize)) ??
    tokenIds(config, FILE, key, vocabSize) ??
    [];
  const attentionBias = biasOf(config, family);
  return {
    architecture,
    numLayers,
    hiddenSize,
    ffnSize,
    ...heads,
    vocabSize,
    contextTokens,
    rmsEps: number(config, family.isGpt ? 'norm_epsilon' : 'rms_norm_eps', {
      least: 1e-20,
      most: 1,
      fallback: family.normEps,
    }),
    rope,
    isText,
    tied: flag(config, 'tie_word_embeddings', family.tied),
    qkvBias: family.qkvBias === true || attentionBias,
    outputBias: family.outputBias === true && attentionBias,
    ffnBias: family.isGpt ? attentionBias : family.mlpBias === true && flag(config, 'mlp_bias', false),
    isGpt: family.isGpt === true,
    experts: expertsOf(config, family, numLayers),
    gate: family.isGemma ? 'gelu' : 'silu',
    normOffset: family.isGemma ? 1 : 0,
    norms: family.norms ?? 'before',
    qkNorm: family.qkNorm ?? null,
    sliding: windowOf(config, family, numLayers, contextTokens, { ...parsed, rope }),
    // Models of text and images have no limit of logits, whatever their text part says.
    softcaps: { ...softcapsOf(config, family), ...(isText ? { logits: null } : {}) },
    factors: factorsOf(config, architecture, heads.headSize, hiddenSize),
    quantisation,
    eosIds: ids('eos_token_id'),
    bosId: ids('bos_token_id')[0] ?? null,
  };
}
