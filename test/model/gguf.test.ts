/** GGUF files as models: the ids, logits and texts of the folders that they were made from. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { forEachLogits } from '../../engine/model/calibrate/measurement.ts';
import { openModelFiles } from '../../engine/model/load/modelFiles.ts';
import { Weights } from '../../engine/model/load/weights.ts';
import { inspectFolder } from '../../engine/server/inspection.ts';
import {
  FIXTURES,
  generateTogether,
  loadRunner,
  maxDifference,
  MODELS,
  type Prompt,
  readFloats,
  readJson,
} from '../support/model/fixtures.ts';
import {
  configEntries,
  type Entry,
  folderAsGguf,
  folderTensors,
  ggufBytes,
  tokenizerEntries,
  U16,
} from '../support/model/ggufFile.ts';

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'kvasir-gguf-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

describe.each([
  ['qwen2-untied-bf16', 'qwen2'],
  ['qwen3-tied-sharded', 'qwen2'],
  ['llama-mha-f16', 'llama-bpe'],
  ['llama-gqa-no-tie-key', 'llama-bpe'],
])('%s as a GGUF file', (name, pre) => {
  const folder = path.join(MODELS, name);
  let file: string;
  beforeAll(() => {
    file = path.join(dir, `${name}.gguf`);
    writeFileSync(file, folderAsGguf(folder, pre));
  });

  test('float32: the greedy ids are those of the folder', async () => {
    const { prompts } = readJson<{ prompts: Prompt[] }>(folder, 'reference', 'reference.json');
    const runner = await loadRunner(file, dir, 'float32');
    const ids = prompts.map(({ input_ids }) => input_ids);
    expect(await generateTogether(runner, ids, 24, 16, 1)).toEqual(prompts.map(({ greedy_ids }) => greedy_ids));
    await runner.dispose();
  });

  test('it is described as the folder', async () => {
    const [found, expected] = [await inspectFolder(file), await inspectFolder(folder)];
    // The file says the rope of Llama 3 as factors, and one end of an answer.
    const { rope, eosIds, ...config } = found.model.config;
    const { rope: wantedRope, eosIds: wantedEnds, ...wanted } = expected.model.config;
    expect(config).toEqual(wanted);
    expect(rope).toMatchObject(wantedRope.type === 'llama3' ? { theta: wantedRope.theta } : wantedRope);
    expect(eosIds).toEqual(wantedEnds.slice(0, 1));
    const { parameters, canChat, canComplete, memoryBytes } = expected;
    expect(found).toMatchObject({ name, parameters, canChat, canComplete, memoryBytes });
  });
});

test('a file in parts is read from any of them, as a whole', async () => {
  const folder = path.join(MODELS, 'qwen3-tied-sharded');
  const tensors = folderTensors(folder);
  const half = Math.floor(tensors.length / 2);
  const count: Entry = ['split.count', U16, 2];
  const whole = [...configEntries(folder), ...tokenizerEntries(folder, 'qwen2', 435), count];
  const parts = [path.join(dir, 'm-00001-of-00002.gguf'), path.join(dir, 'm-00002-of-00002.gguf')] as const;
  writeFileSync(parts[0], ggufBytes(whole, tensors.slice(0, half)));
  writeFileSync(parts[1], ggufBytes([['split.no', U16, 1], count], tensors.slice(half)));
  const found = await inspectFolder(parts[0]);
  expect(found).toMatchObject({ name: 'm', parameters: (await inspectFolder(folder)).parameters });
  expect(found.model.files).toEqual(['m-00001-of-00002.gguf', 'm-00002-of-00002.gguf']);
  expect((await inspectFolder(parts[1])).parameters).toBe(found.parameters);
});

test('rows of llama are put in order, also a few at a time across heads', async () => {
  const folder = path.join(MODELS, 'llama-mha-f16');
  const file = path.join(dir, 'rows.gguf');
  writeFileSync(file, folderAsGguf(folder, 'llama-bpe'));
  const [own, original] = [
    await Weights.open(await openModelFiles(file)),
    await Weights.open(await openModelFiles(folder)),
  ];
  const name = 'model.layers.1.self_attn.q_proj.weight';
  for (const [first, count] of [
    [0, 96],
    [0, 1],
    [5, 3],
    [7, 20],
    [15, 2],
    [90, 6],
  ] as const) {
    const read = (weights: Weights) => weights.rows(name, first, count, new Float32Array(count * 96));
    expect(await read(own), `${first}, ${count}`).toEqual(await read(original));
  }
  await own.close();
  await original.close();
});

const FAMILIES = path.join(FIXTURES, 'families');
const families = readdirSync(path.join(FAMILIES, 'gguf')).map((file) => file.replace('.gguf', ''));

test.each(families)('%s: the file gives the logits and greedy ids of the folder', async (name) => {
  const { prompts, vocab_size: width } = readJson<{ vocab_size: number; prompts: Prompt[] }>(
    FAMILIES,
    name,
    'reference.json',
  );
  const logits = readFloats(FAMILIES, name, 'logits.f32');
  const runner = await loadRunner(path.join(FAMILIES, 'gguf', `${name}.gguf`), dir, 'float32');
  let first = 0;
  for (const { input_ids: ids } of prompts) {
    await forEachLogits(runner, ids, (position, row) => {
      const from = (first + position) * width;
      expect(maxDifference(row, logits.subarray(from, from + width)), `position ${position}`).toBeLessThan(2e-3);
    });
    first += ids.length;
  }
  const inputs = prompts.map((prompt) => prompt.input_ids);
  const greedy = await generateTogether(runner, inputs, prompts[0]!.greedy_ids.length, 8, 1);
  expect(greedy).toEqual(prompts.map((prompt) => prompt.greedy_ids));
  await runner.dispose();
});

interface OfGguf {
  files: Record<string, { prompts: { input_ids: number[]; greedy_ids: number[]; greedy_margins?: number[] }[] }>;
}

describe.each(['gguf-llama', 'gguf-qwen2'])('%s, written by the Python package gguf', (name) => {
  const reference = path.join(MODELS, name, 'reference');
  test.each(['q8_0', 'q4_0'])('%s gives the logits of its dequantised weights', async (type) => {
    const { prompts } = readJson<OfGguf>(reference, 'reference_gguf.json').files[type]!;
    const runner = await loadRunner(path.join(MODELS, name, `${name}-${type}.gguf`), dir, 'float32');
    const last = readFloats(reference, `last_logits_${type}.f32`);
    const vocabSize = last.length / prompts.length;
    for (const [p, { input_ids: ids }] of prompts.entries())
      await forEachLogits(runner, ids, (position, row) => {
        if (position === ids.length - 1)
          expect(maxDifference(row, last.subarray(p * vocabSize, (p + 1) * vocabSize))).toBeLessThan(2e-3);
      });
    await runner.dispose();
  });
});
