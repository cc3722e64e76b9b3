/** Ghost text between a user who goes on typing and an engine that takes its time: what is asked for, what is given up, what is shown and why nothing is. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { candidateSampling } from '../../../../engine/protocol/tasks.ts';
import type { CompletionClasses } from '../../../../src/completion/completionProvider.ts';
import type { Config } from '../../../../src/config.ts';
import { editor } from '../../../support/editor/fakeEditor.ts';
import type { ScriptedRequest } from '../../../support/editor/scriptedEngine.ts';

vi.mock('../../../../src/vscode.ts', async () => (await import('../../../support/editor/fakeEditor.ts')).vscodeApi);
const { Harness } = await import('./completionHarness.ts');
const { without } = await import('../../../bench/typing/withoutPolicies.ts');

let open: InstanceType<typeof Harness>[] = [];
function harness(marked: string, completion?: Partial<Config['completion']>, classes?: Partial<CompletionClasses>) {
  const h = new Harness(marked, completion, classes);
  open.push(h);
  return h;
}

beforeEach(() => {
  editor.reset();
  vi.useFakeTimers();
});
afterEach(async () => {
  const closing = Promise.all(open.map((h) => h.dispose()));
  await vi.advanceTimersByTimeAsync(1000);
  await closing;
  open = [];
  expect(vi.getTimerCount(), 'timers left').toBe(0);
  expect(editor.numListeners, 'listeners left').toBe(0);
  vi.useRealTimers();
});

const wait = (ms: number) => vi.advanceTimersByTimeAsync(ms);
const texts = async (question: { items: Promise<{ insertText: string }[]> }) =>
  (await question.items).map(({ insertText }) => insertText);
/** Answers each request at once. */
const answers = (text: string | ((request: ScriptedRequest) => string)) => (request: ScriptedRequest) =>
  queueMicrotask(() => request.done(typeof text === 'string' ? text : text(request)));

/** Shows `text` at the cursor. */
async function show(h: InstanceType<typeof Harness>, text: string) {
  const question = h.ask();
  await wait(60);
  h.engine.running[0]!.done(text);
  await wait(1);
  expect(await texts(question)).toEqual([text]);
  return (await question.items)[0]!;
}

