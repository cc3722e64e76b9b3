/** What the families differ in: windows, rope, text parts. */
import { expect, test } from 'vitest';
import { RequestError } from '../../../../engine/protocol/errors.ts';
import { parseConfig } from '../../../../engine/model/load/hfConfig.ts';
import { planWeights } from '../../../../engine/model/load/weightPlan.ts';

const base = {
  model_type: 'qwen2',
  architectures: ['Qwen2ForCausalLM'],
  hidden_size: 96,
  intermediate_size: 192,
  num_hidden_layers: 2,
  num_attention_heads: 6,
  num_key_value_heads: 2,
  vocab_size: 448,
  max_position_embeddings: 512,
  tie_word_embeddings: true,
};

function refusal(run: () => unknown): RequestError {
  try {
    run();
  } catch (error) {
    if (error instanceof RequestError) return error;
    throw error;
  }
  throw new Error('not refused');
}

test('layers have the sliding window that the fields name, if it is shorter than the context', () => {
  const windowOf = (change: Record<string, unknown>) => parseConfig({ ...base, ...change }).sliding;
  const slides = { use_sliding_window: true, sliding_window: 32, max_window_layers: 0 };
  const tokens = { tokens: 32, rope: null };
  const layer_types = ['full_attention', 'sliding_attention'];
  expect(windowOf({ ...slides, sliding_window: 600 })).toBeNull();
  expect(windowOf(slides)).toEqual({ ...tokens, layers: [0, 1] });
  expect(windowOf({ ...slides, max_window_layers: 1 })).toEqual({ ...tokens, layers: [1] });
  expect(windowOf({ ...slides, max_window_layers: 2 })).toBeNull();
  expect(windowOf({ ...slides, sliding_window: null })).toBeNull();
  expect(windowOf({ ...slides, max_window_layers: 2, layer_types })).toEqual({ ...tokens, layers: [1] });
  expect(windowOf({ ...slides, model_type: 'llama' })).toBeNull();
  expect(windowOf({ ...slides, model_type: 'gemma2', num_key_value_heads: 2 })).toEqual({ ...tokens, layers: [0] });
  expect(parseConfig({ ...base, ...slides }).contextTokens).toBe(512);
});

test('in Mistral a missing window has 4,096 tokens, and null is none', () => {
  const mistral = { ...base, model_type: 'mistral', num_key_value_heads: 2, max_position_embeddings: 32_768 };
  expect(parseConfig(mistral).sliding).toEqual({ tokens: 4096, layers: [0, 1], rope: null });
  expect(parseConfig({ ...mistral, sliding_window: null }).sliding).toBeNull();
  expect(parseConfig({ ...mistral, sliding_window: 8192 }).sliding?.tokens).toBe(8192);
});

test('in Mistral layer_types name the layers with a window, but not in the text part of another model', () => {
  const layer_types = ['full_attention', 'sliding_attention'];
  const mistral = { ...base, model_type: 'mistral', num_key_value_heads: 2, sliding_window: 32, layer_types };
  expect(parseConfig(mistral).sliding?.layers).toEqual([1]);
  expect(parseConfig({ ...mistral, layer_types: ['full_attention', 'full_attention'] }).sliding).toBeNull();
  expect(parseConfig({ model_type: 'mistral3', text_config: mistral }).sliding?.layers).toEqual([0, 1]);
  expect(refusal(() => parseConfig({ ...mistral, sliding_window: null })).message).toContain('sliding_window is null');
});

test.each([false, null, 1])('a model whose is_causal is %j is refused by name', (is_causal) => {
  expect(refusal(() => parseConfig({ ...base, is_causal })).message).toContain(`is_causal is ${is_causal}`);
  expect(parseConfig({ ...base, is_causal: true }).contextTokens).toBe(512);
});

const gemma = {
  model_type: 'gemma3_text',
  hidden_size: 96,
  intermediate_size: 192,
  num_hidden_layers: 7,
  num_attention_heads: 6,
  num_key_value_heads: 2,
  head_dim: 16,
};

test('what config.json of Gemma 3 leaves out is as in transformers', () => {
  expect(parseConfig({ model_type: 'gemma3_text' })).toMatchObject({
    numLayers: 26,
    hiddenSize: 2304,
    ffnSize: 9216,
    numHeads: 8,
    kvHeads: 4,
    headSize: 256,
    vocabSize: 262_208,
    contextTokens: 65_536,
    rope: { type: 'default', theta: 1e6 },
    sliding: { tokens: 4096, rope: { type: 'default', theta: 10_000 } },
    softcaps: { scores: null, logits: null },
    factors: { embedding: 48, scores: 1 / 16 },
    tied: true,
  });
  expect(parseConfig(gemma).sliding?.layers).toEqual([0, 1, 2, 3, 4, 6]);
  // A window that is longer than the context still has its own rope.
  const long = { ...gemma, sliding_window: 1e6, max_position_embeddings: 64 };
  expect(parseConfig(long).sliding).toMatchObject({ tokens: 1e6, rope: { theta: 10_000 } });
  expect(parseConfig({ ...base, model_type: 'gemma2', num_key_value_heads: 2 }).softcaps).toEqual({
    scores: 50,
    logits: 30,
  });
});

