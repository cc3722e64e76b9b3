/** Several candidates for a completion that the user requests by hand. */
import { describe, expect, test, vi } from 'vitest';
import { candidateSampling } from '../../../../engine/protocol/tasks.ts';
import type { ScriptedRequest } from '../../../support/editor/scriptedEngine.ts';

vi.mock('../../../../src/vscode.ts', async () => (await import('../../../support/editor/fakeEditor.ts')).vscodeApi);
const { answers, harness, texts, wait, useCompletions } = await import('../../../support/editor/completions.ts');

useCompletions();

describe('several candidates when asked by hand', () => {
  const bySeed = (request: ScriptedRequest) => ['first', 'second', 'third'][request.message.sampling?.seed ?? 0]!;

  test('the most probable text comes first, then different samples over the same prompt', async () => {
    const h = harness('f(|)\n');
    h.engine.onRequest = answers(bySeed);
    const question = h.ask({ explicit: true });
    await wait(50);
    expect(await texts(question)).toEqual(['first', 'second', 'third']);
    const samplings = h.engine.requests
      .filter(({ message }) => message.priority === 'completion')
      .map(({ message }) => message.sampling);
    // The same as `kvasir complete --n 3`.
    expect(samplings).toEqual([{}, candidateSampling(1), candidateSampling(2)]);
    expect(h.provider.last?.numCandidates).toBe(3);
  });

  test.each(['', 'fir'])(
    'text of low confidence is shown on request, after %j was shown automatically',
    async (sure) => {
      const h = harness('f(|)\n');
      h.engine.onRequest = (request) =>
        queueMicrotask(() =>
          request.task.showLowConfidence ? request.done(bySeed(request)) : request.done(sure, 'stop', true),
        );
      const typed = h.ask();
      await wait(200);
      expect(await texts(typed)).toEqual(sure === '' ? [] : [sure]);
      expect(h.provider.last?.reason).toBe(sure === '' ? 'the confidence of the model is too low here' : undefined);
      const question = h.ask({ explicit: true });
      await wait(1000);
      expect(await texts(question)).toEqual(['first', 'second', 'third']);
      expect(
        h.engine.requests
          .filter(({ message }) => message.priority === 'completion')
          .map(({ task }) => task.showLowConfidence ?? false),
      ).toEqual([false, true, 'line', 'line']);
    },
  );

  test.each([
    ['', true],
    ['fir', true],
    ['', false],
  ] as const)('a running request that ends with %j and has suppressed text: %j', async (sure, suppressed) => {
    const h = harness('f(|)\n');
    const typed = h.ask();
    await wait(60);
    const running = h.engine.running[0]!;
    h.engine.onRequest = answers(bySeed);
    const question = h.ask({ explicit: true });
    await wait(50);
    running.done(sure, 'stop', suppressed);
    await wait(1000);
    // A request by hand gets the whole text; a complete text is not requested again.
    expect(await texts(question)).toEqual(suppressed ? ['first', 'second', 'third'] : []);
    await typed;
  });

  test('cycling requests the same candidates again without a new request', async () => {
    const h = harness('f(|)\n');
    h.engine.onRequest = answers(bySeed);
    h.ask({ explicit: true });
    await wait(50);
    const { length } = h.asks;
    expect(await texts(h.ask({ explicit: true }))).toEqual(['first', 'second', 'third']);
    expect(h.asks.length).toBe(length);
  });

  test('cycling from an automatic completion keeps it first', async () => {
    const h = harness('f(|)\n');
    h.engine.onRequest = answers(bySeed);
    h.ask();
    await wait(60);
    const question = h.ask({ explicit: true });
    await wait(50);
    expect(await texts(question)).toEqual(['first', 'second', 'third']);
    expect(h.asks.length).toBe(1);
  });

  test('equal texts are one candidate, and typing keeps the candidates that agree', async () => {
    const h = harness('f(|)\n');
    h.engine.onRequest = answers((request) => ['abc', 'abd', 'abc'][request.message.sampling?.seed ?? 0]!);
    const question = h.ask({ explicit: true });
    await wait(50);
    expect(await texts(question)).toEqual(['abc', 'abd']);
    expect(await texts(h.type('ab'))).toEqual(['c', 'd']);
  });

  test('slow samples delay the first candidate only briefly, and are there the next time', async () => {
    const h = harness('f(|)\n');
    h.engine.onRequest = (request) => {
      if (!request.message.sampling?.temperature) answers('first')(request);
    };
    const question = h.ask({ explicit: true });
    await wait(1000);
    expect(await texts(question)).toEqual(['first']);
    for (const request of h.engine.running.filter(({ message }) => message.sampling?.temperature))
      request.done(bySeed(request));
    await wait(1);
    expect(await texts(h.ask({ explicit: true }))).toEqual(['first', 'second', 'third']);
  });

  test('a cancellation aborts all candidates in the engine', async () => {
    const h = harness('f(|)\n');
    const question = h.ask({ explicit: true });
    await wait(10);
    expect(h.engine.running.length).toBe(3);
    question.cancel();
    await wait(50);
    expect(h.engine.running).toEqual([]);
  });

  test('nothing is offered if the most probable text is empty', async () => {
    const h = harness('f(|)\n');
    h.engine.onRequest = answers((request) => (request.message.sampling?.seed ? 'noise' : ''));
    const question = h.ask({ explicit: true });
    await wait(50);
    expect(await texts(question)).toEqual([]);
    expect(h.reason).toBe('the model has nothing to add here');
  });
});
