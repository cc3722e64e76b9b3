/** Tests the completion provider with single policies replaced, as the suite `typing` measures it. */
import { describe, expect, test, vi } from 'vitest';
import type { Harness } from '../../support/editor/completionHarness.ts';
import { editor } from '../../support/editor/fakeEditor.ts';
import type { ScriptedRequest } from '../../support/editor/scriptedEngine.ts';

vi.mock('../../../src/vscode.ts', async () => (await import('../../support/editor/fakeEditor.ts')).vscodeApi);
const { harness, show, texts, wait, useCompletions } = await import('../../support/editor/completions.ts');
const { providerWithout } = await import('./withoutPolicies.ts');

useCompletions();

describe('policies that a benchmark switches off', () => {
  const asked = (h: Harness) => h.asks.map(({ text, task }) => [text, task.offset]);

  test('without joining, a key that agrees with the streaming text aborts its request and asks again', async () => {
    const h = harness('let a = |;\n', {}, (services) => providerWithout(['joinRunning'], services));
    h.ask();
    await wait(60);
    const [first] = h.engine.running as [ScriptedRequest];
    first.chunk('fo');
    await wait(1);
    const question = h.type('f');
    expect(first.aborted).toBe(true);
    await wait(60);
    expect(asked(h)).toEqual([
      ['let a = ;\n', 8],
      ['let a = f;\n', 9],
    ]);
    h.engine.running[0]!.done('oo');
    await wait(1);
    expect(await texts(question)).toEqual(['oo']);
    // The user still types through a completed completion, as before.
    expect(await texts(h.type('o'))).toEqual(['o']);
    expect(h.asks.length).toBe(2);
  });

  test('without joining, a question about the same text still waits for the running request', async () => {
    const h = harness('let a = |;\n', {}, (services) => providerWithout(['joinRunning'], services));
    h.ask();
    await wait(60);
    const again = h.ask();
    await wait(60);
    expect(h.asks.length).toBe(1);
    h.engine.running[0]!.done('b');
    await wait(1);
    expect(await texts(again)).toEqual(['b']);
  });

  test('without carrying over, a suggested key asks again; a completion applies only at its place', async () => {
    const h = harness('let a = |;\n', {}, (services) => providerWithout(['carryOver'], services));
    await show(h, 'b + c');
    const typed = h.type('b');
    await wait(60);
    expect(asked(h)).toEqual([
      ['let a = ;\n', 8],
      ['let a = b;\n', 9],
    ]);
    h.engine.running[0]!.done(' + d');
    await wait(1);
    expect(await texts(typed)).toEqual([' + d']);
    expect(await texts(h.backspace())).toEqual(['b + c']);
    expect(await texts(h.type('b'))).toEqual([' + d']);
    expect(h.asks.length).toBe(2);
  });

  test('without carrying over, a running request still serves the keys that agree with it', async () => {
    const h = harness('let a = |;\n', {}, (services) => providerWithout(['carryOver'], services));
    h.ask();
    await wait(60);
    const [request] = h.engine.running as [ScriptedRequest];
    request.chunk('fo');
    await wait(1);
    const question = h.type('f');
    request.done('o');
    await wait(60);
    expect(await texts(question)).toEqual(['oo']);
    expect(h.asks.length).toBe(1);
  });

  test('nothing is computed ahead of an acceptance or where the cursor rests', async () => {
    const h = harness('let a = |;\nlet b = 2;\n', {}, (services) => providerWithout(['ahead', 'warmup'], services));
    await show(h, 'b');
    await wait(1000);
    h.type('x').cancel();
    editor.select(h.document, 20);
    await wait(1000);
    expect(h.engine.requests.map(({ message }) => message.priority)).toEqual(['completion']);
  });
});
