/**
 * Many tokens after a long context attend in tiles of the pool. Logits and KV rows have the same bits as fewer tokens
 * at a time, which attend all at once, also beside another sequence and with unordered pages.
 */
import path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { BatchSpan } from '../../engine/model/batch.ts';
import { PAGE_SLOTS } from '../../engine/kv/pool.ts';
import type { OnnxRunner } from '../../engine/model/runtime/runner.ts';
import { inTiles } from '../../engine/model/graph/pagedTiles.ts';
import { loadRunner, random, temporaryFolder } from '../support/model/fixtures.ts';
import { writeRandomModel } from '../support/model/randomModel.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const NEW = 96;
const BEHIND = 9 * PAGE_SLOTS + 40;
/** Tokens of the other sequence, which shares the first half. */
const OWN = 30;

const config = {
  model_type: 'qwen2',
  hidden_size: 48,
  intermediate_size: 64,
  num_hidden_layers: 2,
  num_attention_heads: 6,
  vocab_size: 120,
  rms_norm_eps: 1e-6,
  max_position_embeddings: 4096,
};
/** In the second layer. */
const WINDOW = { use_sliding_window: true, sliding_window: 700, max_window_layers: 1 };
for (const kvHeads of [1, 3, 6])
  writeRandomModel(path.join(folder.dir, `${kvHeads} KV heads`), {
    config: { ...config, num_key_value_heads: kvHeads, ...(kvHeads === 3 ? WINDOW : {}) },
    dtype: 'F32',
    seed: kvHeads,
    keyBias: kvHeads === 3 ? 0.1 : 80,
  });

const slots = (from: number, n: number): Int32Array => Int32Array.from({ length: n }, (_, i) => from + i);
const next = random(5);
const ids = (n: number): number[] => Array.from({ length: n }, () => Math.floor(next() * 100));
const [CONTEXT, TEXT, OTHER] = [ids(BEHIND), ids(NEW), ids(OWN + 1)];
/** The context's pages are in reverse order. */
const contextSlots = Int32Array.from(
  slots(0, BEHIND),
  (slot) => (11 - Math.floor(slot / PAGE_SLOTS)) * PAGE_SLOTS + (slot % PAGE_SLOTS),
);
const otherSlots = Int32Array.from([...contextSlots.slice(0, BEHIND / 2), ...slots(PAGE_SLOTS, OWN)]);
const other: BatchSpan = {
  tokenIds: OTHER.slice(OWN),
  startIndex: otherSlots.length,
  contextSlots: otherSlots,
  newSlots: Int32Array.of(PAGE_SLOTS + OWN),
  numLogits: 1,
};

async function read(
  runner: OnnxRunner,
  tokenIds: readonly number[],
  context: Int32Array,
  newSlots: Int32Array,
  chunk: number,
  beside: readonly BatchSpan[] = [],
): Promise<{ logits: number[]; tiled: boolean[] }> {
  const logits: number[] = [];
  const tiled: boolean[] = [];
  for (let at = 0; at < newSlots.length; at += chunk) {
    const span: BatchSpan = {
      tokenIds: tokenIds.slice(at, at + chunk),
      startIndex: context.length + at,
      contextSlots: Int32Array.from([...context, ...newSlots.slice(0, at)]),
      newSlots: newSlots.slice(at, at + chunk),
      numLogits: Math.min(chunk, newSlots.length - at),
    };
    logits.push(...(await runner.run([span, ...beside])).subarray(0, span.numLogits * runner.vocabSize));
    tiled.push(runner.tiled);
  }
  return { logits, tiled };
}

test.each([1, 3, 6])('tiles give the same bits with %i KV heads for six heads', async (kvHeads) => {
  for (const precision of ['int8', 'int4'] as const) {
    const runner = await loadRunner(
      path.join(folder.dir, `${kvHeads} KV heads`),
      `${folder.dir}/cache`,
      precision,
      'int8',
      12 * PAGE_SLOTS,
    );
    await read(runner, CONTEXT, slots(0, 0), contextSlots, 50);
    await read(runner, OTHER.slice(0, OWN), otherSlots.slice(0, BEHIND / 2), otherSlots.slice(BEHIND / 2), OWN);
    const newSlots = slots(10, NEW);
    const few = await read(runner, TEXT, contextSlots, newSlots, 16);
    expect(few.tiled).toEqual(new Array(NEW / 16).fill(false));
    expect(few.logits.every(Number.isFinite)).toBe(true);
    const rows = runner.pool.read(newSlots);
    const alone = Array.from(await runner.run([other]));
    expect(runner.tiled).toBe(false);

    const all = await read(runner, TEXT, contextSlots, newSlots, NEW);
    expect(all).toEqual({ logits: few.logits, tiled: [true] });
    expect(runner.pool.read(newSlots)).toEqual(rows);

    runner.mayTile = false;
    expect(await read(runner, TEXT, contextSlots, newSlots, NEW)).toEqual({ logits: few.logits, tiled: [false] });
    runner.mayTile = true;

    const beside = await read(runner, TEXT, contextSlots, newSlots, NEW, [other]);
    expect(beside).toEqual(all);
    expect(runner.pool.read(newSlots)).toEqual(rows);
    const both = await runner.run([
      other,
      { tokenIds: TEXT, startIndex: BEHIND, contextSlots, newSlots, numLogits: 0 },
    ]);
    expect(runner.tiled).toBe(true);
    expect(Array.from(both)).toEqual(alone);
    await runner.dispose();
  }
});

test('tiles are used for many scores only', () => {
  expect(inTiles(14, 1, 32 * PAGE_SLOTS, PAGE_SLOTS)).toBe(false);
  expect(inTiles(14, 64, 1 * PAGE_SLOTS, PAGE_SLOTS)).toBe(false);
  expect(inTiles(14, 64, 9 * PAGE_SLOTS, PAGE_SLOTS)).toBe(true);
  expect(inTiles(14, 256, 2000, 2000)).toBe(false);
});
