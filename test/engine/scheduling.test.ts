/** Scheduling order: classes, ageing, first tokens, leaders, preemption, aborts. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { reservedBytes } from '../../engine/kv/approx/approximations.ts';
import { SpillFile } from '../../engine/kv/disk/spillFile.ts';
import { kvBytesPerToken } from '../../engine/kv/kvRows.ts';
import { fakeShape } from '../support/engine/fakeRunner.ts';
import { ask, drain, harness, tokens, type Watched } from '../support/engine/harness.ts';
import { runAlone } from '../support/engine/oracle.ts';

const alone = (prompt: number[], maxTokens: number): number[] =>
  runAlone(prompt, { maxTokens }, { maxContext: 1e9, capacity: 1e9 }).tokenIds;

test('higher priority classes run first, whatever the order of arrival', async () => {
  const { engine, runner, clock } = harness({ slots: 2048, tokenBudget: 16 });
  runner.beforeRun = () => {
    clock.now += 10;
  };
  const asked = (['idle', 'summary', 'chat', 'completion'] as const).map((priority, i) =>
    ask(engine, tokens(64, i), { priority, maxTokens: priority === 'idle' ? 0 : 1 }),
  );
  const order: string[] = [];
  while (engine.hasWork()) {
    await engine.step();
    for (const one of asked) if (one.ended && !order.includes(one.sequence.priority)) order.push(one.sequence.priority);
  }
  expect(order).toEqual(['completion', 'chat', 'summary', 'idle']);
});

test('a completion computed ahead gets completion priority as soon as the editor waits for it', async () => {
  const ended = async (raised: boolean): Promise<string[]> => {
    const { engine, runner, clock } = harness({ slots: 2048, tokenBudget: 16 });
    runner.beforeRun = () => {
      clock.now += 10;
    };
    const ahead = ask(engine, tokens(200, 1), { priority: 'summary', maxTokens: 4 });
    const chat = ask(engine, tokens(200, 2), { priority: 'chat', maxTokens: 4 });
    await engine.step();
    // Also works in the middle of a step.
    const step = engine.step();
    if (raised) engine.prioritise(ahead.sequence.id, 'completion');
    engine.prioritise('nobody', 'completion');
    await step;
    const order: string[] = [];
    while (engine.hasWork()) {
      await engine.step();
      for (const [name, one] of [
        ['ahead', ahead],
        ['chat', chat],
      ] as const)
        if (one.ended && !order.includes(name)) order.push(name);
    }
    expect([ahead.tokenIds, chat.tokenIds]).toEqual([alone(tokens(200, 1), 4), alone(tokens(200, 2), 4)]);
    expect(engine.stats().classes.completion.ttftMs.count).toBe(raised ? 1 : 0);
    return order;
  };
  expect(await ended(false)).toEqual(['chat', 'ahead']);
  expect(await ended(true)).toEqual(['ahead', 'chat']);
});

test('a completion that already runs when the editor starts to wait has no queue time', async () => {
  const { engine, runner, clock } = harness({ slots: 2048, tokenBudget: 16 });
  runner.beforeRun = () => {
    clock.now += 10;
  };
  const ahead = ask(engine, tokens(200, 1), { priority: 'summary', maxTokens: 4 });
  await engine.step();
  await engine.step();
  engine.prioritise(ahead.sequence.id, 'completion');
  await drain(engine);
  expect(ahead.sequence.timings().queueMs).toBe(0);
  expect(engine.stats().classes.completion.queueMs).toMatchObject({ count: 1, p50: 0 });
});

test('a late chat does not overtake a chat whose prefill is nearly done', async () => {
  const steps = async (withSummary: boolean): Promise<number> => {
    const { engine, runner, clock } = harness({ slots: 16384, maxContext: 8192, tokenBudget: 64 });
    runner.beforeRun = () => {
      clock.now += 1;
    };
    const first = ask(engine, tokens(2900, 1), { priority: 'chat', maxTokens: 1 });
    if (withSummary) ask(engine, tokens(2900, 2), { priority: 'summary', maxTokens: 1 });
    while (first.sequence.numReached < 2400) await engine.step();
    ask(engine, tokens(2900, 3), { priority: 'chat', maxTokens: 1 });
    let count = 0;
    for (; !first.ended; count++) await engine.step();
    return count;
  };
  expect(await steps(true)).toBe(await steps(false));
});

test('idle work waits for every request and continues afterwards', async () => {
  const { engine } = harness({ slots: 2048, tokenBudget: 16 });
  const idle = ask(engine, tokens(100), { priority: 'idle', maxTokens: 0 });
  await engine.step();
  await engine.step();
  const summary = ask(engine, tokens(40, 1), { priority: 'summary', maxTokens: 20 });
  expect(engine.hasWork(false)).toBe(true);
  while (engine.hasWork(false)) await engine.step();
  expect(summary.ended).toBe('length');
  expect(idle.ended).toBeNull();
  expect(engine.stats().tokens.idleComputed).toBe(32);
  await drain(engine);
  expect(idle.ended).toBe('length');
  expect(engine.stats().tokens.idleComputed).toBe(100);
});

test('no class starves: a summary advances under endless completions', async () => {
  const { engine, runner, clock } = harness({ slots: 4096, tokenBudget: 16 });
  runner.beforeRun = () => {
    clock.now += 50;
  };
  const summary = ask(engine, tokens(160, 1), { priority: 'summary', maxTokens: 1 });
  for (let i = 0; !summary.ended; i++) {
    // As many tokens as a step can take.
    ask(engine, tokens(16, 100 + i), { priority: 'completion', maxTokens: 1 });
    await engine.step();
    expect(i).toBeLessThan(2000);
  }
  // Ten chunks, each after at most two levels of ageing.
  expect(clock.now).toBeLessThan(11 * 4100);
});

test('at equal level the prompt that can give its first token now goes first', async () => {
  const { engine } = harness({ slots: 2048, tokenBudget: 32 });
  const long = ask(engine, tokens(200, 1), { maxTokens: 1 });
  const short = ask(engine, tokens(20, 2), { maxTokens: 1 });
  await engine.step();
  expect(short.ended).toBe('length');
  expect(long.ended).toBeNull();
  await drain(engine);
});

test('within a class the least served client goes first: a question does not wait for all files of a folder', async () => {
  const filesBefore = async (fairness: boolean): Promise<number> => {
    const { engine } = harness({ slots: 8192, tokenBudget: 64, policies: { fairness } });
    const files = Array.from({ length: 12 }, (_, i) =>
      ask(engine, tokens(400, i), { clientId: 'folder', priority: 'summary', maxTokens: 2 }),
    );
    for (let i = 0; i < 8; i++) await engine.step();
    const single = ask(engine, tokens(400, 20), { priority: 'summary', maxTokens: 2 });
    while (!single.ended) await engine.step();
    const before = files.filter((file) => file.ended).length;
    await drain(engine);
    return before;
  };
  expect(await filesBefore(true)).toBeLessThanOrEqual(4);
  expect(await filesBefore(false)).toBe(12);
});

test('fairness lets a started long prefill continue for a while before a shorter one of equal rank', async () => {
  const { engine } = harness({ slots: 8192, tokenBudget: 64 });
  const long = ask(engine, tokens(3000, 1), { maxTokens: 1 });
  await engine.step();
  const short = ask(engine, tokens(300, 2), { maxTokens: 1 });
  await engine.step();
  expect(short.sequence.status).toBe('waiting');
  while (!short.ended) await engine.step();
  expect(long.ended).toBeNull();
  await drain(engine);
});

test('after bursts of requests, a step waits for the next request of a burst; a completion ends the wait', async () => {
  const { engine, clock, runner } = harness({ slots: 8192, tokenBudget: undefined });
  runner.beforeRun = () => {
    clock.now += 100;
  };
  for (let i = 0; i < 2; i++) {
    ask(engine, tokens(200, 2 * i), { priority: 'summary', maxTokens: 1 });
    expect(engine.pauseMs()).toBe(0);
    clock.now += 2;
    ask(engine, tokens(200, 2 * i + 1), { priority: 'summary', maxTokens: 1 });
    await drain(engine);
    clock.now += 1000;
  }
  ask(engine, tokens(200, 30), { priority: 'summary', maxTokens: 1 });
  expect(engine.pauseMs()).toBe(3);
  const completion = ask(engine, tokens(20, 31), { priority: 'completion', maxTokens: 1 });
  expect(engine.pauseMs()).toBe(0);
  await drain(engine);
  expect(completion.ended).toBe('length');
  expect(engine.pauseMs()).toBe(0);
});

test('a step shorter than the expected wait does not wait for a burst', async () => {
  const { engine, clock, runner } = harness({ slots: 8192, tokenBudget: undefined });
  runner.beforeRun = (batch) => {
    clock.now += 2 + batch.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0) / 2;
  };
  for (let i = 0; i < 2; i++) {
    ask(engine, tokens(200, 2 * i), { priority: 'summary', maxTokens: 1 });
    clock.now += 2;
    ask(engine, tokens(200, 2 * i + 1), { priority: 'summary', maxTokens: 1 });
    await drain(engine);
    clock.now += 1000;
  }
  ask(engine, tokens(200, 30), { priority: 'summary', maxTokens: 1 });
  expect(engine.pauseMs()).toBeGreaterThan(0);
  await drain(engine);
  clock.now += 1000;
  // All of its tokens but two are cached.
  ask(engine, [...tokens(200, 30).slice(0, 198), 1, 2], { priority: 'summary', maxTokens: 1 });
  expect(engine.pauseMs()).toBe(0);
  await drain(engine);
});

test('the higher class computes a shared prefix; the lower one waits for it and then reuses it', async () => {
  const { engine, runner } = harness({ slots: 2048, tokenBudget: 64 });
  const prefix = tokens(128);
  const chat = ask(engine, [...prefix, 1, 2, 3], { priority: 'chat', maxTokens: 2 });
  await engine.step();
  const completion = ask(engine, [...prefix, 4, 5, 6], { priority: 'completion', maxTokens: 2 });
  await engine.step();
  expect(runner.batches.map((batch) => batch.spans)).toEqual([1, 1]);
  await drain(engine);
  expect(runner.numComputed).toBe(128 + 6 + 2);
  expect(completion.sequence.cachedTokens).toBe(64);
  expect(chat.sequence.cachedTokens).toBe(64);
});

test('a request that waits for an in-flight prefix takes no slots and preempts no other', async () => {
  const { engine } = harness({ slots: 150, tokenBudget: 64 });
  const first = ask(engine, [...tokens(100), 1], { maxTokens: 5 });
  const second = ask(engine, [...tokens(100), 2], { maxTokens: 5 });
  await engine.step();
  expect([first, second].map((one) => one.sequence.status)).toEqual(['running', 'waiting']);
  await drain(engine);
  expect(second.sequence.cachedTokens).toBe(100);
  expect(engine.stats().events.preemptions).toBe(0);
});

test('preemption takes the latest request of the lowest class, which later resumes with the same tokens', async () => {
  const { engine } = harness({ slots: 120, tokenBudget: 64 });
  const summary = ask(engine, tokens(40, 1), { priority: 'summary', maxTokens: 15 });
  await engine.step();
  const later = ask(engine, tokens(40, 2), { priority: 'summary', maxTokens: 15 });
  for (let i = 0; i < 3; i++) await engine.step();
  const completion = ask(engine, tokens(50, 3), { priority: 'completion', maxTokens: 15 });
  await engine.step();
  expect([summary, later, completion].map((one) => one.sequence.status)).toEqual(['running', 'waiting', 'running']);
  expect(engine.stats().requests).toMatchObject({ waiting: 1, running: 2 });
  await drain(engine);
  expect(summary.tokenIds).toEqual(alone(tokens(40, 1), 15));
  expect(later.tokenIds).toEqual(alone(tokens(40, 2), 15));
  expect(completion.tokenIds).toEqual(alone(tokens(50, 3), 15));
  expect(engine.stats().events.preemptions).toBeGreaterThan(0);
});

test('when decoding runs out of slots, the latest request is preempted', async () => {
  const { engine } = harness({ slots: 100, tokenBudget: 64 });
  const asked = [1, 2, 3].map((i) => ask(engine, tokens(25, i), { maxTokens: 60 }));
  await drain(engine);
  for (const [i, one] of asked.entries()) expect(one.tokenIds).toEqual(alone(tokens(25, i + 1), 60));
  expect(engine.stats().events.preemptions).toBeGreaterThan(0);
});

test('abort at every step, before it and during it', async () => {
  for (let at = 0; at < 14; at++) {
    for (const during of [false, true]) {
      const { engine } = harness({ slots: 300, tokenBudget: 16 });
      const prefix = tokens(30);
      const asked = [1, 2, 3].map((i) => ask(engine, [...prefix, ...tokens(20, i)], { id: `a${i}`, maxTokens: 6 }));
      for (let step = 0; engine.hasWork(); step++) {
        if (step === at && !during) engine.abort('a2');
        const stepped = engine.step();
        const said = asked[1]!.tokenIds.length;
        if (step === at && during) engine.abort('a2');
        await stepped;
        if (step === at) expect(asked[1]!.tokenIds).toHaveLength(said);
        engine.checkIntegrity();
      }
      expect(asked.map((one) => one.numEnds)).toEqual([1, 1, 1]);
      expect(asked[0]!.tokenIds).toEqual(alone([...prefix, ...tokens(20, 1)], 6));
      expect(asked[2]!.tokenIds).toEqual(alone([...prefix, ...tokens(20, 3)], 6));
      expect(engine.stats().requests.aborted).toBe(asked[1]!.ended === 'abort' ? 1 : 0);
    }
  }
});

test('property: aborts in any order leave no reference behind', async () => {
  const order = fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: 6 });
  await fc.assert(
    fc.asyncProperty(
      order,
      fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 6, maxLength: 6 }),
      async (ids, pauses) => {
        const { engine } = harness({ slots: 200, tokenBudget: 16 });
        const prefix = tokens(25);
        const asked = ids.map((_, i) =>
          ask(engine, [...prefix.slice(0, 5 * i), ...tokens(12, i)], { id: `a${i}`, maxTokens: 50 }),
        );
        for (const [i, id] of ids.entries()) {
          for (let step = 0; step < pauses[i]!; step++) await engine.step();
          engine.abort(`a${id}`);
          engine.checkIntegrity();
        }
        await drain(engine);
        expect(asked.every((one) => one.numEnds === 1)).toBe(true);
        // No requests are left, so everything can be evicted: no run is referenced.
        engine.blocks.evict();
        expect(engine.stats().poolSlots.held).toBe(0);
        expect(engine.stats().storeBytes).toBe(0);
      },
    ),
    { seed: 5, numRuns: 60 },
  );
});

test('a request that does not fit does not block a higher class', async () => {
  const { engine, clock } = harness({ slots: 320, tokenBudget: 256, policies: { grouping: false } });
  const running = ask(engine, tokens(150, 1), { priority: 'summary', maxTokens: 100 });
  await engine.step();
  const waiting = ask(engine, tokens(200, 2), { priority: 'summary', maxTokens: 1 });
  // Ageing now ranks it above a new chat.
  clock.now += 5000;
  const chat = ask(engine, tokens(30, 3), { maxTokens: 3 });
  for (let i = 0; i < 6; i++) await engine.step();
  expect([chat, running, waiting].map(({ ended }) => ended)).toEqual(['length', null, null]);
  await drain(engine);
  expect([running, waiting].map(({ ended }) => ended)).toEqual(['length', 'length']);
});

test.each([0, 100])(
  'no request is preempted for one that does not fit anyway (%i tokens in common)',
  async (numCommon) => {
    const { engine } = harness({ slots: 1000, tokenBudget: 1024 });
    const common = tokens(numCommon, 9);
    const answer = ask(engine, tokens(600, 1), { maxTokens: 60 });
    await engine.step();
    const summary = ask(engine, [...common, ...tokens(150 - numCommon, 2)], { priority: 'summary', maxTokens: 20 });
    await engine.step();
    const next = ask(engine, [...common, ...tokens(450 - numCommon, 3)], { maxTokens: 1 });
    for (let i = 0; i < 30; i++) await engine.step();
    expect([answer, summary, next].map(({ ended }) => ended)).toEqual([null, 'length', null]);
    expect(engine.stats().events.preemptions).toBe(0);
    await drain(engine);
    expect(next.ended).toBe('length');
  },
);

test('a context longer than the pool is preempted only if the other context can then run', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-gives-way-'));
  const spillFile = new SpillFile(folder, 10_000_000, () => {});
  onTestFinished(() => {
    spillFile.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const { engine } = harness({ slots: 1024, tokenBudget: 256, spillFile });
  const answer = ask(engine, tokens(100, 1), { maxTokens: 80 });
  await engine.step();
  const summary = ask(engine, tokens(1500, 2), { priority: 'summary', maxTokens: 100 });
  // By then the answer holds slots that a second request would need.
  while (answer.tokenIds.length < 40) await engine.step();
  const said = summary.tokenIds.length;
  expect(said).toBeGreaterThan(0);
  const next = ask(engine, tokens(1500, 3), { maxTokens: 1 });
  for (let i = 0; i < 20; i++) await engine.step();
  expect([summary, next].map(({ sequence }) => sequence.status)).toEqual(['running', 'waiting']);
  expect(summary.tokenIds.length).toBe(said + 20);
  expect(engine.stats().events.preemptions).toBe(0);
  while (!answer.ended) await engine.step();
  await engine.step();
  expect([summary, next].map(({ sequence }) => sequence.status)).toEqual(['waiting', 'running']);
  await drain(engine);
  expect([answer, summary, next].map(({ ended }) => ended)).toEqual(['length', 'length', 'length']);
});

test.each(['idle', 'summary'] as const)(
  'a context longer than the pool gets the slots of a lower-priority one with the same beginning (%s)',
  async (priority) => {
    const folder = mkdtempSync(path.join(tmpdir(), 'kvasir-beginning-'));
    const spillFile = new SpillFile(folder, 10_000_000, () => {});
    onTestFinished(() => {
      spillFile.close();
      rmSync(folder, { recursive: true, force: true });
    });
    const { engine } = harness({ slots: 1024, tokenBudget: 256, spillFile });
    const block = tokens(1900, 1);
    const lower = ask(engine, block.slice(0, 611), { priority, maxTokens: 100 });
    while (lower.tokenIds.length < 3) await engine.step();
    const chat = ask(engine, block, { maxTokens: 4 });
    while (!chat.ended) await engine.step();
    expect([chat.ended, lower.ended]).toEqual(['length', null]);
    await drain(engine);
    expect(lower.tokenIds).toEqual(alone(block.slice(0, 611), 100));
  },
);

/**
 * Chats run without end, one at any moment. Completions of `typed` tokens start at second `typedFrom`. A summary that
 * does not fit beside a chat starts after one second, unless `summarised` is false.
 */
