/** Folders of other formats are called what they are, with what to do. What only differs in names is read. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { inspectModel } from '../../../../engine/model/import/importModel.ts';
import { parseConfig } from '../../../../engine/model/load/hfConfig.ts';
import { ModelFolder } from '../../../../engine/model/load/modelFolder.ts';
import { parseHeader } from '../../../../engine/model/load/safetensors.ts';
import { Weights } from '../../../../engine/model/load/weights.ts';
import { safetensorsBytes } from '../../../support/model/randomModel.ts';

const GOOD = path.join(import.meta.dirname, '../../../fixtures/models/qwen2-untied-bf16');
const LFS = `version https://git-lfs.github.com/spec/v1\noid sha256:${'ab'.repeat(32)}\nsize 2397104\n`;
const config = JSON.parse(readFileSync(path.join(GOOD, 'config.json'), 'utf8')) as Record<string, unknown>;

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'kvasir-formats-'));
  for (const file of ['config.json', 'tokenizer.json', 'model.safetensors'])
    cpSync(path.join(GOOD, file), path.join(dir, file));
});
afterEach(() => rmSync(dir, { recursive: true }));

const write = (file: string, text: string | Uint8Array): void => writeFileSync(path.join(dir, file), text);
const remove = (file: string): void => rmSync(path.join(dir, file));

/** Writes the tensors of the good folder again, under other names. */
function rename(change: (name: string) => string): void {
  const bytes = readFileSync(path.join(GOOD, 'model.safetensors'));
  const header = bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE(0)));
  write(
    'model.safetensors',
    safetensorsBytes(
      [...parseHeader(header, 'x', bytes.length).values()].map(({ name, dtype, shape, start, end }) => [
        change(name),
        { dtype, shape, bytes: bytes.subarray(start, end) },
      ]),
    ),
  );
}

describe('is named, with what to do:', () => {
  test.each<[string, () => void, RegExp]>([
    ...['config.json', 'tokenizer.json', 'model.safetensors'].map((file): [string, () => void, RegExp] => [
      `a Git LFS pointer as ${file}`,
      () => write(file, LFS),
      new RegExp(`^${file.replace('.', '\\.')} is a Git LFS pointer.*git lfs pull`),
    ]),
    [
      'a web page as config.json',
      () => write('config.json', '<!DOCTYPE html>'),
      /^config\.json is a web page.*download/,
    ],
    [
      'an adapter',
      () => {
        remove('config.json');
        write('adapter_config.json', '{"peft_type":"LORA"}');
      },
      /config\.json is missing in .*an adapter \(LoRA\).*merge it into its base model/,
    ],
    [
      'an adapter beside the config of its base model',
      () => {
        remove('model.safetensors');
        write('adapter_model.safetensors', '');
      },
      /model\.safetensors and .* are missing; it holds an adapter \(LoRA\).*merge/,
    ],
    [
      'adapter tensors',
      () => rename((name) => name.replace('q_proj.weight', 'q_proj.lora_A.weight')),
      /holds LoRA tensors: merge the adapter/,
    ],
    [
      'GGUF',
      () => {
        remove('model.safetensors');
        write('m-q4_k_m.gguf', 'GGUF');
      },
      /it holds GGUF files: choose one of them instead of the folder/,
    ],
    [
      'PyTorch',
      () => {
        remove('model.safetensors');
        write('pytorch_model-00001-of-00002.bin', '');
      },
      /weights of PyTorch: load it with transformers and save it again/,
    ],
    [
      'an unfinished download',
      () => {
        remove('model.safetensors');
        write('model.safetensors.incomplete', '');
      },
      /a download that has not finished: download the model again/,
    ],
    [
      'MLX',
      () => write('config.json', JSON.stringify({ ...config, quantization: { group_size: 64, bits: 4 } })),
      /^config\.json: quantization says .* by MLX \(4 bits\).*choose the original model/,
    ],
    [
      'MLX as newer versions write it',
      () => write('config.json', JSON.stringify({ ...config, quantization_config: { group_size: 64, bits: 4 } })),
      /^config\.json: quantization_config says .* by MLX/,
    ],
    [
      'FP8',
      () => write('config.json', JSON.stringify({ ...config, quantization_config: { quant_method: 'fp8' } })),
      /quant_method is "fp8".*choose the original model in bfloat16/,
    ],
    [
      'GPTQ without quantization_config',
      () => rename((name) => name.replace('q_proj.weight', 'q_proj.qweight').replace('k_proj.weight', 'k_proj.g_idx')),
      /by GPTQ, but config\.json has no quantization_config that describes it: download config\.json again, or choose/,
    ],
    [
      'AWQ without quantization_config',
      () => rename((name) => name.replace('q_proj.weight', 'q_proj.qweight')),
      /by GPTQ or AWQ, but config\.json has no quantization_config/,
    ],
    [
      'packed weights without quantization_config',
      () => rename((name) => name.replace('q_proj.weight', 'q_proj.weight_packed')),
      /by compressed-tensors, but config\.json has no quantization_config/,
    ],
    [
      'bitsandbytes',
      () => rename((name) => name.replace('layers.0.mlp.up_proj.weight', 'layers.0.mlp.up_proj.SCB')),
      /by bitsandbytes, which is not supported: choose the original model/,
    ],
  ])('%s', async (_, change, message) => {
    change();
    const refusal = await inspectModel(dir).catch((error: Error) => error);
    expect((refusal as Error).message).toMatch(message);
    expect((refusal as Error).message).not.toMatch(/\n/);
  });
});

