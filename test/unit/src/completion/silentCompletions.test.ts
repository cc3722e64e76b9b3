/** Every reason for showing no ghost text is logged. */
import { describe, expect, test, vi } from 'vitest';
import type { Config } from '../../../../src/config.ts';
import { editor } from '../../../support/editor/fakeEditor.ts';

vi.mock('../../../../src/vscode.ts', async () => (await import('../../../support/editor/fakeEditor.ts')).vscodeApi);
const { answers, harness, show, texts, wait, useCompletions } = await import('../../../support/editor/completions.ts');

useCompletions();

describe('complaint: nothing happens and no logs', () => {
  test.each<[string, Partial<Config['completion']>]>([
    ['automatic completions are off (kvasir.completion.enable)', { enable: false }],
    ['the language is not in kvasir.completion.languages', { languages: ['*', '!typescript'] }],
    ['the file matches kvasir.completion.exclude', { exclude: ['**/*.ts'] }],
  ])('%s: no text is read, no engine is started, and the reason is logged once', async (reason, completion) => {
    const h = harness('f(|', completion);
    for (let i = 0; i < 3; i++) expect(await texts(h.type('a'))).toEqual([]);
    expect(h.document.numRead).toBe(0);
    expect(h.reason).toBe(reason);
    expect(h.engine.sent).toEqual([]);
    expect(h.logged.filter((line) => line.includes(reason)).length).toBe(1);
  });

  test('while snoozed, the reason is logged, explicit requests work, and snoozing ends by itself', async () => {
    const h = harness('f(|)\n');
    h.engine.onRequest = answers('x');
    editor.picks = 5;
    await h.snooze.choose();
    expect(editor.contexts['kvasir.snoozed']).toBe(true);
    expect(await texts(h.ask())).toEqual([]);
    expect(h.reason).toBe('completions are snoozed');
    const explicit = h.ask({ explicit: true });
    await wait(100);
    expect(await texts(explicit)).toEqual(['x']);
    await wait(5 * 60_000);
    expect(h.snooze.active).toBe(false);
    expect(editor.contexts['kvasir.snoozed']).toBe(false);
    expect(await texts(h.ask())).toEqual(['x']);
  });

  test('snoozing until the window is reloaded sets no timer', async () => {
    const h = harness('f(|)\n');
    editor.picks = Number.POSITIVE_INFINITY;
    await h.snooze.choose();
    expect(h.snooze.active).toBe(true);
    expect(h.snooze.until).toBeUndefined();
    expect(vi.getTimerCount()).toBe(0);
    h.snooze.end();
    expect(h.snooze.active).toBe(false);
  });

  test('on battery, the reason is logged, the battery is queried at most once a minute, and explicit requests work', async () => {
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

  test('for a file that is too large, the reason is logged and nothing is loaded', async () => {
    const h = harness(`${'x'.repeat(10_000_000)}|`);
    expect(await texts(h.type('a'))).toEqual([]);
    expect(h.reason).toBe('the file is too large');
    expect(h.engine.sent).toEqual([]);
  });

  test('without the setting, only work ahead queries the battery: rarely, and never again on a machine without one', async () => {
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

  test('a failed request is logged with its message', async () => {
    const h = harness('f(|)\n');
    const question = h.ask();
    await wait(60);
    h.engine.running[0]!.fail('no memory left');
    await wait(1);
    expect(await texts(question)).toEqual([]);
    expect(h.provider.last).toMatchObject({ reason: 'the request failed', detail: 'no memory left' });
  });

  test('a stopped engine is logged with its message, unless there is another reason', async () => {
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

  test('an empty completion is logged as such', async () => {
    const h = harness('f(|)\n');
    const question = h.ask();
    await wait(60);
    h.engine.running[0]!.done();
    await wait(1);
    expect(await texts(question)).toEqual([]);
    expect(h.reason).toBe('the model has nothing to add here');
  });

  test('typing during the debounce sends no request and stores nothing for the old text', async () => {
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

  test('the log counts the characters and does not quote the text', async () => {
    const h = harness('f(|)\n');
    await show(h, 'secret\nword');
    expect(h.logged[0]).toContain('11 characters, 2 lines from engine');
    expect(h.logged[0]).not.toContain('secret');
    expect(h.provider.last?.shown).toBe('secret\nword');
  });
});
