/** Which tokens take which lane, how the cache tells them apart, and which layers keep their key bias out of the codes. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { prefillRows, prefillTokensIn, scratchRows } from '../../../engine/model/batch.ts';
import { newKvRows } from '../../../engine/kv/kvRows.ts';
import { KvPool } from '../../../engine/kv/pool.ts';
import { laneIds } from '../../../engine/kv/laneIds.ts';
import { keyBiasLayers, keyBiasMatrix, largeKeyBiasLayers } from '../../../engine/model/load/keyBias.ts';
import { rotateBias, RopeTable } from '../../../engine/model/runtime/rope.ts';
import { parseConfig } from '../../../engine/model/load/hfConfig.ts';
import { kvShape } from '../../../engine/model/load/importedModel.ts';
import { PrefillScratch, scratchBytesPerToken } from '../../../engine/model/runtime/prefillFeeds.ts';
import { FEEDS } from '../../../engine/model/graph/feeds.ts';
import { buildStepGraph } from '../../../engine/model/graph/stepGraph.ts';
import { planWeights } from '../../../engine/model/load/weightPlan.ts';
import { Sequence } from '../../../engine/sequence/sequence.ts';
import { prefillRanges } from '../../../engine/tasks/preparedRequest.ts';

test('ids differ between the lanes, and agree within each', () => {
  const ids = [5, 6, 5];
  expect(laneIds(ids, [])).toEqual(ids);
  const all = laneIds(ids, [[0, 3]]);
  expect(all[0]).toBe(all[2]);
  expect(new Set([...ids, ...all]).size).toBe(4);
  expect(laneIds(ids, [[0, 2]])).toEqual([all[0], all[1], 5]);
  expect(
    laneIds(ids, [
      [0, 1],
      [2, 9],
    ]),
  ).toEqual([all[0], 6, all[2]]);
});

test('the prefill lane gets the file block and the longer texts after it', () => {
  expect(prefillRanges(100, [])).toEqual([[0, 100]]);
  expect(prefillRanges(100, [[0, 31]])).toEqual([[0, 100]]);
  expect(prefillRanges(100, [[0, 32]])).toEqual([[0, 132]]);
  expect(prefillRanges(0, [[0, 31]])).toEqual([]);
  expect(
    prefillRanges(0, [
      [0, 1000],
      [1200, 1300],
      [1400, 1410],
      [1500, 1600],
    ]),
  ).toEqual([
    [0, 1000],
    [1200, 1300],
    [1500, 1600],
  ]);
  expect(prefillRanges(50, [[3, 40]])).toEqual([
    [0, 50],
    [53, 90],
  ]);
});

test("the scratches are never larger than their share: tokens and rows are each other's inverse", () => {
  expect([0, 1, 511, 512].map(prefillRows)).toEqual([0, 512, 512, 1024]);
  // A second one for short prompts where there are long ones.
  expect([0, 1, 511, 512, 1024].map(scratchRows)).toEqual([0, 512, 512, 1024, 1536]);
  expect([3583, 3584].map(scratchRows)).toEqual([3584, 5120]);
  expect([0, 511, 512, 1024, 4096, 5119, 5120, 5632].map(prefillTokensIn)).toEqual([
    0, 0, 511, 1023, 3583, 3583, 4095, 4607,
  ]);
  for (let rows = 0; rows < 5000; rows += 37) expect(scratchRows(prefillTokensIn(rows))).toBeLessThanOrEqual(rows);
});

test("a sequence keeps its lanes while it grows, up to the engine's limit", () => {
  const sequence = new Sequence({
    id: 'a',
    priority: 'chat',
    promptIds: [1, 2, 3, 4],
    prefill: [
      [0, 1],
      [2, 9],
    ],
    eosIds: [],
    detokenizer: { push: () => '', flush: () => '' },
    onToken: () => {},
    onFinish: () => {},
    onError: () => {},
  });
  expect([0, 1, 2, 3, 4].map((i) => sequence.laneAt(i))).toEqual(['prefill', 'paged', 'prefill', 'prefill', 'paged']);
  expect([0, 1, 2, 3].map((i) => sequence.laneEnd(i))).toEqual([1, 2, 4, 4]);
  sequence.limitPrefill(6);
  expect(sequence.prefillEnd).toBe(4);
  // What is computed stays of its lane.
  sequence.limitPrefill(3, 4);
  expect(sequence.prefillEnd).toBe(4);
  sequence.limitPrefill(3);
  expect([sequence.prefillEnd, sequence.laneEnd(3)]).toEqual([3, 4]);
  sequence.append({ tokenId: 7, logprob: null, topLogprobs: [] }, 0);
  expect(sequence.cacheIds).toEqual(
    laneIds(
      [1, 2, 3, 4, 7],
      [
        [0, 1],
        [2, 3],
      ],
    ),
  );
});

describe('key biases', () => {
  const shape = { numLayers: 2, hiddenSize: 4, kvHeads: 1, headSize: 2, qkvBias: true, qkNorm: null, normOffset: 0 };
  const config = { ...shape, rope: {} } as never;
  /** Layer 1's bias as given; keys of variance 4, from four inputs of weight 1. */
  const weights = (bias: number[]) =>
    ({
      rows: async (name: string, _first: number, _count: number, out: Float32Array) => {
        out.fill(name.endsWith('bias') ? 0 : 1);
        if (name.includes('layers.1.') && name.endsWith('bias')) out.set(bias);
        return out;
      },
    }) as never;

  test('a bias is large in comparison with the deviation of the keys of its layer', async () => {
    expect(keyBiasLayers(config)).toEqual([0, 1]);
    expect(keyBiasLayers({ ...shape, rope: { unrotated: [1] } } as never)).toEqual([0]);
    // The pair's length counts: 4.3 in both is 6.1, and the bound is three times 2.
    expect(await largeKeyBiasLayers(config, weights([4.3, 4.3]))).toEqual([1]);
    expect(await largeKeyBiasLayers(config, weights([4.2, 4.2]))).toEqual([]);
    expect(await largeKeyBiasLayers({ ...(config as object), qkNorm: 'head' } as never, weights([100, 100]))).toEqual(
      [],
    );
  });

  test('a model without large biases feeds and keeps no rotations', () => {
    const qwen2 = parseConfig(JSON.parse(readFileSync('test/fixtures/models/qwen2-untied-bf16/config.json', 'utf8')));
    const graph = (biased: readonly number[]): Buffer =>
      Buffer.from(
        buildStepGraph(qwen2, planWeights(qwen2, 'int8', false, 'rows', biased), { kv: 'int8', weightFile: 'w' }),
      );
    for (const biased of [[], [0]]) {
      expect(graph(biased).includes(FEEDS.poolRotations)).toBe(biased.length > 0);
      expect((kvShape(qwen2, 'int8', biased).runnerBytes ?? 0) > 0).toBe(biased.length > 0);
    }
  });

  test('adding the bias to the keys equals adding it to the scores', () => {
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
        for (let i = 0; i < 4; i++)
          byMatrix +=
            query[row]! *
            (matrix[row * 8 + i]! * rope.cos[position * 4 + i]! +
              matrix[row * 8 + 4 + i]! * rope.sin[position * 4 + i]!);
      }
      expect(byMatrix).toBeCloseTo(direct, 4);
    }
  });
});