test('two tensors of one name, with the prefix and without, are refused', async () => {
  rename((name) => (name === 'model.norm.weight' ? '_orig_mod.lm_head.weight' : name));
  await expect(inspectModel(dir)).rejects.toThrow(/tensor "lm_head.weight" is there under two names/);
});

test('two tensors that are one part of a model for text and images are refused', async () => {
  const { model_type, ...text } = config;
  write('config.json', JSON.stringify({ model_type: 'mistral3', text_config: { ...text, model_type } }));
  rename((name) => (name === 'lm_head.weight' ? 'model.language_model.norm.weight' : name));
  await expect(inspectModel(dir)).rejects.toThrow(
    /the tensors "model\.[a-z_.]*norm\.weight" and "model\.[a-z_.]*norm\.weight" are the same part of the model/,
  );
});

test('a matrix that is there packed and as floats is refused', async () => {
  const quantization_config = { quant_method: 'awq', bits: 4, group_size: 16, version: 'gemm' };
  write('config.json', JSON.stringify({ ...config, quantization_config }));
  rename((name) => (name === 'lm_head.weight' ? 'model.layers.0.mlp.up_proj.qweight' : name));
  await expect(inspectModel(dir)).rejects.toThrow(
    /"model\.layers\.0\.mlp\.up_proj\.qweight" and "model\.layers\.0\.mlp\.up_proj\.weight" are the same part/,
  );
});

test.each([
  ['at the start', (name: string) => `_orig_mod.${name}`],
  ['of the inner model', (name: string) => name.replace(/^model\./, 'model._orig_mod.')],
])('a compiled model is read without the prefix in its names: %s', async (_, change) => {
  rename(change);
  expect((await inspectModel(dir)).parameters).toBe((await inspectModel(GOOD)).parameters);
  const [compiled, plain] = await Promise.all(
    [dir, GOOD].map(async (folder) => {
      const weights = await Weights.open(await ModelFolder.open(folder));
      const rows = await weights.rows('model.norm.weight', 0, 1, new Float32Array(224));
      await weights.close();
      return rows;
    }),
  );
  expect(compiled).toEqual(plain);
});

test('dynamic rope is the default up to the original length, and no longer context is offered', () => {
  const dynamic = (original: object) =>
    parseConfig({ ...config, rope_theta: 1e6, rope_scaling: { type: 'dynamic', factor: 4, ...original } });
  expect(dynamic({}).rope).toEqual({ type: 'default', theta: 1e6 });
  expect(dynamic({}).contextTokens).toBe(512);
  expect(dynamic({ original_max_position_embeddings: 128 }).contextTokens).toBe(128);
});
