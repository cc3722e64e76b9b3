/**
 * The native kernels: the same bits from every instruction set, in every chunking and in every slot; queries and
 * received attention as from the step graph; and errors at the border to C.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { BatchSpan, Runner } from '../../engine/model/batch.ts';
import { KvPool } from '../../engine/kv/pool.ts';
import { openRunner } from '../../engine/model/calibrate/threadChoice.ts';
import { importModel } from '../../engine/model/import/importModel.ts';
import { kvShape } from '../../engine/model/load/importedModel.ts';
import { loadAddon } from '../../engine/model/native/addon.ts';
import { NativeRunner } from '../../engine/model/native/nativeRunner.ts';
import { nativeFault, selfTestFault } from '../../engine/model/native/selfTest.ts';
import {
  isNarrowHere,
  loadNativeRunner,
  loadRunner,
  maxDifference,
  MODELS,
  random,
  temporaryFolder,
} from '../support/model/fixtures.ts';
import { writeRandomModel } from '../support/model/randomModel.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
const cacheDir = path.join(folder.dir, 'cache');
const kernels = loadAddon().kernels();

/** Sizes that are no multiples of a vector, sizes of real models, and experts. */
const SHAPES = {
  odd: { hidden_size: 72, intermediate_size: 200, num_attention_heads: 6, num_key_value_heads: 2, head_dim: 20 },
  usual: { hidden_size: 128, intermediate_size: 256, num_attention_heads: 4, num_key_value_heads: 1, head_dim: 64 },
  wide: { hidden_size: 256, intermediate_size: 384, num_attention_heads: 2, num_key_value_heads: 2, head_dim: 128 },
  experts: {
    model_type: 'qwen3_moe',
    hidden_size: 136,
    intermediate_size: 200,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    head_dim: 16,
    num_experts: 37,
    num_experts_per_tok: 5,
    moe_intermediate_size: 72,
    norm_topk_prob: false,
  },
};
const NUM_TOKENS = 90;
const next = random(5);
const ids = Array.from({ length: NUM_TOKENS }, () => Math.floor(next() * 301));

function spanOf(slots: Int32Array, from: number, to: number, numLogits = to - from): BatchSpan {
  return {
    tokenIds: ids.slice(from, to),
    startIndex: from,
    contextSlots: slots.slice(0, from),
    newSlots: slots.slice(from, to),
    numLogits,
  };
}

/** The logits of all tokens, computed in chunks. */
async function logitsOf(runner: Runner, slots: Int32Array, chunk: number): Promise<Float32Array> {
  const all = new Float32Array(NUM_TOKENS * runner.vocabSize);
  for (let from = 0; from < NUM_TOKENS; from += chunk) {
    const to = Math.min(NUM_TOKENS, from + chunk);
    all.set(await runner.run([spanOf(slots, from, to)]), from * runner.vocabSize);
  }
  return all;
}

const inOrder = Int32Array.from({ length: NUM_TOKENS }, (_, i) => i);

describe.each(Object.entries(SHAPES))('shape %s', (name, shape) => {
  const dir = path.join(folder.dir, name);
  writeRandomModel(dir, {
    config: {
      model_type: 'qwen2',
      num_hidden_layers: 2,
      vocab_size: 301,
      rms_norm_eps: 1e-6,
      max_position_embeddings: 256,
      tie_word_embeddings: true,
      ...shape,
    },
    dtype: 'F32',
    seed: 3,
  });

  test.each(['int8', 'int4'] as const)('%s: kernels, chunks, slots and pages change no bit', async (precision) => {
    const reference = await loadNativeRunner(dir, cacheDir, precision, { kernels: 'plain' });
    const expected = await logitsOf(reference, inOrder, NUM_TOKENS);
    await reference.dispose();
    // 250 slots are a single page whose size is no multiple of a block; 1,024 are four pages.
    for (const name of kernels)
      for (const [numSlots, threads, chunks] of [
        [250, 1, [7, NUM_TOKENS]],
        [1024, 2, [1, 13]],
      ] as const) {
        const runner = await loadNativeRunner(dir, cacheDir, precision, { kernels: name, numSlots, threads });
        const scattered = inOrder.map((i) => (i * 77 + 5) % numSlots);
        for (const chunk of name === 'plain' ? [13] : chunks)
          expect(await logitsOf(runner, scattered, chunk), `${name}, ${numSlots} slots, chunk ${chunk}`).toEqual(
            expected,
          );
        await runner.dispose();
      }
  });

  test('a token has the same bits with any other sequences in the step', async () => {
    const runner = await loadNativeRunner(dir, cacheDir, 'int8', { threads: 2 });
    const alone = await logitsOf(runner, inOrder, NUM_TOKENS);
    const row = (i: number) => alone.subarray(i * runner.vocabSize, (i + 1) * runner.vocabSize);
    const at = (first: number) => inOrder.map((i) => first + i);
    for (const first of [200, 400, 600]) await runner.run([spanOf(at(first), 0, 50, 0)]);
    const together = await runner.run([
      spanOf(at(200), 50, 51),
      spanOf(at(800), 0, 30, 0),
      spanOf(at(400), 50, 53),
      spanOf(at(600), 50, 70, 1),
    ]);
    expect(together).toEqual(Float32Array.from([50, 50, 51, 52, 69].flatMap((i) => [...row(i)])));
    await runner.dispose();
  });

  test('sequences that share the slots of their beginning give the bits of each alone', async () => {
    const runner = await loadNativeRunner(dir, cacheDir, 'int8', { threads: 2 });
    const alone = await logitsOf(runner, inOrder, NUM_TOKENS);
    const row = (i: number) => alone.subarray(i * runner.vocabSize, (i + 1) * runner.vocabSize);
    // The first 64 slots are a whole block.
    const at = (first: number) => inOrder.map((i) => (i < 70 ? i : first + i));
    for (const steps of [
      [70, 71],
      [71, 74],
      [74, 75],
    ] as const) {
      const spans = [200, 400, 600].map((first) => spanOf(at(first), steps[0], steps[1]));
      const expected = Array.from({ length: steps[1] - steps[0] }, (_, i) => [...row(steps[0] + i)]).flat();
      expect(await runner.run(spans)).toEqual(Float32Array.from([...expected, ...expected, ...expected]));
    }
    await runner.dispose();
  });
});

