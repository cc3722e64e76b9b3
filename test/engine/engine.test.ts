/** The engine over the fake runner: sharing, chunks, ends, failures, stop strings, statistics. */
import { expect, test } from 'vitest';
import { RequestError } from '../../engine/protocol/errors.ts';
import { Sequence } from '../../engine/sequence/sequence.ts';
import { VOCAB_SIZE } from '../support/engine/fakeRunner.ts';
import { ask, drain, harness, numberDetokenizer, tokens } from '../support/engine/harness.ts';
import { runAlone } from '../support/engine/oracle.ts';

const NO_LIMITS = { maxContext: 4096, capacity: 4096 };

test('one request gives the tokens and log-probabilities of the model alone', async () => {
  const { engine } = harness({ slots: 2048 });
  const prompt = tokens(50);
  const asked = ask(engine, prompt, { maxTokens: 10 });
  await drain(engine);
  expect(asked.tokenIds).toEqual(runAlone(prompt, { maxTokens: 10 }, NO_LIMITS).tokenIds);
  expect(asked).toMatchObject({ ended: 'length', numEnds: 1 });
});

test.each(['at once', 'one per step'])('eight requests over one prefix compute it once, sent %s', async (how) => {
  // Without drafts, because their rows would also be counted.
  const { engine, runner } = harness({ slots: 4096, tokenBudget: 64, policies: { speculation: false } });
  const prefix = tokens(600);
  const asked = [];
  for (let i = 0; i < 8; i++) {
    asked.push(
      ask(engine, [...prefix, i, ...tokens(10, i)], {
        maxTokens: 5,
        priority: (['chat', 'summary', 'completion'] as const)[i % 3],
      }),
    );
    if (how === 'one per step') await engine.step();
  }
  await drain(engine);
  const { promptComputed, prompt, promptCached, generated } = engine.stats().tokens;
  expect(prompt).toBe(8 * 611);
  expect(promptComputed).toBeLessThanOrEqual((600 + 8 * 11) * 1.01);
  expect(promptCached + promptComputed).toBe(prompt);
  // The token that was sampled last is never computed.
  expect(runner.numComputed).toBe(promptComputed + generated - 8);
  for (const [i, one] of asked.entries())
    expect(one.tokenIds).toEqual(runAlone([...prefix, i, ...tokens(10, i)], { maxTokens: 5 }, NO_LIMITS).tokenIds);
  expect(asked.reduce((sum, one) => sum + one.sequence.cachedTokens, 0)).toBe(promptCached);
});

test('a later request finds prompt and answer of an earlier one', async () => {
  const { engine, runner } = harness({ slots: 2048 });
  const first = ask(engine, tokens(40), { maxTokens: 6 });
  await drain(engine);
  const before = runner.numComputed;
  const second = ask(engine, [...tokens(40), ...first.tokenIds, 1, 2], { maxTokens: 1 });
  await drain(engine);
  expect(second.sequence.cachedTokens).toBe(45);
  expect(runner.numComputed - before).toBe(3);
});

test('a changed token costs only the tokens after it', async () => {
  const { engine, runner } = harness({ slots: 2048 });
  const file = tokens(200);
  ask(engine, file, { maxTokens: 0, priority: 'idle' });
  await drain(engine);
  const before = runner.numComputed;
  const edited = [...file.slice(0, 150), (file[150]! + 1) % VOCAB_SIZE, ...file.slice(151)];
  const asked = ask(engine, edited, { maxTokens: 0 });
  await drain(engine);
  expect(runner.numComputed - before).toBe(50);
  expect(asked).toMatchObject({ ended: 'length', tokenIds: [] });
  expect(engine.stats().tokens).toMatchObject({ idleComputed: 200, promptComputed: 50, promptCached: 150 });
});

test('a prompt is computed in chunks of the token budget, beside all decodes', async () => {
  const { engine, runner } = harness({ slots: 2048, tokenBudget: 20 });
  const asked = ask(engine, tokens(10, 1), { maxTokens: 30 });
  await engine.step();
  ask(engine, tokens(100, 2), { maxTokens: 1 });
  for (let i = 0; i < 5; i++) await engine.step();
  expect(runner.batches.map((batch) => batch.tokens)).toEqual([10, 20, 20, 20, 20, 20]);
  expect(asked.tokenIds).toHaveLength(6);
  await drain(engine);
});

test('maxTokens 0 computes the prompt and reports no token; from the cache it ends without a step of the model', async () => {
  const { engine, runner } = harness({ slots: 512 });
  const first = ask(engine, tokens(30), { maxTokens: 0 });
  await drain(engine);
  const second = ask(engine, tokens(30), { maxTokens: 0 });
  await drain(engine);
  expect([first.ended, second.ended]).toEqual(['length', 'length']);
  expect(runner.numComputed).toBe(30);
  expect(second.sequence.cachedTokens).toBe(30);
});

