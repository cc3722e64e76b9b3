/**
 * Runs the suite `heads` on short contexts. Checks that everything is measured and that the bytes follow the number of
 * heads.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { headsBench, headsReport } from './headsBench.ts';
import { BUILT_IN } from '../support/builtIn.ts';

const cache = await mkdtemp(join(tmpdir(), 'kvasir-heads-'));
afterAll(() => rm(cache, { recursive: true, force: true }));

test('models that differ only in their KV heads', async () => {
  const { hiddenSize, headSize, numLayers, numHeads, kvHeads } = BUILT_IN.config;
  const all = [numHeads, kvHeads, 1];
  const result = await headsBench({ threads: 1, rounds: 1, contexts: [32, 96], cache });
  expect(result.models.map((model) => model.kvHeads)).toEqual(all);
  expect(result.models.map(({ float16Bytes }) => float16Bytes)).toEqual(
    all.map((heads) => heads * 2 * headSize * numLayers * 2),
  );
  // Each head has a scale for its keys and one for its values. Each token has a position and a stamp.
  expect(result.models.map(({ kvBytes }) => kvBytes)).toEqual(
    all.map((heads) => heads * 2 * (headSize + 4) * numLayers + 8),
  );
  // Only the weights that make keys and values in each layer differ.
  expect(result.models.map(({ parameters }) => parameters - result.models[2]!.parameters)).toEqual(
    all.map((heads) => (heads - 1) * 2 * headSize * hiddenSize * numLayers),
  );
  for (const { decode, prefill } of result.models) {
    expect(decode.map(({ context, ms }) => [context, ms.samples.length])).toEqual([
      [32, 1],
      [96, 1],
    ]);
    expect(prefill.map(({ context, tokensPerSecond }) => [context, tokensPerSecond.median > 0])).toEqual([
      [32, true],
      [96, true],
    ]);
  }
  expect(
    headsReport(result)
      .split('\n')
      .filter((line) => line.startsWith('| ')),
  ).toHaveLength(5);
});
