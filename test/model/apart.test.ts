/**
 * Sequences with separate pages attend separately. A token's logits and KV rows have the same bits as alone, whatever
 * else is in the step and wherever its sequence's slots are.
 */
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { BatchSpan } from '../../engine/model/batch.ts';
import { PAGE_SLOTS } from '../../engine/kv/pool.ts';
import type { OnnxRunner } from '../../engine/model/runtime/runner.ts';
import { loadRunner, MODELS, random, temporaryFolder } from '../support/model/fixtures.ts';
import { writeRandomModel } from '../support/model/randomModel.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

/** Joins runs of slots: slots [first, first + n) of each page. */
const slotsOf = (...runs: readonly (readonly [page: number, first: number, n: number])[]): Int32Array =>
  Int32Array.from(
    runs.flatMap(([page, first, n]) => Array.from({ length: n }, (_, i) => page * PAGE_SLOTS + first + i)),
  );

/**
 * Contexts on one page, on three unordered pages, on two swapped halves of a page, on a page shared with the first one,
 * of one token, of a whole page, and empty.
 */
const CONTEXTS = [
  slotsOf([0, 0, 100]),
  slotsOf([3, 5, 90], [2, 0, 30], [8, 7, 9]),
  slotsOf([4, 100, 60], [4, 0, 60]),
  slotsOf([0, 200, 40]),
  slotsOf([5, 1, 1]),
  slotsOf([7, 0, 256]),
  slotsOf(),
];
/** Numbers of new tokens of each sequence. Some include drafts. */
const NEW = [1, 1, 4, 1, 2, 1, 3];

const next = random(11);
const ids = (n: number): number[] => Array.from({ length: n }, () => Math.floor(next() * 100));
const TEXTS = CONTEXTS.map((slots, i) => ids(slots.length + NEW[i]!));
const PROMPT = ids(40);

async function fill(runner: OnnxRunner): Promise<void> {
  runner.pool.resize(12 * PAGE_SLOTS);
  for (const [i, slots] of CONTEXTS.entries()) {
    for (let start = 0; start < slots.length; start += 50) {
      const newSlots = slots.slice(start, start + 50);
      await runner.run([
        {
          tokenIds: TEXTS[i]!.slice(start, start + newSlots.length),
          startIndex: start,
          contextSlots: slots.slice(0, start),
          newSlots,
          numLogits: 0,
        },
      ]);
    }
  }
}

const spanOf = (i: number): BatchSpan => {
  const contextSlots = CONTEXTS[i]!;
  return {
    tokenIds: TEXTS[i]!.slice(contextSlots.length),
    startIndex: contextSlots.length,
    contextSlots,
    newSlots: slotsOf([6, 10 * i, NEW[i]!]),
    numLogits: NEW[i]!,
  };
};
/** A part of a prompt in the prefill lane. */
const prompt: BatchSpan = {
  tokenIds: PROMPT,
  startIndex: 0,
  contextSlots: new Int32Array(0),
  newSlots: slotsOf([9, 0, PROMPT.length]),
  lane: 'prefill',
  prefillEnd: 60,
  numLogits: 1,
};

/** With as many KV heads as heads, or a single KV head, and large key biases. */
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
for (const kvHeads of [1, 3])
  writeRandomModel(path.join(folder.dir, `${kvHeads} KV heads, large key biases`), {
    config: { ...config, num_key_value_heads: kvHeads },
    dtype: 'F32',
    seed: kvHeads,
    keyBias: 80,
  });

const models = [
  ...['qwen2-untied-bf16', 'llama-gqa-no-tie-key', 'qwen3-tied-sharded', 'llama-mha-f16'].map((name) =>
    path.join(MODELS, name),
  ),
  ...['1 KV heads, large key biases', '3 KV heads, large key biases'].map((name) => path.join(folder.dir, name)),
];

test.each(models.map((dir) => [path.basename(dir), dir]))(
  '%s: a sequence has the same results beside others as alone',
  async (_, dir) => {
    for (const precision of ['int8', 'int4'] as const) {
      const runner = await loadRunner(dir, `${folder.dir}/cache`, precision);
      await fill(runner);
      const alone: { logits: Float32Array; rows: unknown }[] = [];
      for (const span of [...CONTEXTS.keys()].map(spanOf).concat(prompt)) {
        const logits = (await runner.run([span])).slice();
        expect(runner.gathered).toBe(false);
        alone.push({ logits, rows: runner.pool.read(span.newSlots) });
      }
      // Moves some rows to slots that are not in the order of pages.
      for (const [from, to] of [
        [7, 10],
        [2, 11],
        [0, 5],
      ] as const)
        for (let n = 0; n < 9; n++) runner.pool.attend([slotsOf([from, 0, 1], [to, 0, 1])], 1);
      expect([...runner.pool.places]).not.toEqual([...runner.pool.places.keys()]);
      for (const members of [
        [0, 1, 2, 3, 4, 5],
        [5, 2, 0, 4],
        [1, 6, 2, 5],
        [2, 5, 4],
        [7, 2, 5],
        [4, 7, 2, 1],
      ]) {
        const spans = members.map((i) => (i === CONTEXTS.length ? prompt : spanOf(i)));
        const together = (await runner.run(spans)).slice();
        expect(runner.gathered, members.join()).toBe(true);
        expect(together, members.join()).toEqual(Float32Array.from(members.flatMap((i) => [...alone[i]!.logits])));
        for (const [j, i] of members.entries()) expect(runner.pool.read(spans[j]!.newSlots)).toEqual(alone[i]!.rows);
      }
      // Sequences that share a page attend together.
      const together = (await runner.run([spanOf(0), spanOf(3)])).slice();
      expect(runner.gathered).toBe(false);
      expect(together).toEqual(Float32Array.from([0, 3].flatMap((i) => [...alone[i]!.logits])));
      await runner.dispose();
    }
  },
);