// The first model has key biases of hundreds, so rounding moves its scores by more. The step graph has codes of 7 bits
// on processors without VNNI. The kernels always have 8.
test.each([
  ['qwen2-untied-bf16', 'int8', isNarrowHere ? 0.25 : 0.1],
  ['qwen3-tied-sharded', 'int8', isNarrowHere ? 0.12 : 0.03],
  // A window, and limits of scores.
  ['../families/gemma2', 'float32', 0.05],
] as const)('%s: queries and received attention are those of the step graph', async (name, precision, share) => {
  const dir = path.join(MODELS, name);
  const [onnx, native] = [
    await loadRunner(dir, cacheDir, precision, 'int8'),
    await loadNativeRunner(dir, cacheDir, 'int8'),
  ];
  const slots = inOrder.map((i) => (i * 37) % 1024);
  const text = ids.map((id) => id % native.vocabSize);
  const spanIn = (from: number, to: number): BatchSpan => ({
    ...spanOf(slots, from, to, 1),
    tokenIds: text.slice(from, to),
  });
  const measured = async (runner: Runner) => {
    await runner.run([spanIn(0, 60)]);
    const span = { ...spanIn(60, 72), measures: true, numQueries: 3 };
    const logits = Float32Array.from(await runner.run([span]));
    return {
      logits,
      queries: runner.queries!.slice(),
      most: runner.received!.most.slice(),
      sum: runner.received!.sum,
    };
  };
  const [expected, got] = [await measured(onnx), await measured(native)];
  for (const part of ['logits', 'queries', 'most', 'sum'] as const) {
    const largest = expected[part].reduce((most, v) => Math.max(most, Math.abs(v)), 0);
    expect(maxDifference(expected[part], got[part]), part).toBeLessThan(share * largest);
  }
  await native.run([spanIn(72, 73)]);
  expect([native.queries, native.received]).toEqual([null, null]);
  await onnx.dispose();
  await native.dispose();
});

describe('a window', () => {
  /** A model with a window of `tokens` in all its layers, or without one. */
  const windowed = (tokens: number | null, numLayers: number): Promise<NativeRunner> => {
    const from = path.join(MODELS, '../families/mistral-window');
    const dir = path.join(folder.dir, `window-${tokens}-${numLayers}`);
    cpSync(from, dir, { recursive: true });
    const config = JSON.parse(readFileSync(path.join(from, 'config.json'), 'utf8')) as object;
    const changed = { ...config, sliding_window: tokens, num_hidden_layers: numLayers, layer_types: undefined };
    writeFileSync(path.join(dir, 'config.json'), JSON.stringify(changed));
    return loadNativeRunner(dir, cacheDir, 'int8', { threads: 2 });
  };
  const scattered = inOrder.map((i) => (i * 77 + 5) % 1024);
  const textOf = (vocabSize: number): number[] => ids.map((id) => id % vocabSize);
  const run = (runner: NativeRunner, from: number, to: number, first = 0): Promise<Float32Array> =>
    runner.run([
      {
        ...spanOf(scattered, from, to),
        tokenIds: textOf(runner.vocabSize).slice(from, to),
        contextSlots: scattered.slice(first, from),
      },
    ]);

  test('that is longer than the text changes no bit', async () => {
    const [long, none] = [await windowed(120, 2), await windowed(null, 2)];
    expect(await run(long, 0, NUM_TOKENS)).toEqual(Float32Array.from(await run(none, 0, NUM_TOKENS)));
    await long.dispose();
    await none.dispose();
  });

  test.each([1, 9, 64, 70])('of %i tokens: a layer gives what it gives without the slots before it', async (tokens) => {
    const [with_, without] = [await windowed(tokens, 1), await windowed(null, 1)];
    const all = Float32Array.from(await run(with_, 0, NUM_TOKENS));
    for (let i = 0; i < NUM_TOKENS; i++) {
      const alone = await run(without, i, i + 1, Math.max(0, i - tokens + 1));
      expect(all.subarray(i * alone.length, (i + 1) * alone.length), `token ${i}`).toEqual(alone);
    }
    expect(all).not.toEqual(await run(without, 0, NUM_TOKENS));
    await with_.dispose();
    await without.dispose();
  });
});

