/**
 * Writes the metadata of a GGUF file as a config.json, and names its tensors as Hugging Face does. Refuses what
 * config.json cannot say. Does not check the result (see hfConfig.ts).
 */
import type { Json } from '../configFields.ts';
import { invalid, unsupported } from '../modelFolder.ts';
import type { TensorInfo } from '../safetensors.ts';
import { GGUF_FAMILIES, type GgufFamily, type GgufShape, partsOf } from './ggufFamilies.ts';
import type { GgufFields } from './ggufFields.ts';

const FAMILIES = Object.keys(GGUF_FAMILIES);
type Tensors = ReadonlyMap<string, TensorInfo>;

/** Factors of the wave lengths of the rope: made from the parameters of Llama 3, and of longrope. */
const ROPE_FACTORS = 'rope_freqs.weight';
const SHORT_FACTORS = 'rope_factors_short.weight';
export const FACTOR_TENSORS: ReadonlySet<string> = new Set([ROPE_FACTORS, SHORT_FACTORS, 'rope_factors_long.weight']);
/** The values of these tensors, by name. */
export type RopeFactors = ReadonlyMap<string, Float32Array>;
/** Old files have it. It follows from the other metadata. */
const IGNORED = /^blk\.\d+\.attn_rot_embd\.weight$/;
const NAMES: Readonly<Record<string, string>> = {
  'token_embd.weight': 'model.embed_tokens.weight',
  'output_norm.weight': 'model.norm.weight',
  'output_norm.bias': 'model.norm.bias',
  'output.weight': 'lm_head.weight',
};

/** @throws RequestError for another kind of model, or for values of the wrong type */
export function ggufConfig(fields: GgufFields, tensors: Tensors, ropeFactors: RopeFactors): Json {
  const family = familyOf(fields);
  const key = (name: string): string => `${family}.${name}`;
  const heads = fields.count(key('attention.head_count'));
  const hidden = fields.count(key('embedding_length'));
  const headSize = fields.count(key('attention.key_length'), { fallback: Math.ceil(hidden / heads) });
  const known = GGUF_FAMILIES[family]!;
  for (const name of ['attention.value_length', ...(known.rotatesPart ? [] : ['rope.dimension_count'])])
    if (fields.count(key(name), { fallback: headSize }) !== headSize)
      throw unsupported(
        `${fields.file}: ${key(name)} differs from the head size (${headSize}), which is not supported.`,
      );
  if (fields.flag(key('attention.causal'), true) !== true)
    throw unsupported(
      `${fields.file}: ${key('attention.causal')} is false, so the model writes no text: choose another file.`,
    );
  const experts = fields.count(key('expert_count'), { least: 0, fallback: 0 });
  if (experts > 0 && known.hasExperts !== true)
    throw unsupported(
      `${fields.file}: the model has ${experts} experts (${key('expert_count')}), which is not supported in a ${family} model.`,
    );
  const embedding = tensors.get('token_embd.weight');
  if (embedding === undefined)
    throw invalid(`${fields.file} has no tensor "token_embd.weight"; it holds no whole model.`);
  const context = fields.count(key('context_length'));
  const numLayers = fields.count(key('block_count'));
  const shape: GgufShape = { fields, tensors, key, numLayers, hiddenSize: hidden, numHeads: heads, headSize };
  const own = known.fields?.(shape) ?? {};
  const rotated = fields.count(key('rope.dimension_count'), { fallback: headSize });
  return {
    model_type: known.type ?? family,
    num_hidden_layers: numLayers,
    hidden_size: hidden,
    intermediate_size: fields.count(key('feed_forward_length')),
    num_attention_heads: heads,
    num_key_value_heads: fields.count(key('attention.head_count_kv'), { fallback: heads }),
    head_dim: headSize,
    vocab_size: embedding.shape[0],
    max_position_embeddings: Math.min(context, exactTokens(shape, own) ?? context),
    ...('norm_epsilon' in own ? {} : { rms_norm_eps: fields.number(key('attention.layer_norm_rms_epsilon')) }),
    rope_theta: fields.number(key('rope.freq_base'), 10_000),
    rope_scaling: ropeScaling(shape, known, ropeFactors),
    ...(rotated === headSize ? {} : { partial_rotary_factor: rotated / headSize }),
    tie_word_embeddings: !tensors.has('output.weight'),
    ...own,
  };
}

