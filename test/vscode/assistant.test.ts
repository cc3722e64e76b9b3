/** Chat, summary and status bar for one file. The engine computes the file once; the footer and the hover show that. */
import type { Locator } from 'playwright-core';
import { afterEach, expect, test } from 'vitest';
import { PATIENCE } from './editor.ts';
import { editorSuite, INVENTORY } from './suite.ts';

/** Reused tokens and prompt tokens in an answer's footer. */
function reuse(footer: string): { reused: number; prompt: number } {
  const [, reused, prompt] = /^([\d,]+) of ([\d,]+) tokens reused/.exec(footer.trim()) ?? [];
  return { reused: Number(reused?.replaceAll(',', '')), prompt: Number(prompt?.replaceAll(',', '')) };
}

editorSuite('assistant', { 'src/inventory.ts': INVENTORY }, (editor) => {
  async function askToTheEnd(question: string): Promise<{ text: string; reused: number; prompt: number }> {
    return await toTheEnd(await editor().ask(question));
  }

  async function toTheEnd(answer: Locator): Promise<{ text: string; reused: number; prompt: number }> {
    await expect.poll(() => answer.getAttribute('data-state'), { timeout: 2 * PATIENCE }).toBe('done');
    const footer = (await answer.locator('[data-part="footer"]').textContent()) ?? '';
    const text = (await answer.textContent()) ?? '';
    return { text: text.replace(footer, '').trim(), ...reuse(footer) };
  }

  /** Requests a completion in the file and waits until idle prefill has computed the whole file. */
  async function computed(): Promise<void> {
    const window = editor();
    await window.openFile('src/inventory.ts', 37, 1);
    await window.runCommand('Kvasir: Trigger Completion');
    const tokensInHover = async () => {
      const hover = await window.statusHover();
      await window.unhover();
      return Number(/inventory\.ts\s+([\d,]+)/.exec(hover)?.[1]?.replaceAll(',', '') ?? 0);
    };
    // A token rarely has more than four characters of code.
    await expect.poll(tokensInHover, { timeout: PATIENCE }).toBeGreaterThan(INVENTORY.length / 4);
  }

  afterEach(async () => {
    expect(await editor().toasts()).toEqual([]);
    expect(editor().problems).toEqual([]);
  });

  test('after a completion the file is computed in idle time: the hover lists it, and the status bar shows bytes', async () => {
    const window = editor();
    await computed();
    await expect
      .poll(() => window.statusItem.textContent(), { timeout: PATIENCE })
      .toMatch(/[1-9][\d.,]* ?(B|[kKMG]i?B)/);
    await window.statusHover();
    await window.screenshot('status');
    await window.unhover();
  });

  test('the first question about the file reuses it; a second question does not compute it again', async () => {
    const window = editor();
    await computed();
    await window.runCommand('Kvasir: Open Chat');
    const { text, reused, prompt } = await askToTheEnd('What is this file for?');
    expect(text).not.toBe('');
    expect(reused).toBeGreaterThan(prompt / 2);
    const second = await askToTheEnd('What is this?');
    expect(second.reused).toBeGreaterThan(second.prompt / 2);
    await window.screenshot('chat');
  });

  test('Summarize File gives a summary that reuses the file', async () => {
    const window = editor();
    await computed();
    await window.runCommand('Kvasir: Open Chat');
    const numAnswers = await window.answers.count();
    await window.openFile('src/inventory.ts');
    await window.runCommand('Kvasir: Summarize File');
    const { text, reused, prompt } = await toTheEnd(window.answers.nth(numAnswers));
    expect(text).not.toBe('');
    expect(reused).toBeGreaterThan(prompt / 2);
    await window.screenshot('summary');
  });
});