describe('lookup order', () => {
  test('typing through ghost text, deleting back and typing again ask for nothing', async () => {
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

  test('a bracket that the editor closes by itself does not end a completion that is typed through', async () => {
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

  test('keys that agree with what is streaming keep the request alive, and it serves the new position', async () => {
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

  test('a key typed ahead of the stream waits for it; when the stream turns out another text, it is asked anew at once', async () => {
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
    // The key came from the user: the editor asks no second time for it.
    expect(h.asks.length).toBe(2);
    h.engine.running[0]!.done('oo');
    await wait(1);
    expect(await texts(question)).toEqual(['oo']);
  });

  test('the engine has lost the document: it is sent again, but not for a text that has been typed on meanwhile', async () => {
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
  test('twenty keys typed quickly are two requests: one on the new line at once, one in the silence after', async () => {
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

  test('typing a whole line through is one request, besides what is computed ahead', async () => {
    const h = harness('|\n');
    await show(h, 'const total = items.reduce((a, b) => a + b);');
    for (const key of 'const total = items.reduce((a, b) => a +') {
      expect((await h.type(key).items).length).toBe(1);
      await wait(25);
    }
    expect(h.asks.length).toBe(1);
    expect(h.engine.requests.length).toBe(1);
  });

  test('the silence is the setting’s', async () => {
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
  ])('kvasir.completion.maxTokens %d asks for %j', async (maxTokens, asked) => {
    const h = harness('x|\n', { maxTokens });
    await show(h, 'y');
    expect(h.asks[0]?.message.sampling?.maxTokens).toBe(asked);
  });
});

describe('complaint: cancel that does not stop compute', () => {
  const aborts = (h: InstanceType<typeof Harness>) => h.engine.sent.filter(({ type }) => type === 'abort').length;

  test('another text than what is streaming: the engine is told with the key itself', async () => {
    const h = harness('let a = |;\n');
    h.ask();
    await wait(60);
    h.engine.running[0]!.chunk('foo');
    await wait(1);
    h.type('b');
    expect(aborts(h)).toBe(1);
    expect(h.engine.requests[0]!.aborted).toBe(true);
  });

  test('Escape: the engine is told in a moment', async () => {
    const h = harness('let a = |;\n');
    const question = h.ask();
    await wait(60);
    question.cancel();
    await wait(40);
    expect(aborts(h)).toBe(1);
    expect(h.engine.running).toEqual([]);
  });

  test('typing along and then nothing more: the engine is told when nobody has asked again', async () => {
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

  test('the cursor leaves, or the editor: what nobody waits for is given up', async () => {
    const h = harness('let a = |;\nnext\n');
    h.ask();
    await wait(1000);
    expect(h.engine.running.length).toBe(1);
    const { numRead } = h.document;
    // A cursor that goes along, or away, is no reason to build the text.
    editor.select(h.document, 8);
    expect(h.engine.running.length).toBe(1);
    editor.select(h.document, 12);
    expect(h.engine.running).toEqual([]);
    expect(h.document.numRead).toBe(numRead);
  });

  test('an edit elsewhere in the file', async () => {
    const h = harness('let a = |;\nnext\n');
    h.ask();
    await wait(60);
    h.document.change({ offset: 11, deleted: 0, text: 'x' });
    expect(h.engine.running).toEqual([]);
  });

  test('switched off: everything ends, and nothing is asked any more', async () => {
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
  test('the completion goes on from the selected suggestion, which the engine is told of', async () => {
    const h = harness('console.lo|\n');
    h.engine.onRequest = answers('("x")');
    const question = h.ask({ selected: { start: 8, text: 'log' } });
    await wait(60);
    expect(h.engine.requests[0]!.task).toMatchObject({ offset: 10, inserted: 'g' });
    expect(await question.items).toEqual([{ insertText: 'log("x")', start: 8, end: 10 }]);
  });

  test('what was shown before the list opened is kept where it goes on as the suggestion does', async () => {
    const h = harness('console.lo|\n');
    await show(h, 'g("x")');
    expect(await texts(h.ask({ selected: { start: 8, text: 'log' } }))).toEqual(['log("x")']);
    expect(h.asks.length).toBe(1);
  });

  test('another suggestion is another text', async () => {
    const h = harness('console.lo|\n');
    await show(h, 'g("x")');
    const question = h.ask({ selected: { start: 8, text: 'lookup' } });
    await wait(60);
    h.engine.running[0]!.done('(key)');
    await wait(1);
    expect(await texts(question)).toEqual(['lookup(key)']);
  });

  test('a suggestion that is matched loosely is left to the list, by name', async () => {
    const h = harness('console.lo|\n');
    expect(await texts(h.ask({ selected: { start: 8, text: 'clog' } }))).toEqual([]);
    expect(h.reason).toBe('the selected suggestion changes text before the cursor');
    expect(h.engine.requests).toEqual([]);
  });
});

describe('complaint: nothing happens and no logs', () => {
  test.each<[string, Partial<Config['completion']>]>([
    ['automatic completions are off (kvasir.completion.enable)', { enable: false }],
    ['the language is not in kvasir.completion.languages', { languages: ['*', '!typescript'] }],
    ['the file matches kvasir.completion.exclude', { exclude: ['**/*.ts'] }],
  ])('%s: no text is read, no engine started, and it is logged once', async (reason, completion) => {
    const h = harness('f(|', completion);
    for (let i = 0; i < 3; i++) expect(await texts(h.type('a'))).toEqual([]);
    expect(h.document.numRead).toBe(0);
    expect(h.reason).toBe(reason);
    expect(h.engine.sent).toEqual([]);
    expect(h.logged.filter((line) => line.includes(reason)).length).toBe(1);
  });

  test('snoozed: by name, explicitly asked for all the same, and it ends by itself', async () => {
    const h = harness('f(|)\n');
    h.engine.onRequest = answers('x');
    editor.picks = 5;
    await h.snooze.choose();
    expect(editor.commands).toContainEqual(['setContext', 'kvasir.snoozed', true]);
    expect(await texts(h.ask())).toEqual([]);
    expect(h.reason).toBe('completions are snoozed');
    const explicit = h.ask({ explicit: true });
    await wait(100);
    expect(await texts(explicit)).toEqual(['x']);
    await wait(5 * 60_000);
    expect(h.snooze.active).toBe(false);
    expect(editor.commands.at(-1)).toEqual(['setContext', 'kvasir.snoozed', false]);
    expect(await texts(h.ask())).toEqual(['x']);
  });

  test('snoozed until the window is reloaded: no timer', async () => {
    const h = harness('f(|)\n');
    editor.picks = Number.POSITIVE_INFINITY;
    await h.snooze.choose();
    expect(h.snooze.active).toBe(true);
    expect(h.snooze.until).toBeUndefined();
    expect(vi.getTimerCount()).toBe(0);
    h.snooze.end();
    expect(h.snooze.active).toBe(false);
  });

  test('on battery: by name, asked at most once a minute, explicitly asked for all the same', async () => {
    const h = harness('f(|)\n', { pauseOnBattery: true });
    h.engine.machine.onBattery = true;
    h.engine.onRequest = answers('x');
    for (let i = 0; i < 5; i++) expect(await texts(h.type('a'))).toEqual([]);
    expect(h.reason).toBe('the machine runs on battery (kvasir.completion.pauseOnBattery)');
    const asked = () => h.engine.sent.filter(({ type }) => type === 'machine').length;
    expect(asked()).toBe(1);
    expect(h.engine.sent.some(({ type }) => type === 'load')).toBe(false);
    const explicit = h.ask({ explicit: true });
    await wait(100);
    expect(await texts(explicit)).toEqual(['x']);
    await wait(60_000);
    h.engine.machine.onBattery = false;
    h.type('b');
    await wait(100);
    expect(asked()).toBe(2);
    const back = h.type('c');
    await wait(100);
    expect(await texts(back)).toEqual(['x']);
  });

  test('a file that is too large: by name, and nothing is loaded for it', async () => {
    const h = harness(`${'x'.repeat(10_000_000)}|`);
    expect(await texts(h.type('a'))).toEqual([]);
    expect(h.reason).toBe('the file is too large');
    expect(h.engine.sent).toEqual([]);
  });

  test('while the setting is off, completions do not ask about the battery; what is computed ahead does, rarely, and never again without one', async () => {
    const h = harness('f(|)\n');
    const asked = () => h.engine.sent.filter(({ type }) => type === 'machine').length;
    await show(h, 'x');
    expect(asked()).toBe(0);
    for (let i = 0; i < 20; i++) {
      h.type('y');
      await wait(60);
      h.engine.running.at(-1)?.done('z');
      await wait(60_000);
    }
    expect(asked()).toBe(1);
    expect(h.engine.sent.filter(({ type }) => type === 'machine')).toMatchObject([{ graphics: false }]);
  });

  test('the engine fails: by name and with its message', async () => {
    const h = harness('f(|)\n');
    const question = h.ask();
    await wait(60);
    h.engine.running[0]!.fail('no memory left');
    await wait(1);
    expect(await texts(question)).toEqual([]);
    expect(h.provider.last).toMatchObject({ reason: 'the request failed', detail: 'no memory left' });
  });

  test('an engine that is down says so with its message, but not where something else is the reason', async () => {
    const h = harness('f(|)\n');
    Object.defineProperty(h.client, 'state', {
      value: { kind: 'failed', message: 'onnxruntime is missing', retry: false },
    });
    expect(await texts(h.ask())).toEqual([]);
    expect(h.provider.last).toMatchObject({ reason: 'the engine is down', detail: 'onnxruntime is missing' });
    h.snooze.start(5);
    expect(await texts(h.ask())).toEqual([]);
    expect(h.provider.last).toMatchObject({ reason: 'completions are snoozed' });
    expect(h.provider.last).not.toHaveProperty('detail');
  });

  test('the model has nothing to add', async () => {
    const h = harness('f(|)\n');
    const question = h.ask();
    await wait(60);
    h.engine.running[0]!.done();
    await wait(1);
    expect(await texts(question)).toEqual([]);
    expect(h.reason).toBe('the model has nothing to add here');
  });

  test('typed on during the debounce: nothing is asked, nothing is kept under the old text', async () => {
    const h = harness('f(|)\n');
    await show(h, 'xyz');
    const asked = h.type('a');
    await wait(20);
    h.document.change({ offset: 3, deleted: 0, text: 'b' });
    await wait(100);
    expect(await texts(asked)).toEqual([]);
    expect(h.reason).toBe('superseded by further typing');
    expect(h.asks.length).toBe(1);
  });

  test('the log counts what was written and does not quote it', async () => {
    const h = harness('f(|)\n');
    await show(h, 'secret\nword');
    expect(h.logged[0]).toContain('11 characters, 2 lines from engine');
    expect(h.logged[0]).not.toContain('secret');
    expect(h.provider.last?.shown).toBe('secret\nword');
  });
});

describe('an answer that comes after the editor’s patience', () => {
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
  ])('a busy machine, where the editor stops waiting before we have noticed the time (%s: %s)', async (stays) => {
    const h = harness('f(|)\n');
    const question = h.ask();
    await wait(60);
    // The clock has gone on, and no timer has come yet.
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

  test('nothing at all: the reason says so in the end', async () => {
    const h = harness('f(|)\n');
    h.ask();
    await wait(760);
    expect(h.reason).toBe('not ready before the editor stops waiting; shown when ready');
    h.engine.running[0]!.done();
    await wait(1);
    expect(h.reason).toBe('the model has nothing to add here');
    expect(editor.commands).toEqual([]);
  });

  test('one that fails after its first part shows nothing more', async () => {
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

  test('one that grows slowly is shown in steps, not at every token', async () => {
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

  test('typed along meanwhile: the rest is shown where the cursor is', async () => {
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
});

describe('the next completion', () => {
  const ahead = (h: InstanceType<typeof Harness>) =>
    h.engine.requests.filter(({ message }) => message.priority === 'summary');

  test('is computed while the user reads, and follows an acceptance at once', async () => {
    const h = harness('let a = |\n');
    const shown = await show(h, 'b;');
    await wait(200);
    expect(ahead(h).map(({ task }) => task)).toEqual([
      { kind: 'complete', docId: h.document.uri.toString(), offset: 8, inserted: 'b;' },
    ]);
    ahead(h)[0]!.done('\nlet c = 1;');
    await wait(1);
    expect(await texts(h.accept(shown))).toEqual(['\nlet c = 1;']);
    expect(h.provider.last?.source).toBe('computed ahead');
    expect(h.asks.length).toBe(1);
  });

  test('accepted before it is ready: the acceptance waits for it instead of asking again', async () => {
    const h = harness('let a = |\n');
    const shown = await show(h, 'b;');
    await wait(200);
    ahead(h)[0]!.chunk('\nlet');
    const question = h.accept(shown);
    await wait(20);
    ahead(h)[0]!.done(' c;');
    await wait(1);
    expect(await texts(question)).toEqual(['\nlet c;']);
    expect(h.engine.requests.length).toBe(2);
  });

  test('one word after the other: the rest is there at once, then the next', async () => {
    const h = harness('let a = |\n');
    const shown = await show(h, 'b + c');
    await wait(200);
    ahead(h)[0]!.done('; // sum');
    await wait(1);
    const word = h.accept(shown, 1);
    expect(await texts(word)).toEqual([' + c']);
    const [rest] = await word.items;
    expect(await texts(h.accept(rest!))).toEqual(['; // sum']);
    expect(h.asks.length).toBe(1);
  });

  test('typing through the end of one, too', async () => {
    const h = harness('let a = |\n');
    await show(h, 'b');
    await wait(200);
    ahead(h)[0]!.done(' + c');
    await wait(1);
    expect(await texts(h.type('b'))).toEqual([' + c']);
  });

  test('one at a time, and typing through what is shown starts no more', async () => {
    const h = harness('let a = |\n');
    await show(h, 'bcdef');
    for (const key of 'bcde') {
      h.type(key);
      await wait(200);
    }
    expect(ahead(h).length).toBe(1);
    expect(ahead(h)[0]!.aborted).toBe(false);
  });

  test('is given up with the first key that goes another way', async () => {
    const h = harness('let a = |\n');
    await show(h, 'b;');
    await wait(200);
    h.type('x');
    expect(ahead(h)[0]!.aborted).toBe(true);
  });

  test('is not computed during quick typing, on battery, after a long text, or while automatic completions are off', async () => {
    const quick = harness('let a = |\n');
    await show(quick, 'b;');
    await wait(100);
    quick.type('x');
    await wait(40);
    expect(ahead(quick)).toEqual([]);

    const long = harness('|\n');
    await show(long, 'a\nb\nc\nd\ne');
    await wait(500);
    expect(ahead(long)).toEqual([]);

    const battery = harness('let a = |\n');
    battery.engine.machine.onBattery = true;
    battery.engine.onRequest = answers('x');
    battery.ask();
    await wait(10);
    const byHand = battery.ask({ explicit: true });
    await wait(1000);
    expect(await texts(byHand)).toEqual(['x']);
    expect(ahead(battery)).toEqual([]);

    const off = harness('let a = |\n', { enable: false });
    off.engine.onRequest = answers('x');
    const explicit = off.ask({ explicit: true });
    await wait(500);
    expect(await texts(explicit)).toEqual(['x']);
    expect(ahead(off)).toEqual([]);
  });

  test('is not computed with several cursors: what an acceptance leaves is not known', async () => {
    const h = harness('let a = |\nlet b = \n');
    editor.select(h.document, 8, 17);
    const question = h.ask();
    await wait(60);
    h.engine.running[0]!.done('1');
    await wait(500);
    expect(await texts(question)).toEqual(['1']);
    expect(ahead(h)).toEqual([]);
  });
});

describe('several candidates when asked by hand', () => {
  const bySeed = (request: ScriptedRequest) => ['first', 'second', 'third'][request.message.sampling?.seed ?? 0]!;

  test('the most probable first, then samples over the same prompt, each different', async () => {
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
    'what the model is not sure of is shown to who asks for it, where %j has been shown by itself',
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
  ] as const)('a request under way that ends with %j, having held something back: %j', async (sure, suppressed) => {
    const h = harness('f(|)\n');
    const typed = h.ask();
    await wait(60);
    const running = h.engine.running[0]!;
    h.engine.onRequest = answers(bySeed);
    const question = h.ask({ explicit: true });
    await wait(50);
    running.done(sure, 'stop', suppressed);
    await wait(1000);
    // Who asks by hand gets all of it, and what has nothing more is not asked again.
    expect(await texts(question)).toEqual(suppressed ? ['first', 'second', 'third'] : []);
    await typed;
  });

  test('asked for again, as cycling does, they are the same and cost nothing', async () => {
    const h = harness('f(|)\n');
    h.engine.onRequest = answers(bySeed);
    h.ask({ explicit: true });
    await wait(50);
    const { length } = h.asks;
    expect(await texts(h.ask({ explicit: true }))).toEqual(['first', 'second', 'third']);
    expect(h.asks.length).toBe(length);
  });

  test('cycling from ghost text that came by itself keeps that one first', async () => {
    const h = harness('f(|)\n');
    h.engine.onRequest = answers(bySeed);
    h.ask();
    await wait(60);
    const question = h.ask({ explicit: true });
    await wait(50);
    expect(await texts(question)).toEqual(['first', 'second', 'third']);
    expect(h.asks.length).toBe(1);
  });

  test('the same texts are one candidate, and typing through keeps those that agree', async () => {
    const h = harness('f(|)\n');
    h.engine.onRequest = answers((request) => ['abc', 'abd', 'abc'][request.message.sampling?.seed ?? 0]!);
    const question = h.ask({ explicit: true });
    await wait(50);
    expect(await texts(question)).toEqual(['abc', 'abd']);
    expect(await texts(h.type('ab'))).toEqual(['c', 'd']);
  });

  test('slow ones do not hold the first back for long, and are there the next time', async () => {
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

  test('cancelled: all of them end in the engine', async () => {
    const h = harness('f(|)\n');
    const question = h.ask({ explicit: true });
    await wait(10);
    expect(h.engine.running.length).toBe(3);
    question.cancel();
    await wait(50);
    expect(h.engine.running).toEqual([]);
  });

  test('where the most probable is nothing, nothing is offered', async () => {
    const h = harness('f(|)\n');
    h.engine.onRequest = answers((request) => (request.message.sampling?.seed ? 'noise' : ''));
    const question = h.ask({ explicit: true });
    await wait(50);
    expect(await texts(question)).toEqual([]);
    expect(h.reason).toBe('the model has nothing to add here');
  });
});

describe('where the cursor comes to rest', () => {
  const warm = (h: InstanceType<typeof Harness>) =>
    h.engine.requests.filter(({ message }) => message.priority === 'summary');
  const text = 'let a = |;\nlet b = 2;\nlet c = 3;\n';

  /** The model is loaded, and somebody has typed a moment ago. */
  async function atWork(completion: Partial<Config['completion']> = {}) {
    const h = harness(text, completion);
    await Promise.all([h.client.ready(), wait(1)]);
    h.type('x').cancel();
    await wait(1000);
    h.engine.requests.length = 0;
    return h;
  }

  test('the prompt there is computed, in the lowest class, and given up at its first word', async () => {
    const h = await atWork();
    editor.select(h.document, 22);
    await wait(150);
    expect(h.engine.requests).toEqual([]);
    await wait(200);
    // All of it: nothing is held back at which it could be given up.
    expect(warm(h).map(({ task }) => task)).toEqual([
      { kind: 'complete', docId: h.document.uri.toString(), offset: 22, showLowConfidence: true },
    ]);
    warm(h)[0]!.chunk('let');
    await wait(1);
    expect(warm(h)[0]!.aborted).toBe(true);
    // Its word was the prompt's end, not an answer.
    const question = h.ask();
    await wait(60);
    h.engine.running[0]!.done('d');
    await wait(1);
    expect(await texts(question)).toEqual(['d']);
  });

  test('a question ends it, and so does the cursor that leaves', async () => {
    const h = await atWork();
    editor.select(h.document, 22);
    await wait(500);
    h.type('x');
    await wait(60);
    expect(warm(h)[0]!.aborted).toBe(true);
    editor.select(h.document, 10);
    await wait(500);
    expect(warm(h).length).toBe(2);
    editor.select(h.document, 25);
    expect(warm(h)[1]!.aborted).toBe(true);
  });

  test.each<[string, (h: InstanceType<typeof Harness>) => unknown]>([
    ['while typing', (h) => h.type('y')],
    ['for a selection', (h) => editor.selectRanges(h.document, [10, 22])],
    ['for several cursors', (h) => editor.select(h.document, 10, 22)],
    [
      'for one that passes by',
      async (h) => {
        for (let at = 10; at < 20; at++) {
          editor.select(h.document, at);
          await wait(100);
        }
        h.type('y');
      },
    ],
    [
      'while the battery is asked about, when the cursor goes on to a selection',
      async (h) => {
        editor.select(h.document, 22);
        h.engine.machineMs = 300;
        await wait(250);
        editor.selectRanges(h.document, [10, 22]);
      },
    ],
    [
      'in a secret',
      (h) => {
        h.completion.exclude.push('**/*');
        editor.select(h.document, 22);
      },
    ],
    [
      'while automatic completions are off',
      (h) => {
        h.completion.enable = false;
        editor.select(h.document, 22);
      },
    ],
    [
      'snoozed',
      (h) => {
        h.snooze.start(5);
        editor.select(h.document, 22);
      },
    ],
    [
      'after disposal',
      (h) => {
        editor.select(h.document, 22);
        h.provider.dispose();
      },
    ],
    [
      'outside the workspace',
      (h) => {
        editor.folders = [];
        editor.select(h.document, 22);
      },
    ],
    [
      'when nobody has typed for minutes',
      async (h) => {
        await wait(3 * 60_000);
        editor.select(h.document, 22);
      },
    ],
  ])('nothing is computed %s', async (_, move) => {
    const h = await atWork();
    h.engine.onRequest = answers('');
    await move(h);
    await wait(1000);
    expect(warm(h)).toEqual([]);
  });

  test('nothing is computed on battery, nor asked about the machine while automatic completions are off', async () => {
    const battery = harness(text);
    battery.engine.machine.onBattery = true;
    await Promise.all([battery.client.ready(), wait(1)]);
    battery.type('x').cancel();
    editor.select(battery.document, 22);
    await wait(1000);
    expect(warm(battery)).toEqual([]);
    const off = harness(text, { enable: false });
    await Promise.all([off.client.ready(), wait(1)]);
    off.type('x').cancel();
    editor.select(off.document, 22);
    await wait(1000);
    expect(off.engine.sent.map(({ type }) => type)).not.toContain('machine');
  });

  test('no model is loaded for it, and none is asked that would take seconds', async () => {
    const unloaded = harness(text);
    unloaded.type('x').cancel();
    editor.select(unloaded.document, 22);
    await wait(1000);
    expect(warm(unloaded)).toEqual([]);
    const slow = harness(text);
    slow.engine.model = { ...slow.engine.model, parameters: 1.5e9 };
    await Promise.all([slow.client.ready(), wait(1)]);
    slow.type('x').cancel();
    editor.select(slow.document, 22);
    await wait(1000);
    expect(warm(slow)).toEqual([]);
  });
});

describe('policies that a benchmark switches off; what they do is above', () => {
  const asked = (h: InstanceType<typeof Harness>) => h.asks.map(({ text, task }) => [text, task.offset]);

  test('without joining, a key that agrees with what is streaming gives it up at once, and it is asked anew', async () => {
    const h = harness('let a = |;\n', {}, without(['joinRunning']));
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
    // What has ended is typed through as before.
    expect(await texts(h.type('o'))).toEqual(['o']);
    expect(h.asks.length).toBe(2);
  });

  test('without joining, a question about the same text still waits for the request that is running', async () => {
    const h = harness('let a = |;\n', {}, without(['joinRunning']));
    h.ask();
    await wait(60);
    const again = h.ask();
    await wait(60);
    expect(h.asks.length).toBe(1);
    h.engine.running[0]!.done('b');
    await wait(1);
    expect(await texts(again)).toEqual(['b']);
  });

  test('without carrying over, a key typed as suggested asks anew; a completion is found again at its own place only', async () => {
    const h = harness('let a = |;\n', {}, without(['carryOver']));
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

  test('without carrying over, a request that is running still serves the keys that agree with it', async () => {
    const h = harness('let a = |;\n', {}, without(['carryOver']));
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

  test('nothing is computed ahead of an acceptance, and nothing is read where the cursor comes to rest', async () => {
    const h = harness('let a = |;\nlet b = 2;\n', {}, without(['ahead', 'warmup']));
    await show(h, 'b');
    await wait(1000);
    h.type('x').cancel();
    editor.select(h.document, 20);
    await wait(1000);
    expect(h.engine.requests.map(({ message }) => message.priority)).toEqual(['completion']);
  });
});
