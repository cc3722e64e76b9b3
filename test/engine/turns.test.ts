/** Sequences with separate pages take turns: their shares of a machine with known costs, and their longest waits. */
import { expect, test, vi } from 'vitest';
import { KvPool } from '../../engine/kv/pool.ts';
import type { PolicySwitches } from '../support/engine/policies.ts';
import { ask, drain, type Harness, harness, tokens, type Watched } from '../support/engine/harness.ts';

const SMALL = { a: 14, b: 0.8, c: 0.001 };
const BIG = { a: 70, b: 4, c: 0.003 };

function machine({ a, b, c }: typeof SMALL, policies: PolicySwitches = {}): Harness & { sum: { products: number } } {
  const h = harness({
    slots: 65536,
    maxContext: 16384,
    tokenBudget: undefined,
    policies: { speculation: false, ...policies },
  });
  const sum = { products: 0 };
  h.runner.beforeRun = (batch) => {
    const numTokens = batch.reduce((n, span) => n + span.tokenIds.length, 0);
    sum.products += numTokens * (h.runner.paidColumns + numTokens);
    h.clock.now += a + numTokens * (b + c * (h.runner.paidColumns + numTokens));
  };
  return { ...h, sum };
}

/** Runs steps of all sizes, so that the engine learns their costs. */
async function learn(h: Harness): Promise<void> {
  ask(h.engine, tokens(1500, 63), { maxTokens: 8 });
  await drain(h.engine);
  h.clock.now += 5000;
}

test('completions in one file do not pay for the columns of an answer about another file, and that answer still advances', async () => {
  const run = async (grouping: boolean): Promise<{ products: number; answered: number; ms: number }> => {
    const h = machine(SMALL, { grouping });
    await learn(h);
    const chat = ask(h.engine, tokens(6000, 1), { maxTokens: 2000 });
    while (chat.tokenIds.length < 4) await h.engine.step();
    h.sum.products = 0;
    const [before, start] = [chat.tokenIds.length, h.clock.now];
    for (let i = 0; i < 10; i++) {
      const completion = ask(h.engine, tokens(300, 10 + i), { priority: 'completion', maxTokens: 10 });
      while (!completion.ended) await h.engine.step();
    }
    return { products: h.sum.products, answered: chat.tokenIds.length - before, ms: h.clock.now - start };
  };
  const together = await run(false);
  const grouped = await run(true);
  expect(grouped.products).toBeLessThan(0.7 * together.products);
  expect(grouped.ms).toBeLessThan(0.7 * together.ms);
  // At least one token per 400 ms, so that a reader does not notice the pauses.
  expect(grouped.answered).toBeGreaterThan(grouped.ms / 400);
});

test.each([
  ['small', SMALL],
  ['big', BIG],
] as const)(
  'a completion is hardly slower beside a prompt that is computed in the paged lane, and that prompt advances too (%s)',
  async (_, costs) => {
    const ttft = async (beside: boolean): Promise<{ ms: number; computed: number }> => {
      const h = machine(costs);
      await learn(h);
      const chat = beside ? ask(h.engine, tokens(8000, 1), { maxTokens: 4 }) : null;
      for (let i = 0; i < 3 && chat; i++) await h.engine.step();
      const before = chat?.sequence.numReached ?? 0;
      const start = h.clock.now;
      const completion = ask(h.engine, tokens(1500, 2), { priority: 'completion', maxTokens: 4 });
      while (completion.tokenIds.length === 0) await h.engine.step();
      return { ms: h.clock.now - start, computed: (chat?.sequence.numReached ?? 0) - before };
    };
    const alone = await ttft(false);
    const beside = await ttft(true);
    expect(beside.ms).toBeLessThan(1.5 * alone.ms);
    expect(beside.computed).toBeGreaterThan(0);
  },
);

test('consecutive completions are hardly slower beside a long prefill, which advances in a few large chunks', async () => {
  const run = async (beside: boolean): Promise<{ ms: number; chunks: number[] }> => {
    const h = harness({
      slots: 65536,
      maxContext: 16384,
      tokenBudget: undefined,
      prefillBytesPerToken: 1,
      policies: { speculation: false },
    });
    const chunks: number[] = [];
    h.runner.beforeRun = (batch) => {
      const numTokens = (lane: string): number =>
        batch.filter((span) => (span.lane ?? 'paged') === lane).reduce((n, span) => n + span.tokenIds.length, 0);
      const [paged, prefill] = [numTokens('paged'), numTokens('prefill')];
      if (prefill > 0) chunks.push(prefill);
      // In the prefill lane few tokens cost nearly as much as many.
      h.clock.now += 28 + paged * (1.3 + 0.001 * h.runner.paidColumns) + (prefill > 0 ? 60 + prefill : 0);
    };
    for (const prefillTokens of [1500, 0])
      ask(h.engine, tokens(1500, 60), { priority: 'summary', maxTokens: 4, prefillTokens });
    await drain(h.engine);
    h.clock.now += 5000;
    if (beside) ask(h.engine, tokens(8000, 1), { priority: 'summary', maxTokens: 4, prefillTokens: 8000 });
    if (beside) await h.engine.step();
    chunks.length = 0;
    const start = h.clock.now;
    for (let i = 0; i < 40; i++) {
      const completion = ask(h.engine, tokens(100, 2 + i), { priority: 'completion', maxTokens: 8 });
      while (!completion.ended) await h.engine.step();
    }
    return { ms: h.clock.now - start, chunks };
  };
  const alone = await run(false);
  const beside = await run(true);
  expect(beside.ms).toBeLessThan(1.25 * alone.ms);
  expect(beside.chunks.length).toBeGreaterThan(2);
  expect(Math.min(...beside.chunks)).toBeGreaterThan(16);
});

