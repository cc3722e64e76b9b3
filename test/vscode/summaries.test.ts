/**
 * Summaries of symbols (hover, CodeLens) and of a folder (progress, report, cache), and files that cannot be
 * summarised. Each test can run alone.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { PATIENCE } from './editor.ts';
import { chooseFromMenu } from './menus.ts';
import { editorSuite, INVENTORY } from './suite.ts';

const FILES = {
  'src/inventory.ts': INVENTORY,
  'src/twice.ts': '/** Twice a number. */\nexport function twice(n: number): number {\n  return n + n;\n}\n',
  'src/parts/half.ts': '/** Half of a number. */\nexport function half(n: number): number {\n  return n / 2;\n}\n',
  'src/generated/out.ts': 'export const out = 1;\n',
  'src/picture.bin': '\u0000\u0001\u0002',
  'src/.env': 'TOKEN=secret\n',
  '.gitignore': 'generated/\n',
};

editorSuite('summaries', FILES, (editor) => {
  const page = () => editor().page;
  const toast = (text: string) => page().locator('.notification-toast', { hasText: text });
  const hoverRow = (text: string | RegExp) => page().locator('.monaco-hover .hover-row', { hasText: text });
  const lens = (text: string | RegExp) => page().locator('.contentWidgets .codelens-decoration a', { hasText: text });
  /** The rendered folder summary. */
  const report = () =>
    page().frameLocator('iframe.webview.ready').last().frameLocator('iframe#active-frame').locator('body');

  /** Opens a file of the folder src, so that the explorer lists the folder's files. */
  const listFolder = () => editor().openFile('src/inventory.ts');

  /** Summarises the folder src from the explorer's menu. */
  async function summarizeFolder(): Promise<void> {
    await page().locator('.explorer-folders-view .monaco-list-row[aria-label^="src"]').click({ button: 'right' });
    await chooseFromMenu(page(), 'Summarize Folder');
  }

  test('the hover of a method offers a summary, computes it on request, and then shows it', async () => {
    const window = editor();
    await window.openFile('src/inventory.ts', 26, 4);
    // The language server finds methods only after it has started. A hover from before that offers nothing.
    const isOffered = async () => {
      await window.press('Escape');
      await window.runCommand('Show or Focus Hover');
      return await hoverRow('Summarize with Kvasir')
        .waitFor({ timeout: 5000 })
        .then(
          () => true,
          () => false,
        );
    };
    await expect.poll(isOffered, { timeout: PATIENCE }).toBe(true);
    await window.screenshot('summary-hover-link');
    await hoverRow('Summarize with Kvasir').locator('a', { hasText: 'Summarize with Kvasir' }).click();
    const summary = page()
      .locator('.monaco-hover .hover-row:has(.codicon-sparkle)')
      .filter({ hasNotText: /Summarize with Kvasir|is summarizing/ });
    await summary.waitFor({ timeout: 2 * PATIENCE });
    expect((await summary.textContent())?.trim()).not.toBe('');
    await window.screenshot('summary-hover');
    await window.press('Escape');
  });

  test('CodeLens is off by default; when it is on, a click shows the first sentence above the function', async () => {
    const window = editor();
    expect(await lens('Summarize').count()).toBe(0);
    window.configure({ 'kvasir.summary.codeLens': true });
    await window.openFile('src/twice.ts');
    await lens('Summarize').click();
    await lens(/^(?!.*(Summarize|is summarizing))\s*\S.+/).waitFor({ timeout: PATIENCE });
    await window.screenshot('summary-lens');
    window.configure({ 'kvasir.summary.codeLens': undefined });
    await lens(/./).waitFor({ state: 'detached' });
  });

  test('a folder is summarised without secret, ignored and binary files, and the report names what was left out', async () => {
    const window = editor();
    await summarizeFolder();
    await report()
      .locator('h1', { hasText: 'Summary of src' })
      .waitFor({ timeout: 2 * PATIENCE });
    const text = await report().innerText();
    for (const name of ['inventory.ts', 'twice.ts', 'parts/half.ts']) expect(text).toContain(name);
    for (const name of ['out.ts', 'secret']) expect(text).not.toContain(name);
    expect(text).toMatch(/picture\.bin: a binary file/);
    expect(text).toContain('Left out by kvasir.completion.exclude: .env');
    await window.screenshotThemes('summary-folder');
    await report().locator('a', { hasText: 'half.ts' }).click();
    await page().locator('.tab.active[data-resource-name="half.ts"]').waitFor();
  });

  test('a second summary of a folder computes only what has changed', async () => {
    // Without the reports of other tests, the heading belongs to the first summary of this test.
    await editor().runCommand('View: Close All Editors');
    await summarizeFolder();
    await report()
      .locator('h1', { hasText: 'Summary of src' })
      .waitFor({ timeout: 2 * PATIENCE });
    writeFileSync(editor().file('src/twice.ts'), 'export const twice = (n: number) => 2 * n;\n');
    await summarizeFolder();
    await report().getByText('2 of 3 files have not changed').waitFor({ timeout: PATIENCE });
  });

  test('a cancelled folder summary shows no report and no message', async ({ task }) => {
    const window = editor();
    await listFolder();
    // Enough files to cancel the work halfway. The binary file is counted too. Those of the first attempt are summarized.
    const attempt = task.result?.retryCount ?? 0;
    for (let i = 0; i < 90; i++)
      writeFileSync(window.file(`src/many${i}.ts`), `// ${attempt} ${i}\n${INVENTORY}${INVENTORY}`);
    await page().locator('.explorer-folders-view .monaco-list-row[aria-label^="many20.ts"]').waitFor();
    await summarizeFolder();
    const progress = toast('Kvasir: summarizing src');
    await progress.filter({ hasText: /\d+ of 94 files/ }).waitFor({ timeout: PATIENCE });
    await window.screenshot('summary-progress');
    await progress.getByRole('button', { name: 'Cancel' }).click();
    await progress.waitFor({ state: 'detached' });
    expect(await window.toasts()).toEqual([]);
    await expect.poll(() => window.statusItem.getAttribute('aria-label'), { timeout: PATIENCE }).not.toMatch(/tok\/s/);
    for (let i = 0; i < 90; i++) rmSync(window.file(`src/many${i}.ts`));
  });

  test('a binary file gets one clear message', async () => {
    await listFolder();
    await page()
      .locator('.explorer-folders-view .monaco-list-row[aria-label^="picture.bin"]')
      .click({ button: 'right' });
    await chooseFromMenu(page(), 'Summarize File');
    await toast('Kvasir cannot summarize picture.bin: a binary file').waitFor();
    expect(await editor().toasts()).toHaveLength(1);
    expect(editor().problems).toEqual([]);
    await editor().runCommand('Notifications: Clear All Notifications');
  });
});
