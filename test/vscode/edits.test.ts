/**
 * Edit Selection and Write Commit Message in the editor. The built-in model refuses. Another model streams a diff,
 * which is accepted in one undo step, rejected or in conflict, and a message for a real repository. Each test can run
 * alone.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Locator } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { PATIENCE, setText } from './editor.ts';
import { INVENTORY, ownEditorSuite } from './suite.ts';

const SHORT = 'export function twice(n: number): number {\n  return n + n;\n}\n\nexport const four = twice(2);\n';

/** The files that make a folder a git repository, so that the window finds it when it opens. */
const REPOSITORY = {
  '.git/HEAD': 'ref: refs/heads/main\n',
  '.git/config': '[core]\n\trepositoryformatversion = 0\n\tbare = false\n',
  '.git/objects/info/exclude': '',
  '.git/refs/heads/.keep': '',
};
const HAS_GIT = spawnSync('git', ['--version']).status === 0;

ownEditorSuite(
  'edits',
  {
    'src/inventory.ts': INVENTORY,
    'src/twice.ts': SHORT,
    'src/double.ts': SHORT,
    'src/deploy.key': 'TOKEN\n',
    ...REPOSITORY,
  },
  (editor) => {
    afterAll(() => editor()?.configureMachine({ 'kvasir.model': undefined }));

    const toast = (text: string) => editor().page.locator('.notification-toast', { hasText: text });
    const dismissToasts = () => editor().runCommand('Notifications: Clear All Notifications');
    const input = () => editor().page.locator('.quick-input-widget input');
    const titleButton = (name: string) => editor().page.locator(`.editor-actions .action-label[aria-label^="${name}"]`);
    const diff = () => editor().page.locator('.monaco-diff-editor');

    const commitButton = () =>
      editor().page.locator('.sidebar .action-label[aria-label^="Write Commit Message"]:visible').first();

    /** The folder exists only while the model is in use. */
    const noiseModel = () => path.join(editor().folder, '../noise-model');

    async function useBuiltIn(): Promise<void> {
      const window = editor();
      if (!existsSync(noiseModel())) return;
      window.configureMachine({ 'kvasir.model': undefined });
      await window.openFile('src/inventory.ts', 26, 5);
      const hover = async () => {
        await window.runCommand('Kvasir: Trigger Completion');
        const text = await window.statusHover();
        await window.unhover();
        return text;
      };
      await expect.poll(hover, { timeout: PATIENCE, interval: 500 }).toContain('kvasir-starter');
      rmSync(noiseModel(), { recursive: true });
    }

    /**
     * Switches to a tiny model whose context holds one file. It follows instructions and writes noise. The built-in
     * model is loaded first, so that the status item shows when the engine has stopped for the new setting.
     */
    async function useNoiseModel(): Promise<void> {
      const window = editor();
      const model = noiseModel();
      if (existsSync(model)) return;
      await refuseEdit();
      await dismissToasts();
      await expect.poll(() => window.statusItem.textContent(), { timeout: PATIENCE }).toMatch(/B/);
      cpSync('test/fixtures/models/qwen3-tied-sharded', model, { recursive: true });
      const config = path.join(model, 'config.json');
      writeFileSync(
        config,
        JSON.stringify({ ...JSON.parse(readFileSync(config, 'utf8')), max_position_embeddings: 4096 }),
      );
      window.configureMachine({ 'kvasir.model': model });
      await expect.poll(() => window.statusItem.textContent(), { timeout: PATIENCE }).not.toMatch(/B/);
    }

    /** Asks the built-in model for an edit, which it refuses with a message. */
    async function refuseEdit(): Promise<void> {
      await editor().openFile('src/inventory.ts', 26, 5);
      await editor().runCommand('Kvasir: Edit Selection');
      await toast('kvasir-starter is too small to change code by instruction').waitFor();
    }

    /** Runs the command, which opens its own input. Returns that input once it is shown. */
    async function editSelection(): Promise<Locator> {
      const { page } = editor();
      await editor().runCommand('Kvasir: Edit Selection');
      await page.locator('.quick-input-title', { hasText: 'Kvasir: Edit' }).waitFor();
      return input();
    }

    /** Waits until the proposed edit is complete. */
    const proposed = () =>
      expect
        .poll(() => titleButton('Accept Edit').getAttribute('class'), { timeout: PATIENCE })
        .not.toContain('disabled');

    async function propose(instruction: string): Promise<void> {
      const asked = await editSelection();
      await setText(asked, instruction);
      await asked.press('Enter');
      await diff().waitFor();
      await proposed();
    }

    /** Opens the file itself. Its diff is open beside it under the same name. */
    async function openTheFile(name: string): Promise<void> {
      await editor().page.locator(`.tabs-container .tab[data-resource-name="${name}"]`).first().click();
      await diff().waitFor({ state: 'hidden' });
      await editor().page.locator('.editor-instance .monaco-editor.focused').waitFor();
    }

    test('Edit Selection does not ask the built-in model: one message says why and offers to choose another', async () => {
      const window = editor();
      await useBuiltIn();
      await dismissToasts();
      await refuseEdit();
      expect(await window.toasts()).toHaveLength(1);
      expect(await toast('too small').getByRole('button', { name: 'Choose Model' }).count()).toBe(1);
      expect(await input().isVisible()).toBe(false);
      await window.screenshot('edit-honest');
      await dismissToasts();
    });

    test.skipIf(!HAS_GIT)(
      'the button of the source control view does not ask the built-in model for a commit message',
      async () => {
        const window = editor();
        await useBuiltIn();
        await dismissToasts();
        await window.runCommand('Source Control: Focus on Changes View');
        // The view's buttons appear only under the mouse.
        await window.page.locator('.sidebar .pane-header', { hasText: 'Changes' }).hover();
        await commitButton().click();
        await toast('kvasir-starter is too small to write commit messages').waitFor();
        expect(await window.toasts()).toHaveLength(1);
        await window.screenshot('commit-honest');
        await dismissToasts();
      },
    );

    test('the input names the symbol, the new text streams into a diff, and Accept Edit applies it as one undo step', async () => {
      const window = editor();
      await useNoiseModel();
      await window.openFile('src/twice.ts', 2, 5);
      const asked = await editSelection();
      expect(await window.page.locator('.quick-input-title').textContent()).toContain('twice (lines 1 to 3)');
      await setText(asked, 'multiply instead');
      await window.screenshot('edit-instruction');
      await asked.press('Enter');
      await diff().waitFor();
      await proposed();
      await window.screenshotThemes('edit-diff');
      await titleButton('Accept Edit').click();
      await diff().waitFor({ state: 'detached' });
      const changed = await window.savedText('src/twice.ts');
      expect(changed).not.toBe(SHORT);
      expect(changed.endsWith('\n\nexport const four = twice(2);\n')).toBe(true);
      await window.press('Control+Z');
      expect(await window.savedText('src/twice.ts')).toBe(SHORT);
    });

    test('Reject Edit closes the diff and changes nothing', async () => {
      const window = editor();
      await useNoiseModel();
      await window.openFile('src/twice.ts', 2, 5);
      await propose('shorter');
      await titleButton('Reject Edit').click();
      await diff().waitFor({ state: 'detached' });
      expect(readFileSync(window.file('src/twice.ts'), 'utf8')).toBe(SHORT);
      expect(await window.page.locator('.tab.dirty').count()).toBe(0);
    });

    test('the edit follows changes elsewhere, and cannot be applied after a change of the same text until it is undone', async () => {
      const window = editor();
      await useNoiseModel();
      await window.openFile('src/double.ts', 2, 5);
      await propose('again');
      await openTheFile('double.ts');
      await window.goTo(1, 1);
      await window.type('// first\n');
      await window.goTo(3, 3);
      await window.type('x');
      await window.runCommand('Kvasir: Accept Edit');
      await toast('The text to replace has changed').waitFor();
      expect(await toast('has changed').getByRole('button', { name: 'Copy New Text' }).count()).toBe(1);
      await window.screenshot('edit-conflict');
      await dismissToasts();
      await openTheFile('double.ts');
      await window.press('Backspace');
      await window.runCommand('Kvasir: Accept Edit');
      await diff().waitFor({ state: 'detached' });
      const text = await window.savedText('src/double.ts');
      expect(text.startsWith('// first\n')).toBe(true);
      expect(text).not.toContain('return n + n');
      expect(text.endsWith('\n\nexport const four = twice(2);\n')).toBe(true);
    });

    test.skipIf(!HAS_GIT)(
      'a commit message about the staged files without secrets is written into the input box',
      async () => {
        const window = editor();
        await useNoiseModel();
        execFileSync('git', ['add', 'src/twice.ts', 'src/deploy.key'], { cwd: window.folder });
        await window.runCommand('Source Control: Focus on Changes View');
        await window.page.locator('.sidebar .pane-header', { hasText: 'Changes' }).hover();
        await commitButton().click();
        await toast('left out by kvasir.completion.exclude: src/deploy.key').waitFor();
        expect((await window.page.locator('.sidebar .scm-editor .view-lines').first().textContent())?.trim()).not.toBe(
          '',
        );
        await window.screenshot('commit-message');
        expect(window.problems).toEqual([]);
      },
    );
  },
);