test('the first Gemma means another GELU than it says, and divides scores by the root of the head size', () => {
  const first = { ...gemma, model_type: 'gemma', vocab_size: 96, hidden_act: 'gelu' };
  expect(parseConfig(first)).toMatchObject({
    gate: 'gelu',
    norms: 'before',
    factors: { scores: 1 / 4 },
    sliding: null,
  });
  expect(refusal(() => parseConfig({ ...first, hidden_act: 'silu' })).message).toContain('hidden_act is "silu"');
});

test.each<[string, Record<string, unknown>]>([
  ['hidden_activation', { hidden_activation: 'gelu' }],
  ['use_bidirectional_attention', { use_bidirectional_attention: true }],
  ['sliding_window is null', { sliding_window: null }],
  ['layer_types', { layer_types: ['chunked_attention', ...new Array(6).fill('full_attention')] }],
  ['query_pre_attn_scalar', { query_pre_attn_scalar: 0 }],
  ['final_logit_softcapping', { final_logit_softcapping: -1 }],
  ['sliding_window_pattern', { sliding_window_pattern: 0 }],
  ['rope_parameters has "rope_type"', { rope_parameters: { rope_type: 'default' } }],
  ['rope_parameters.sliding_attention', { rope_parameters: { sliding_attention: 1 } }],
  ['rope_local_base_freq', { rope_local_base_freq: 0 }],
  ['rope_scaling', { rope_scaling: 'linear' }],
  ['rope_scaling.factor', { rope_scaling: { rope_type: 'linear', factor: -1 } }],
  ['rope_scaling.type', { rope_scaling: { type: 'linear', factor: 2 } }],
  ['rope_type', { rope_scaling: { rope_type: 'other', factor: 2 } }],
])('Gemma 3 with another %s is refused by name', (field, change) => {
  expect(refusal(() => parseConfig({ ...gemma, ...change })).message).toContain(field);
});

test('of a model for text and images the text part is read', () => {
  const { architectures: _, tie_word_embeddings: __, ...text } = base;
  const whole = { model_type: 'mistral3', architectures: ['Mistral3ForConditionalGeneration'], text_config: text };
  expect(parseConfig(whole)).toMatchObject({ architecture: 'qwen2', isText: true, hiddenSize: 96 });
  expect(parseConfig({ ...whole, tie_word_embeddings: true, eos_token_id: 7 })).toMatchObject({
    tied: true,
    eosIds: [7],
  });
  expect(refusal(() => parseConfig({ ...whole, quantization_config: { quant_method: 'fp8' } })).message).toContain(
    'quantization_config',
  );
  expect(
    refusal(() => parseConfig({ ...whole, text_config: { ...text, model_type: 'gemma3n_text' } })).message,
  ).toMatch(/^config\.json: model_type is "gemma3n_text"/);
  expect(refusal(() => parseConfig({ ...whole, model_type: 'paligemma' })).message).toContain('"paligemma"');
  expect(parseConfig(base).isText).toBe(false);
});

test.each([
  [undefined, undefined, true],
  [undefined, false, true],
  [null, true, true],
  [false, true, true],
  [false, false, false],
  [false, undefined, false],
  [true, false, true],
])('tie_word_embeddings of a whole model %j, of its text part %j: tied is %j', (whole, part, tied) => {
  const text_config = { ...base, tie_word_embeddings: part };
  const config = {
    model_type: 'mistral3',
    text_config,
    ...(whole === undefined ? {} : { tie_word_embeddings: whole }),
  };
  expect(parseConfig(config).tied).toBe(tied);
});

test.each<[string, Record<string, unknown>, RegExp]>([
  ['beta_fast', { rope_type: 'yarn', beta_fast: 1e-320 }, /beta_fast is 1e-320; it must be a number from 0\.001/],
  ['beta_slow', { rope_type: 'yarn', beta_slow: 1e-9 }, /beta_slow is 1e-9; it must be a number from 0\.001/],
  [
    'original length with a fraction',
    { rope_type: 'yarn', original_max_position_embeddings: 64.5 },
    /rope_scaling\.original_max_position_embeddings is 64\.5; it must be a positive integer/,
  ],
  [
    'original length of 1',
    { rope_type: 'longrope', original_max_position_embeddings: 1, short_factor: Array(8).fill(1) },
    /original_max_position_embeddings is 1; longrope needs at least 2/,
  ],
  ...[['1', 1, 1, 1, 1, 1, 1, 1], Array(8).fill(true), Array(8).fill([1])].map(
    (short_factor): [string, Record<string, unknown>, RegExp] => [
      `factors ${JSON.stringify(short_factor)}`,
      { rope_type: 'longrope', original_max_position_embeddings: 64, short_factor },
      /short_factor must be a list of numbers/,
    ],
  ),
])('rope: %s: refused by name', (_, scaling, message) => {
  expect(refusal(() => parseConfig({ ...base, rope_scaling: { factor: 4, ...scaling } })).message).toMatch(message);
});