async function besideChats({
  typed = 0,
  typedFrom = 0,
  summarised = true,
}: {
  typed?: number;
  typedFrom?: number;
  summarised?: boolean;
}): Promise<{ summary: Watched | null; numChats: number; waits: { chat: number; completion: number } }> {
  const { engine, clock, runner } = harness({ slots: 1000, tokenBudget: 256 });
  runner.beforeRun = () => {
    clock.now += 100;
  };
  const chats: Watched[] = [];
  const completions: Watched[] = [];
  let summary: Watched | null = null;
  const waits = { chat: 0, completion: 0 };
  for (let seed = 1; clock.now < 60_000; ) {
    const open = chats.filter(({ ended }) => !ended);
    // The next chat begins in the middle of the last one.
    if (open.length === 0 || (open.length === 1 && open[0]!.tokenIds.length === 30))
      chats.push(ask(engine, tokens(300, seed++), { maxTokens: 60 }));
    if (typed > 0 && clock.now >= 1000 * typedFrom && completions.every(({ ended }) => ended))
      completions.push(ask(engine, tokens(typed, seed++), { priority: 'completion', maxTokens: 20 }));
    if (summarised && clock.now >= 1000)
      summary ??= ask(engine, tokens(750, 60), { priority: 'summary', maxTokens: 20 });
    await engine.step();
    engine.checkIntegrity();
    for (const { sequence } of [...chats, ...completions]) {
      if (sequence.status !== 'waiting') continue;
      const kind = sequence.priority === 'chat' ? 'chat' : 'completion';
      waits[kind] = Math.max(waits[kind], clock.now - sequence.lastServedAt);
    }
  }
  return { summary, numChats: chats.filter(({ ended }) => ended).length, waits };
}