describe('the border to C', () => {
  const open = (): Promise<NativeRunner> => loadNativeRunner(path.join(MODELS, 'gguf-qwen2'), cacheDir, 'int8');
  /** One layer, all of 16, with a rope and without a window. */
  const SHAPE = Int32Array.of(1, 16, 1, 1, 16, 16, 16, 8, 8, 8, 0, 0, 0, 0, 0, 0, 1);
  const FACTORS = Float64Array.of(1e-6, 0, 0);
  const WEIGHTS = new Uint8Array(65_536);
  /** Every tensor is there, but those of routers, of head norms, of biases and of norms behind layers. */
  const TENSORS = Float64Array.from({ length: 2 * (27 + 6) }, (_, i) => (i % 2 === 0 ? 0 : 8192));
  for (const i of [1, 4, 5, 6, 7, 8, 11, 12, 14, 15, 16, 19, 22, 25, 26, 30]) TENSORS[2 * i] = -1;
  const openAddon = (shape: Int32Array, factors: Float64Array, weights: string | Uint8Array) =>
    loadAddon().open(weights, 'plain', shape, factors, new Float64Array(2 * (27 + 6)), 1);

  test('a token id that is too large is refused, and the runner goes on', async () => {
    const runner = await open();
    const bad = { ...spanOf(inOrder, 0, 2), tokenIds: [1, runner.vocabSize] };
    await expect(runner.run([bad])).rejects.toThrow(/^Token id \d+ is not below the model's vocabulary size \d+\.$/);
    expect((await runner.run([{ ...bad, tokenIds: [1, 2] }])).length).toBe(2 * runner.vocabSize);
    await runner.dispose();
  });

  test('no more threads run than the kernels can use, with the same results', async () => {
    const [few, many] = [
      await open(),
      await loadNativeRunner(path.join(MODELS, 'gguf-qwen2'), cacheDir, 'int8', { threads: 1000 }),
    ];
    expect([few.threads, many.threads]).toEqual([1, 64]);
    const expected = Float32Array.from(await few.run([spanOf(inOrder, 0, 40)]));
    expect(await many.run([spanOf(inOrder, 0, 40)])).toEqual(expected);
    await few.dispose();
    await many.dispose();
  });

  test('a slot outside the pool is refused', async () => {
    const runner = await open();
    const bad = { ...spanOf(inOrder, 0, 2), newSlots: Int32Array.of(0, 1024) };
    await expect(runner.run([bad])).rejects.toThrow('A slot is not in the pool.');
    await runner.dispose();
  });

  test('only one step runs at a time, and none after the end', async () => {
    const runner = await open();
    const first = runner.run([spanOf(inOrder, 0, 40)]);
    await expect(runner.run([spanOf(inOrder, 0, 1)])).rejects.toThrow('A step runs.');
    await first;
    await runner.dispose();
    await expect(runner.run([spanOf(inOrder, 0, 1)])).rejects.toThrow('This is no open engine.');
  });

  test('weights that are gone, or too large for the memory, are told as such', async () => {
    const model = await importModel({
      modelDir: path.join(MODELS, 'gguf-qwen2'),
      cacheDir,
      precision: 'int8',
      products: 'native',
    });
    const pool = new KvPool(kvShape(model.config, 'int8', model.biased), 64);
    const gone = { ...model, dir: path.join(folder.dir, 'gone') };
    expect(() => NativeRunner.create(gone, pool, { threads: 1 })).toThrow(
      /^The converted weights .*weights\.bin cannot be read: ENOENT/,
    );
    // A folder can be read, but not mapped.
    mkdirSync(path.join(gone.dir, 'weights.bin'), { recursive: true });
    expect(() => NativeRunner.create(gone, pool, { threads: 1 })).toThrow(
      `The model needs ${Math.ceil(model.weightsBytes / 1e6)} MB for its weights, but too little memory is left.`,
    );
  });

  test('a weight file that is missing or too short is refused', () => {
    const open = (weights: string | Uint8Array) => () => openAddon(SHAPE, FACTORS, weights);
    expect(open(path.join(folder.dir, 'nothing'))).toThrow('The weight file cannot be mapped into memory.');
    const short = new Uint8Array(4096);
    for (const weights of [import.meta.filename, short])
      expect(open(weights)).toThrow('A tensor is not among the weights or is too short.');
  });

  test.each([
    ['a layer of an unknown kind', SHAPE.with(16, 3), FACTORS],
    ['a layer with a window, but no window', SHAPE.with(16, 5), FACTORS],
    ['a negative window', SHAPE.with(11, -1), FACTORS],
    ['a share of no experts', SHAPE.with(15, 1), FACTORS],
    ['more experts for a token than there are', Int32Array.of(...SHAPE.slice(0, 12), 4, 5, 16, 0, 1), FACTORS],
    ['experts of no size', Int32Array.of(...SHAPE.slice(0, 12), 4, 2, 0, 0, 1), FACTORS],
    ['an unknown activation', SHAPE.with(10, 2), FACTORS],
    ['a layer without a kind', SHAPE.slice(0, 16), FACTORS],
    ['a limit that is no number', SHAPE, FACTORS.with(1, Number.NaN)],
    ['a missing limit', SHAPE, FACTORS.slice(0, 2)],
  ])('%s is refused', (_name, shape, factors) => {
    expect(() => openAddon(shape, factors, new Uint8Array(4096))).toThrow('The shape of the model is not supported.');
  });

  test('a router without experts is refused, and experts of which some are missing', () => {
    const addon = loadAddon();
    const tensors = TENSORS.with(2 * 15, 0).with(2 * 16, 0);
    const open = (experts: number) => () => {
      const shape = Int32Array.of(...SHAPE.slice(0, 12), experts, experts && 1, experts && 16, 0, 1);
      addon.close(addon.open(WEIGHTS, 'plain', shape, FACTORS, tensors, 1));
    };
    // An expert has 256 bytes in each of three tensors of 8,192.
    expect(open(32)).not.toThrow();
    for (const count of [0, 33]) expect(open(count)).toThrow('A tensor is not among the weights or is too short.');
  });

  test('a slot without a position is refused if there is a window, and angles of one rope if there are two', () => {
    const addon = loadAddon();
    const engine = addon.open(WEIGHTS, 'plain', SHAPE.with(11, 3).with(16, 6), FACTORS, TENSORS, 1);
    const pool = [new Int8Array(1024), new Int8Array(1024), new Float32Array(64), new Float32Array(64)];
    addon.bind(engine, 64, pool);
    const step = (numAngles: number, numPositions: number) => () =>
      addon.step(engine, [
        Int32Array.of(1),
        new Float32Array(numAngles),
        new Float32Array(numAngles),
        Int32Array.of(1, 0),
        new Int32Array(0),
        Int32Array.of(5),
        new Int32Array(numPositions),
        Int32Array.of(0),
        Int32Array.of(0),
        new Int32Array(0),
        new Float32Array(16),
        new Float32Array(0),
        new Float32Array(0),
      ]);
    expect(step(16, 63)).toThrow('A slot has no position.');
    expect(step(8, 64)).toThrow('The arrays of a step have different sizes.');
    addon.close(engine);
  });
});

test('a model whose heads do not fit the kernels is imported for onnxruntime, and runs', async () => {
  const dir = path.join(folder.dir, 'heads');
  writeRandomModel(dir, {
    config: {
      model_type: 'qwen2',
      num_hidden_layers: 1,
      hidden_size: 36,
      intermediate_size: 40,
      num_attention_heads: 2,
      num_key_value_heads: 1,
      head_dim: 18,
      vocab_size: 301,
      rms_norm_eps: 1e-6,
      max_position_embeddings: 64,
      tie_word_embeddings: true,
    },
    dtype: 'F32',
    seed: 3,
  });
  const model = await importModel({ modelDir: dir, cacheDir, precision: 'int8', products: 'native' });
  expect(model.products).not.toBe('native');
  const runner = await openRunner(model, new KvPool(kvShape(model.config, 'int8', model.biased), 64), { threads: 1 });
  expect(runner.kernels).toBeUndefined();
  expect((await runner.run([spanOf(inOrder, 0, 3, 1)])).every(Number.isFinite)).toBe(true);
  await runner.dispose();
});

test('the self-test passes here, and a failure is told in its words', async () => {
  expect(await nativeFault()).toBeNull();
  expect(await selfTestFault(() => Promise.reject(new Error('other results')))).toBe('other results');
});