test('an error about a memory limit shared with other windows says that it is a share', async () => {
  const { engine } = harness({ slots: 100, numEditorWindows: () => 2 });
  const large = ask(engine, tokens(120));
  await drain(engine);
  expect(large.message).toMatch(
    /120 tokens, but .* holds 100\. Raise kvasir\.cache\.maxBytes or send less text.*2 editor windows share this memory/,
  );
});

test('exceeding a limit fails only that request, with an error that says what to do', async () => {
  const { engine } = harness({ slots: 100, maxContext: 150 });
  const long = ask(engine, tokens(150));
  const large = ask(engine, tokens(120));
  const foreign = ask(engine, [1, VOCAB_SIZE]);
  const fine = ask(engine, tokens(20), { maxTokens: 3 });
  await drain(engine);
  expect(long).toMatchObject({ ended: 'contextTooLong', numEnds: 1 });
  expect(long.message).toMatch(/150 tokens.*holds 150.*less text/);
  expect(large).toMatchObject({ ended: 'outOfMemory', numEnds: 1 });
  expect(large.message).toMatch(
    /120 tokens, but the KV cache limit of 7\.2 kB holds 100\. Raise kvasir\.cache\.maxBytes or send less text\.$/,
  );
  expect(foreign.ended).toBe('badRequest');
  expect(fine).toMatchObject({ ended: 'length', numEnds: 1 });
  expect(engine.stats().requests).toEqual({ waiting: 0, running: 0, done: 1, failed: 3, aborted: 0 });
});

test('a generation ends with "length" at the end of the context and at the budget', async () => {
  const { engine } = harness({ slots: 100, maxContext: 60 });
  const context = ask(engine, tokens(50), { maxTokens: 100 });
  await drain(engine);
  expect(context).toMatchObject({ ended: 'length' });
  expect(context.tokenIds).toHaveLength(10);
  const small = harness({ slots: 70 });
  const memory = ask(small.engine, tokens(50), { maxTokens: 100, stop: ['zz'] });
  await drain(small.engine);
  expect(memory).toMatchObject({ ended: 'length', numEnds: 1 });
  expect(memory.tokenIds).toHaveLength(21);
});

test('end tokens end a generation with "stop", have no text, and can be ignored', async () => {
  const { engine } = harness({ slots: 512 });
  const { tokenIds } = runAlone(tokens(20), { maxTokens: 8 }, NO_LIMITS);
  const eosIds = [tokenIds[3]!];
  const stopped = ask(engine, tokens(20), { maxTokens: 8, eosIds });
  const ignored = ask(engine, tokens(20), { maxTokens: 8, eosIds, ignoreEos: true });
  await drain(engine);
  const end = tokenIds.indexOf(eosIds[0]!);
  expect(stopped).toMatchObject({
    ended: 'stop',
    tokenIds: tokenIds.slice(0, end + 1),
    text: tokenIds
      .slice(0, end)
      .map((id) => `<${id}>`)
      .join(''),
  });
  expect(ignored).toMatchObject({ ended: 'length', tokenIds });
});

test('a stop string split over several tokens never shows, and neither does its beginning', async () => {
  const { engine } = harness({ slots: 512 });
  const { tokenIds } = runAlone(tokens(20), { maxTokens: 8 }, NO_LIMITS);
  const text = tokenIds.map((id) => `<${id}>`);
  const stop = text.join('').slice(text.slice(0, 3).join('').length - 1, text.slice(0, 5).join('').length - 1);
  const asked = ask(engine, tokens(20), { maxTokens: 8, stop: ['not there', stop] });
  await drain(engine);
  expect(asked).toMatchObject({ ended: 'stop', text: text.slice(0, 3).join('').slice(0, -1) });
});

test('a failed run: step rejects, failAll ends each request once, nothing leaks', async () => {
  const { engine, runner } = harness({ slots: 512, tokenBudget: 8 });
  const asked = [
    ask(engine, tokens(30)),
    ask(engine, tokens(30, 1)),
    ask(engine, tokens(5, 2), { priority: 'idle', maxTokens: 0 }),
  ];
  await engine.step();
  runner.beforeRun = () => {
    throw new Error('session lost');
  };
  await expect(engine.step()).rejects.toThrow('session lost');
  engine.checkIntegrity();
  engine.failAll(new RequestError('engineFailed', 'session lost'));
  engine.checkIntegrity();
  for (const one of asked) expect(one).toMatchObject({ ended: 'engineFailed', numEnds: 1 });
  expect(engine.hasWork()).toBe(false);
});

test('a run that fails once can be repeated', async () => {
  const { engine, runner } = harness({ slots: 512, tokenBudget: 8 });
  const asked = ask(engine, tokens(30), { maxTokens: 5 });
  let runs = 0;
  runner.beforeRun = () => {
    if (++runs % 2 === 1) throw new Error('hiccup');
  };
  while (engine.hasWork()) {
    await engine.step().catch(() => {});
    engine.checkIntegrity();
  }
  expect(asked.tokenIds).toEqual(runAlone(tokens(30), { maxTokens: 5 }, NO_LIMITS).tokenIds);
});