test.each([0, 100])(
  'a summary gets most of the pool after chats have blocked it for long, and chats get it back (completions of %i tokens)',
  async (typed) => {
    const usual = await besideChats({ typed, summarised: false });
    const { summary, numChats, waits } = await besideChats({ typed });
    expect(summary!.ended).toBe('length');
    expect(summary!.tokenIds).toEqual(alone(tokens(750, 60), 20));
    expect(waits.completion).toBe(usual.waits.completion);
    // A chat waits for the rest of another chat and for the summary.
    expect(waits.chat).toBeLessThan(10_000);
    expect(numChats).toBeGreaterThan(usual.numChats - 4);
  },
);

test.each([0, 31.5])(
  'chats do not wait for a summary that gets no slots because of completions, from second %d on',
  async (typedFrom) => {
    const usual = await besideChats({ typed: 300, typedFrom, summarised: false });
    const { summary, numChats, waits } = await besideChats({ typed: 300, typedFrom });
    expect(summary!.ended).toBeNull();
    expect(waits.completion).toBe(usual.waits.completion);
    expect(numChats).toBeGreaterThan(usual.numChats - 2);
  },
);

test('a summary finally gets slots although chats keep evicting what it computed', async () => {
  const { engine, clock, runner } = harness({ slots: 1000, tokenBudget: 256 });
  runner.beforeRun = () => {
    clock.now += 100;
  };
  const summary = ask(engine, tokens(900, 60), { priority: 'summary', maxTokens: 20 });
  for (let seed = 1; clock.now < 60_000 && !summary.ended; seed++) {
    const chat = ask(engine, tokens(700, seed), { maxTokens: 60 });
    while (!chat.ended && !summary.ended) await engine.step();
    await engine.step();
    engine.checkIntegrity();
  }
  expect(summary.ended).toBe('length');
  expect(summary.tokenIds).toEqual(alone(tokens(900, 60), 20));
});

