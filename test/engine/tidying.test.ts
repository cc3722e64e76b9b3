/** Dead columns: after an edit in the middle of a file the question attends to the new text, not past the old one as well. */
import { expect, test } from 'vitest';
import { ask, drain, harness, tokens } from './harness.ts';
import { runAlone } from './oracle.ts';

/** Products of tokens and columns that a question about a file takes before and after an edit in its middle. */
async function products(tidying: boolean): Promise<{ first: number; edited: number; undone: number }> {
  const h = harness({ slots: 16384, maxContext: 8192, tokenBudget: 64, policies: { tidying } });
  let sum = 0;
  h.runner.beforeRun = (batch) => {
    const numTokens = batch.reduce((n, span) => n + span.tokenIds.length, 0);
    sum += numTokens * (h.window.numSlots + numTokens);
    h.clock.now += 14 + numTokens * (0.8 + 0.001 * (h.window.numSlots + numTokens));
  };
  const question = async (file: number[]): Promise<number> => {
    sum = 0;
    const asked = ask(h.engine, [...file, 1, 2, 3], { maxTokens: 8 });
    await drain(h.engine);
    expect(asked.tokenIds).toEqual(runAlone([...file, 1, 2, 3], { maxTokens: 8 }, { maxContext: 8192, capacity: 1e9 }).tokenIds);
    return sum;
  };
  const file = tokens(4000, 1);
  const first = await question(file);
  h.clock.now += 2000;
  const edited = await question([...file.slice(0, 2000), ...tokens(2001, 2)]);
  h.clock.now += 2000;
  return { first, edited, undone: await question(file) };
}

test('a question after an edit in the middle costs what the new half does, and the old text is still there', async () => {
  const tidy = await products(true);
  const untidy = await products(false);
  // The second half attends to all before it: three quarters of the whole at best.
  expect(tidy.edited / tidy.first).toBeLessThan(0.85);
  expect(untidy.edited / untidy.first).toBeGreaterThan(1.1);
  expect(tidy.undone / tidy.first).toBeLessThan(0.02);
});
