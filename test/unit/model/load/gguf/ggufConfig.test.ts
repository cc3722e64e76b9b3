/** What the metadata and tensors of a GGUF file say about the model, and which of it is refused. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Rope } from '../../../../../engine/model/load/ropeConfig.ts';
import { inspectFolder } from '../../../../../engine/server/inspection.ts';
import { MODELS } from '../../../../support/model/fixtures.ts';
import {
  BOOL,
  configEntries,
  type Entry,
  F32,
  folderTensors,
  ggufBytes,
  type GgufTensor,
  TEXT,
  tokenizerEntries,
  U32,
} from '../../../../support/model/ggufFile.ts';

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'kvasir-gguf-config-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** The file of a fixture, with other entries and more tensors. */
function changed(name: string, changes: readonly Entry[], more: readonly GgufTensor[] = []): string {
  const folder = path.join(MODELS, name);
  const pre = name.startsWith('qwen') ? 'qwen2' : 'llama-bpe';
  const tensors = folderTensors(folder);
  const rows = tensors.find((tensor) => tensor.name === 'token_embd.weight')!.shape[0]!;
  const entries = [...configEntries(folder), ...tokenizerEntries(folder, pre, rows)];
  const others = entries.filter(([key]) => !changes.some(([changedKey]) => changedKey === key));
  const file = path.join(dir, 'changed.gguf');
  writeFileSync(file, ggufBytes([...others, ...changes], [...tensors, ...more]));
  return file;
}

describe('rope scaling', () => {
  const type = (value: string): Entry => ['llama.rope.scaling.type', TEXT, value];
  const factor = (value: number): Entry => ['llama.rope.scaling.factor', F32, value];
  const old = (value: number): Entry => ['llama.rope.scale_linear', F32, value];
  const linear: Rope = { type: 'linear', theta: 10_000, factor: 4 };
  const plain: Rope = { type: 'default', theta: 10_000 };

  test.each<[string, Entry[], Rope]>([
    ['a factor without a type is linear', [factor(4)], linear],
    ['so is the old key', [old(4)], linear],
    ['the new key is used before the old one', [factor(4), old(8)], linear],
    ['the type linear needs no factor', [type('linear')], plain],
    ['the factor 0 stands for none', [type('linear'), factor(0)], plain],
    ['also before an old one', [factor(0), old(4)], plain],
    ['the factor 1 changes nothing', [factor(1)], plain],
    ['the type none ignores factors', [type('none'), factor(4), old(4)], plain],
  ])('%s', async (_, entries, rope) => {
    const { model } = await inspectFolder(changed('llama-gqa-no-tie-key', entries));
    expect(model.config.rope).toEqual(rope);
  });

  test('another type, another size of scores, and a factor besides single factors are refused', async () => {
    await expect(inspectFolder(changed('llama-mha-f16', [type('longrope')]))).rejects.toThrow(
      'changed.gguf: llama.rope.scaling.type is "longrope"',
    );
    await expect(inspectFolder(changed('llama-mha-f16', [['llama.rope.scaling.attn_factor', F32, 2]]))).rejects.toThrow(
      'changed.gguf: llama.rope.scaling.attn_factor is 2; only 1 is supported: choose another file.',
    );
    await expect(inspectFolder(changed('gguf-llama', [old(4)]))).rejects.toThrow(
      'changed.gguf has both rope_freqs.weight and a rope scaling',
    );
    await expect(inspectFolder(changed('gguf-llama', [type('yarn')]))).rejects.toThrow(
      'changed.gguf has both rope_freqs.weight and a rope scaling',
    );
  });
});

test('a model that sees what follows is refused', async () => {
  const causal = (value: boolean): Entry[] => [['llama.attention.causal', BOOL, value]];
  await expect(inspectFolder(changed('llama-mha-f16', causal(false)))).rejects.toThrow(
    'changed.gguf: llama.attention.causal is false, so the model writes no text: choose another file.',
  );
  expect((await inspectFolder(changed('llama-mha-f16', causal(true)))).model.config.architecture).toBe('llama');
});

describe('a tensor that the model does not use is refused by its name', () => {
  const vector = (name: string, length: number): GgufTensor => ({
    name,
    shape: [length],
    type: 0,
    bytes: new Uint8Array(4 * length),
  });

  test.each<[string, string, string]>([
    ['a norm of queries in llama', 'llama-mha-f16', 'blk.0.attn_q_norm.weight'],
    ['a norm of keys in qwen2', 'qwen2-untied-bf16', 'blk.1.attn_k_norm.weight'],
    ['a bias of the output in qwen2', 'qwen2-untied-bf16', 'blk.0.attn_output.bias'],
    ['a bias of one layer only', 'qwen3-tied-sharded', 'blk.1.attn_q.bias'],
  ])('%s', async (_, name, tensor) => {
    await expect(inspectFolder(changed(name, [], [vector(tensor, 16)]))).rejects.toThrow(
      `changed.gguf: tensor "${tensor}" has no use in the model that its metadata describes, ` +
        'so its answers would be wrong: choose another file.',
    );
  });

  test('more layers than block_count says', async () => {
    await expect(inspectFolder(changed('llama-mha-f16', [['llama.block_count', U32, 1]]))).rejects.toThrow(
      /tensor "blk\.[1-9]\d*\.\w+\.weight" has no use/,
    );
  });
});