test('a chat does not starve later summaries about other files', async () => {
  const h = machine(SMALL);
  await learn(h);
  const chat = ask(h.engine, tokens(6000, 1), { maxTokens: 3000 });
  while (chat.tokenIds.length < 2) await h.engine.step();
  const summaries = [2, 3].map((seed) => ask(h.engine, tokens(4500, seed), { priority: 'summary', maxTokens: 30 }));
  const start = h.clock.now;
  while (summaries.some(({ ended }) => !ended) && h.clock.now - start < 180_000) await h.engine.step();
  expect(summaries.map(({ ended }) => ended)).toEqual(['length', 'length']);
  expect(chat.ended).toBeNull();
});

test.each(['its own', 'theirs'])(
  'a long summary gets its turn, however many later short ones share their steps: client %s',
  async (client) => {
    const h = machine(SMALL);
    await learn(h);
    // As for a folder's summaries, the next one arrives when one has ended.
    const files: Watched[] = [];
    const next = (): number =>
      files.push(ask(h.engine, tokens(300, files.length), { clientId: 'folder', priority: 'summary', maxTokens: 30 }));
    const step = async (): Promise<void> => {
      if (files.filter(({ ended }) => !ended).length < 4) next();
      await h.engine.step();
    };
    while (files.length < 6) await step();
    const long = ask(h.engine, tokens(9000, 60), {
      priority: 'summary',
      maxTokens: 30,
      ...(client === 'theirs' ? { clientId: 'folder' } : {}),
    });
    await step();
    expect(long.sequence.status).toBe('waiting');
    const chat = ask(h.engine, tokens(100, 61), { maxTokens: 2 });
    while (long.sequence.status === 'waiting' && files.length < 50) await step();
    // The running ones end first, and a chat is not delayed.
    expect(files.length).toBeLessThan(14);
    expect(chat.ended).toBe('length');
    while (!long.ended && files.length < 50) await step();
    expect(long.ended).toBe('length');
    await drain(h.engine);
    expect(files.every(({ ended }) => ended === 'length')).toBe(true);
  },
);

test.each([
  ['small', SMALL, 500],
  ['big', BIG, 900],
] as const)(
  'eight chats about eight files: an answer that is being read does not wait for the prompts of all the others (%s)',
  async (_, costs, most) => {
    const h = machine(costs);
    await learn(h);
    const chats = Array.from({ length: 8 }, (_, i) => ask(h.engine, tokens(2000, i), { maxTokens: 60 }));
    const last = new Map<(typeof chats)[number], { at: number; count: number }>();
    let gap = 0;
    while (h.engine.hasWork()) {
      await h.engine.step();
      for (const chat of chats) {
        const known = last.get(chat);
        const count = chat.tokenIds.length;
        if (known && count > known.count) gap = Math.max(gap, h.clock.now - known.at);
        if (count > (known?.count ?? 0)) last.set(chat, { at: h.clock.now, count });
      }
    }
    expect(gap).toBeLessThan(most);
  },
);

test('a completion waits for at most one step of others at a time, however many answers are streaming', async () => {
  const ttft = async (numChats: number): Promise<number> => {
    const h = machine(BIG);
    await learn(h);
    const chats = Array.from({ length: numChats }, (_, i) => ask(h.engine, tokens(4000, i), { maxTokens: 4000 }));
    while (chats.some(({ tokenIds }) => tokenIds.length < 2)) await h.engine.step();
    const start = h.clock.now;
    const completion = ask(h.engine, tokens(600, 60), { priority: 'completion', maxTokens: 4 });
    while (completion.tokenIds.length === 0) await h.engine.step();
    return h.clock.now - start;
  };
  const alone = await ttft(0);
  expect(await ttft(1)).toBeLessThan(1.8 * alone);
  expect(await ttft(4)).toBeLessThan(2.2 * alone);
});

test('without priority classes a generating completion gets no preference', async () => {
  const run = async (classes: boolean): Promise<number> => {
    const h = machine(SMALL, { classes });
    await learn(h);
    const completion = ask(h.engine, tokens(200, 1), { priority: 'completion', maxTokens: 30 });
    while (completion.tokenIds.length === 0) await h.engine.step();
    ask(h.engine, tokens(3000, 2), { maxTokens: 2 });
    const start = h.clock.now;
    while (!completion.ended) await h.engine.step();
    return h.clock.now - start;
  };
  // At most one chunk of the prompt runs beside each token.
  expect(await run(false)).toBeLessThan(30 * 330);
});

test('parallel answers do not cause slot packing at every step', async () => {
  const exchange = vi.spyOn(KvPool.prototype, 'exchange');
  try {
    const h = harness({ slots: 16384, maxContext: 8192, tokenBudget: 256, policies: { speculation: false } });
    // Leaves free pages everywhere, from texts that are gone.
    for (const seed of [40, 41, 42]) ask(h.engine, tokens(3000, seed), { maxTokens: 1 });
    await drain(h.engine);
    h.engine.blocks.evict();
    const prefix = tokens(1000, 1);
    for (let i = 0; i < 8; i++) ask(h.engine, [...prefix, i, 2, 3], { maxTokens: 150 });
    exchange.mockClear();
    const numSteps = await drain(h.engine);
    expect(numSteps).toBeGreaterThan(150);
    expect(exchange.mock.calls.length).toBeLessThan(12);
  } finally {
    exchange.mockRestore();
  }
});