test('chats wait for one summary, not for all that have waited long', async () => {
  const { engine, clock, runner } = harness({ slots: 1000, tokenBudget: 256 });
  runner.beforeRun = () => {
    clock.now += 100;
  };
  let seed = 1;
  let chat = ask(engine, tokens(300, seed++), { maxTokens: 60 });
  const summaries: Watched[] = [];
  let [longest, served] = [0, 0];
  while (clock.now < 200_000) {
    if (chat.ended) chat = ask(engine, tokens(300, seed++), { maxTokens: 60 });
    if (chat.sequence.status === 'running') served += 100;
    while (summaries.filter(({ ended }) => !ended).length < 8)
      summaries.push(ask(engine, tokens(750, seed++), { priority: 'summary', maxTokens: 100 }));
    await engine.step();
    engine.checkIntegrity();
    if (chat.sequence.status === 'waiting') longest = Math.max(longest, clock.now - chat.sequence.lastServedAt);
  }
  // Chats wait ten seconds for a summary. Then they run for half a minute.
  expect(longest).toBeGreaterThan(5000);
  expect(longest).toBeLessThan(14_000);
  expect(served).toBeGreaterThan(140_000);
  expect(summaries.filter(({ ended }) => ended).length).toBeGreaterThan(2);
});

test('a preempted request computes nothing twice', async () => {
  const { engine, runner } = harness({ slots: 8192, tokenBudget: 512 });
  const summaries = Array.from({ length: 16 }, (_, i) =>
    ask(engine, tokens(50, i), { priority: 'summary', maxTokens: 20 }),
  );
  for (let i = 0; i < 8; i++) await engine.step();
  expect(engine.stats().requests).toMatchObject({ running: 16, waiting: 0 });
  const completions = [20, 21, 22].map((i) => ask(engine, tokens(30, i), { priority: 'completion', maxTokens: 5 }));
  await engine.step();
  expect(engine.stats().requests).toMatchObject({ running: 16, waiting: 3 });
  await drain(engine);
  expect(engine.stats().events.preemptions).toBe(3);
  // The token that was sampled last is never computed.
  expect(runner.numComputed).toBe(16 * (50 + 19) + 3 * (30 + 4));
  for (const [i, one] of summaries.entries()) expect(one.tokenIds).toEqual(alone(tokens(50, i), 20));
  for (const [i, one] of completions.entries()) expect(one.tokenIds).toEqual(alone(tokens(30, 20 + i), 5));
});