test('rope: a beta of 0 or null is the default, and a top-level original length is a whole number', () => {
  const yarn = { rope_type: 'yarn', factor: 4, beta_fast: 0, beta_slow: null };
  expect(parseConfig({ ...base, rope_scaling: yarn }).rope).toMatchObject({ betaFast: 32, betaSlow: 1 });
  expect(parseConfig({ ...base, rope_scaling: { ...yarn, beta_slow: 1e-3 } }).rope).toMatchObject({ betaSlow: 1e-3 });
  const half = { ...base, original_max_position_embeddings: 0.5, rope_scaling: yarn };
  expect(refusal(() => parseConfig(half)).message).toMatch(/^config\.json: original_max_position_embeddings is 0\.5/);
});

test('a partial_rotary_factor that is no share is refused by its name', () => {
  const phi = { ...base, model_type: 'phi3', partial_rotary_factor: 2 };
  expect(refusal(() => parseConfig(phi)).message).toMatch(/^config\.json: partial_rotary_factor is 2; it must be/);
});

test('SmolLM3 does not rotate every fourth layer, or those that the list names', () => {
  const smollm = { ...base, model_type: 'smollm3', num_hidden_layers: 9, num_key_value_heads: 2 };
  const layersOf = (change: Record<string, unknown>): unknown => parseConfig({ ...smollm, ...change }).rope.unrotated;
  expect(layersOf({})).toEqual([3, 7]);
  expect(layersOf({ no_rope_layer_interval: 3 })).toEqual([2, 5, 8]);
  expect(layersOf({ no_rope_layers: [1, 0, 1, 1, 1, 1, 1, 1, 0] })).toEqual([1, 8]);
  expect(layersOf({ no_rope_layers: Array(9).fill(1) })).toBeUndefined();
  for (const no_rope_layers of [[1, 0], 4, Array(9).fill(2)])
    expect(refusal(() => layersOf({ no_rope_layers })).message).toMatch(/^config\.json: no_rope_layers must be/);
  expect(parseConfig({ ...smollm, model_type: 'llama' }).rope.unrotated).toBeUndefined();
});

test('the factor of the rope is folded into the queries of rotated layers only', () => {
  const config = parseConfig({
    ...base,
    model_type: 'smollm3',
    num_hidden_layers: 4,
    rope_scaling: { rope_type: 'yarn', factor: 4, original_max_position_embeddings: 128 },
  });
  const { linears } = planWeights(config, 'float32', true, 'rows');
  const factorOf = (layer: number): unknown => linears.get(`l${layer}.qkv`)!.sources[0]!.factors;
  const attention = 0.1 * Math.log(4) + 1;
  for (const layer of [0, 1, 2]) expect(factorOf(layer)).toEqual([(1 / Math.sqrt(16)) * attention ** 2]);
  expect(factorOf(3)).toEqual([1 / Math.sqrt(16)]);
});

test('StarCoder2 has biases unless use_bias is false, and a GELU', () => {
  const starcoder = { ...base, model_type: 'starcoder2', num_key_value_heads: undefined, norm_epsilon: 1e-3 };
  expect(parseConfig(starcoder)).toMatchObject({
    isGpt: true,
    kvHeads: 2,
    rmsEps: 1e-3,
    qkvBias: true,
    outputBias: true,
    ffnBias: true,
  });
  expect(parseConfig({ ...starcoder, use_bias: false })).toMatchObject({
    qkvBias: false,
    outputBias: false,
    ffnBias: false,
  });
  expect(parseConfig({ ...starcoder, hidden_act: 'gelu_pytorch_tanh', sliding_window: 40 }).sliding?.tokens).toBe(40);
  expect(refusal(() => parseConfig({ ...starcoder, hidden_act: 'silu' })).message).toMatch(/^config\.json: hidden_act/);
});

test('the context ends where rope or the size of scores change', () => {
  const rope = { factor: 4, original_max_position_embeddings: 64, short_factor: [1, 1, 1, 1, 1, 1, 1, 1] };
  const contextOf = (type: string, change = {}): number =>
    parseConfig({ ...base, ...change, rope_parameters: { ...rope, rope_type: type, llama_4_scaling_beta: 0.1 } })
      .contextTokens;
  expect(contextOf('longrope')).toBe(64);
  expect(contextOf('yarn')).toBe(512);
  expect(contextOf('yarn', { model_type: 'ministral3', head_dim: 16 })).toBe(64);
});
