/** Completions that arrive after the editor has stopped waiting. */
import { describe, expect, test, vi } from 'vitest';
import { editor } from '../../../support/editor/fakeEditor.ts';
import type { ScriptedRequest } from '../../../support/editor/scriptedEngine.ts';

vi.mock('../../../../src/vscode.ts', async () => (await import('../../../support/editor/fakeEditor.ts')).vscodeApi);
const { harness, texts, wait, useCompletions } = await import('../../../support/editor/completions.ts');

useCompletions();

describe('an answer that comes after the editor has stopped waiting', () => {
  test.each([
    ['nothing was returned', '', 'xyz', ['xyz']],
    ['the whole goes on from what was returned', 'x', 'yz', ['xyz']],
    ['the whole is what was returned', 'xyz', '', undefined],
  ])('%s', async (_, first, rest, refreshed) => {
    const h = harness('f(|)\n');
    const question = h.ask();
    await wait(60);
    if (first) h.engine.running[0]!.chunk(first);
    await wait(700);
    expect(await texts(question)).toEqual(first ? [first] : []);
    h.engine.running[0]!.done(rest);
    expect(h.asked).toBeUndefined();
    await wait(1);
    if (!refreshed) expect(editor.commands).toEqual([]);
    else {
      expect(editor.commands).toEqual([['editor.action.inlineSuggest.trigger']]);
      expect(h.provider.last).toMatchObject({ trigger: 'refresh', shown: 'xyz', usage: { promptTokens: 40 } });
    }
  });

  test.each([
    [true, 'the cursor is where it was: it is shown when it is ready'],
    [false, 'the cursor has moved: it is given up'],
  ])('on a busy machine the editor may stop waiting before the deadline timer fires (%s: %s)', async (stays) => {
    const h = harness('f(|)\n');
    const question = h.ask();
    await wait(60);
    // The clock advances, but no timer has fired yet.
    const now = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 800);
    if (!stays) editor.select(h.document, 0);
    question.cancel();
    await wait(0);
    now.mockRestore();
    await wait(100);
    expect(h.engine.running.length).toBe(stays ? 1 : 0);
    if (!stays) return;
    h.engine.running[0]!.done('xyz');
    await wait(1);
    expect(editor.commands).toEqual([['editor.action.inlineSuggest.trigger']]);
  });

  test('an empty answer becomes the reason', async () => {
    const h = harness('f(|)\n');
    h.ask();
    await wait(760);
    expect(h.reason).toBe('not ready before the editor stops waiting; shown when ready');
    h.engine.running[0]!.done();
    await wait(1);
    expect(h.reason).toBe('the model has nothing to add here');
    expect(editor.commands).toEqual([]);
  });

  test('an answer that fails after its first part shows nothing more', async () => {
    const h = harness('f(|)\n');
    const question = h.ask();
    await wait(60);
    h.engine.running[0]!.chunk('x');
    await wait(700);
    expect(await texts(question)).toEqual(['x']);
    h.engine.running[0]!.chunk('y');
    h.engine.running[0]!.fail('out of memory');
    await wait(1000);
    expect(editor.commands).toEqual([]);
  });

  test('after Escape a growing text does not come back', async () => {
    const h = harness('f(|)\n');
    h.ask();
    await wait(60);
    const [request] = h.engine.running as [ScriptedRequest];
    request.chunk('a');
    await wait(700);
    expect(editor.contexts['kvasir.completionGrows']).toBe(true);
    await h.provider.dismiss();
    expect(editor.commands).toEqual([['editor.action.inlineSuggest.hide']]);
    expect(editor.contexts['kvasir.completionGrows']).toBe(false);
    expect(h.engine.running).toEqual([]);
    request.chunk('b');
    await wait(2000);
    expect(editor.commands).toEqual([['editor.action.inlineSuggest.hide']]);
  });

  test('an answer that grows slowly is shown in steps, not at every token', async () => {
    const h = harness('f(|)\n');
    h.ask();
    await wait(700);
    const [request] = h.engine.running as [ScriptedRequest];
    for (let i = 0; i < 20; i++) {
      request.chunk('ab');
      await wait(100);
    }
    const numShown = editor.commands.length;
    expect(numShown).toBeGreaterThanOrEqual(3);
    expect(numShown).toBeLessThanOrEqual(6);
    request.done('c');
    await wait(1);
    expect(h.provider.last?.shown).toBe(`${'ab'.repeat(20)}c`);
    expect(h.engine.requests.filter(({ message }) => message.priority === 'completion').length).toBe(1);
  });

  test('after typing along, the rest is shown at the cursor', async () => {
    const h = harness('f(|)\n');
    h.ask();
    await wait(60);
    const [request] = h.engine.running as [ScriptedRequest];
    request.chunk('ab');
    await wait(700);
    const question = h.type('a');
    await wait(700);
    expect(await texts(question)).toEqual(['b']);
    request.done('c');
    await wait(1);
    expect(h.provider.last).toMatchObject({ trigger: 'refresh', shown: 'bc' });
  });

  test.each([
    ['writes another text', (request: ScriptedRequest) => request.chunk('q')],
    ['has nothing to add', (request: ScriptedRequest) => request.done()],
    ['is not sure enough', (request: ScriptedRequest) => request.done('', 'stop', true)],
  ])('if the request of an earlier place %s, a new request is sent for the current place', async (_, end) => {
    const h = harness('f(|)\n');
    h.ask();
    await wait(60);
    const [earlier] = h.engine.running as [ScriptedRequest];
    h.type('a');
    await wait(760);
    expect(h.engine.running).toEqual([earlier]);
    expect(h.reason).toBe('not ready before the editor stops waiting; shown when ready');
    end(earlier);
    await wait(1);
    const [later] = h.engine.running as [ScriptedRequest];
    expect(later.text).toBe('f(a)\n');
    later.done('bc');
    await wait(1);
    expect(h.provider.last).toMatchObject({ trigger: 'refresh', shown: 'bc' });
    expect(h.engine.running).toEqual([]);
  });

  test('if the request of an earlier place ends after the cursor has moved, no new request is sent', async () => {
    const h = harness('f(|)\n');
    h.ask();
    await wait(60);
    const [earlier] = h.engine.running as [ScriptedRequest];
    h.type('a');
    await wait(760);
    editor.select(h.document, 2);
    earlier.done('q');
    await wait(1);
    expect(h.engine.running).toEqual([]);
    expect(editor.commands).toEqual([]);
  });

  test('completions are snoozed before the request of an earlier place ends: the engine is not asked again', async () => {
    const h = harness('f(|)\n');
    h.ask();
    await wait(60);
    const [earlier] = h.engine.running as [ScriptedRequest];
    h.type('a');
    await wait(760);
    h.snooze.start(5);
    earlier.done();
    await wait(1);
    expect(h.engine.running).toEqual([]);
    expect(h.reason).toBe('completions are snoozed');
  });

  test('completions are snoozed before the text is ready: it is not shown', async () => {
    const h = harness('f(|)\n');
    h.ask();
    await wait(760);
    h.snooze.start(5);
    h.engine.running[0]!.done('xyz');
    await wait(1);
    expect(h.provider.last).toMatchObject({ trigger: 'refresh', reason: 'completions are snoozed' });
    expect(h.provider.last?.shown).toBeUndefined();
  });

  test('while another provider keeps the editor waiting, it is not triggered again, and questions are the user’s', async () => {
    const h = harness('f(|)\n');
    editor.onCommand = () => {
      h.trigger();
      return new Promise((resolve) => setTimeout(resolve, 1500));
    };
    h.ask();
    await wait(760);
    const [request] = h.engine.running as [ScriptedRequest];
    request.chunk('a');
    await wait(10);
    for (let i = 0; i < 3; i++) {
      request.chunk('b');
      await wait(400);
    }
    expect([editor.commands.length, editor.providers.size]).toEqual([1, 1]);
    h.ask({ explicit: true });
    request.done('c');
    await wait(1);
    // Other candidates are written for questions of the user only.
    expect(h.engine.running.map(({ message }) => message.sampling?.temperature)).toEqual([0.8, 0.8]);
    await wait(3000);
    expect([editor.commands.length, editor.providers.size]).toEqual([2, 0]);
  });

  test('a request by hand that starts before the engine is asked again is not aborted', async () => {
    const h = harness('f(|)\n');
    h.ask();
    await wait(60);
    const [earlier] = h.engine.running as [ScriptedRequest];
    h.type('a');
    await wait(760);
    // Only the first question about the battery is waited for.
    h.completion.pauseOnBattery = true;
    h.engine.machineMs = 300;
    earlier.done();
    await wait(10);
    h.ask({ explicit: true });
    await wait(60);
    const byHand = [...h.engine.running];
    expect(byHand.length).toBeGreaterThan(0);
    await wait(400);
    expect(byHand.filter(({ aborted }) => aborted)).toEqual([]);
    expect(h.engine.running).toHaveLength(byHand.length);
  });

  test('a suggestion was selected in the list since: only its continuation is requested', async () => {
    const h = harness('f(|)\n');
    h.ask();
    await wait(60);
    const [earlier] = h.engine.running as [ScriptedRequest];
    h.type('a');
    await wait(760);
    h.ask({ selected: { start: 2, text: 'ab' } });
    await wait(60);
    expect(h.engine.running).toEqual([earlier]);
    // Only the first question about the battery is waited for.
    h.completion.pauseOnBattery = true;
    h.engine.machineMs = 100;
    earlier.chunk('q');
    await wait(300);
    expect(h.engine.requests.slice(1).map(({ task }) => task.inserted)).toEqual(['b']);
    expect(h.engine.running).toHaveLength(1);
  });

  test('a completion of the suggestion selected in the list is shown when it is ready', async () => {
    const h = harness('console.lo|\n');
    const selected = { start: 8, text: 'log' };
    editor.onCommand = () => h.trigger(selected);
    h.ask({ selected });
    await wait(760);
    expect(h.reason).toBe('not ready before the editor stops waiting; shown when ready');
    const [request] = h.engine.running as [ScriptedRequest];
    request.chunk('("x');
    await wait(400);
    expect(h.provider.last).toMatchObject({ trigger: 'refresh', shown: 'log("x' });
    request.done('")');
    await wait(1);
    expect(h.provider.last).toMatchObject({ trigger: 'refresh', shown: 'log("x")' });
  });
});