test('statistics: bytes, slots, times', async () => {
  const { engine, runner, clock } = harness({ slots: 2048 });
  runner.beforeRun = () => {
    clock.now += 10;
  };
  const asked = ask(engine, tokens(40), { maxTokens: 11 });
  clock.now += 5;
  await drain(engine);
  const stats = engine.stats();
  expect(stats.kvBytesPerToken).toBe(2 * 2 * (2 * 4 + 8) + 8);
  expect(stats.poolBytes).toBe(256 * stats.kvBytesPerToken);
  expect(stats.poolSlots).toEqual({ total: 256, held: 50, free: 206 });
  expect(asked.sequence.timings()).toEqual({ queueMs: 5, ttftMs: 25, tpotMs: 10 });
  expect(stats.stepMs.p50).toBeCloseTo(10, 0);
  expect(stats.tokensPerSecond).toBeCloseTo(11 / 0.12, 3);
  expect(stats.batchTokens).toBeCloseTo(50 / 12, 5);
  expect(stats.utilisation).toBeCloseTo(120 / 125, 9);
  clock.now += 20_000;
  expect(engine.stats()).toMatchObject({ tokensPerSecond: 0, utilisation: 0, busyMs: 120 });
});

test('times by class: a running request adds no queue time, a request aborted in the queue does, idle work counts separately', async () => {
  const { engine, runner, clock } = harness({ slots: 2048 });
  runner.beforeRun = () => {
    clock.now += 10;
  };
  ask(engine, tokens(8, 1), { priority: 'completion', maxTokens: 3 });
  ask(engine, tokens(100, 2), { priority: 'summary', id: 'given up' });
  ask(engine, tokens(60, 3), { priority: 'idle', maxTokens: 0 });
  await engine.step();
  clock.now += 7;
  ask(engine, tokens(50, 4), { priority: 'chat', id: 'never ran' });
  clock.now += 5;
  engine.abort('never ran');
  engine.abort('given up');
  await drain(engine);
  const { classes, events } = engine.stats();
  const counts = Object.fromEntries(
    Object.entries(classes).map(([name, { queueMs, ttftMs, tpotMs, stepMs }]) => [
      name,
      [queueMs.count, ttftMs.count, tpotMs.count, stepMs.count],
    ]),
  );
  expect(counts).toEqual({ completion: [1, 1, 1, 3], chat: [1, 0, 0, 0], summary: [1, 0, 0, 1], idle: [1, 0, 0, 2] });
  expect(classes.completion).toMatchObject({ queueMs: { sum: 0 }, ttftMs: { sum: 10 } });
  // Two tokens after the first one, 22 and 10 ms apart.
  expect(classes.completion.tpotMs.sum).toBe(16);
  expect(classes.chat.queueMs.sum).toBe(5);
  expect(classes.idle.queueMs.sum).toBe(42);
  expect(events.steps).toBe(5);
});

test('only requests with a second counted token add to the time per token', async () => {
  const { engine, runner, clock } = harness({ slots: 512 });
  runner.beforeRun = () => {
    clock.now += 10;
  };
  /** Asks for an answer that first repeats `numForced` tokens. These tokens do not count. */
  const healed = (id: string, numForced: number, maxTokens: number): void => {
    let left = numForced;
    const opening = {
      allowed: null,
      get isSaid() {
        return left <= 0;
      },
      push: () => {
        left--;
      },
      hide: (text: string) => (left > 0 || numHidden++ < numForced ? '' : text),
    };
    let numHidden = 0;
    engine.add(
      new Sequence({
        id,
        priority: 'completion',
        promptIds: tokens(20),
        sampling: { maxTokens },
        eosIds: [],
        detokenizer: numberDetokenizer(),
        opening,
        onToken: () => {},
        onFinish: () => {},
        onError: () => {},
      }),
    );
  };
  const recorded = () => engine.stats().classes.completion.tpotMs;
  healed('one token', 1, 1);
  await drain(engine);
  healed('given up', 5, 4);
  for (let i = 0; i < 3; i++) await engine.step();
  engine.abort('given up');
  await drain(engine);
  expect(engine.stats().classes.completion.queueMs.count).toBe(2);
  expect(recorded()).toMatchObject({ count: 0, sum: 0 });
  healed('three tokens', 2, 3);
  await drain(engine);
  expect(recorded()).toMatchObject({ count: 1, sum: 10 });
});

test('a duplicate request id and invalid parameters are refused', () => {
  const { engine } = harness({ slots: 100 });
  ask(engine, [1], { id: 'a' });
  expect(() => ask(engine, [1], { id: 'a' })).toThrow('a request a');
  expect(() => ask(engine, [])).toThrow(RequestError);
  expect(() => ask(engine, [1], { topP: 0 })).toThrow('topP is 0');
  expect(() => ask(engine, [1], { maxTokens: -1 })).toThrow(RequestError);
  expect(() => ask(engine, [1], { temperature: Number.NaN })).toThrow(RequestError);
});
