/** What config.json says about experts, as transformers reads it, and how their tensors are found. */
import { expect, test } from 'vitest';
import { asPlanned } from '../../../../engine/model/load/familyTensors.ts';
import { parseConfig } from '../../../../engine/model/load/hfConfig.ts';
import type { OwnedTensor } from '../../../../engine/model/load/tensorFiles.ts';
import { planWeights } from '../../../../engine/model/load/weightPlan.ts';

const base = {
  model_type: 'qwen3_moe',
  hidden_size: 64,
  intermediate_size: 96,
  num_hidden_layers: 4,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  vocab_size: 448,
};
const mellum = { ...base, model_type: 'mellum', head_dim: 16, max_position_embeddings: 512 };
const few = { num_experts: 6, num_experts_per_tok: 2, moe_intermediate_size: 16 };

test('what config.json leaves out is as in transformers', () => {
  const layers = [0, 1, 2, 3];
  expect(parseConfig(base).experts).toEqual({ count: 128, used: 8, size: 768, isNormed: false, layers });
  expect(parseConfig(mellum).experts).toEqual({ count: 64, used: 8, size: 896, isNormed: true, layers });
  expect(parseConfig({ ...base, model_type: 'qwen3' }).experts).toBeNull();
  expect(parseConfig({ ...base, num_experts: 16, num_local_experts: null }).experts?.count).toBe(16);
});

test('layers without experts are named one by one, or are all but each so many-th', () => {
  const layersOf = (change: object) => parseConfig({ ...base, ...few, ...change }).experts?.layers;
  expect(layersOf({ mlp_only_layers: [1, 3] })).toEqual([0, 2]);
  expect(layersOf({ decoder_sparse_step: 2 })).toEqual([1, 3]);
  expect(layersOf({ decoder_sparse_step: 2, mlp_only_layers: [1] })).toEqual([3]);
  expect(layersOf({ decoder_sparse_step: 8 })).toBeUndefined();
  const mlp_layer_types = ['dense', 'sparse', 'sparse', 'dense'];
  expect(parseConfig({ ...mellum, mlp_layer_types }).experts?.layers).toEqual([1, 2]);
});

test('in Qwen3-MoE a window is that of all layers, and in Mellum that of the layers named', () => {
  const window = { use_sliding_window: true, sliding_window: 32, max_window_layers: 3, max_position_embeddings: 512 };
  expect(parseConfig({ ...base, ...window }).sliding).toEqual({ tokens: 32, layers: [0, 1, 2, 3], rope: null });
  expect(parseConfig({ ...base, ...window, use_sliding_window: false }).sliding).toBeNull();
  expect(parseConfig(mellum).sliding).toBeNull();
  const layer_types = ['sliding_attention', 'full_attention', 'full_attention', 'sliding_attention'];
  const rope = { type: 'default', theta: 10_000 };
  expect(parseConfig({ ...mellum, layer_types }).sliding).toEqual({ tokens: 1024, layers: [0, 3], rope });
  expect(parseConfig(mellum).rope).toEqual({ type: 'default', theta: 500_000 });
});

test.each<[string, object]>([
  ['num_experts is 0', { num_experts: 0 }],
  ['num_experts is 4097', { num_experts: 4097 }],
  ['num_local_experts is "8"', { num_local_experts: '8' }],
  ['num_experts_per_tok is 7', { num_experts_per_tok: 7 }],
  ['moe_intermediate_size is -1', { moe_intermediate_size: -1 }],
  ['norm_topk_prob is 1', { norm_topk_prob: 1 }],
  ['mlp_only_layers is 1', { mlp_only_layers: 1 }],
  ['mlp_only_layers is ["a"]', { mlp_only_layers: ['a'] }],
  ['decoder_sparse_step is 0', { decoder_sparse_step: 0 }],
  ['mlp_layer_types is ["dense"]', { ...mellum, mlp_layer_types: ['dense'] }],
  ['num_experts is 4096 in each of 32 layers', { num_experts: 4096, num_hidden_layers: 32 }],
])('it is refused with its reason: %s', (reason, change) => {
  expect(() => parseConfig({ ...base, ...few, ...change })).toThrow(reason);
});

test('all experts count as parameters and take memory', () => {
  const config = parseConfig({ ...base, ...few });
  const more = parseConfig({ ...base, ...few, num_experts: 10 });
  const expert = 4 * (3 * 64 * 16 + 64);
  const plan = (of: typeof config, precision: 'int8' | 'float32') => planWeights(of, precision, false, 'rows');
  expect(plan(more, 'int8').parameters - plan(config, 'int8').parameters).toBe(4 * expert);
  expect(plan(more, 'float32').bytes - plan(config, 'float32').bytes).toBeGreaterThanOrEqual(4 * 4 * expert - 4096 * 8);
});

test('experts have 4 bits in int4 for the native kernels only, and the router never', () => {
  const config = parseConfig({ ...base, ...few });
  const bytesOf = (products: 'rows' | 'native', precision: 'int8' | 'int4') => {
    const { stored } = planWeights(config, precision, false, products);
    return (name: string) => stored.get(`l0.${name}`)?.length;
  };
  // 6 experts of 16 numbers, in groups of 16 outputs and blocks of 128 inputs.
  expect(['gate', 'up', 'down'].map(bytesOf('native', 'int8'))).toEqual([6, 6, 6].map((n) => n * 16 * 64));
  expect(['gate', 'up', 'down'].map(bytesOf('native', 'int4'))).toEqual([16, 16, 64].map((n) => (6 * n * 128) / 2));
  expect(['inner', 'outer'].map(bytesOf('rows', 'int4'))).toEqual([2, 1].map((n) => n * 6 * 16 * 64));
  expect([bytesOf('native', 'int4')('router'), bytesOf('rows', 'int4')('router')]).toEqual([2 * 16 * 64, 2 * 6 * 64]);
});

test('experts in one tensor are found like those in tensors of their own, and another number of them is not', () => {
  const config = parseConfig({ ...base, ...few });
  const at = 'model.layers.2.mlp.experts.';
  const tensor = (name: string, shape: number[]): [string, OwnedTensor] => {
    const end = 100 + 2 * shape.reduce((a, b) => a * b, 1);
    return [
      name,
      {
        file: { name: 'x.safetensors' },
        info: { name, dtype: 'BF16', shape, start: 100, end },
      } as unknown as OwnedTensor,
    ];
  };
  const found = asPlanned(
    new Map([tensor(`${at}gate_up_proj`, [6, 32, 64]), tensor(`${at}down_proj`, [6, 64, 16])]),
    config,
  );
  expect(found.size).toBe(18);
  const half = 2 * 16 * 64;
  expect(found.get(`${at}3.up_proj.weight`)!.info).toMatchObject({ shape: [16, 64], start: 100 + 7 * half });
  expect(found.get(`${at}5.down_proj.weight`)!.info).toMatchObject({ shape: [64, 16], end: 100 + 6 * half });
  const other = asPlanned(new Map([tensor(`${at}down_proj`, [5, 64, 16])]), config);
  expect([...other.keys()]).toEqual([`${at}down_proj`]);
  const [, one] = tensor(`${at}0.down_proj.weight`, [64, 16]);
  const twice = new Map([tensor(`${at}down_proj`, [6, 64, 16]), [`${at}0.down_proj.weight`, one] as const]);
  expect(() => asPlanned(twice, config)).toThrow('are the same part of the model');
});
