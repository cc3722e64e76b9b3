/** When the engine is asked, and what keeps a request alive or ends it. */
import { describe, expect, test, vi } from 'vitest';
import type { Harness } from '../../../support/editor/completionHarness.ts';
import { editor } from '../../../support/editor/fakeEditor.ts';
import type { ScriptedRequest } from '../../../support/editor/scriptedEngine.ts';

vi.mock('../../../../src/vscode.ts', async () => (await import('../../../support/editor/fakeEditor.ts')).vscodeApi);
const { answers, harness, show, texts, wait, useCompletions } = await import('../../../support/editor/completions.ts');

useCompletions();

describe('lookup order', () => {
  test('typing through ghost text, deleting back and typing again send no request', async () => {
    const h = harness('let a = |;\n');
    await show(h, 'b + c');
    for (const [keys, left] of [
      ['b', ' + c'],
      [' +', ' c'],
    ] as const)
      expect(await texts(h.type(keys))).toEqual([left]);
    expect(await texts(h.backspace(2))).toEqual([' + c']);
    expect(await texts(h.backspace())).toEqual(['b + c']);
    expect(await texts(h.type('b'))).toEqual([' + c']);
    expect(h.asks.length).toBe(1);
    expect(h.provider.last?.source).toBe('typed as suggested');
  });

  test('a bracket that the editor closes automatically does not end a completion that is typed through', async () => {
    const h = harness('call|;\n');
    await show(h, '(a, b)');
    expect(await h.type('(', ')').items).toEqual([{ insertText: 'a, b)', start: 5, end: 6 }]);
    expect(h.asks.length).toBe(1);
  });

  test('a past completion is found again after another one was shown', async () => {
    const h = harness('x|\n');
    await show(h, 'yz');
    const other = h.type('Q');
    await wait(60);
    h.engine.running[0]!.done('other');
    await wait(1);
    expect(await texts(other)).toEqual(['other']);
    expect(await texts(h.backspace())).toEqual(['yz']);
    expect(h.provider.last?.source).toBe('a past completion');
  });

  test('keys that agree with the streaming text keep the request alive, and it serves the new position', async () => {
    const h = harness('let a = |;\n');
    h.ask();
    await wait(60);
    const [request] = h.engine.running as [ScriptedRequest];
    request.chunk('fo');
    await wait(1);
    h.type('f');
    await wait(20);
    const question = h.type('o');
    await wait(1);
    request.done('oBar()');
    await wait(1);
    expect(await texts(question)).toEqual(['oBar()']);
    expect(h.engine.requests.length).toBe(1);
    expect(request.aborted).toBe(false);
    expect(h.provider.last?.source).toBe('the running request');
  });

  test('a key typed ahead of the stream waits for it; if the stream continues differently, a new request is sent at once', async () => {
    const h = harness('let a = |;\n');
    h.ask();
    await wait(60);
    const [request] = h.engine.running as [ScriptedRequest];
    const question = h.type('f');
    await wait(60);
    expect(h.engine.requests.length).toBe(1);
    request.chunk('g');
    await wait(1);
    expect(request.aborted).toBe(true);
    // The key came from the user, so the editor does not ask a second time.
    expect(h.asks.length).toBe(2);
    h.engine.running[0]!.done('oo');
    await wait(1);
    expect(await texts(question)).toEqual(['oo']);
  });

  test('a lost document is sent again with the request, but not after the text has changed', async () => {
    const h = harness('let a = |;\n');
    const question = h.ask();
    await wait(60);
    h.engine.running[0]!.fail('unknown document', 'unknownDocument');
    await wait(1);
    expect(h.asks.map(({ text, task }) => [text, task.offset])).toEqual([
      ['let a = ;\n', 8],
      ['let a = ;\n', 8],
    ]);
    h.engine.running[0]!.done('b');
    await wait(1);
    expect(await texts(question)).toEqual(['b']);
    const typed = h.type('x');
    await wait(60);
    h.type('y');
    h.engine.running[0]!.fail('unknown document', 'unknownDocument');
    await wait(60);
    expect(await texts(typed)).toEqual([]);
    expect(h.asks.slice(3).map(({ text, task }) => [text, task.offset])).toEqual([['let a = xy;\n', 10]]);
  });

  test('a completion typed to its end is followed by a new request', async () => {
    const h = harness('f(|)\n');
    await show(h, 'x');
    const question = h.type('x');
    await wait(400);
    expect(h.engine.running.length).toBe(1);
    h.engine.running[0]!.done(', y');
    await wait(1);
    expect(await texts(question)).toEqual([', y']);
  });
});

