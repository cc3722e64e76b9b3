/** What the metadata of each family mean in words of config.json, with the defaults of llama.cpp. */
import { expect, test } from 'vitest';
import { ggufConfig, nameInFile, tensorName } from '../../../../../engine/model/load/gguf/ggufConfig.ts';
import { GgufFields } from '../../../../../engine/model/load/gguf/ggufFields.ts';
import { GGUF_FAMILIES } from '../../../../../engine/model/load/gguf/ggufFamilies.ts';
import type { MetaValue } from '../../../../../engine/model/load/gguf/ggufHeader.ts';
import { parseConfig } from '../../../../../engine/model/load/hfConfig.ts';
import type { TensorInfo } from '../../../../../engine/model/load/safetensors.ts';

const EMBEDDING = { name: 'token_embd.weight', dtype: 'F32', shape: [100, 64], start: 0, end: 25_600 } as TensorInfo;

/** `keys`: below the family, beside those that all files have. */
function configOf(family: string, keys: Record<string, MetaValue> = {}, short?: number[]) {
  const all = {
    block_count: 8,
    context_length: 8192,
    embedding_length: 64,
    feed_forward_length: 96,
    'attention.head_count': 4,
    'attention.layer_norm_rms_epsilon': 1e-6,
    'attention.layer_norm_epsilon': 1e-5,
    logit_scale: 2,
    expert_count: GGUF_FAMILIES[family]!.hasExperts ? 8 : 0,
    expert_used_count: 4,
    ...keys,
  };
  const metadata = new Map<string, MetaValue>([
    ['general.architecture', family],
    ...Object.entries(all).map(([key, value]) => [`${family}.${key}`, value] as const),
  ]);
  const factors = new Map(short ? [['rope_factors_short.weight', Float32Array.from(short)]] : []);
  return parseConfig(ggufConfig(new GgufFields('x.gguf', metadata), new Map([[EMBEDDING.name, EMBEDDING]]), factors));
}

test.each(Object.keys(GGUF_FAMILIES))(
  '%s: a file with the usual keys is read, and its tensors have one name each',
  (family) => {
    expect(configOf(family)).toMatchObject({ numLayers: 8, hiddenSize: 64, headSize: 16, vocabSize: 100 });
    const down = GGUF_FAMILIES[family]!.hasExperts ? 'ffn_down_exps' : 'ffn_down';
    for (const part of ['attn_output', down]) {
      const name = `blk.3.${part}.weight`;
      expect(nameInFile(family, tensorName('x.gguf', family, name)!)).toBe(name);
    }
  },
);

test('experts are those of all layers, and their shares add up to 1', () => {
  const layers = [0, 1, 2, 3, 4, 5, 6, 7];
  expect(configOf('qwen3moe').experts).toEqual({ count: 8, used: 4, size: 24, isNormed: true, layers });
  expect(configOf('qwen3moe', { expert_feed_forward_length: 40 }).experts?.size).toBe(40);
  expect(() => configOf('qwen3', { expert_count: 8 })).toThrow('8 experts (qwen3.expert_count)');
  const name = 'model.layers.3.mlp.experts.17.up_proj.weight';
  expect(nameInFile('qwen3moe', name)).toBe('blk.3.ffn_up_exps.weight');
});

test('yarn has the usual numbers, and the context length where the original one is missing', () => {
  const yarn = { 'rope.scaling.type': 'yarn', 'rope.scaling.factor': 4 };
  const rope = { type: 'yarn', factor: 4, betaFast: 32, betaSlow: 1, truncate: true, originalContext: 8192 };
  const attention = 0.1 * Math.log(4) + 1;
  expect(configOf('qwen2', yarn).rope).toEqual({ theta: 10_000, ...rope, attention });
  const more = { ...yarn, 'rope.scaling.original_context_length': 2048, 'rope.scaling.attn_factor': 2 };
  expect(configOf('llama', more).rope).toMatchObject({ originalContext: 2048, attention: 2 * attention });
  expect(configOf('qwen2', { ...yarn, 'rope.scaling.factor': 0.5 }).rope).toMatchObject({ factor: 0.5, attention: 1 });
  const usual = { 'rope.scaling.yarn_ext_factor': 1, 'rope.scaling.yarn_beta_fast': 32 };
  expect(configOf('qwen2', { ...yarn, ...usual }).rope).toMatchObject(rope);
  const slow = { ...yarn, 'rope.scaling.yarn_beta_slow': 2 };
  expect(() => configOf('qwen2', slow)).toThrow('qwen2.rope.scaling.yarn_beta_slow is 2; only 1 is supported');
  for (const family of ['gemma3', 'phi3'])
    expect(() => configOf(family, yarn)).toThrow('the supported types are none and linear');
});

