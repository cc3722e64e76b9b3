/**
 * Pruned rows over the real graph: the measured attention, contexts with fewer rows than tokens in every kind of step,
 * and answers over a pruned file, alone and beside other requests.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { scratchRows, type BatchSpan, type Runner } from '../../engine/model/batch.ts';
import { KEPT_SHARES, keptTokens, KVZIP, rowsOf } from '../../engine/kv/approx/pruned/keptRows.ts';
import { kvBytesPerToken } from '../../engine/kv/kvRows.ts';
import { PAGE_SLOTS } from '../../engine/kv/pool.ts';
import { Engine } from '../../engine/core/engine.ts';
import { Tokenizer } from '../../engine/text/tokenizer/tokenizer.ts';
import { ask, drain, filesOf, type Watched } from '../support/engine/harness.ts';
import {
  Divergence,
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

const config = {
  model_type: 'qwen2',
  hidden_size: 48,
  intermediate_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 3,
  vocab_size: 120,
  rms_norm_eps: 1e-6,
  max_position_embeddings: 1024,
};
const BIASED = 'one KV head, large key biases';
writeRandomModel(path.join(folder.dir, BIASED), {
  config: { ...config, num_key_value_heads: 1 },
  dtype: 'F32',
  seed: 1,
  keyBias: 80,
});
const models = ['qwen2-untied-bf16', 'qwen3-tied-sharded', 'llama-mha-f16']
  .map((name) => path.join(MODELS, name))
  .concat(path.join(folder.dir, BIASED));

const NUM_TOKENS = 300;
const range = (from: number, to: number): Int32Array => Int32Array.from({ length: to - from }, (_, i) => from + i);
const next = random(5);
const TEXT = Array.from({ length: NUM_TOKENS + 40 }, () => Math.floor(next() * 100));

/** Puts the text's first tokens into the first slots. */
async function fill(runner: Runner): Promise<void> {
  runner.pool.resize(6 * PAGE_SLOTS);
  await runner.run([
    {
      tokenIds: TEXT.slice(0, NUM_TOKENS),
      startIndex: 0,
      contextSlots: range(0, 0),
      newSlots: range(0, NUM_TOKENS),
      lane: 'prefill',
      prefillEnd: NUM_TOKENS,
      numLogits: 0,
    },
  ]);
}

const goOn = (contextSlots: Int32Array, n: number, more: Partial<BatchSpan> = {}): BatchSpan => ({
  tokenIds: TEXT.slice(NUM_TOKENS, NUM_TOKENS + n),
  startIndex: NUM_TOKENS,
  contextSlots,
  newSlots: range(1000, 1000 + n),
  numLogits: n,
  ...more,
});