test('text that diverges from a running completion forks it where it differs', async () => {
  const { engine, runner } = harness({ slots: 512 });
  const prompt = tokens(40);
  const running = ask(engine, prompt, { id: 'running', priority: 'completion', maxTokens: 50 });
  for (let i = 0; i < 10; i++) await engine.step();
  const written = running.tokenIds.slice();
  const typed = [...prompt, ...written.slice(0, 4), (written[4]! + 1) % 64];
  // The host sends both messages between two steps, or while a step runs.
  const stepped = engine.step();
  engine.abort('running');
  const diverged = ask(engine, typed, { priority: 'completion', maxTokens: 3 });
  await stepped;
  const before = runner.numComputed;
  await drain(engine);
  expect(running.ended).toBe('abort');
  expect(diverged.sequence.cachedTokens).toBe(44);
  expect(runner.numComputed - before).toBe(1 + 2);
  expect(diverged.tokenIds).toEqual(alone(typed, 3));
});

test('an aborted prompt leaves its computed tokens to the next one', async () => {
  const { engine } = harness({ slots: 512, tokenBudget: 16 });
  ask(engine, tokens(100), { id: 'gone' });
  await engine.step();
  await engine.step();
  engine.abort('gone');
  const next = ask(engine, tokens(100), { maxTokens: 1 });
  await drain(engine);
  expect(next.sequence.cachedTokens).toBe(32);
});

