/**
 * Every public fixture through the real graph: float32 against the references, int8 and int4 within the stated KL
 * bounds.
 */
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { forEachLogits } from '../../engine/model/calibrate/measurement.ts';
import type { ProductForm } from '../../engine/model/load/quantise.ts';
import {
  Divergence,
  MODELS,
  type Prompt,
  formsHere,
  generateTogether,
  loadNativeRunner,
  loadRunner,
  logSoftmax,
  maxDifference,
  modelNames,
  readFloats,
  readJson,
  temporaryFolder,
} from '../support/model/fixtures.ts';

const cache = temporaryFolder();
afterAll(() => cache.remove());

interface Reference {
  vocab_size: number;
  prompts: Prompt[];
}
interface Simulation {
  variants: Record<string, { mean_kl: number; max_kl: number; top1_agreement: number }>;
}

describe.each(modelNames)('%s', (name) => {
  const reference = path.join(MODELS, name, 'reference');
  const { prompts, vocab_size: vocabSize } = readJson<Reference>(reference, 'reference.json');
  const nll = readJson<{ input_ids: number[]; nll: number[]; mean_nll: number }>(reference, 'nll.json');
  const batched = readJson<{ batches: number[][]; greedy_ids: number[][] }>(reference, 'batched.json');
  const manifest = readJson<Record<string, { shape: number[] }>>(reference, 'manifest.json');

  test('float32: logits, log-probabilities, keys, values and NLL agree with the reference', async () => {
    const runner = await loadRunner(path.join(MODELS, name), cache.dir, 'float32');
    const last = readFloats(reference, 'last_logits.f32');
    for (const [p, { input_ids: ids, top5_ids, top5_logprobs }] of prompts.entries()) {
      let worst = 0;
      await forEachLogits(runner, ids, (position, row) => {
        const logprobs = logSoftmax(row);
        top5_ids[position]!.forEach((id, i) => {
          worst = Math.max(worst, Math.abs(logprobs[id]! - top5_logprobs[position]![i]!));
        });
        if (position === ids.length - 1)
          expect(maxDifference(row, last.subarray(p * vocabSize, (p + 1) * vocabSize))).toBeLessThan(2e-3);
      });
      expect(worst).toBeLessThan(2e-3);
      if (ids.length !== 33) continue;
      const { keys, values } = runner.pool.read(Int32Array.from(ids, (_, i) => i));
      const [layers, kvHeads, length, headSize] = manifest.keys_33!.shape as [number, number, number, number];
      // The pool's keys are [layer, head, headSize, position], the reference's [layer, head, position, headSize].
      const transposed = Float32Array.from({ length: keys.length }, (_, i) => {
        const [head, rest] = [Math.floor(i / (length * headSize)), i % (length * headSize)];
        return keys[head * length * headSize + (rest % headSize) * length + Math.floor(rest / headSize)]!;
      });
      expect(keys.length).toBe(layers * kvHeads * length * headSize);
      for (const [got, file] of [
        [transposed, 'keys_33.f32'],
        [values, 'values_33.f32'],
      ] as const) {
        const want = readFloats(reference, file);
        const largest = want.reduce((max, v) => Math.max(max, Math.abs(v)), 0);
        expect(maxDifference(got, want)).toBeLessThan(Math.max(1e-3, 1e-5 * largest));
      }
    }
    let sum = 0;
    await forEachLogits(runner, nll.input_ids, (position, row) => {
      if (position === nll.nll.length) return;
      const value = -logSoftmax(row)[nll.input_ids[position + 1]!]!;
      expect(Math.abs(value - nll.nll[position]!)).toBeLessThan(2e-3);
      sum += value;
    });
    expect(Math.abs(sum / nll.nll.length - nll.mean_nll)).toBeLessThan(2e-4);
    await runner.dispose();
  });

  test('float32: greedy tokens do not depend on chunks, batch and slots', async () => {
    const runner = await loadRunner(path.join(MODELS, name), cache.dir, 'float32');
    for (const chunk of [1, 7, 33]) {
      const ids = await generateTogether(
        runner,
        prompts.map((p) => p.input_ids),
        24,
        chunk,
        chunk,
      );
      expect(ids).toEqual(prompts.map((p) => p.greedy_ids));
    }
    for (const [i, batch] of batched.batches.entries()) {
      const ids = await generateTogether(
        runner,
        batch.map((p) => prompts[p]!.input_ids),
        batched.greedy_ids[0]!.length,
        16,
        100 + i,
      );
      expect(ids).toEqual(batch.map((p) => batched.greedy_ids[p]));
    }
    await runner.dispose();
  });

  // Models without stored logits are compared with the float32 graph. The tests above compare that graph with the
  // references.
  const expectedLogits = async (): Promise<Float32Array[]> => {
    if (manifest.nll_text_logits) {
      const all = readFloats(reference, 'nll_text_logits.f32');
      return nll.input_ids.map((_, i) => all.subarray(i * vocabSize, (i + 1) * vocabSize));
    }
    const expected: Float32Array[] = [];
    const float = await loadRunner(path.join(MODELS, name), cache.dir, 'float32');
    await forEachLogits(float, nll.input_ids, (_, row) => void expected.push(row.slice()));
    await float.dispose();
    return expected;
  };
  const divergenceOf = async (
    expected: Float32Array[],
    precision: 'int8' | 'int4',
    products: ProductForm,
  ): Promise<Divergence> => {
    const dir = path.join(MODELS, name);
    const runner =
      products === 'native'
        ? await loadNativeRunner(dir, cache.dir, precision)
        : await loadRunner(dir, cache.dir, precision, 'int8', 1024, products);
    const divergence = new Divergence();
    await forEachLogits(runner, nll.input_ids, (position, row) => divergence.add(expected[position]!, row));
    await runner.dispose();
    return divergence;
  };

  test('int8: the KL divergence is within the bounds', async () => {
    const { variants } = readJson<Simulation>(reference, 'int8_simulation.json');
    const bound = variants.w8a8_kv8_bias_remedy ?? variants.w8a8_kv8_plain_keys!;
    const expected = await expectedLogits();
    for (const products of [...formsHere, 'native'] as const) {
      const divergence = await divergenceOf(expected, 'int8', products);
      // 7-bit codes have half the resolution, and so about four times the divergence.
      if (products === 'narrow') expect(divergence.mean).toBeLessThan(5 * bound.mean_kl);
      else {
        expect(divergence.mean).toBeLessThan(1.5 * bound.mean_kl);
        expect(divergence.max).toBeLessThan(3 * bound.max_kl);
        expect(divergence.topAgreement).toBeGreaterThan(bound.top1_agreement - 0.04);
      }
    }
  });

  // The fixtures are far smaller than any model for which 4 bits are meant. Measured: 0.15 to 0.26 and 0.64 to 0.69.
  test('int4: the KL divergence is within the bounds', async () => {
    const expected = await expectedLogits();
    for (const products of [...formsHere, 'native'] as const) {
      const divergence = await divergenceOf(expected, 'int4', products);
      expect(divergence.mean).toBeLessThan(0.35);
      expect(divergence.topAgreement).toBeGreaterThan(0.6);
    }
  });

  // Integer sums, codes per row and a softmax that is independent of slot order make results independent of load. A
  // difference could only come from a last bit that changes a code. Almost none occurs (measured: 0 in thousands of rows).
  test.each(['int8', 'int4'] as const)('%s: chunks, batches and slots change nothing', async (precision) => {
    const runner = await loadRunner(path.join(MODELS, name), cache.dir, precision);
    const alone: Float32Array[] = [];
    await forEachLogits(runner, nll.input_ids, (_, row) => void alone.push(row.slice()), 64);
    let different = 0;
    let compared = 0;
    for (const [chunk, numTokens] of [
      [1, 300],
      [7, nll.input_ids.length],
    ] as const) {
      compared += Math.min(numTokens, nll.input_ids.length);
      await forEachLogits(
        runner,
        nll.input_ids.slice(0, numTokens),
        (position, row) => {
          if (maxDifference(alone[position]!, row) > 1e-3) different++;
        },
        chunk,
      );
    }
    expect(different / compared).toBeLessThan(0.02);
    const inputs = prompts.map((p) => p.input_ids);
    const oneByOne: number[][] = [];
    for (const [i, prompt] of inputs.entries()) oneByOne.push(...(await generateTogether(runner, [prompt], 24, 64, i)));
    for (const chunk of [5, 50]) expect(await generateTogether(runner, inputs, 24, chunk, chunk)).toEqual(oneByOne);
    await runner.dispose();
  });
});
