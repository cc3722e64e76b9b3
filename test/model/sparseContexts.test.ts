/**
 * Contexts longer than the pool, over the real graph. Returned queries times keys give the attention, blocks come back
 * on request, and answers do not depend on other requests in the step.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { type BatchSpan, type ModelRunner, scratchRows, type Runner } from '../../engine/model/batch.ts';
import { reservedBytes } from '../../engine/kv/approx/approximations.ts';
import { SpillFile } from '../../engine/kv/disk/spillFile.ts';
import { kvBytesPerToken } from '../../engine/kv/kvRows.ts';
import { Engine } from '../../engine/core/engine.ts';
import { chatPrompt } from '../../engine/text/prompt/chatPrompt.ts';
import { Layout } from '../../engine/text/prompt/layout.ts';
import { ModelText } from '../../engine/text/format/modelText.ts';
import { SourceDocument } from '../../engine/text/syntax/sourceDocument.ts';
import { ask, drain, type Watched } from '../support/engine/harness.ts';
import {
  loadNativeRunner,
  loadRunner,
  maxDifference,
  MODELS,
  random,
  temporaryFolder,
} from '../support/model/fixtures.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

// Models without key biases, because the products of queries and keys do not include them.
const models = ['qwen3-tied-sharded', 'llama-mha-f16'];
const NUM_TOKENS = 200;
const range = (from: number, to: number): Int32Array => Int32Array.from({ length: to - from }, (_, i) => from + i);
const next = random(5);
const TEXT = Array.from({ length: NUM_TOKENS + 40 }, () => Math.floor(next() * 100));

async function fill(runner: Runner): Promise<void> {
  runner.pool.resize(1024);
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

const goOn = (n: number, more: Partial<BatchSpan> = {}): BatchSpan => ({
  tokenIds: TEXT.slice(NUM_TOKENS, NUM_TOKENS + n),
  startIndex: NUM_TOKENS,
  contextSlots: range(0, NUM_TOKENS),
  newSlots: range(500, 500 + n),
  numLogits: 1,
  ...more,
});

test.each(models)('%s: the softmax of a query times the keys equals the measured attention', async (name) => {
  const runner = await loadRunner(path.join(MODELS, name), `${folder.dir}/cache`, 'int8');
  await fill(runner);
  const { numLayers, kvHeads, headSize } = runner.pool.shape;
  const plain = (await runner.run([goOn(6)])).slice();
  expect(runner.queries).toBeNull();
  const asked = (await runner.run([goOn(6, { numQueries: 1 })])).slice();
  expect(maxDifference(asked, plain)).toBe(0);
  const queries = runner.queries!;
  const groupSize = queries.length / (numLayers * kvHeads * headSize);
  expect(Number.isInteger(groupSize)).toBe(true);
  // Measures the last token alone.
  await runner.run([
    {
      ...goOn(1),
      tokenIds: [TEXT[NUM_TOKENS + 5]!],
      startIndex: NUM_TOKENS + 5,
      contextSlots: Int32Array.of(...range(0, NUM_TOKENS), ...range(500, 505)),
      newSlots: Int32Array.of(600),
      measures: true,
    },
  ]);
  const received = runner.received!;
  const slots = Int32Array.of(...range(0, NUM_TOKENS), ...range(500, 505), 600);
  const { keys, keyScales } = runner.pool.read(slots);
  const n = slots.length;
  for (let h = 0; h < numLayers * kvHeads; h++) {
    const sum = new Float64Array(n);
    for (let g = 0; g < groupSize; g++) {
      const at = (h * groupSize + g) * headSize;
      const scores = Array.from({ length: n }, (_, i) => {
        let score = 0;
        for (let d = 0; d < headSize; d++)
          score += queries[at + d]! * keys[(h * headSize + d) * n + i]! * keyScales[h * n + i]!;
        return score;
      });
      const top = Math.max(...scores);
      const total = scores.reduce((all, score) => all + Math.exp(score - top), 0);
      for (const [i, score] of scores.entries()) sum[i]! += Math.exp(score - top) / total;
    }
    // The graph encodes queries in 7 or 8 bits.
    for (let i = 0; i < n; i++) expect(Math.abs(sum[i]! - received.sum[h * n + i]!)).toBeLessThan(0.04);
  }
  await runner.dispose();
});

test('queries of several tokens and of both lanes are returned in the order of the spans', async () => {
  const runner = await loadRunner(path.join(MODELS, models[0]!), `${folder.dir}/cache`, 'int8');
  await fill(runner);
  const alone: Float32Array[] = [];
  const spans: BatchSpan[] = [
    goOn(3, { numQueries: 2 }),
    {
      tokenIds: TEXT.slice(10, 30),
      startIndex: 10,
      contextSlots: range(0, 10),
      newSlots: range(700, 720),
      lane: 'prefill',
      prefillEnd: 30,
      numLogits: 0,
      numQueries: 4,
    },
    { ...goOn(1), newSlots: Int32Array.of(800) },
  ];
  for (const span of spans.slice(0, 2)) {
    await runner.run([span]);
    alone.push(runner.queries!.slice());
  }
  await runner.run(spans);
  const { headSize } = runner.pool.shape;
  const both = runner.queries!;
  const heads = both.length / (6 * headSize);
  for (let h = 0; h < heads; h++) {
    const of = both.subarray(h * 6 * headSize, (h + 1) * 6 * headSize);
    expect(
      maxDifference(of.subarray(0, 2 * headSize), alone[0]!.subarray(h * 2 * headSize, (h + 1) * 2 * headSize)),
    ).toBe(0);
    expect(maxDifference(of.subarray(2 * headSize), alone[1]!.subarray(h * 4 * headSize, (h + 1) * 4 * headSize))).toBe(
      0,
    );
  }
  await runner.dispose();
});

test('built-in model: a context of nearly twice the pool answers from an old block, also with other requests in the batch', async () => {
  const runner = await loadNativeRunner('model', `${folder.dir}/cache`, 'int8', { numSlots: 0 });
  const { pool } = runner;
  const text = await ModelText.load('model');
  const { tokenizer } = text;
  const layout = new Layout(text, { contextTokens: 2048, numParameters: 1e7 });
  const source = await readFile('test/fixtures/heldout/cache-store.ts.txt', 'utf8');
  const spillFile = new SpillFile(folder.dir, 1e9, () => {});
  const doc = new SourceDocument('store', 'cache/store.ts', source);
  const { promptIds, numBlockTokens } = chatPrompt(layout, {
    doc,
    messages: [{ role: 'user', content: 'Why is it written like this?' }],
    answerTokens: 64,
  });
  expect(promptIds.length).toBeGreaterThan(1000);
  const contexts: Int32Array[] = [];
  const watched: ModelRunner = {
    vocabSize: runner.vocabSize,
    get paidColumns() {
      return runner.paidColumns;
    },
    get queries() {
      return runner.queries;
    },
    run(batch) {
      for (const { contextSlots, startIndex } of batch)
        if (startIndex >= promptIds.length) contexts.push(pool.positionsOf(contextSlots));
      return runner.run(batch);
    },
  };
  const engine = new Engine({
    runner: watched,
    pool,
    maxContext: 2048,
    prefillTokens: 511,
    prefillBytesPerToken: runner.prefillBytesPerToken,
    maxBytes:
      700 * kvBytesPerToken(pool.shape) +
      scratchRows(511) * runner.prefillBytesPerToken +
      reservedBytes({ spillFile }, pool.shape),
    spillFile,
  });
  const question = (): Watched =>
    ask(engine, promptIds, { prefillTokens: numBlockTokens, maxTokens: 24, eosIds: [...text.chatStopIds] });
  const first = question();
  await drain(engine);
  expect(first.ended).toMatch(/length|stop/);
  // Some of the first tokens, some of the last, and separate ones between them.
  const positions = contexts.at(-1)!;
  const gaps = positions.filter((position, i) => i > 0 && position !== positions[i - 1]! + 1);
  expect(positions.length).toBeLessThan(600);
  expect(gaps.length).toBeGreaterThan(2);
  const again = question();
  await drain(engine);
  expect(again.sequence.cachedTokens).toBeGreaterThanOrEqual(numBlockTokens - 32);
  const others = ['let a = 1;\n', 'export function other(): void {'].map((each) =>
    ask(engine, tokenizer.encode(each), { maxTokens: 8 }),
  );
  const beside = question();
  await drain(engine);
  expect(beside.tokenIds).toEqual(again.tokenIds);
  for (const other of others) expect(other.ended).toMatch(/length|stop/);
  engine.blocks.evict();
  engine.setMaxBytes(0);
  spillFile.close();
  await runner.dispose();
});
