/** The user interface in Portuguese, in a browser with that language: commands, views, status bar and pages. */
import { readFileSync } from 'node:fs';
import type { FrameLocator } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { BUILT_IN } from '../support/builtIn.ts';
import { PATIENCE, setText } from './editor.ts';
import { outOfPlace, setAdvanced } from './panelLayout.ts';
import { editorSuite, INVENTORY } from './suite.ts';

const read = (file: string) => JSON.parse(readFileSync(file, 'utf8')) as Record<string, string>;
const bundle = read('l10n/bundle.l10n.pt-br.json');
const [english, portuguese] = [read('package.nls.json'), read('package.nls.pt-br.json')];

editorSuite(
  'portuguese',
  { 'src/inventory.ts': INVENTORY },
  (editor) => {
    const panel = (): FrameLocator =>
      editor().page.frameLocator('iframe.webview').last().frameLocator('iframe#active-frame');
    afterAll(() => editor()?.configureMachine({ 'kvasir.cache.maxBytes': undefined }));

    /** Numbers with English separators, and the first size in bytes. */
    const numbersIn = (text: string) => ({
      english: text.match(/\d+,\d{3}\b|\b\d+\.\d\b(?!\.)/g) ?? [],
      bytes: /\d\S* [kMG]B/.exec(text)?.[0],
    });

    /** Opens the chat and waits for a summary in it, so that the engine has figures to show. */
    async function summarized(): Promise<void> {
      const window = editor();
      // Only one webview can be open at a time.
      await window.hidePanel();
      await window.openFile('src/inventory.ts');
      await window.runCommand(`Kvasir: ${portuguese['command.openChat']}`);
      await window.chat.locator('textarea').waitFor();
      const numAnswers = await window.answers.count();
      await window.runCommand(`Kvasir: ${portuguese['command.summarizeFile']}`);
      await expect.poll(() => window.answers.count(), { timeout: PATIENCE }).toBe(numAnswers + 1);
      await expect.poll(() => window.answers.last().getAttribute('data-state'), { timeout: 2 * PATIENCE }).toBe('done');
    }

    test('an empty chat shows the model’s note in Portuguese', async () => {
      const window = editor();
      await window.hidePanel();
      await window.openFile('src/inventory.ts');
      await window.runCommand(`Kvasir: ${portuguese['command.openChat']}`);
      await window.runCommand(`Kvasir: ${portuguese['command.newChat']}`);
      const { note } = BUILT_IN.manifest;
      expect(note.pt).not.toBe(note.en);
      await expect
        .poll(() => window.chat.locator('[data-part="note"]').innerText(), { timeout: PATIENCE })
        .toBe(note.pt);
      await window.chat.getByRole('button', { name: 'inventory.ts' }).first().waitFor();
      await expect
        .poll(() => window.chat.locator('.example').allInnerTexts())
        .toEqual([
          'Resuma este arquivo',
          'O que faz OutOfStockError?',
          'Quais métodos OutOfStockError tem?',
          'Quais funções este arquivo define?',
        ]);
      await window.screenshot('portuguese-chat-empty');
      expect(
        await window.chat.locator('#log').evaluate((log) => [log.scrollHeight > log.clientHeight, log.scrollTop]),
      ).toEqual([true, 0]);
    });

    test('the commands in the palette are in Portuguese', async () => {
      const window = editor();
      await window.openFile('src/inventory.ts');
      for (const command of ['summarizeFile', 'openChat']) {
        const title = portuguese[`command.${command}`];
        expect(title).not.toBe(english[`command.${command}`]);
        await window.runCommand(`Kvasir: ${title}`);
      }
    });

    test('the chat’s page is in Portuguese', async () => {
      const window = editor();
      await summarized();
      const numAnswers = await window.answers.count();
      const input = window.chat.getByRole('textbox', { name: bundle['Ask Kvasir'] as string });
      await input.waitFor();
      await expect
        .poll(() => input.getAttribute('placeholder'))
        .toBe(bundle['Ask about your code: / for commands, @ for files']);
      // The summary is the model's text, in the language of its training. Facts are in the user's language.
      await setText(input, 'Quais classes este arquivo define?');
      await input.press('Enter');
      await expect.poll(() => window.answers.count()).toBe(numAnswers + 1);
      await expect.poll(() => window.answers.last().getAttribute('data-state'), { timeout: PATIENCE }).toBe('done');
      expect(await window.answers.last().locator('.body').innerText()).toMatch(/^Classes de src\/inventory\.ts: /);
      const { note } = BUILT_IN.manifest.chat;
      expect(note.pt).not.toBe(note.en);
      await setText(input, 'What does this code do?\n```ts\nentry.count -= count;\n```');
      await input.press('Enter');
      await expect.poll(() => window.answers.count()).toBe(numAnswers + 2);
      await expect.poll(() => window.answers.last().getAttribute('data-state'), { timeout: PATIENCE }).toBe('done');
      expect(await window.chat.locator('.model-note').allInnerTexts()).toEqual([note.pt]);
      await window.screenshot('portuguese-chat');
    });

    test('the status bar’s hover is in Portuguese', async () => {
      const window = editor();
      await summarized();
      const hover = await window.statusHover();
      await window.screenshot('portuguese-status');
      await window.unhover();
      // The text depends on what is known by then. At least one sentence is a translation, whatever its figures are.
      const fixed = (text: string): string[] =>
        text
          .replaceAll('**', '')
          .split(/\{\d\}/)
          .map((part) => part.trim())
          .filter((part) => part.length > 4);
      const isShown = ([text, translation]: [string, string]): boolean =>
        text !== translation &&
        fixed(translation).length > 0 &&
        fixed(translation).every((part) => hover.includes(part)) &&
        !fixed(text).every((part) => hover.includes(part));
      expect(Object.entries(bundle).some(isShown), hover).toBe(true);
      expect(numbersIn(hover)).toEqual({ english: [], bytes: expect.stringMatching(/^\d+,\d [kMG]B$/) });
      expect(window.problems).toEqual([]);
    });

    test('the cache panel has Portuguese number formats, and no text overflows', async () => {
      const window = editor();
      await summarized();
      await window.runCommand(`Kvasir: ${portuguese['command.showCache']}`);
      await panel().locator('[data-file="src/inventory.ts"]').waitFor();
      await setAdvanced(panel(), true);
      expect(numbersIn(await panel().locator('.panel').innerText())).toEqual({
        english: [],
        bytes: expect.stringMatching(/^\d+,\d [kMG]B$/),
      });
      await window.screenshotThemes('portuguese-cache');
      expect(await outOfPlace(window, panel(), 'portuguese-cache')).toEqual([]);
      expect(window.problems).toEqual([]);
    });

    test('after a failed question, the tile that reports it is not cut off', async () => {
      const window = editor();
      window.configureMachine({ 'kvasir.cache.maxBytes': 200_000 });
      // Only one webview can be open at a time.
      await window.hidePanel();
      await window.runCommand(`Kvasir: ${portuguese['command.openChat']}`);
      const question = async () => {
        const count = await window.answers.count();
        await setText(window.chat.locator('textarea'), 'Para que serve este arquivo?');
        await window.chat.locator('textarea').press('Enter');
        // The view may also show the turns of before only now.
        await expect.poll(() => window.answers.count(), { timeout: PATIENCE }).toBeGreaterThan(count);
        await expect
          .poll(() => window.answers.last().getAttribute('data-state'), { timeout: 2 * PATIENCE })
          .not.toBe('streaming');
        return window.answers.last().getAttribute('data-state');
      };
      await expect.poll(question, { timeout: 2 * PATIENCE }).toBe('error');
      expect(numbersIn((await window.answers.last().locator('.failure').textContent()) ?? '')).toEqual({
        english: [],
        bytes: '200 kB',
      });
      await window.runCommand(`Kvasir: ${portuguese['command.showCache']}`);
      await expect
        .poll(() => panel().locator('.tile.speed .note').textContent(), { timeout: PATIENCE })
        .toMatch(/com erro: [1-9]/);
      expect(await outOfPlace(window, panel(), 'portuguese-limit-none-panel')).toEqual([]);
      window.configureMachine({ 'kvasir.cache.maxBytes': undefined });
    });
  },
  { locale: 'pt-BR' },
);