/** Tokens up to which a window makes no difference, where the family does not read it, or the file does not say it. */
function exactTokens({ fields, key }: GgufShape, own: Json): number | null {
  const window = fields.count(key('attention.sliding_window'), { least: 0, fallback: 0 });
  if (!('sliding_window' in own)) return window || null;
  // All models of StarCoder2 have this window, but llama.cpp does not write it.
  return key('') === 'starcoder2.' && window === 0 ? 4096 : null;
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
function ropeScaling(shape: GgufShape, { hasLongrope, hasNoYarn }: GgufFamily, tensors: RopeFactors): Json | null {
  const { fields, key } = shape;
  const type = fields.text(key('rope.scaling.type')) ?? 'linear';
  const short = hasLongrope ? tensors.get(SHORT_FACTORS) : undefined;
  if (short) return longrope({ fields, key }, short);
  const isYarn = type === 'yarn' && !hasLongrope && !hasNoYarn;
  if (type !== 'none' && type !== 'linear' && !isYarn)
    throw unsupported(
      `${fields.file}: ${key('rope.scaling.type')} is ${JSON.stringify(type.slice(0, 40))}; ` +
        `the supported types are none${hasLongrope || hasNoYarn ? '' : ', yarn'} and linear: choose another file.`,
    );
  if (isYarn && !tensors.has(ROPE_FACTORS)) return yarn(shape);
  const size = fields.number(key('rope.scaling.attn_factor'), 1);
  if (size !== 1)
    throw unsupported(
      `${fields.file}: ${key('rope.scaling.attn_factor')} is ${size}; only 1 is supported: choose another file.`,
    );
  const given = fields.number(key('rope.scaling.factor'), fields.number(key('rope.scale_linear'), 1));
  // 0 stands for no factor.
  const factor = type === 'none' ? 1 : given || 1;
  const factors = tensors.get(ROPE_FACTORS);
  if (!factors) return factor === 1 ? null : { rope_type: 'linear', factor };
  if (factor !== 1 || isYarn)
    throw unsupported(
      `${fields.file} has both ${ROPE_FACTORS} and a rope scaling, which is not supported: choose another file.`,
    );
  return { rope_type: 'factors', factors: [...factors] };
}

/** In these families llama.cpp always uses the usual numbers of yarn, whatever the file says. */
function yarn({ fields, key }: GgufShape): Json {
  const usual = { ext_factor: [-1, 1], attn_factor: [1], beta_fast: [32], beta_slow: [1], log_multiplier: [0] };
  for (const [name, values] of Object.entries(usual)) {
    const field = key(`rope.scaling.yarn_${name}`);
    const value = fields.number(field, values[0]);
    if (!values.includes(value))
      throw unsupported(
        `${fields.file}: ${field} is ${value}; only ${values.join(' and ')} is supported: choose another file.`,
      );
  }
  const factor = fields.number(key('rope.scaling.factor'), 1) || 1;
  const size = fields.number(key('rope.scaling.attn_factor'), 1);
  return {
    rope_type: 'yarn',
    factor,
    original_max_position_embeddings:
      fields.count(key('rope.scaling.original_context_length'), { least: 0, fallback: 0 }) ||
      fields.count(key('context_length')),
    attention_factor: size * (factor <= 1 ? 1 : 0.1 * Math.log(factor) + 1),
  };
}

/** llama.cpp uses the factors for short contexts up to the original length, where the context ends here. */
function longrope({ fields, key }: Pick<GgufShape, 'fields' | 'key'>, short: Float32Array): Json {
  return {
    rope_type: 'longrope',
    short_factor: [...short],
    attention_factor: fields.number(key('rope.scaling.attn_factor'), 1),
  };
}

/** The name of Hugging Face for a tensor. Null for one that is not read as a weight. */
export function tensorName(file: string, family: string, name: string): string | null {
  if (FACTOR_TENSORS.has(name) || IGNORED.test(name)) return null;
  const [, layer, part, kind] = /^blk\.(\d+)\.(\w+)\.(weight|bias)$/.exec(name) ?? [];
  const known = part === undefined ? NAMES[name] : partsOf(family).get(part);
  if (known === undefined)
    throw unsupported(
      `${file}: tensor ${JSON.stringify(name.slice(0, 100))} is no part of a ${family} model: choose another file.`,
    );
  return part === undefined ? known : `model.layers.${layer}.${known}.${kind}`;
}

/** The name in the file, of a tensor with a name of Hugging Face. */
export function nameInFile(family: string, tensor: string): string {
  const [, layer, part, kind] = /^model\.layers\.(\d+)\.(.+)\.(weight|bias)$/.exec(tensor) ?? [];
  const entries = part === undefined ? Object.entries(NAMES) : [...partsOf(family)];
  const whole = (part ?? tensor).replace(/^mlp\.experts\.\d+\./, 'mlp.experts.');
  const found = entries.find(([, known]) => known === whole)?.[0] ?? tensor;
  return part === undefined ? found : `blk.${layer}.${found}.${kind}`;
}

/** The rows of a head of queries and keys are interleaved in some families. */
export function isInterleaved(family: string, name: string): boolean {
  return GGUF_FAMILIES[family]?.isInterleaved === true && /^blk\.\d+\.attn_[qk]\.(?:weight|bias)$/.test(name);
}

/** What is added to the values of a tensor, to get those of Hugging Face. */
export function shiftOf(family: string, name: string): number {
  return /norm\.weight$/.test(name) ? (GGUF_FAMILIES[family]?.normShift ?? 0) : 0;
}
