/**
 * Recorded digests of the native kernels. They change with the layout of the weights and with the arithmetic, so that
 * entries of the import cache and rows on disk that do not fit are not found any more.
 */
import { createHash, type Hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { importModel, NATIVE_FORMAT } from '../../engine/model/import/importModel.ts';
import { WEIGHT_FILE } from '../../engine/model/load/importedModel.ts';
import { loadAddon } from '../../engine/model/native/addon.ts';
import type { NativeRunner } from '../../engine/model/native/nativeRunner.ts';
import { digestOf, SELF_TEST_DIGEST } from '../../engine/model/native/selfTest.ts';
import { FIXTURES, loadNativeRunner, MODELS, random, temporaryFolder } from '../support/model/fixtures.ts';
import { writeRandomModel } from '../support/model/randomModel.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
const cacheDir = path.join(folder.dir, 'cache');

/**
 * Norms of heads, large key biases, biases everywhere, several tiles of rows and of 4-bit blocks; then the other kinds
 * of layers.
 */
function modelDirs(): string[] {
  const wide = path.join(folder.dir, 'wide');
  writeRandomModel(wide, {
    config: {
      model_type: 'llama',
      hidden_size: 264,
      intermediate_size: 400,
      num_hidden_layers: 2,
      num_attention_heads: 6,
      num_key_value_heads: 2,
      head_dim: 40,
      vocab_size: 301,
      rms_norm_eps: 1e-5,
      max_position_embeddings: 512,
      attention_bias: true,
      mlp_bias: true,
    },
    dtype: 'F32',
    seed: 9,
    keyBias: 8,
  });
  const families = ['gemma2', 'gemma3', 'mellum', 'olmo2', 'qwen3-moe', 'smollm3', 'starcoder2'].map((name) =>
    path.join(FIXTURES, 'families', name),
  );
  return [path.join(MODELS, 'qwen2-untied-bf16'), path.join(MODELS, 'qwen3-tied-sharded'), wide, ...families];
}

/** A prompt of three parts over several blocks of slots, with queries and received attention, then single tokens. */
async function addResults(hash: Hash, runner: NativeRunner): Promise<void> {
  const next = random(7);
  const ids = Array.from({ length: 200 }, () => Math.floor(next() * runner.vocabSize));
  const slots = Int32Array.from(ids, (_, i) => (i * 37) % 1024);
  const parts = [0, 130, 141, 198, 199, 200];
  for (const [p, from] of parts.slice(0, -1).entries()) {
    const to = parts[p + 1]!;
    const logits = await runner.run([
      {
        tokenIds: ids.slice(from, to),
        startIndex: from,
        contextSlots: slots.slice(0, from),
        newSlots: slots.slice(from, to),
        numLogits: Math.min(to - from, 20),
        measures: p === 2,
        numQueries: p === 2 ? 5 : 0,
      },
    ]);
    for (const part of [logits, runner.queries, runner.received?.most, runner.received?.sum])
      if (part) hash.update(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
  }
  const { keys, values, keyScales, valueScales } = runner.pool;
  for (const arrays of [keys, values, keyScales, valueScales])
    for (const array of arrays) hash.update(new Uint8Array(array!.buffer, array!.byteOffset, array!.byteLength));
}

test('weight files and results of the native kernels have the recorded digest', async () => {
  const hash = createHash('sha256');
  for (const dir of modelDirs())
    for (const precision of ['int8', 'int4'] as const) {
      const model = await importModel({ modelDir: dir, cacheDir, precision, products: 'native' });
      hash.update(readFileSync(path.join(model.dir, WEIGHT_FILE)));
      const runner = await loadNativeRunner(dir, cacheDir, precision, { threads: 2 });
      await addResults(hash, runner);
      await runner.dispose();
    }
  // If layout or arithmetic has changed on purpose, this digest is the new NATIVE_FORMAT (importModel.ts).
  expect(hash.digest('hex').slice(0, 16)).toBe(NATIVE_FORMAT);
});

test.each(loadAddon().kernels())('the self-test with the kernels for %s gives the recorded digest', async (kernels) => {
  // If the arithmetic has changed on purpose, this digest is the new SELF_TEST_DIGEST (selfTest.ts).
  expect(await digestOf(kernels)).toBe(SELF_TEST_DIGEST);
});
