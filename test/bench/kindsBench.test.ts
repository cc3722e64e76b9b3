/** Runs the suite `kinds` on a tiny model. Checks that both ways of computing are measured, and the table. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { kindsBench, kindsReport } from './kindsBench.ts';

const cache = await mkdtemp(join(tmpdir(), 'kvasir-kinds-'));
afterAll(() => rm(cache, { recursive: true, force: true }));

test('a model with a window, with the native kernels and with onnxruntime', async () => {
  const tiny = {
    model_type: 'gemma3_text',
    hidden_size: 48,
    intermediate_size: 64,
    num_hidden_layers: 2,
    num_attention_heads: 2,
    num_key_value_heads: 1,
    head_dim: 16,
    vocab_size: 300,
    max_position_embeddings: 512,
    sliding_window: 16,
    sliding_window_pattern: 2,
    tie_word_embeddings: true,
  };
  const result = await kindsBench({ kinds: { tiny }, threads: 1, rounds: 2, contexts: [32, 96], chunk: 16, cache });
  expect(
    result.map(({ shape, context, tokens, native, onnxruntime }) => [
      shape,
      context,
      tokens,
      native.samples.length,
      onnxruntime.samples.length,
    ]),
  ).toEqual([
    ['tiny', 32, 1, 2, 2],
    ['tiny', 96, 1, 2, 2],
    ['tiny', 32, 16, 2, 2],
  ]);
  expect(
    kindsReport(result)
      .split('\n')
      .filter((line) => line.startsWith('| tiny')),
  ).toHaveLength(3);
});
