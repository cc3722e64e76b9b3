/** config.json: every spelling of the fixtures, and what is refused. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RequestError } from '../../../../engine/protocol/errors.ts';
import { parseConfig } from '../../../../engine/model/load/hfConfig.ts';
import { inverseFrequencies } from '../../../../engine/model/runtime/rope.ts';
import { INT8_CONFIG } from '../../../support/model/randomModel.ts';

interface Case {
  what: string;
  config: Record<string, unknown>;
  resolved: {
    inv_freq: number[];
    attention_scaling: number;
    sliding_window: number | null;
    head_dim: number;
    num_key_value_heads: number;
    tie_word_embeddings: boolean;
    rms_norm_eps: number;
    q_proj_has_bias: boolean;
    o_proj_has_bias: boolean;
    rope_parameters: { rope_type: string; rope_theta: number };
  };
}
const { cases } = JSON.parse(
  readFileSync(path.join(import.meta.dirname, '../../../fixtures/config_cases/config_cases.json'), 'utf8'),
) as { cases: Case[] };

/** Cases that cannot run here, and the field that the refusal names. (32 default KV heads do not divide 6 query heads.) */
const REFUSED: Record<string, string> = {
  'num_key_value_heads absent qwen2': 'num_key_value_heads',
  'num_key_value_heads absent qwen3': 'num_key_value_heads',
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

test('the fixtures hold 36 cases', () => expect(cases.length).toBe(36));

describe.each(cases.map((c, i) => ({ i, ...c })))('case $i: $what', ({ what, config, resolved }) => {
  const field = REFUSED[`${what} ${String(config.model_type)}`];
  if (field) {
    test('is refused by name', () => {
      const { message, code } = refusal(() => parseConfig(config));
      expect(['modelUnsupported', 'modelInvalid']).toContain(code);
      expect(message).toMatch(/^config\.json: /);
      expect(message).toContain(field);
    });
    return;
  }
  test('is read as transformers reads it', () => {
    const parsed = parseConfig(config);
    expect(parsed.headSize).toBe(resolved.head_dim);
    expect(parsed.kvHeads).toBe(resolved.num_key_value_heads);
    expect(parsed.tied).toBe(resolved.tie_word_embeddings);
    expect(parsed.rmsEps).toBe(resolved.rms_norm_eps);
    expect(parsed.qkvBias).toBe(resolved.q_proj_has_bias);
    expect(parsed.outputBias).toBe(resolved.o_proj_has_bias);
    expect(parsed.rope.type).toBe(resolved.rope_parameters.rope_type);
    expect(parsed.rope.theta).toBe(resolved.rope_parameters.rope_theta);
    expect(parsed.rope.attention ?? 1).toBeCloseTo(resolved.attention_scaling, 12);
    const context = Math.min(65_536, (config.max_position_embeddings as number | undefined) ?? 65_536);
    const window = resolved.sliding_window ?? context;
    expect(parsed.sliding?.tokens ?? context).toBe(Math.min(window, context));
    const frequencies = inverseFrequencies(parsed.rope, parsed.headSize);
    expect(frequencies.length).toBe(resolved.inv_freq.length);
    resolved.inv_freq.forEach((f, i) => {
      expect(Math.abs(frequencies[i]! / f - 1)).toBeLessThan(1e-6);
    });
  });
});

const base = cases[0]!.config;
const weights8 = INT8_CONFIG.config_groups.group_0.weights;
const withWeights = (change: Record<string, unknown>) => ({
  ...INT8_CONFIG,
  config_groups: { g: { weights: { ...weights8, ...change } } },
});
const llama3 = {
  rope_type: 'llama3',
  factor: 8,
  low_freq_factor: 1,
  high_freq_factor: 4,
  original_max_position_embeddings: 64,
};

test.each<[string, Record<string, unknown>]>([
  ['model_type', { model_type: 'gpt_oss' }],
  ['they need a server', { model_type: 'qwen3_next' }],
  ['rope_parameters is missing', { model_type: 'ministral3' }],
  ['embedding_multiplier', { model_type: 'granite', embedding_multiplier: 'x' }],
  ['model_type', { model_type: undefined }],
  ['hidden_size', { hidden_size: undefined }],
  ['hidden_size', { hidden_size: '96' }],
  ['hidden_size', { hidden_size: [[[]]] }],
  ['intermediate_size', { intermediate_size: 0 }],
  ['num_hidden_layers', { num_hidden_layers: 1.5 }],
  ['num_attention_heads', { num_attention_heads: -1 }],
  ['vocab_size', { vocab_size: null }],
  ['num_key_value_heads', { num_key_value_heads: 4 }],
  ['head_dim', { head_dim: 15 }],
  ['hidden_act', { hidden_act: 'gelu' }],
  ['rms_norm_eps', { rms_norm_eps: 0 }],
  ['tie_word_embeddings', { tie_word_embeddings: 'yes' }],
  ['rope_theta', { rope_theta: -1 }],
  ['rope_scaling', { rope_scaling: 4 }],
  ['rope_scaling.factor', { rope_scaling: { type: 'linear', factor: 0 } }],
  ['rope_scaling.factor', { rope_scaling: { type: 'linear' } }],
  ['rope_scaling.low_freq_factor', { rope_scaling: { ...llama3, low_freq_factor: undefined } }],
  ['rope_scaling.high_freq_factor', { rope_scaling: { ...llama3, high_freq_factor: 1 } }],
  ['rope_parameters.rope_type', { rope_parameters: { rope_type: 'proportional' } }],
  ['rope_parameters.short_factor', { rope_parameters: { rope_type: 'longrope', factor: 2 } }],
  ['rope_scaling.factor', { rope_scaling: { type: 'yarn' } }],
  ['rope_scaling.truncate', { rope_scaling: { type: 'yarn', factor: 2, truncate: 1 } }],
  ['rope_scaling.attention_factor', { rope_scaling: { type: 'yarn', factor: 2, attention_factor: 'x' } }],
  ['rope_parameters.factor', { rope_parameters: { rope_type: 'dynamic' } }],
  ['rope_parameters', { rope_parameters: { full_attention: { rope_theta: 1 } } }],
  ['partial_rotary_factor', { partial_rotary_factor: 0.5 }],
  ['layer_types', { layer_types: ['full_attention', 'linear_attention'] }],
  ['layer_types', { layer_types: ['full_attention'] }],
  ['layer_types', { layer_types: ['full_attention', 'sliding_attention'] }],
  ['architectures', { architectures: ['Qwen2ForSequenceClassification'] }],
  ['quantization_config', { quantization_config: { quant_method: 'gptq' } }],
  ['quantization_config.quant_method is missing', { quantization_config: {} }],
  ['quantization_config.quant_method is "fp8"', { quantization_config: { ...INT8_CONFIG, quant_method: 'fp8' } }],
  [
    'quantization_config.format is "float-quantized"',
    { quantization_config: { ...INT8_CONFIG, format: 'float-quantized' } },
  ],
  ['quantization_config.config_groups is missing', { quantization_config: { ...INT8_CONFIG, config_groups: {} } }],
  [
    'quantization_config.config_groups["g"].weights is null',
    { quantization_config: { ...INT8_CONFIG, config_groups: { g: { weights: null } } } },
  ],
  [
    'quantization_config.config_groups["h"].format is "float-quantized"',
    {
      quantization_config: {
        ...INT8_CONFIG,
        config_groups: { ...INT8_CONFIG.config_groups, h: { format: 'float-quantized', weights: weights8 } },
      },
    },
  ],
  ['weights.num_bits is 4', { quantization_config: withWeights({ num_bits: 4 }) }],
  ['weights.type is "float"', { quantization_config: withWeights({ type: 'float' }) }],
  ['weights.symmetric is false', { quantization_config: withWeights({ symmetric: false }) }],
  ['weights.dynamic is true', { quantization_config: withWeights({ dynamic: true }) }],
  ['weights.strategy is "group"', { quantization_config: withWeights({ strategy: 'group', group_size: 128 }) }],
  ['weights.strategy is missing', { quantization_config: withWeights({ strategy: undefined }) }],
  [
    'quantization_config.sparsity_config.format is "sparse-24-bitmask"',
    { quantization_config: { ...INT8_CONFIG, sparsity_config: { format: 'sparse-24-bitmask' } } },
  ],
  [
    'quantization_config.transform_config is an object',
    { quantization_config: { ...INT8_CONFIG, transform_config: { config_groups: {} } } },
  ],
  ['eos_token_id', { eos_token_id: 'x' }],
])('%s is named when it is %j', (field, change) => {
  const { message } = refusal(() => parseConfig({ ...base, ...change }));
  expect(message).toMatch(/^config\.json: /);
  expect(message).toContain(field);
  expect(message.match(/\. |\.$/g)?.length).toBe(1);
});

test('8-bit weights with one scale per row are accepted, whatever the activation format', () => {
  const activations = { num_bits: 8, type: 'int', symmetric: false, strategy: 'token', dynamic: true };
  const { weights: _, ...group } = INT8_CONFIG.config_groups.group_0;
  for (const quantization_config of [
    INT8_CONFIG,
    withWeights({ type: undefined, num_bits: undefined }),
    { ...INT8_CONFIG, format: 'pack-quantized' },
    {
      ...INT8_CONFIG,
      sparsity_config: {},
      transform_config: {},
      config_groups: { a: { ...group, weights: weights8, input_activations: activations } },
    },
  ]) {
    expect(parseConfig({ ...base, quantization_config }).quantisation).toEqual({ kind: 'int8' });
  }
  expect(
    [parseConfig(base), parseConfig({ ...base, quantization_config: null })].map(({ quantisation }) => quantisation),
  ).toEqual([null, null]);
});

test('property: any quantisation config is either the supported one or refused in a sentence', () => {
  const values = fc.oneof(
    fc.constantFrom('compressed-tensors', 'int-quantized', 'channel', 'int', 8, true, false, null),
    fc.jsonValue(),
  );
  const usually = <T>(value: T) =>
    fc.oneof({ weight: 5, arbitrary: fc.constant<unknown>(value) }, { weight: 1, arbitrary: values });
  const weights = fc
    .dictionary(fc.constantFrom(...Object.keys(weights8)), values, { maxKeys: 2 })
    .map((change) => ({ ...weights8, ...change }) as Record<string, unknown>);
  const group = fc.oneof(
    { weight: 9, arbitrary: fc.record({ weights, format: usually(null) }) },
    { weight: 1, arbitrary: values },
  );
  const groups = fc.dictionary(fc.string({ minLength: 1 }), group, { minKeys: 1, maxKeys: 3 }) as fc.Arbitrary<
    Record<string, { weights?: Record<string, unknown>; format?: unknown } | null>
  >;
  const configs = fc.record({
    config_groups: groups,
    format: usually('int-quantized'),
    quant_method: usually('compressed-tensors'),
  });
  let taken = 0;
  fc.assert(
    fc.property(configs, (quantization_config) => {
      try {
        parseConfig({ ...base, quantization_config });
      } catch (error) {
        expect(error).toBeInstanceOf(RequestError);
        expect((error as RequestError).code).toBe('modelUnsupported');
        expect((error as RequestError).message).toMatch(/^config\.json: quantization_config\..*\.$/);
        return;
      }
      taken++;
      expect(quantization_config).toMatchObject({ format: 'int-quantized', quant_method: 'compressed-tensors' });
      for (const group of Object.values(quantization_config.config_groups)) {
        expect(group!.format ?? 'int-quantized').toBe('int-quantized');
        const { num_bits, type, symmetric, dynamic, strategy } = group!.weights!;
        expect([num_bits ?? 8, type ?? 'int', symmetric ?? true, dynamic ?? false, strategy]).toEqual([
          8,
          'int',
          true,
          false,
          'channel',
        ]);
      }
    }),
    { numRuns: 1000 },
  );
  expect(taken).toBeGreaterThan(20);
});

test('the context is limited to what the integer sums can hold', () => {
  expect(parseConfig({ ...base, max_position_embeddings: 131_072 }).contextTokens).toBe(65_536);
});

test('end tokens come from generation_config first, as a number or a list, without unknown ids', () => {
  expect(parseConfig({ ...base, eos_token_id: 3 }, { eos_token_id: [5, 6, 9999] }).eosIds).toEqual([5, 6]);
  expect(parseConfig({ ...base, eos_token_id: 3 }, {}).eosIds).toEqual([3]);
  expect(parseConfig({ ...base, eos_token_id: null }).eosIds).toEqual([]);
  expect(refusal(() => parseConfig({ ...base, eos_token_id: [9998, 9999] })).message).toMatch(
    /^config\.json: eos_token_id is \[9998,9999\], but vocab_size is only \d+; correct it/,
  );
  expect(refusal(() => parseConfig(base, { eos_token_id: -1 })).message).toMatch(
    /^generation_config\.json: eos_token_id/,
  );
  expect(parseConfig({ ...base, bos_token_id: 9999 }).bosId).toBeNull();
});
