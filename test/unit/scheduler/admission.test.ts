/** Admission's look-ups in the radix tree. Who is admitted is tested in test/engine/scheduling.test.ts. */
import { expect, test, vi } from 'vitest';
import { RadixTree } from '../../../engine/kv/radixTree.ts';
import { ask, drain, harness, tokens } from '../../support/engine/harness.ts';

test('a step looks each waiting sequence up once, and none while the tree stays as it is', async () => {
  const { engine, clock, runner } = harness({ slots: 4096, tokenBudget: 16 });
  runner.beforeRun = () => {
    clock.now += 10;
  };
  ask(engine, tokens(300, 1), { maxTokens: 1 });
  await engine.step();
  const waiting = Array.from({ length: 8 }, (_, i) => ask(engine, tokens(200, 2 + i), { maxTokens: 1 }));
  const match = vi.spyOn(RadixTree.prototype, 'match');
  // A waiting sequence is looked up from the root; leases move on from the node that they have reached.
  const numLookUps = (): number => match.mock.calls.filter(([, , from]) => from === undefined).length;
  try {
    await engine.step();
    expect(waiting.every(({ sequence }) => sequence.status === 'waiting')).toBe(true);
    expect(numLookUps()).toBe(8);
    // The step has added rows to the tree.
    match.mockClear();
    for (let i = 0; i < 3; i++) engine.pauseMs();
    expect(numLookUps()).toBe(8);
  } finally {
    match.mockRestore();
  }
  await drain(engine);
});
