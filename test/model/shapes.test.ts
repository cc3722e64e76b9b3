/** Shapes that no fixture has, compared with a plain float64 forward pass. */
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { forEachLogits } from '../../engine/model/calibrate/measurement.ts';
import {
  Divergence,
  generateTogether,
  isNarrowHere,
  loadRunner,
  maxDifference,
  random,
  temporaryFolder,
} from '../support/model/fixtures.ts';
import { type RandomModel, writeRandomModel } from '../support/model/randomModel.ts';
import { type ReferenceConfig, referenceLogits } from '../support/model/reference.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const common = {
  hidden_size: 40,
  intermediate_size: 56,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 61,
  rms_norm_eps: 1e-5,
  max_position_embeddings: 128,
};
const llama3 = {
  rope_type: 'llama3',
  factor: 4,
  low_freq_factor: 1,
  high_freq_factor: 4,
  original_max_position_embeddings: 16,
};
const models: Record<string, RandomModel> = {
  'llama, head size 24, three query heads per KV head, linear rope, biases everywhere': {
    config: {
      ...common,
      model_type: 'llama',
      hidden_size: 72,
      num_attention_heads: 3,
      num_key_value_heads: 1,
      head_dim: 24,
      rope_theta: 500,
      rope_scaling: { type: 'linear', factor: 2.5 },
      attention_bias: true,
      mlp_bias: true,
    },
    dtype: 'F32',
    seed: 1,
    keyBias: 8,
  },
  'llama, tied, llama3 rope in the new spelling, sharded bfloat16': {
    config: {
      ...common,
      model_type: 'llama',
      rope_parameters: { ...llama3, rope_theta: 1000 },
      tie_word_embeddings: true,
    },
    dtype: 'BF16',
    seed: 2,
    shards: 3,
  },
  'qwen3, untied float16, heads wider than the hidden size': {
    config: { ...common, model_type: 'qwen3', head_dim: 20, rope_theta: 10_000 },
    dtype: 'F16',
    seed: 3,
  },
  'qwen3 with biases, one layer, head size 6': {
    config: {
      ...common,
      model_type: 'qwen3',
      num_hidden_layers: 1,
      head_dim: 6,
      num_attention_heads: 5,
      num_key_value_heads: 5,
      attention_bias: true,
    },
    dtype: 'F32',
    seed: 4,
    keyBias: 2,
  },
  'qwen2, odd sizes, one KV head, large key bias': {
    config: {
      ...common,
      model_type: 'qwen2',
      hidden_size: 50,
      intermediate_size: 33,
      num_attention_heads: 5,
      num_key_value_heads: 1,
      vocab_size: 67,
      rope_theta: 1e6,
      tie_word_embeddings: true,
    },
    dtype: 'BF16',
    seed: 5,
    keyBias: 60,
  },
  'qwen3, tied, layers in 8 bits with float32 scales': {
    config: { ...common, model_type: 'qwen3', head_dim: 12, tie_word_embeddings: true },
    dtype: 'BF16',
    int8: 'F32',
    seed: 6,
  },
  'llama, untied, layers in 8 bits with bfloat16 scales in other shards': {
    config: { ...common, model_type: 'llama' },
    dtype: 'F16',
    int8: 'BF16',
    seed: 7,
    shards: 3,
  },
};

describe.each(Object.entries(models))('%s', (name, model) => {
  const dir = path.join(folder.dir, name.replace(/\W+/g, '-'));
  const tensors = writeRandomModel(dir, { ...model, config: model.config as ReferenceConfig });
  const next = random(model.seed);
  const ids = Array.from({ length: 70 }, () => Math.floor(next() * model.config.vocab_size));
  const expected = referenceLogits(model.config, tensors, ids);

  test('float32 agrees with the reference', async () => {
    const runner = await loadRunner(dir, path.join(folder.dir, 'cache'), 'float32', 'float32', 96);
    for (const chunk of [70, 9, 1]) {
      let worst = 0;
      await forEachLogits(
        runner,
        ids,
        (position, row) => {
          worst = Math.max(worst, maxDifference(row, expected[position]!));
        },
        chunk,
      );
      // With a large key bias, scores are differences of large numbers. See the fixtures' note on float32 against
      // float64.
      expect(worst).toBeLessThan((model.keyBias ?? 0) > 1 ? 5e-4 : 2e-4);
    }
    await runner.dispose();
  });

  test.each([
    ['float32', 'int8', 0.005],
    ['int8', 'float32', 0.1],
    ['int8', 'int8', 0.1],
    ['int4', 'int8', 0.3],
  ] as const)('weights %s, KV %s: close', async (precision, kv, bound) => {
    const runner = await loadRunner(dir, path.join(folder.dir, 'cache'), precision, kv, 96);
    const divergence = new Divergence();
    await forEachLogits(runner, ids, (position, row) => divergence.add(expected[position]!, row), 13);
    // 7-bit codes have half the resolution.
    expect(divergence.mean).toBeLessThan(isNarrowHere ? 4 * bound : bound);
    const prompts = [ids.slice(0, 5), ids.slice(3, 20), ids.slice(10, 11)];
    const together = await generateTogether(runner, prompts, 8, 6, 9);
    const alone: number[][] = [];
    for (const prompt of prompts) alone.push(...(await generateTogether(runner, [prompt], 8, 1, 10)));
    if (kv === 'int8') expect(together).toEqual(alone);
    await runner.dispose();
  });
});
