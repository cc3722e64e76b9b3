/**
 * Dead columns: a step attends only to the pages of its own sequences, not to pages of other files or of old versions.
 */
import { expect, test } from 'vitest';
import { ask, drain, harness, tokens } from '../support/engine/harness.ts';
import { runAlone } from '../support/engine/oracle.ts';

const LIMITS = { maxContext: 8192, capacity: 1e9 };

test('a question after an edit in the middle costs only the new half, and the old version stays cached', async () => {
  const h = harness({ slots: 16384, maxContext: 8192, tokenBudget: 64 });
  let sum = 0;
  h.runner.beforeRun = (batch) => {
    const numTokens = batch.reduce((n, span) => n + span.tokenIds.length, 0);
    sum += numTokens * (h.runner.paidColumns + numTokens);
    h.clock.now += 14 + numTokens * (0.8 + 0.001 * (h.runner.paidColumns + numTokens));
  };
  /** Computes a question about a file. Returns the sum of the products of tokens and columns. */
  const question = async (file: number[]): Promise<number> => {
    sum = 0;
    const asked = ask(h.engine, [...file, 1, 2, 3], { maxTokens: 8 });
    await drain(h.engine);
    expect(asked.tokenIds).toEqual(runAlone([...file, 1, 2, 3], { maxTokens: 8 }, LIMITS).tokenIds);
    return sum;
  };
  const file = tokens(4000, 1);
  const first = await question(file);
  h.clock.now += 2000;
  const edited = await question([...file.slice(0, 2000), ...tokens(2001, 2)]);
  h.clock.now += 2000;
  // The second half attends to everything before it, so at best it costs three quarters of the whole.
  expect(edited / first).toBeLessThan(0.85);
  expect((await question(file)) / first).toBeLessThan(0.02);
});

test('files without requests cost a question nothing', async () => {
  const h = harness({ slots: 16384, maxContext: 8192, tokenBudget: 64 });
  const read = async (seed: number): Promise<number> => {
    let columns = 0;
    let steps = 0;
    h.runner.beforeRun = () => {
      columns += h.runner.paidColumns;
      steps++;
    };
    ask(h.engine, [...tokens(1500, seed), 1, 2, 3], { maxTokens: 40 });
    await drain(h.engine);
    return columns / steps;
  };
  const alone = await read(1);
  for (const seed of [2, 3, 4, 5]) expect((await read(seed)) / alone).toBeLessThan(1.3);
  // Back to the first file: only its own pages count after they have been packed at the front.
  expect(await read(1)).toBeLessThan(1.5 * 1792);
});

test('two texts prefilled in turns are scattered over pages; a question about one packs it, and tokens stay the same', async () => {
  // Fixed step sizes: all running sequences share each step, and each takes its few slots in turn.
  const h = harness({ slots: 16384, maxContext: 8192, tokenBudget: 24 });
  const texts = [tokens(2000, 1), tokens(2000, 2)];
  for (const text of texts) ask(h.engine, text, { maxTokens: 1 });
  await drain(h.engine);
  const question = async (text: number[]): Promise<number> => {
    const prompt = [...text, 1, 2, 3];
    const asked = ask(h.engine, prompt, { maxTokens: 60 });
    await drain(h.engine);
    expect(asked.tokenIds).toEqual(runAlone(prompt, { maxTokens: 60 }, LIMITS).tokenIds);
    return h.runner.paidColumns;
  };
  for (let i = 0; i < 3; i++) for (const text of texts) await question(text);
  for (const text of texts) expect(await question(text)).toBeLessThanOrEqual(9 * 256);
});

test('answers about two scattered texts pack them although they use gathered attention', async () => {
  const h = harness({ slots: 32768, maxContext: 8192, tokenBudget: 24 });
  const texts = [1, 2, 3, 4].map((seed) => tokens(2000, seed));
  for (const pair of [texts.slice(0, 2), texts.slice(2)]) {
    for (const text of pair) ask(h.engine, text, { maxTokens: 1 });
    await drain(h.engine);
  }
  const prompts = [texts[0]!, texts[2]!].map((text) => [...text, 1, 2, 3]);
  const answers = prompts.map((prompt) => ask(h.engine, prompt, { maxTokens: 200 }));
  await drain(h.engine);
  // At best nine pages each, plus a fifth for gathering.
  expect(h.runner.paidColumns).toBeLessThan(1.2 * 10 * 256);
  for (const [i, { tokenIds }] of answers.entries())
    expect(tokenIds).toEqual(runAlone(prompts[i]!, { maxTokens: 200 }, LIMITS).tokenIds);
});