test('a token callback may add and abort requests', async () => {
  const { engine } = harness({ slots: 512 });
  let second: Watched | undefined;
  const push = (): string => {
    if (second) engine.abort('second');
    else second = ask(engine, tokens(12, 1), { id: 'second', maxTokens: 50 });
    return '';
  };
  const first = ask(engine, tokens(10), { maxTokens: 5, detokenizer: { push, flush: () => '' } });
  await drain(engine);
  engine.abort('second');
  engine.abort('nobody');
  expect(first).toMatchObject({ ended: 'length', numEnds: 1 });
  expect(second).toMatchObject({ ended: 'abort', numEnds: 1 });
  expect(engine.stats().requests).toEqual({ waiting: 0, running: 0, done: 1, failed: 0, aborted: 1 });
});

test('a lower budget preempts and demotes at once; a higher one lets the pool grow', async () => {
  const { engine } = harness({ slots: 3000, tokenBudget: 256 });
  const bytes = kvBytesPerToken(fakeShape());
  const kernels = reservedBytes({}, fakeShape());
  const asked = [1, 2, 3].map((i) => ask(engine, tokens(600, i), { maxTokens: 20 }));
  for (let i = 0; i < 9; i++) await engine.step();
  expect(engine.stats().poolSlots.total).toBeGreaterThan(1800);
  engine.setMaxBytes(700 * bytes + kernels);
  engine.checkIntegrity();
  expect(engine.stats().poolBytes + engine.stats().storeBytes).toBeLessThanOrEqual(700 * bytes);
  expect(engine.stats().requests).toMatchObject({ waiting: 2, running: 1 });
  for (let i = 0; i < 4; i++) await engine.step();
  engine.setMaxBytes(4000 * bytes + kernels);
  await drain(engine);
  for (const [i, one] of asked.entries()) expect(one.tokenIds).toEqual(alone(tokens(600, i + 1), 20));
});

