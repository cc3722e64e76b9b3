/**
 * The runtime's block products combine several rows. The bits of a token's logits do not depend on how many rows are
 * computed together. The fixtures cannot show this: their layers are no wider than a block, so no partial sums are
 * rounded.
 */
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { BLOCK } from '../../engine/model/load/quantise.ts';
import { forEachLogits } from '../../engine/model/calibrate/measurement.ts';
import { formsHere, loadRunner, random, temporaryFolder } from '../support/model/fixtures.ts';
import { writeRandomModel } from '../support/model/randomModel.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const config = {
  model_type: 'qwen3',
  hidden_size: 5 * BLOCK,
  intermediate_size: 3 * BLOCK,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 16,
  vocab_size: 300,
  rms_norm_eps: 1e-6,
  max_position_embeddings: 128,
};

const experts = {
  model_type: 'qwen3_moe',
  num_experts: 12,
  num_experts_per_tok: 3,
  moe_intermediate_size: 3 * BLOCK,
  norm_topk_prob: true,
};

test.each([
  ['int8', 'tied', { tie_word_embeddings: true }],
  ['int8', 'untied', { tie_word_embeddings: false }],
  ['int4', 'tied', { tie_word_embeddings: true }],
  ['int8', 'experts', { tie_word_embeddings: false, ...experts }],
  ['int4', 'experts whose shares are not normed', { tie_word_embeddings: true, ...experts, norm_topk_prob: false }],
] as const)('%s, %s: logits have the same bits alone and with others', async (precision, what, change) => {
  const dir = path.join(folder.dir, what);
  writeRandomModel(dir, { config: { ...config, ...change }, dtype: 'F32', seed: 7 });
  const next = random(7);
  const ids = Array.from({ length: 33 }, () => Math.floor(next() * config.vocab_size));
  for (const products of formsHere) {
    const runner = await loadRunner(dir, path.join(folder.dir, 'cache'), precision, 'int8', 64, products);
    const logits = async (chunk: number): Promise<Float32Array[]> => {
      const rows: Float32Array[] = [];
      await forEachLogits(runner, ids, (_, row) => rows.push(row.slice()), chunk);
      return rows;
    };
    const alone = await logits(1);
    for (const chunk of [2, 3, 5, 8, 33]) expect(await logits(chunk), `${chunk} rows`).toEqual(alone);
    // Some of the sequences in the step want no logits.
    const spanOf = (first: number, numLogits: number) => ({
      tokenIds: ids.slice(0, 4),
      startIndex: 0,
      contextSlots: new Int32Array(0),
      newSlots: Int32Array.of(first, first + 1, first + 2, first + 3),
      numLogits,
    });
    const together = await runner.run([spanOf(0, 1), spanOf(4, 0), spanOf(8, 4)]);
    expect(together).toEqual(Float32Array.from([3, 0, 1, 2, 3].flatMap((position) => [...alone[position]!])));
    await runner.dispose();
  }
});
