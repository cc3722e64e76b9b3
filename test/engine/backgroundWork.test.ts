/** Folder summaries in the background: a completion takes as many steps beside them as it takes alone. */
import { expect, test } from 'vitest';
import { ask, drain, harness, tokens } from '../support/engine/harness.ts';

async function stepsOfCompletion(numSummaries: number, stepsBefore: number): Promise<number> {
  // Only a few summaries fit at a time. The others wait, and running ones may be preempted.
  const { engine } = harness({ slots: 512, tokenBudget: 32 });
  const summaries = Array.from({ length: numSummaries }, (_, i) =>
    ask(engine, tokens(150, 10 + i), { priority: 'summary', maxTokens: 40 }),
  );
  for (let i = 0; i < stepsBefore; i++) await engine.step();
  // As many tokens as a completion adds to a cached file. It shares its steps with one token of each running summary.
  const completion = ask(engine, tokens(16, 1), { priority: 'completion', maxTokens: 6 });
  let steps = 0;
  for (; !completion.ended; steps++) await engine.step();
  await drain(engine);
  for (const { ended } of summaries) expect(ended).toBe('length');
  return steps;
}

test.each([0, 1, 5, 17, 60])(
  'a completion that comes %i steps after the start of a folder summary is not delayed',
  async (stepsBefore) => {
    expect(await stepsOfCompletion(12, stepsBefore)).toBe(await stepsOfCompletion(0, 0));
  },
);