describe('complaint: CPU hot on every keystroke', () => {
  test('twenty quick keys send two requests: one at once on the new line, one after the pause', async () => {
    const h = harness('a\n|');
    for (const key of 'return this.entries.') {
      h.type(key);
      await wait(25);
    }
    await wait(60);
    expect(h.asks.length).toBe(2);
    expect(h.engine.running.length).toBe(1);
    expect(h.engine.running[0]!.text).toBe('a\nreturn this.entries.');
  });

  test('typing through a whole line sends one request, besides those computed ahead', async () => {
    const h = harness('|\n');
    await show(h, 'const total = items.reduce((a, b) => a + b);');
    for (const key of 'const total = items.reduce((a, b) => a +') {
      expect((await h.type(key).items).length).toBe(1);
      await wait(25);
    }
    expect(h.asks.length).toBe(1);
    expect(h.engine.requests.length).toBe(1);
  });

  test('the setting is the pause before a request', async () => {
    const h = harness('x|\n', { debounceMs: 200 });
    await show(h, 'y');
    h.type('q');
    await wait(190);
    expect(h.asks.length).toBe(1);
    await wait(20);
    expect(h.asks.length).toBe(2);
  });

  test.each([
    [0, undefined],
    [7, 7],
  ])('kvasir.completion.maxTokens %d sends the sampling %j', async (maxTokens, asked) => {
    const h = harness('x|\n', { maxTokens });
    await show(h, 'y');
    expect(h.asks[0]?.message.sampling?.maxTokens).toBe(asked);
  });
});

describe('complaint: cancel that does not stop compute', () => {
  const aborts = (h: Harness) => h.engine.sent.filter(({ type }) => type === 'abort').length;

  test('a key that differs from the streaming text aborts the request at once', async () => {
    const h = harness('let a = |;\n');
    h.ask();
    await wait(60);
    h.engine.running[0]!.chunk('foo');
    await wait(1);
    h.type('b');
    expect(aborts(h)).toBe(1);
    expect(h.engine.requests[0]!.aborted).toBe(true);
  });

  test('Escape aborts the request after a moment', async () => {
    const h = harness('let a = |;\n');
    const question = h.ask();
    await wait(60);
    question.cancel();
    await wait(40);
    expect(aborts(h)).toBe(1);
    expect(h.engine.running).toEqual([]);
  });

  test('after typing along, the request is aborted if the editor does not ask again', async () => {
    const h = harness('let a = |;\n');
    const question = h.ask();
    await wait(60);
    h.engine.running[0]!.chunk('foo');
    await wait(1);
    h.document.change({ offset: 8, deleted: 0, text: 'f' });
    editor.select(h.document, 9);
    question.cancel();
    await wait(300);
    expect(h.engine.running).toEqual([]);
  });

  test('a request that nobody waits for is aborted when the cursor or the editor moves away', async () => {
    const h = harness('let a = |;\nnext\n');
    h.ask();
    await wait(1000);
    expect(h.engine.running.length).toBe(1);
    const { numRead } = h.document;
    // A cursor that moves does not cause the text to be built.
    editor.select(h.document, 8);
    expect(h.engine.running.length).toBe(1);
    editor.select(h.document, 12);
    expect(h.engine.running).toEqual([]);
    expect(h.document.numRead).toBe(numRead);
  });

  test('an edit elsewhere in the file aborts the request', async () => {
    const h = harness('let a = |;\nnext\n');
    h.ask();
    await wait(60);
    h.document.change({ offset: 11, deleted: 0, text: 'x' });
    expect(h.engine.running).toEqual([]);
  });

  test('after switching off, all requests end and none is sent', async () => {
    const h = harness('let a = |;\n');
    const question = h.ask();
    await wait(60);
    h.provider.dispose();
    await wait(1);
    expect(h.engine.running).toEqual([]);
    expect(await texts(question)).toEqual([]);
    h.ask();
    await wait(100);
    expect(h.engine.requests.length).toBe(1);
  });
});

describe('complaint: fights with IntelliSense', () => {
  test('the completion continues from the selected suggestion, which is sent to the engine', async () => {
    const h = harness('console.lo|\n');
    h.engine.onRequest = answers('("x")');
    const question = h.ask({ selected: { start: 8, text: 'log' } });
    await wait(60);
    expect(h.engine.requests[0]!.task).toMatchObject({ offset: 10, inserted: 'g' });
    expect(await question.items).toEqual([{ insertText: 'log("x")', start: 8, end: 10 }]);
  });

  test('ghost text shown before the list opened stays if it agrees with the suggestion', async () => {
    const h = harness('console.lo|\n');
    await show(h, 'g("x")');
    expect(await texts(h.ask({ selected: { start: 8, text: 'log' } }))).toEqual(['log("x")']);
    expect(h.asks.length).toBe(1);
  });

  test('another selected suggestion gets another completion', async () => {
    const h = harness('console.lo|\n');
    await show(h, 'g("x")');
    const question = h.ask({ selected: { start: 8, text: 'lookup' } });
    await wait(60);
    h.engine.running[0]!.done('(key)');
    await wait(1);
    expect(await texts(question)).toEqual(['lookup(key)']);
  });

  test('nothing is shown for a suggestion that is not a prefix match, with that reason', async () => {
    const h = harness('console.lo|\n');
    expect(await texts(h.ask({ selected: { start: 8, text: 'clog' } }))).toEqual([]);
    expect(h.reason).toBe('the selected suggestion changes text before the cursor');
    expect(h.engine.requests).toEqual([]);
  });
});
