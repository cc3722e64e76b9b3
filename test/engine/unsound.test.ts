/** Logits and KV rows that are not finite. They end their own sequence and never reach another one. */
import { expect, test } from 'vitest';
import type { BatchSpan } from '../../engine/model/batch.ts';
import type { SamplingParams } from '../../engine/protocol/tasks.ts';
import { fakeShape, VOCAB_SIZE } from '../support/engine/fakeRunner.ts';
import { ask, drain, harness, type Harness, tokens } from '../support/engine/harness.ts';
import { runAlone } from '../support/engine/oracle.ts';

const LIMITS = { maxContext: 4096, capacity: 4096 };

const alone = (prompt: readonly number[], sampling: SamplingParams): number[] =>
  runAlone(prompt, sampling, LIMITS).tokenIds;

/** Makes logits or rows non-finite for each token for which `isUnsound` is true. Returns how many it changed. */
function spoil(
  { runner, pool }: Harness,
  what: 'logits' | 'rows',
  isUnsound: (span: BatchSpan, position: number) => boolean,
): () => number {
  let numUnsound = 0;
  const run = runner.run.bind(runner);
  runner.run = async (batch) => {
    const logits = await run(batch);
    let row = 0;
    for (const span of batch) {
      const { tokenIds, startIndex, numLogits, newSlots } = span;
      for (let i = 0; i < tokenIds.length; i++) {
        const hasLogits = i >= tokenIds.length - numLogits;
        if (hasLogits) row++;
        if ((what === 'logits' && !hasLogits) || !isUnsound(span, startIndex + i)) continue;
        numUnsound++;
        if (what === 'logits') logits[(row - 1) * VOCAB_SIZE + 5] = Number.NaN;
        else {
          const slot = newSlots.subarray(i, i + 1);
          const rows = pool.read(slot);
          if (pool.shape.kv === 'float32') rows.values[7] = Number.NaN;
          else rows.valueScales[3] = Number.POSITIVE_INFINITY;
          pool.write(slot, rows, 0, startIndex + i);
        }
      }
    }
    return logits;
  };
  return () => numUnsound;
}

/** Checks all slots, also free ones, because steps attend to whole pages. */
function expectFinite({ pool }: Harness): void {
  for (const numbers of [...pool.keyScales, ...pool.valueScales, ...pool.keys, ...pool.values])
    expect(numbers.every(Number.isFinite)).toBe(true);
}

const MESSAGES = {
  logits: 'The model returned logits that are not finite. Ask again; if it happens again, choose another model.',
  rows: 'The model returned K/V rows that are not finite. Ask again; if it happens again, choose another model.',
};

test.each(
  (['logits', 'rows'] as const).flatMap((what) =>
    (['int8', 'float32'] as const).flatMap((kv) => [0, 1, 6].map((numBefore) => ({ what, kv, numBefore }))),
  ),
)(
  '$what after $numBefore tokens, $kv: three requests in a row end with one error each; others give the tokens they give alone',
  async ({ what, kv, numBefore }) => {
    const h = harness({ slots: 2048, tokenBudget: 48, shape: fakeShape(kv) });
    const sampling = { maxTokens: 20 };
    // Longer than the other sequences ever become.
    const prompt = tokens(100, 9);
    spoil(h, what, (_, position) => position === prompt.length - 1 + numBefore);
    const others = [tokens(20, 1), tokens(30, 2)];
    for (let round = 0; round < 3; round++) {
      const asked = others.map((other) => ask(h.engine, other, sampling));
      const spoilt = ask(h.engine, prompt, sampling);
      await drain(h.engine);
      expect(spoilt).toMatchObject({
        ended: 'engineFailed',
        message: MESSAGES[what],
        numEnds: 1,
        tokenIds: alone(prompt, { maxTokens: numBefore }),
      });
      for (const [i, one] of asked.entries())
        expect(one).toMatchObject({ ended: 'length', numEnds: 1, tokenIds: alone(others[i]!, sampling) });
      expectFinite(h);
    }
    expect(h.engine.stats().requests).toEqual({ waiting: 0, running: 0, done: 6, failed: 3, aborted: 0 });
  },
);