test('after an idle minute the pool shrinks page by page, and its rows move to the store', async () => {
  const { engine, clock } = harness({ slots: 8192, tokenBudget: 512 });
  for (const i of [1, 2, 3, 4]) ask(engine, tokens(1000, i), { maxTokens: 2 });
  await drain(engine);
  const slots = () => engine.stats().poolSlots;
  expect(slots().total).toBeGreaterThan(4000);
  clock.now += 100_000;
  for (let before = slots(); await engine.runMaintenance([]); before = slots()) {
    engine.checkIntegrity();
    expect(before.held - slots().held).toBeLessThanOrEqual(2 * 256);
    expect(before.total - slots().total).toBeLessThanOrEqual(256);
  }
  expect(slots()).toMatchObject({ total: 256, held: 0 });
  expect(engine.blocks.describe(tokens(1000, 2))).toEqual({
    tokens: 1000,
    bytes: 1000 * 2 * 2 * 16,
    tier: 'store',
    codecs: ['int8'],
    shiftedTokens: 0,
    diskTokens: 0,
  });
  const again = ask(engine, [...tokens(1000, 2), 5], { maxTokens: 3 });
  await drain(engine);
  expect(again.sequence.cachedTokens).toBe(1000);
  expect(again.tokenIds).toEqual(alone([...tokens(1000, 2), 5], 3));
  expect(engine.blocks.describe(tokens(1000, 2)).tier).toBe('pool');
});

test('pinned prefixes are evicted last; evict() drops everything that starts with a prefix', async () => {
  const { engine, clock } = harness({ slots: 200, tokenBudget: 64 });
  engine.blocks.pin('a', tokens(60, 1));
  for (const i of [1, 2, 3, 4, 5]) {
    ask(engine, tokens(60, i), { maxTokens: 0 });
    await drain(engine);
    clock.now++;
  }
  expect(engine.blocks.describe(tokens(60, 1)).tokens).toBe(60);
  expect(engine.blocks.describe(tokens(60, 2)).tokens).toBeLessThan(60);
  engine.blocks.evict();
  expect(engine.blocks.describe(tokens(60, 1)).tokens).toBe(60);
  expect(engine.blocks.describe(tokens(60, 5)).tier).toBe('none');
  engine.blocks.evict(tokens(60, 1).slice(0, 10));
  expect(engine.blocks.describe(tokens(60, 1)).tokens).toBe(10);
  const large = ask(engine, tokens(195, 7), { maxTokens: 2 });
  await drain(engine);
  expect(large.ended).toBe('length');
});
