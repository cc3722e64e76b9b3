/** Requests that nobody has asked for yet: the completion after the shown one, and the prompt at a resting cursor. */
import { describe, expect, test, vi } from 'vitest';
import type { Config } from '../../../../src/config.ts';
import type { Harness } from '../../../support/editor/completionHarness.ts';
import { editor } from '../../../support/editor/fakeEditor.ts';

vi.mock('../../../../src/vscode.ts', async () => (await import('../../../support/editor/fakeEditor.ts')).vscodeApi);
const { answers, harness, show, texts, wait, useCompletions } = await import('../../../support/editor/completions.ts');

useCompletions();

describe('the next completion', () => {
  const ahead = (h: Harness) => h.engine.requests.filter(({ message }) => message.priority === 'summary');

  test('is computed while the user reads, and is shown at once after an acceptance', async () => {
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

  test('serves an acceptance that comes before it is ready, without a new request', async () => {
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

  test('is shown after accepting the shown one word by word', async () => {
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

  test('is shown after typing through the end of the shown one', async () => {
    const h = harness('let a = |\n');
    await show(h, 'b');
    await wait(200);
    ahead(h)[0]!.done(' + c');
    await wait(1);
    expect(await texts(h.type('b'))).toEqual([' + c']);
  });

  test('is computed one at a time, and typing through the shown text starts no other', async () => {
    const h = harness('let a = |\n');
    await show(h, 'bcdef');
    for (const key of 'bcde') {
      h.type(key);
      await wait(200);
    }
    expect(ahead(h).length).toBe(1);
    expect(ahead(h)[0]!.aborted).toBe(false);
  });

  test('is aborted by the first key that differs', async () => {
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

  test('is not computed with several cursors, because the text after an acceptance is unknown', async () => {
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

describe('at a resting cursor', () => {
  const warm = (h: Harness) => h.engine.requests.filter(({ message }) => message.priority === 'summary');
  const text = 'let a = |;\nlet b = 2;\nlet c = 3;\n';

  /** The model is loaded, and the user typed a moment ago. */
  async function atWork(completion: Partial<Config['completion']> = {}) {
    const h = harness(text, completion);
    await Promise.all([h.client.ready(), wait(1)]);
    h.type('x').cancel();
    await wait(1000);
    h.engine.requests.length = 0;
    return h;
  }

  test('the prompt is computed at the lowest priority, and the request ends with its first token', async () => {
    const h = await atWork();
    editor.select(h.document, 22);
    await wait(150);
    expect(h.engine.requests).toEqual([]);
    await wait(200);
    // Text of low confidence is included, so that the request has a first token to end at.
    expect(warm(h).map(({ task }) => task)).toEqual([
      { kind: 'complete', docId: h.document.uri.toString(), offset: 22, showLowConfidence: true },
    ]);
    warm(h)[0]!.chunk('let');
    await wait(1);
    expect(warm(h)[0]!.aborted).toBe(true);
    // Its text is not used as an answer.
    const question = h.ask();
    await wait(60);
    h.engine.running[0]!.done('d');
    await wait(1);
    expect(await texts(question)).toEqual(['d']);
  });

  test('a completion request or a cursor move aborts it', async () => {
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

  test.each<[string, (h: Harness) => unknown]>([
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

  test('nothing is computed on battery, and the battery is not queried while automatic completions are off', async () => {
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

  test('it does not load a model, and slow models are not asked', async () => {
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
