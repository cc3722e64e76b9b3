/** Summaries of a folder on a machine with known costs. They end sooner if files with separate prefixes take turns. */
import { expect, test } from 'vitest';
import { ask, drain, harness, tokens } from '../support/engine/harness.ts';

/** Clock time until all `prompts` are answered, the mean of their times, and the most sequences in a step. */
async function times(prompts: number[][], grouping: boolean): Promise<{ last: number; mean: number; most: number }> {
  const h = harness({ slots: 32768, maxContext: 8192, tokenBudget: undefined, policies: { grouping } });
  let most = 0;
  h.runner.beforeRun = (batch) => {
    const numTokens = batch.reduce((n, span) => n + span.tokenIds.length, 0);
    most = Math.max(most, batch.length);
    h.clock.now += 14 + numTokens * (0.8 + 0.001 * (h.runner.paidColumns + numTokens));
  };
  ask(h.engine, tokens(600, 63), { maxTokens: 4 });
  await drain(h.engine);
  h.engine.blocks.evict();
  const start = h.clock.now;
  let sum = 0;
  const asked = prompts.map((prompt) =>
    ask(h.engine, prompt, { clientId: 'folder', priority: 'summary', maxTokens: 48 }),
  );
  const open = new Set(asked);
  most = 0;
  while (open.size > 0) {
    await h.engine.step();
    for (const one of open) {
      if (!one.ended) continue;
      open.delete(one);
      sum += h.clock.now - start;
    }
  }
  return { last: h.clock.now - start, mean: sum / prompts.length, most };
}

test('eight long files: both the last and the average summary finish earlier with grouping', async () => {
  const files = Array.from({ length: 8 }, (_, i) => tokens(1500, i));
  const together = await times(files, false);
  const grouped = await times(files, true);
  expect(together.most).toBeGreaterThan(4);
  expect(grouped.most).toBeLessThan(3);
  expect(grouped.last).toBeLessThan(0.81 * together.last);
  expect(grouped.mean).toBeLessThan(0.65 * together.mean);
});

test('eight questions about one file still share steps', async () => {
  const file = tokens(3000, 1);
  const questions = Array.from({ length: 8 }, (_, i) => [...file, i, 1, 2]);
  const together = await times(questions, false);
  const grouped = await times(questions, true);
  expect(grouped.most).toBe(8);
  expect(grouped.last).toBeLessThan(1.02 * together.last);
});

test('eight short texts share steps, because reading the weights once saves more', async () => {
  const files = Array.from({ length: 8 }, (_, i) => tokens(60, i));
  const together = await times(files, false);
  const grouped = await times(files, true);
  expect(grouped.most).toBeGreaterThan(3);
  expect(grouped.last).toBeLessThan(1.1 * together.last);
});
