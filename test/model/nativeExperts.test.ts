/** Layers with experts in the native kernels: a token gets the experts that it gets in float32. */
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { Runner } from '../../engine/model/batch.ts';
import { loadNativeRunner, loadRunner, random, temporaryFolder } from '../support/model/fixtures.ts';
import { writeRandomModel } from '../support/model/randomModel.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
const cacheDir = path.join(folder.dir, 'cache');

const VOCABULARY = 701;
const CHUNK = 90;
const NUM_CHUNKS = 10;

/** Without attention, the router gets the same rows from all lanes. */
function writeModel(name: string, isNormed: boolean): string {
  const dir = path.join(folder.dir, name);
  writeRandomModel(dir, {
    config: {
      model_type: 'qwen3_moe',
      hidden_size: 200,
      intermediate_size: 200,
      num_hidden_layers: 1,
      num_attention_heads: 2,
      num_key_value_heads: 1,
      head_dim: 16,
      vocab_size: VOCABULARY,
      rms_norm_eps: 1e-6,
      max_position_embeddings: 256,
      tie_word_embeddings: true,
      num_experts: 128,
      num_experts_per_tok: 8,
      moe_intermediate_size: 48,
      norm_topk_prob: isNormed,
    },
    dtype: 'F32',
    seed: 3,
    withoutAttention: true,
  });
  return dir;
}

/** The logits of random tokens, by token. */
async function logitsOf(runner: Runner): Promise<Float32Array[]> {
  const next = random(9);
  const rows: Float32Array[] = [];
  for (let chunk = 0; chunk < NUM_CHUNKS; chunk++) {
    const logits = await runner.run([
      {
        tokenIds: Array.from({ length: CHUNK }, () => Math.floor(next() * VOCABULARY)),
        startIndex: 0,
        contextSlots: new Int32Array(0),
        newSlots: Int32Array.from({ length: CHUNK }, (_, i) => i),
        numLogits: CHUNK,
      },
    ]);
    for (let i = 0; i < CHUNK; i++) rows.push(logits.slice(i * VOCABULARY, (i + 1) * VOCABULARY));
  }
  return rows;
}

function relativeError(expected: Float32Array, actual: Float32Array): number {
  let [difference, size] = [0, 0];
  for (const [i, value] of expected.entries()) {
    difference += (actual[i]! - value) ** 2;
    size += value ** 2;
  }
  return Math.sqrt(difference / size);
}

// With one code of 8 bits for each value of the router, 1 token of 10 gets another expert, and the worst is off by 0.08 to 0.2.
test.each([
  ['int8', true, 0.04],
  ['int8', false, 0.04],
  ['int4', true, 0.18],
] as const)('%s, normed %s: no token is off by more than its codes explain', async (precision, isNormed, most) => {
  const dir = writeModel(`${precision}-${isNormed}`, isNormed);
  const [float, native] = [
    await loadRunner(dir, cacheDir, 'float32', 'float32'),
    await loadNativeRunner(dir, cacheDir, precision, { threads: 2 }),
  ];
  const [expected, actual] = [await logitsOf(float), await logitsOf(native)];
  const errors = expected.map((row, i) => relativeError(row, actual[i]!)).sort((a, b) => a - b);
  expect(errors.at(-1)).toBeLessThan(most);
  await float.dispose();
  await native.dispose();
});