describe('the scratch', () => {
  const shape = { numLayers: 1, kvHeads: 1, headSize: 2, kv: 'int8' } as const;
  const rope = new RopeTable({ type: 'default', theta: 10_000 } as never, 2);

  function setUp(biases = new Map<number, Float32Array>()) {
    const window = new KvPool(shape, 8);
    const write = (slot: number, code: number, position = 0): void => {
      const rows = newKvRows(shape, 1);
      rows.keys.fill(code);
      rows.values.fill(-code);
      rows.keyScales.fill(0.5);
      rows.valueScales.fill(0.25);
      window.write(Int32Array.of(slot), rows, 0, position);
    };
    return { write, scratch: new PrefillScratch(window, rope, biases) };
  }
  const rows = (array: Float32Array, n: number): number[] => [...array.subarray(0, 2 * n)];

  test('has the dequantised rows in the order of the prompt, and no more than its share', () => {
    const { write, scratch } = setUp();
    write(5, 4);
    write(2, 8);
    scratch.prepare(Int32Array.of(5, 2), 600);
    expect(rows(scratch.keys(0), 2)).toEqual([2, 2, 4, 4]);
    expect(rows(scratch.values(0), 2)).toEqual([-1, -1, -2, -2]);
    expect(scratch.bytes).toBe(prefillRows(600) * scratchBytesPerToken(shape));
    const { generation } = scratch;
    scratch.prepare(Int32Array.of(5, 2), 1023);
    expect(scratch.generation).toBe(generation);
    scratch.release();
    expect(scratch.bytes).toBe(0);
    scratch.prepare(Int32Array.of(5), 1);
    expect(rows(scratch.keys(0), 1)).toEqual([2, 2]);
  });

  test('gives a step only the rows that it needs, and moves rows without changing them', () => {
    const wide = { numLayers: 2, kvHeads: 3, headSize: 2, kv: 'int8' } as const;
    const window = new KvPool(wide, 1024);
    const slots = Int32Array.from({ length: 1000 }, (_, i) => i);
    const codes = newKvRows(wide, slots.length);
    for (let i = 0; i < codes.keys.length; i++) codes.keys[i] = i % 127;
    for (let i = 0; i < codes.values.length; i++) codes.values[i] = -(i % 113);
    codes.keyScales.fill(0.5);
    codes.valueScales.fill(0.25);
    window.write(slots, codes, 0, 0);
    const scratch = new PrefillScratch(window, rope, new Map());
    // Each holds what one that has always had this stride holds.
    for (const [tokens, end] of [
      [100, 120],
      [300, 1000],
      [700, 1000],
      [200, 1000],
      [205, 230],
      [990, 1000],
    ] as const) {
      scratch.prepare(slots.subarray(0, tokens), end);
      const fresh = new PrefillScratch(window, rope, new Map());
      fresh.prepare(slots.subarray(0, tokens), end);
      expect(scratch.stride).toBeGreaterThanOrEqual(tokens);
      expect(scratch.stride).toBeLessThanOrEqual(1.25 * tokens + 128);
      for (const rowsOf of [(one: PrefillScratch) => one.keys(1), (one: PrefillScratch) => one.values(0)]) {
        const heads = (one: PrefillScratch): number[][] =>
          [0, 1, 2].map((h) => [...rowsOf(one).subarray(h * one.stride * 2, (h * one.stride + tokens) * 2)]);
        expect(heads(scratch)).toEqual(heads(fresh));
      }
    }
    expect(scratch.bytes).toBe(prefillRows(1000) * scratchBytesPerToken(wide));
  });

  test('copies a row again only if its slot was written', () => {
    const { write, scratch } = setUp();
    for (const slot of [0, 1, 2]) write(slot, 2 * slot + 2);
    scratch.prepare(Int32Array.of(0, 1), 3);
    scratch.keys(0).set([9, 9], 0);
    scratch.prepare(Int32Array.of(0, 1, 2), 3);
    expect(rows(scratch.keys(0), 3)).toEqual([9, 9, 2, 2, 3, 3]);
    write(1, 10);
    scratch.prepare(Int32Array.of(0, 1, 2), 3);
    expect(rows(scratch.keys(0), 3)).toEqual([9, 9, 5, 5, 3, 3]);
  });

  test('keeps its rows when it grows, and adds the rotated bias', () => {
    const { write, scratch } = setUp(new Map([[0, Float32Array.of(1, 0)]]));
    write(0, 4);
    // Where its token stands, whatever its place among the rows: some may have been let go before it.
    write(1, 4, 3);
    scratch.prepare(Int32Array.of(0), 1);
    scratch.keys(0).set([9, 9], 0);
    scratch.prepare(Int32Array.of(0, 1), 2000);
    expect(rows(scratch.keys(0), 1)).toEqual([9, 9]);
    expect(scratch.keys(0)[2]).toBeCloseTo(2 + Math.cos(3), 6);
    expect(scratch.keys(0)[3]).toBeCloseTo(2 + Math.sin(3), 6);
  });
});