test.each(models.map((dir) => [path.basename(dir), dir]))(
  '%s: measuring changes no bit, and the measured attention is complete',
  async (_, dir) => {
    const runner = await loadRunner(dir, `${folder.dir}/cache`, 'int8');
    await fill(runner);
    const { numLayers, kvHeads } = runner.pool.shape;
    const groupSize = { 'qwen2-untied-bf16': 0, [BIASED]: 3 }[path.basename(dir)] ?? 0;
    const slots = range(0, NUM_TOKENS);
    const plain = (await runner.run([goOn(slots, 12)])).slice();
    const rows = runner.pool.read(range(1000, 1012));
    expect(runner.received).toBeNull();
    const measured = (await runner.run([goOn(slots, 12, { measures: true })])).slice();
    expect(maxDifference(measured, plain)).toBe(0);
    expect(runner.pool.read(range(1000, 1012))).toEqual(rows);
    const whole = runner.received!;
    const n = NUM_TOKENS + 12;
    expect(whole.most).toHaveLength(numLayers * kvHeads * n);
    const heads = Array.from({ length: numLayers * kvHeads }, (_, h) => whole.sum.subarray(h * n, (h + 1) * n));
    const totals = heads.map((head) => head.reduce((sum, share) => sum + share, 0));
    // Each of 12 tokens adds 1 in each head of the group.
    for (const total of totals) {
      expect(total / 12).toBeCloseTo(Math.round(total / 12), 3);
      if (groupSize) expect(Math.round(total / 12)).toBe(groupSize);
    }
    for (const [i, share] of whole.most.entries()) {
      expect(share).toBeGreaterThanOrEqual(0);
      expect(share).toBeLessThanOrEqual(whole.sum[i]! + 1e-6);
    }
    // Only the last token itself attends to the last token.
    await runner.run([goOn(slots, 5, { measures: true })]);
    const first = runner.received!;
    await runner.run([
      {
        ...goOn(Int32Array.of(...slots, ...range(1000, 1005)), 12),
        tokenIds: TEXT.slice(NUM_TOKENS + 5, NUM_TOKENS + 12),
        startIndex: NUM_TOKENS + 5,
        newSlots: range(1005, 1012),
        numLogits: 0,
        measures: true,
      },
    ]);
    const second = runner.received!;
    for (let h = 0; h < numLayers * kvHeads; h++) {
      for (let i = 0; i < n; i++) {
        const [most, sum] = i < n - 7 ? [first.most[h * (n - 7) + i]!, first.sum[h * (n - 7) + i]!] : [0, 0];
        expect(whole.most[h * n + i]).toBeCloseTo(Math.max(most, second.most[h * n + i]!), 5);
        expect(whole.sum[h * n + i]).toBeCloseTo(sum + second.sum[h * n + i]!, 4);
      }
    }
    await runner.dispose();
  },
);

test.each(models.map((dir) => [path.basename(dir), dir]))(
  '%s: a context without some rows lacks only those, in every kind of step',
  async (_, dir) => {
    const runner = await loadRunner(dir, `${folder.dir}/cache`, 'int8');
    await fill(runner);
    const { pool } = runner;
    const { numLayers, kvHeads } = pool.shape;
    // All heads keep the same tokens, so leaving out the other slots is the same.
    const attention = Float32Array.from(
      { length: numLayers * kvHeads * NUM_TOKENS },
      (_, i) => ((i % NUM_TOKENS) * 7919) % 1009,
    );
    const kept = keptTokens(pool.shape, attention, 90, new Set([0]), 0);
    const elsewhere = range(2 * PAGE_SLOTS + 17, 2 * PAGE_SLOTS + 17 + 90);
    pool.write(elsewhere, rowsOf(kept, pool.shape, pool.read(range(0, NUM_TOKENS))), 0, kept);
    const others: BatchSpan[] = [0, 1, 2].map((i) => ({
      tokenIds: [7 + i],
      startIndex: 20,
      contextSlots: range(20 * i, 20 * i + 20),
      newSlots: Int32Array.of(1100 + i),
      numLogits: 1,
    }));
    const lanes: Record<string, Partial<BatchSpan>> = {
      paged: {},
      prefill: { lane: 'prefill', prefillEnd: NUM_TOKENS + 12 },
    };
    const found: Record<string, { left: Float32Array; all: Float32Array }> = {};
    for (const [name, lane] of Object.entries(lanes)) {
      for (const beside of [[], others]) {
        const run = async (slots: Int32Array): Promise<Float32Array> =>
          (await runner.run([goOn(slots, 12, lane), ...beside])).slice(0, 12 * runner.vocabSize);
        const [left, leftOut, all] = [await run(elsewhere), await run(kept), await run(range(0, NUM_TOKENS))];
        expect(maxDifference(left, leftOut), `${name} beside ${beside.length}`).toBe(0);
        expect(maxDifference(left, all)).toBeGreaterThan(0);
        found[name] = { left, all };
      }
    }
    // The two lanes differ as much as over the whole context, so positions are right in both.
    const between = (which: 'left' | 'all'): number => {
      const divergence = new Divergence();
      for (let i = 0; i < 12; i++)
        divergence.add(
          ...(['paged', 'prefill'].map((lane) =>
            found[lane]![which].subarray(i * runner.vocabSize, (i + 1) * runner.vocabSize),
          ) as [Float32Array, Float32Array]),
        );
      return divergence.mean;
    };
    // Measured with 7-bit activations: 2.04 times.
    expect(between('left')).toBeLessThan((isNarrowHere ? 2.5 : 2) * between('all'));
    await runner.dispose();
  },
);

