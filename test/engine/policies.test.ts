/** The policy switches: what each one changes. None of them changes a token. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { VOCAB_SIZE } from '../support/engine/fakeRunner.ts';
import { ask, drain, harness, numberDetokenizer, tokens } from '../support/engine/harness.ts';
import { runAlone } from '../support/engine/oracle.ts';
import { POLICY_NAMES, type PolicySwitches } from '../support/engine/policies.ts';
import { driveWorkload, makeWorkload } from '../support/engine/workload.ts';

test('without priority classes, requests run in order of arrival, and idle work still runs last', async () => {
  const { engine } = harness({ slots: 2048, tokenBudget: 16, policies: { classes: false } });
  const asked = (['idle', 'summary', 'completion'] as const).map((priority, i) =>
    ask(engine, tokens(64, i), { priority, maxTokens: priority === 'idle' ? 0 : 1 }),
  );
  const order: string[] = [];
  while (engine.hasWork()) {
    await engine.step();
    for (const one of asked) if (one.ended && !order.includes(one.sequence.priority)) order.push(one.sequence.priority);
  }
  expect(order).toEqual(['summary', 'completion', 'idle']);
});

test('without preemption a completion waits for the slots that a summary holds', async () => {
  const preemptions = async (policies: PolicySwitches): Promise<number> => {
    const { engine } = harness({ slots: 120, tokenBudget: 64, policies });
    ask(engine, tokens(60, 1), { priority: 'summary', maxTokens: 20 });
    await engine.step();
    const completion = ask(engine, tokens(70, 2), { priority: 'completion', maxTokens: 3 });
    await drain(engine);
    expect(completion.tokenIds).toHaveLength(3);
    return engine.stats().events.preemptions;
  };
  expect(await preemptions({})).toBe(1);
  expect(await preemptions({ preemption: false })).toBe(0);
});

test('without in-flight prefix sharing, two requests compute some shared tokens twice', async () => {
  const computed = async (policies: PolicySwitches): Promise<number> => {
    const { engine } = harness({ slots: 2048, tokenBudget: 64, policies });
    const answers = [1, 2].map(() => ask(engine, tokens(200, 1), { maxTokens: 2 }));
    await drain(engine);
    expect(answers[0]!.tokenIds).toEqual(answers[1]!.tokenIds);
    engine.checkIntegrity();
    return engine.stats().tokens.promptComputed;
  };
  // Each request computes the last token of its prompt itself.
  expect(await computed({})).toBe(201);
  expect(await computed({ leader: false })).toBeGreaterThan(201);
});

test('property: with any policies, every request gets the tokens of the oracle', async () => {
  const switches = Object.fromEntries(POLICY_NAMES.map((name) => [name, fc.boolean()]));
  const setting = fc.record({
    seed: fc.integer(),
    slots: fc.integer({ min: 100, max: 3000 }),
    policies: fc.record(switches),
    tokenBudget: fc.constantFrom(24, undefined),
    perColumn: fc.constantFrom(0.0001, 0.01),
  });
  await fc.assert(
    fc.asyncProperty(setting, async ({ seed, slots, policies, tokenBudget, perColumn }) => {
      const items = makeWorkload({ seed, numRequests: 40, numTokens: VOCAB_SIZE, fileTokens: 40, arrivalsPerStep: 1 });
      const { engine, clock, runner } = harness({ slots, maxContext: 300, tokenBudget, policies });
      runner.beforeRun = (batch) => {
        const numTokens = batch.reduce((n, span) => n + span.tokenIds.length, 0);
        clock.now += 5 + numTokens * (0.5 + perColumn * runner.paidColumns);
      };
      const outcomes = await driveWorkload(engine, items, {
        detokenizer: numberDetokenizer,
        beforeStep: () => {
          if (seed % 3 === 0) engine.typed();
          clock.now += engine.pauseMs();
        },
        afterStep: () => engine.checkIntegrity(),
      });
      for (const item of items) {
        const outcome = outcomes.get(item.id)!;
        const { tokenIds } = runAlone(item.promptIds, item.sampling, { maxContext: 300, capacity: slots });
        expect(outcome.tokenIds, item.id).toEqual(
          outcome.finishReason === 'abort' ? tokenIds.slice(0, outcome.tokenIds.length) : tokenIds,
        );
      }
    }),
    { seed: 6, numRuns: 100 },
  );
});
