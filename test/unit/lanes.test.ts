/** Which tokens take which lane, how the cache tells them apart, and which layers keep their key bias out of the codes. */
import { describe, expect, test } from 'vitest';
import { laneIds } from '../../engine/laneIds.ts';
import { keyBiasLayers, keyBiasMatrix, largeKeyBiasLayers, rotateBias } from '../../engine/model/keyBias.ts';
import { RopeTable } from '../../engine/model/rope.ts';
import { Sequence } from '../../engine/sequence.ts';
import { prefillTokens } from '../../engine/tasks/prefillTokens.ts';

test('ids differ between the lanes, and agree within each', () => {
  const ids = [5, 6, 5];
  expect(laneIds(ids, 0)).toEqual(ids);
  const all = laneIds(ids, 3);
  expect(all[0]).toBe(all[2]);
  expect(new Set([...ids, ...all]).size).toBe(4);
  expect(laneIds(ids, 2)).toEqual([all[0], all[1], 5]);
});

test('a prompt\'s tokens: the block, then whole pieces of what follows, never its last token', () => {
  expect(prefillTokens(100, 0)).toBe(100);
  expect(prefillTokens(100, 256)).toBe(100);
  expect(prefillTokens(100, 257)).toBe(356);
  expect(prefillTokens(0, 1000)).toBe(768);
});

test('a sequence keeps its lanes while it grows, and takes the engine\'s bound', () => {
  const sequence = new Sequence({ id: 'a', priority: 'chat', promptIds: [1, 2, 3, 4], prefillTokens: 9, eosIds: [], detokenizer: { push: () => '', flush: () => '' }, onToken: () => {}, onFinish: () => {}, onError: () => {} });
  expect(sequence.prefillEnd).toBe(4);
  sequence.limitPrefill(6);
  expect(sequence.prefillEnd).toBe(4);
  sequence.limitPrefill(2);
  sequence.append({ tokenId: 7, logprob: null, topLogprobs: [] }, 0);
  expect(sequence.cacheIds).toEqual(laneIds([1, 2, 3, 4, 7], 2));
});

describe('key biases', () => {
  const config = { numLayers: 2, hiddenSize: 4, kvHeads: 1, headSize: 2, qkvBias: true, qkNorm: false } as never;
  /** Layer 1's bias as given; keys of variance 4, from four inputs of weight 1. */
  const weights = (bias: number[]) => ({
    rows: async (name: string, _first: number, _count: number, out: Float32Array) => {
      out.fill(name.endsWith('bias') ? 0 : 1);
      if (name.includes('layers.1.') && name.endsWith('bias')) out.set(bias);
      return out;
    },
  }) as never;

  test('a bias is large beside the deviation of its own layer\'s keys', async () => {
    expect(keyBiasLayers(config)).toEqual([0, 1]);
    // The pair's length counts: 4.3 in both is 6.1, and the bound is three times 2.
    expect(await largeKeyBiasLayers(config, weights([4.3, 4.3]))).toEqual([1]);
    expect(await largeKeyBiasLayers(config, weights([4.2, 4.2]))).toEqual([]);
    expect(await largeKeyBiasLayers({ ...(config as object), qkNorm: true } as never, weights([100, 100]))).toEqual([]);
  });

  test('what is added to the keys and what is added to the scores are the same', () => {
    const rope = new RopeTable({ type: 'default', theta: 10_000 } as never, 8);
    rope.ensure(50);
    const bias = Float32Array.from({ length: 8 }, (_, i) => 10 * Math.sin(i + 1));
    const query = Float32Array.from({ length: 8 }, (_, i) => Math.cos(3 * i));
    const matrix = keyBiasMatrix(bias, 8);
    const turned = new Float32Array(8);
    for (const position of [0, 1, 49]) {
      rotateBias(bias, 0, rope, position, turned, 0);
      const direct = query.reduce((sum, q, i) => sum + q * turned[i]!, 0);
      let byMatrix = 0;
      for (let row = 0; row < 8; row++) {
        for (let i = 0; i < 4; i++) byMatrix += query[row]! * (matrix[row * 8 + i]! * rope.cos[position * 4 + i]! + matrix[row * 8 + 4 + i]! * rope.sin[position * 4 + i]!);
      }
      expect(byMatrix).toBeCloseTo(direct, 4);
    }
  });
});