test('after non-finite logits, the rows of the step and of the answer before it are dropped and free their slots', async () => {
  const h = harness({ slots: 2048, tokenBudget: 64, policies: { speculation: false } });
  const prompt = tokens(40);
  let at = 39;
  spoil(h, 'logits', (_, position) => position === at);
  ask(h.engine, prompt, { maxTokens: 9 });
  await drain(h.engine);
  expect(h.engine.blocks.describe(prompt).tokens).toBe(0);
  expect(h.engine.stats().poolSlots.held).toBe(0);
  at = 44;
  const { tokenIds } = ask(h.engine, prompt, { maxTokens: 9 });
  await drain(h.engine);
  expect(tokenIds).toHaveLength(5);
  // The prompt's logits were finite.
  expect(h.engine.blocks.describe([...prompt, ...tokenIds]).tokens).toBe(40);
  expect(h.engine.stats().poolSlots.held).toBe(40);
  at = -1;
  const again = ask(h.engine, [...prompt, ...tokenIds], { maxTokens: 4 });
  await drain(h.engine);
  expect(again.sequence.cachedTokens).toBe(40);
  expect(again.tokenIds).toEqual(alone(prompt, { maxTokens: 9 }).slice(5));
});

test.each(['idle', 'summary'] as const)(
  'rows within a prompt, whose logits are not requested, do not get into the tree (%s)',
  async (priority) => {
    const h = harness({ slots: 2048, tokenBudget: 32 });
    const prompt = tokens(90);
    let isSpoilt = true;
    spoil(h, 'rows', (_, position) => isSpoilt && position === 50);
    const spoilt = ask(h.engine, prompt, { priority, maxTokens: priority === 'idle' ? 0 : 5 });
    await drain(h.engine);
    expect(spoilt).toMatchObject({ ended: 'engineFailed', message: MESSAGES.rows, numEnds: 1, tokenIds: [] });
    expect(h.engine.blocks.describe(prompt).tokens).toBe(32);
    expectFinite(h);
    isSpoilt = false;
    const again = ask(h.engine, prompt, { maxTokens: 5 });
    await drain(h.engine);
    expect(again.tokenIds).toEqual(alone(prompt, { maxTokens: 5 }));
  },
);

test('non-finite logits after a rejected draft token are ignored; accepted tokens count', async () => {
  const prompt = tokens(40);
  const sampling = { maxTokens: 60 };
  const answer = alone(prompt, sampling);
  const text = [...prompt, ...answer];
  // Every ninth token is guessed wrongly.
  const draftSources = () => [
    [...prompt.slice(-2), ...answer.map((id, i) => (i % 9 === 8 ? (id + 1) % VOCAB_SIZE : id))],
  ];
  const inMiddle = harness({ slots: 2048, tokenBudget: 64 });
  let numBefore = 0;
  spoil(inMiddle, 'logits', ({ startIndex }, position) => {
    if (position === 72) numBefore = position - startIndex;
    return position === 72;
  });
  const cut = ask(inMiddle.engine, prompt, { ...sampling, draftSources });
  await drain(inMiddle.engine);
  expect(numBefore).toBeGreaterThan(0);
  expect(cut).toMatchObject({ ended: 'engineFailed', numEnds: 1, tokenIds: answer.slice(0, 33) });
  expect(inMiddle.engine.stats().poolSlots.held).toBe(40);

  const behind = harness({ slots: 2048, tokenBudget: 64 });
  const numUnsound = spoil(behind, 'logits', ({ tokenIds, startIndex }, position) =>
    tokenIds.slice(0, position - startIndex + 1).some((id, i) => id !== text[startIndex + i]),
  );
  const whole = ask(behind.engine, prompt, { ...sampling, draftSources });
  await drain(behind.engine);
  expect(numUnsound()).toBeGreaterThan(0);
  expect(whole).toMatchObject({ ended: 'length', tokenIds: answer });
});

test('one of three candidates ends; the other two continue over a prompt that stays cached', async () => {
  const h = harness({ slots: 2048, tokenBudget: 64, policies: { speculation: false } });
  const prompt = tokens(50);
  const samplings = [3, 4, 5].map((seed) => ({ maxTokens: 12, temperature: 100, seed }));
  const answers = samplings.map((sampling) => alone(prompt, sampling));
  expect(new Set(answers.map(([first]) => first)).size).toBe(3);
  spoil(h, 'logits', ({ tokenIds }, position) => position === 50 && tokenIds[0] === answers[1]![0]);
  const candidates = samplings.map((sampling) => ask(h.engine, prompt, sampling));
  await drain(h.engine);
  expect(candidates.map(({ ended }) => ended)).toEqual(['length', 'engineFailed', 'length']);
  expect(candidates.map(({ tokenIds }) => tokenIds)).toEqual([answers[0], answers[1]!.slice(0, 1), answers[2]]);
  expect(h.engine.blocks.describe([...prompt, answers[1]![0]!]).tokens).toBe(50);
});
