/** Steps keep to their target on a machine whose speed the engine has to find out, by the clock of the test. */
import { expect, test } from 'vitest';
import type { Policies } from '../../engine/policies/policies.ts';
import { ask, drain, type Harness, harness, tokens } from './harness.ts';

/** A machine where a step takes 14 ms and each token 0.8 ms and 1 us per column; `times` are those of its steps. */
function timed(policies: Partial<Policies> = {}, slowness = 1): Harness & { times: number[] } {
  const h = harness({ slots: 16384, maxContext: 8192, tokenBudget: undefined, policies });
  const times: number[] = [];
  h.runner.beforeRun = (batch) => {
    const numTokens = batch.reduce((sum, span) => sum + span.tokenIds.length, 0);
    const ms = slowness * (14 + numTokens * (0.8 + 0.001 * (h.window.numSlots + numTokens)));
    times.push(ms);
    h.clock.now += ms;
  };
  return { ...h, times };
}

/** Lets the engine learn. */
async function warmUp({ engine, times }: ReturnType<typeof timed>): Promise<void> {
  ask(engine, tokens(1500, 60), { priority: 'summary', maxTokens: 4 });
  await drain(engine);
  engine.evict();
  times.length = 0;
}

test.each([1, 3])('a summary alone takes long steps, shorter ones after typing and beside idle work (%i times slower)', async (slowness) => {
  const h = timed({}, slowness);
  await warmUp(h);
  const { engine, times, clock } = h;
  ask(engine, tokens(4000, 1), { priority: 'summary', maxTokens: 1 });
  await engine.step();
  await engine.step();
  expect(Math.max(...times)).toBeGreaterThan(400);
  expect(Math.max(...times)).toBeLessThan(900);
  times.length = 0;
  engine.typed();
  for (let i = 0; i < 10; i++) await engine.step();
  expect(Math.max(...times)).toBeGreaterThan(100);
  expect(Math.max(...times)).toBeLessThan(165);
  clock.now += 60_000;
  times.length = 0;
  await engine.step();
  expect(times[0]).toBeGreaterThan(300);
  await drain(engine);
  times.length = 0;
  ask(engine, tokens(1000, 2), { priority: 'idle', maxTokens: 0 });
  await drain(engine);
  expect(Math.max(...times)).toBeLessThan(165);
});

test('a completion tells that someone is typing', async () => {
  const h = timed();
  await warmUp(h);
  ask(h.engine, tokens(3000, 1), { priority: 'summary', maxTokens: 1 });
  ask(h.engine, tokens(10, 2), { priority: 'completion', maxTokens: 1 });
  for (let i = 0; i < 4; i++) await h.engine.step();
  h.times.length = 0;
  await h.engine.step();
  expect(h.times[0]).toBeLessThan(165);
  await drain(h.engine);
});

test('while a chat answer is being read, a summary does not make it stutter', async () => {
  const h = timed();
  await warmUp(h);
  const chat = ask(h.engine, tokens(20, 1), { maxTokens: 12 });
  await h.engine.step();
  ask(h.engine, tokens(3000, 2), { priority: 'summary', maxTokens: 1 });
  h.times.length = 0;
  while (!chat.ended) await h.engine.step();
  expect(Math.max(...h.times)).toBeLessThan(165);
  await drain(h.engine);
});

test('steps that serve a completion stay near what it takes alone, and a summary still goes on', async () => {
  const run = async (policies: Partial<Policies>, summaries: number): Promise<{ ms: number; steps: number[]; progress: number }> => {
    const h = timed(policies);
    await warmUp(h);
    for (let i = 0; i < summaries; i++) ask(h.engine, tokens(3000, 2 + i), { priority: 'summary', maxTokens: 1 });
    const before = h.clock.now;
    const completion = ask(h.engine, tokens(30, 1), { priority: 'completion', maxTokens: 16 });
    h.times.length = 0;
    const computed = h.runner.numComputed;
    while (!completion.ended) await h.engine.step();
    const result = { ms: h.clock.now - before, steps: [...h.times], progress: h.runner.numComputed - computed - 45 };
    await drain(h.engine);
    return result;
  };
  const alone = await run({}, 0);
  const beside = await run({}, 2);
  const fixed = await run({ stepTarget: false }, 2);
  expect(Math.max(...beside.steps)).toBeLessThan(55);
  expect(beside.ms).toBeLessThan(1.7 * alone.ms);
  expect(beside.progress).toBeGreaterThan(15 * 4 - 1);
  expect(fixed.ms).toBeGreaterThan(5 * alone.ms);
});
