/** Steps keep to their target time on a machine whose speed the engine has to learn, measured by the test's clock. */
import { expect, test } from 'vitest';
import type { PolicySwitches } from '../support/engine/policies.ts';
import { ask, drain, type Harness, harness, tokens } from '../support/engine/harness.ts';

/**
 * A machine on which a step takes 14 ms plus 0.8 ms per token and 1 us per column. `times` has the times of its steps.
 */
function timed(policies: PolicySwitches = {}, slowness = 1): Harness & { times: number[] } {
  const h = harness({ slots: 16384, maxContext: 8192, tokenBudget: undefined, policies });
  const times: number[] = [];
  h.runner.beforeRun = (batch) => {
    const numTokens = batch.reduce((sum, span) => sum + span.tokenIds.length, 0);
    const ms = slowness * (14 + numTokens * (0.8 + 0.001 * (h.runner.paidColumns + numTokens)));
    times.push(ms);
    h.clock.now += ms;
  };
  return { ...h, times };
}

/** Lets the engine learn the machine's speed. */
async function warmUp({ engine, times }: ReturnType<typeof timed>): Promise<void> {
  ask(engine, tokens(1500, 60), { priority: 'summary', maxTokens: 4 });
  await drain(engine);
  engine.blocks.evict();
  times.length = 0;
}

test.each([1, 3])(
  'a summary alone takes long steps, and shorter ones after typing and beside idle work (machine %i times slower)',
  async (slowness) => {
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
  },
);

test('a completion shows the scheduler that the user is typing', async () => {
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

test('steps that serve a completion take about as long as for it alone, and a summary still advances', async () => {
  const run = async (
    policies: PolicySwitches,
    summaries: number,
  ): Promise<{ ms: number; steps: number[]; progress: number }> => {
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

test('beside a completion, answers with long contexts advance slowly, but by a token at least about every 300 ms', async () => {
  const run = async (numChats: number, policies: PolicySwitches = {}): Promise<{ ms: number; gaps: number[] }> => {
    const h = timed(policies);
    await warmUp(h);
    const gaps: number[] = [];
    const chats = [];
    for (let i = 0; i < numChats; i++) {
      let last = Number.NaN;
      const push = (): string => {
        if (!Number.isNaN(last)) gaps.push(h.clock.now - last);
        last = h.clock.now;
        return '';
      };
      chats.push(ask(h.engine, tokens(3000, 2 + i), { maxTokens: 400, detokenizer: { push, flush: () => '' } }));
    }
    while (chats.some(({ tokenIds }) => tokenIds.length === 0)) await h.engine.step();
    gaps.length = 0;
    const before = h.clock.now;
    const completion = ask(h.engine, tokens(20, 1), { priority: 'completion', maxTokens: 24 });
    while (!completion.ended) await h.engine.step();
    const ms = h.clock.now - before;
    await drain(h.engine);
    return { ms, gaps };
  };
  const alone = await run(0);
  const among = await run(3);
  const all = await run(3, { stepTarget: false });
  expect(among.ms).toBeLessThan(2 * alone.ms);
  expect(among.ms).toBeLessThan(0.8 * all.ms);
  expect(Math.max(...among.gaps)).toBeLessThan(410);
  expect(among.gaps.length).toBeGreaterThan(100);
});

test('a completion that cannot run yet delays no other request', async () => {
  const h = harness({ slots: 130, tokenBudget: undefined, policies: { preemption: false } });
  h.runner.beforeRun = () => {
    h.clock.now += 60;
  };
  const summary = ask(h.engine, tokens(60, 1), { priority: 'summary', maxTokens: 30 });
  for (let i = 0; i < 5; i++) await h.engine.step();
  const completion = ask(h.engine, tokens(80, 2), { priority: 'completion', maxTokens: 3 });
  await drain(h.engine);
  expect([summary.ended, completion.ended]).toEqual(['length', 'length']);
});

test('a prompt in the prefill lane fills its step; other prompts wait for the next step', async () => {
  const h = harness({ slots: 16384, maxContext: 8192, tokenBudget: undefined, prefillBytesPerToken: 1 });
  const times: number[] = [];
  h.runner.beforeRun = (batch) => {
    let ms = 14;
    for (const { lane, tokenIds, startIndex } of batch)
      ms +=
        tokenIds.length *
        (lane === 'prefill' ? 1 + 0.0005 * startIndex : 0.8 + 0.001 * (h.runner.paidColumns + tokenIds.length));
    times.push(ms);
    h.clock.now += ms;
  };
  for (const prefillTokens of [1500, 0]) {
    ask(h.engine, tokens(1500, 60), { priority: 'summary', maxTokens: 4, prefillTokens });
    await drain(h.engine);
    h.engine.blocks.evict();
  }
  times.length = 0;
  const long = ask(h.engine, tokens(4000, 1), { maxTokens: 1, prefillTokens: 4000 });
  await h.engine.step();
  const other = ask(h.engine, tokens(2000, 2), { maxTokens: 1 });
  while (!long.ended || !other.ended) await h.engine.step();
  expect(Math.max(...times)).toBeLessThan(1000);
});