test('built-in model: answers over a pruned file are the same alone, in a batch, after the store, and after preemption', async () => {
  const runner = await loadNativeRunner('model', `${folder.dir}/cache`, 'int8', { numSlots: 0 });
  const { pool } = runner;
  const tokenizer = await Tokenizer.load('model');
  const block = tokenizer
    .encode(`<|file_sep|>slots.ts\n${await readFile('test/fixtures/samples/slots.ts.txt', 'utf8')}`)
    .slice(0, 1000);
  const clock = { now: 0 };
  const scratch = scratchRows(1023) * runner.prefillBytesPerToken;
  const bytes = (slots: number): number => slots * kvBytesPerToken(pool.shape) + scratch;
  const engine = new Engine({
    runner,
    pool,
    maxContext: 2048,
    prefillTokens: 1023,
    prefillBytesPerToken: runner.prefillBytesPerToken,
    maxBytes: bytes(6000),
    clock: () => clock.now,
    pruning: {
      idleMs: 1000,
      layers: new Set([4]),
      turn: {
        before: tokenizer.encode('<|im_start|>user\n'),
        after: tokenizer.encode('<|im_end|>\n<|im_start|>assistant\n'),
      },
      conversations: true,
    },
  });
  const tails = ['\n\n/** Takes', '\nexport class ', '\n  resize(', '\nfunction emptiest'].map((text) =>
    tokenizer.encode(text),
  );
  const question = (i: number): Watched =>
    ask(engine, [...block, ...tails[i]!], { prefillTokens: block.length, maxTokens: 16 });
  // This is none of the questions below, because rows computed over the whole file may stay cached for a while.
  ask(engine, [...block, ...tokenizer.encode('\n  get free')], { prefillTokens: block.length, maxTokens: 16 });
  await drain(engine);
  clock.now += 2000;
  while (await engine.runMaintenance(filesOf([block])));
  // Two pieces of equal length, rounded up.
  const { bytes: left, ...described } = engine.blocks.describe(block);
  expect(described).toMatchObject({ tokens: block.length, codecs: ['kvzip'] });
  expect(left / kvBytesPerToken(pool.shape) / block.length).toBeCloseTo(KEPT_SHARES[KVZIP], 2);
  engine.checkIntegrity();

  const alone: number[][] = [];
  for (const i of tails.keys()) {
    const one = question(i);
    await drain(engine);
    expect(one.sequence.cachedTokens).toBeGreaterThanOrEqual(block.length);
    alone.push(one.tokenIds);
  }
  // The answers differ, so they depend on the context.
  expect(new Set(alone.map(String)).size).toBe(tails.length);
  const expectSame = async (): Promise<void> => {
    const all = [...tails.keys()].map(question);
    await drain(engine);
    expect(all.map(({ tokenIds }) => tokenIds)).toEqual(alone);
  };
  await expectSame();
  // Moves everything to the store and back.
  clock.now += 100_000;
  while (await engine.runMaintenance([]));
  expect(engine.blocks.describe(block).tier).toBe('store');
  await expectSame();
  expect(engine.stats().events.promotions).toBeGreaterThan(0);
  engine.setMaxBytes(bytes(930));
  engine.checkIntegrity();
  expect(engine.blocks.describe(block).codecs).toEqual(['kvzip']);
  await expectSame();
  expect(engine.stats().events.preemptions).toBeGreaterThan(0);
  await runner.dispose();
});