test('missing keys mean what they mean in llama.cpp', () => {
  expect(configOf('granite').factors).toEqual({ embedding: 1, scores: 1 / 4, residual: 1, logits: 1 / 2 });
  expect(configOf('granite', { residual_scale: 0, 'attention.scale': 0.5 }).factors).toMatchObject({
    residual: 1,
    scores: 0.5,
  });
  expect(configOf('gemma2')).toMatchObject({
    sliding: { tokens: 4096, layers: [0, 2, 4, 6], rope: null },
    softcaps: { scores: 50, logits: 30 },
  });
  const windows = { 'attention.sliding_window': 32 };
  expect(configOf('gemma3', windows)).toMatchObject({
    sliding: { tokens: 32, layers: [0, 1, 2, 3, 4, 6, 7], rope: { theta: 10_000 } },
    softcaps: { scores: null, logits: null },
  });
  expect(configOf('gemma3').sliding).toBeNull();
  const pattern = [false, true, false, false, false, false, false, true];
  expect(configOf('gemma3', { ...windows, 'attention.sliding_window_pattern': pattern }).sliding?.layers).toEqual([
    1, 7,
  ]);
  expect(configOf('gemma3', { ...windows, 'attention.sliding_window_pattern': 4 }).sliding?.layers).toEqual([
    0, 1, 2, 4, 5, 6,
  ]);
  expect(configOf('smollm3').rope.unrotated).toEqual([3, 7]);
  // The file does not say the window that all models of this family have.
  expect(configOf('starcoder2')).toMatchObject({ contextTokens: 4096, sliding: null });
  expect(configOf('starcoder2', windows)).toMatchObject({ contextTokens: 8192, sliding: { tokens: 32 } });
  expect(configOf('qwen2', windows)).toMatchObject({ contextTokens: 32, sliding: null });
});

test('the largest models of Gemma divide the scores by another number', () => {
  const heads = { 'attention.head_count': 2, 'attention.key_length': 16, 'attention.value_length': 16 };
  expect(configOf('gemma2', heads).factors.scores).toBe(1 / 4);
  expect(configOf('gemma2', { ...heads, block_count: 46 }).factors.scores).toBe(1 / Math.sqrt(32));
  expect(configOf('gemma3', { ...heads, block_count: 62 }).factors.scores).toBe(1 / Math.sqrt(32));
});

test('longrope: the context ends with the original length', () => {
  const keys = {
    'rope.dimension_count': 12,
    'rope.scaling.type': 'longrope',
    'rope.scaling.original_context_length': 1024,
    'rope.scaling.attn_factor': 1.25,
  };
  expect(configOf('phi3', keys, [1, 1, 2, 2, 3, 3])).toMatchObject({
    contextTokens: 1024,
    rope: { type: 'factors', factors: [1, 1, 2, 2, 3, 3], attention: 1.25, rotated: 12 },
  });
});

test.each<[string, string, Record<string, MetaValue>]>([
  ['granite', 'granite.rope.scaling.finetuned is false', { 'rope.scaling.finetuned': false }],
  ['olmo2', 'olmo2.attention.sliding_window is set', { 'attention.sliding_window': 32 }],
  ['phi3', 'phi3.rope.scaling.type is "longrope"', { 'rope.scaling.type': 'longrope' }],
  ['qwen3', 'qwen3.rope.dimension_count differs', { 'rope.dimension_count': 8 }],
  [
    'gemma3',
    'gemma3.attention.sliding_window_pattern is a list; it must be a list of 8 truth values',
    { 'attention.sliding_window': 32, 'attention.sliding_window_pattern': [true] },
  ],
  ['gemma2', 'attn_logit_softcapping', { attn_logit_softcapping: -1 }],
])('%s: %s', (family, message, keys) => {
  expect(() => configOf(family, keys)).toThrow(message);
});

test('tensors of another family are refused', () => {
  for (const [family, name] of [
    ['llama', 'blk.0.attn_qkv.weight'],
    ['phi3', 'blk.0.attn_q.weight'],
    ['olmo2', 'blk.0.attn_norm.weight'],
    ['starcoder2', 'blk.0.ffn_gate.weight'],
  ] as const)
    expect(() => tensorName('x.gguf', family, name)).toThrow(`tensor "${name}" is no part of a ${family} model`);
});
