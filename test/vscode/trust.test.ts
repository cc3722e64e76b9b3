/**
 * An untrusted workspace: Kvasir works there, and the workspace's settings for models, engine and secrets are ignored.
 */
import { expect, test } from 'vitest';
import { PATIENCE } from './editor.ts';
import { editorSuite, INVENTORY } from './suite.ts';

/** The sample, cut off at a place where the model suggests text. */
const UNFINISHED = INVENTORY.replace(/(?<=let total = ).*/, '');
const LINE = UNFINISHED.split('\n').findIndex((text) => text.endsWith('let total = ')) + 1;
const FOLDER = {
  'kvasir.model': '/nowhere/model',
  'kvasir.modelFolders': ['/nowhere'],
  'kvasir.engine.threads': 1,
  'kvasir.completion.exclude': [],
};

editorSuite(
  'workspace trust',
  { 'src/open.ts': UNFINISHED, 'src/secret.key': UNFINISHED, '.vscode/settings.json': JSON.stringify(FOLDER) },
  (editor) => {
    const restricted = () => editor().page.locator('.statusbar-item', { hasText: 'Restricted Mode' });

    async function complete(name: string): Promise<void> {
      const window = editor();
      await window.openFile(name, LINE, '    let total = '.length + 1);
      await window.runCommand('Kvasir: Trigger Completion');
    }

    test('in an untrusted workspace Kvasir completes and answers with the machine’s model', async () => {
      const window = editor();
      await restricted().waitFor();
      await complete('src/open.ts');
      await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).not.toBe('');
      await window.press('Escape');
      await window.runCommand('Kvasir: Open Chat');
      const answer = await window.ask('What is this file for?');
      await expect.poll(() => answer.getAttribute('data-state'), { timeout: 2 * PATIENCE }).toBe('done');
      await window.screenshot('trust-restricted');
      expect(await window.toasts()).toEqual([]);
      // Nothing computed from these files may be written to disk.
      expect(await window.statusHover()).not.toContain('On disk');
      await window.unhover();
    });

    test('an untrusted workspace cannot remove the exclusion of secrets', async () => {
      const window = editor();
      await complete('src/secret.key');
      await window.page.waitForTimeout(1500);
      expect(await window.ghostText()).toBe('');
      await window.runCommand('Kvasir: Explain Last Completion');
      await expect
        .poll(() => window.editorText(), { timeout: PATIENCE })
        .toContain('the file matches kvasir.completion.exclude');
    });

    test('a trusted workspace can remove the exclusion of secrets, but cannot set the model', async () => {
      const window = editor();
      await window.runCommand('Workspaces: Manage Workspace Trust');
      const page = window.page.locator('.workspace-trust-editor');
      await page.waitFor();
      await window.screenshot('trust-editor');
      await page
        .locator('.monaco-button', { hasText: /^Trust$/ })
        .first()
        .click();
      await restricted().waitFor({ state: 'hidden' });
      await complete('src/secret.key');
      await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).not.toBe('');
      expect(await window.statusHover()).toContain('kvasir-starter');
      await window.unhover();
      expect(window.problems).toEqual([]);
    });
  },
  { untrusted: true, reopen: true },
);
