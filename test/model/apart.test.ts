/**
 * Sequences with pages of their own attend apart from each other: a token's logits, and the rows that it leaves in the window,
 * have the bits that they have alone, whoever is in the step, and wherever its sequence's slots lie.
 */
import { afterAll, expect, test } from 'vitest';
import type { BatchSpan } from '../../engine/batch.ts';
import { PAGE_SLOTS } from '../../engine/cache/window.ts';
import type { OnnxRunner } from '../../engine/model/runner.ts';
import { loadRunner, MODELS, random, temporaryFolder } from './fixtures.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

/** Slots [first, first + n) of some pages each, side by side. */
const slotsOf = (...runs: readonly (readonly [page: number, first: number, n: number])[]): Int32Array =>
  Int32Array.from(runs.flatMap(([page, first, n]) => Array.from({ length: n }, (_, i) => page * PAGE_SLOTS + first + i)));

/** Sequences of one page, of two that stand the wrong way round, of one by halves, and one that shares a page with the first. */
const CONTEXTS = [slotsOf([0, 0, 150]), slotsOf([3, 5, 200], [2, 0, 30]), slotsOf([4, 100, 60], [4, 0, 60]), slotsOf([0, 200, 40]), slotsOf([5, 1, 1]), slotsOf([7, 0, 256])];
/** New tokens of each: one of them has drafts. */
const NEW = [1, 1, 4, 1, 2, 1];

const next = random(11);
const ids = (n: number): number[] => Array.from({ length: n }, () => Math.floor(next() * 100));
const TEXTS = CONTEXTS.map((slots, i) => ids(slots.length + NEW[i]!));

async function fill(runner: OnnxRunner): Promise<void> {
  runner.window.resize(8 * PAGE_SLOTS);
  for (const [i, slots] of CONTEXTS.entries()) {
    for (let start = 0; start < slots.length; start += 50) {
      const newSlots = slots.slice(start, start + 50);
      await runner.run([{ tokenIds: TEXTS[i]!.slice(start, start + newSlots.length), startIndex: start, contextSlots: slots.slice(0, start), newSlots, numLogits: 0 }]);
    }
  }
}

const spanOf = (i: number): BatchSpan => {
  const contextSlots = CONTEXTS[i]!;
  return { tokenIds: TEXTS[i]!.slice(contextSlots.length), startIndex: contextSlots.length, contextSlots, newSlots: slotsOf([6, 10 * i, NEW[i]!]), numLogits: NEW[i]! };
};

test.each(['qwen2-untied-bf16', 'llama-gqa-no-tie-key', 'qwen3-tied-sharded', 'llama-mha-f16'])('%s: apart as alone', async (model) => {
  for (const precision of ['int8', 'int4'] as const) {
    const runner = await loadRunner(`${MODELS}/${model}`, `${folder.dir}/cache`, precision);
    await fill(runner);
    const alone: { logits: Float32Array; rows: unknown }[] = [];
    for (const i of CONTEXTS.keys()) {
      const logits = (await runner.run([spanOf(i)])).slice();
      expect(runner.apart).toBe(false);
      alone.push({ logits, rows: runner.window.read(spanOf(i).newSlots) });
    }
    for (const members of [[0, 1, 2, 3, 4, 5], [5, 2, 0, 4], [1, 0, 2, 5]]) {
      const together = (await runner.run(members.map(spanOf))).slice();
      expect(runner.apart).toBe(true);
      expect(together, members.join()).toEqual(Float32Array.from(members.flatMap((i) => [...alone[i]!.logits])));
      for (const i of members) expect(runner.window.read(spanOf(i).newSlots)).toEqual(alone[i]!.rows);
    }
    // Those that share a page do so together.
    const together = (await runner.run([spanOf(0), spanOf(3)])).slice();
    expect(runner.apart).toBe(false);
    expect(together).toEqual(Float32Array.from([0, 3].flatMap((i) => [...alone[i]!.logits])));
    await runner.dispose();
  }
});
