/**
 * Checks that every contributed command is in the palette and in the menus that the manifest names. Runs the commands
 * that no other test runs.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { PATIENCE } from './editor.ts';
import { editorSuite, INVENTORY } from './suite.ts';

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as {
  contributes: { commands: { command: string; title: string }[] };
};
const words = JSON.parse(readFileSync('package.nls.json', 'utf8')) as Record<string, string>;
const titles = new Map(
  manifest.contributes.commands.map(({ command, title }) => [command, words[title.slice(1, -1)] ?? '']),
);

/**
 * Commands that the palette hides while there is no edit to accept, no snooze to end, no repository and no selection.
 */
const HIDDEN = [
  'kvasir.acceptEdit',
  'kvasir.rejectEdit',
  'kvasir.endSnooze',
  'kvasir.commitMessage',
  'kvasir.summarizeSelection',
];

const FILES = {
  'src/inventory.ts': INVENTORY,
  'src/other.ts': 'export const other = 1;\n',
  // With this the language command changes the folder's settings and not the user's.
  '.vscode/settings.json': '{"kvasir.completion.languages":["*"]}',
};

editorSuite('commands', FILES, (editor) => {
  /** Returns the explanation of a completion after a key at the start of a line. */
  async function explanation(line: number): Promise<string> {
    const window = editor();
    await window.openFile('src/inventory.ts', line, 1);
    await window.type('x');
    // The editor requests a completion a moment after a key. It requests none after the focus has moved to the palette.
    await window.page.waitForTimeout(500);
    await window.runCommand('Kvasir: Explain Last Completion');
    // The page replaces the file in the editor.
    await expect.poll(() => window.editorText(), { timeout: PATIENCE }).toContain('Last completion');
    return await window.editorText();
  }

  async function newConversation(): Promise<void> {
    await editor().runCommand('Kvasir: Open Chat');
    await editor().runCommand('Kvasir: New Conversation');
    await editor().chatIsEmpty();
  }

  /** Labels of the open menus, innermost last. */
  const menu = () => editor().page.locator('.monaco-menu .action-label');
  async function menuItems(): Promise<string[]> {
    await menu().first().waitFor();
    return (await menu().allInnerTexts()).map((text) => text.trim());
  }
  async function closeMenus(): Promise<void> {
    for (let presses = 0; presses < 4 && (await menu().count()); presses++) await editor().press('Escape');
    await menu().first().waitFor({ state: 'hidden' });
  }

  test('the palette offers exactly the commands that apply now', async () => {
    const window = editor();
    await window.openFile('src/inventory.ts', 37, 1);
    const input = await window.palette('>Kvasir: ', '[aria-label^="Kvasir"]');
    const rows = window.page.locator('.quick-input-list .monaco-list-row');
    const seen = new Set<string>();
    // The list draws only the rows that fit.
    for (let presses = 0; presses < titles.size + 5; presses++) {
      for (const label of await rows.evaluateAll((all) => all.map((row) => row.getAttribute('aria-label') ?? '')))
        seen.add(label.split(',')[0] as string);
      await input.press('ArrowDown');
    }
    await window.press('Escape');
    const expected = [...titles]
      .filter(([command]) => !HIDDEN.includes(command))
      .map(([, title]) => `Kvasir: ${title}`);
    // The editor adds one command for each view. It knows about a repository only after git has looked for one.
    const own = [...seen].filter(
      (label) =>
        label.startsWith('Kvasir: ') &&
        !/^Kvasir: Focus on/.test(label) &&
        label !== `Kvasir: ${titles.get('kvasir.commitMessage')}`,
    );
    expect(own.sort()).toEqual(expected.sort());
  });

  test('the editor’s context menu has a Kvasir menu with questions, summaries, edits and the chat', async () => {
    const window = editor();
    await window.openFile('src/inventory.ts', 59, 7);
    await window.press('Shift+F10');
    expect(await menuItems()).toContain('Kvasir');
    await menu()
      .filter({ hasText: /^Kvasir$/ })
      .hover();
    await expect
      .poll(menuItems)
      .toEqual(
        expect.arrayContaining(
          [
            'kvasir.explain',
            'kvasir.fix',
            'kvasir.tests',
            'kvasir.doc',
            'kvasir.summarizeFile',
            'kvasir.addToChat',
          ].map((command) => titles.get(command)),
        ),
      );
    await window.screenshot('editor-menu');
    await closeMenus();
  });

  test('the explorer’s context menu summarises a file or a folder and adds it to the chat', async () => {
    const window = editor();
    const row = (name: string) =>
      window.page.locator('.explorer-folders-view .monaco-list-row', { hasText: name }).first();
    // The explorer expands the folder of the active file.
    await window.openFile('src/inventory.ts');
    await window.press('Control+Shift+E');
    for (const [name, has, hasNot] of [
      ['inventory.ts', 'kvasir.summarizeFile', 'kvasir.summarizeFolder'],
      ['src', 'kvasir.summarizeFolder', 'kvasir.summarizeFile'],
    ] as const) {
      await row(name).click({ button: 'right' });
      const items = await menuItems();
      expect(items).toContain(titles.get(has));
      expect(items).toContain(titles.get('kvasir.addToChat'));
      expect(items).not.toContain(titles.get(hasNot));
      await closeMenus();
    }
  });

  test('the chat’s title has its buttons and its menu', async () => {
    const window = editor();
    await window.runCommand('Kvasir: Open Chat');
    await window.chat.getByRole('textbox', { name: 'Ask Kvasir' }).waitFor();
    const title = window.page.locator('.part.sidebar .composite.title');
    await title.hover();
    for (const command of ['kvasir.newChat', 'kvasir.showConversations'])
      expect(await title.locator(`.action-label[aria-label^="${titles.get(command)}"]`).count(), command).toBe(1);
    await title.locator(`.action-label[aria-label^="${titles.get('kvasir.showConversations')}"]`).click();
    await window.page.locator('.quick-input-widget .monaco-list-row').first().waitFor();
    await window.press('Escape');
    await title.hover();
    await title.locator('.action-label[aria-label*="More Actions"]').click();
    expect(await menuItems()).toEqual(
      expect.arrayContaining(
        ['kvasir.exportChat', 'kvasir.clearChat', 'kvasir.chooseModel', 'kvasir.showLog'].map((command) =>
          titles.get(command),
        ),
      ),
    );
    await closeMenus();
  });

  test('the editor’s title menu summarises the file', async () => {
    const window = editor();
    await window.openFile('src/inventory.ts');
    await window.page.locator('.tab.active').click({ button: 'right' });
    expect(await menuItems()).toContain(titles.get('kvasir.summarizeFile'));
    await closeMenus();
  });

  test.for(['kvasir.explain', 'kvasir.fix', 'kvasir.tests', 'kvasir.doc'])('%s asks in the chat', async (command) => {
    const window = editor();
    const questions = window.chat.locator('[data-role="user"]');
    await newConversation();
    await window.openFile('src/inventory.ts', 59, 7);
    await window.runCommand(`Kvasir: ${titles.get(command)}`);
    await expect.poll(() => questions.count(), { timeout: PATIENCE }).toBe(1);
    await expect
      .poll(() => window.answers.last().getAttribute('data-state'), { timeout: 2 * PATIENCE })
      .toMatch(/done|error/);
  });

  test('Kvasir: Add to Chat attaches the active file in addition', async () => {
    const window = editor();
    await window.openFile('src/other.ts');
    await window.runCommand('Kvasir: Add to Chat');
    await expect
      .poll(() => window.chat.locator('[data-part="context"]').innerText(), { timeout: PATIENCE })
      .toContain('other.ts');
    // The chat takes the keyboard focus. The next keys must not be typed into it.
    await expect
      .poll(
        () => window.chat.getByRole('textbox', { name: 'Ask Kvasir' }).evaluate((input) => input.matches(':focus')),
        { timeout: PATIENCE },
      )
      .toBe(true);
  });

  test('Kvasir: Summarize Selection summarises the selected lines', async () => {
    const window = editor();
    await newConversation();
    await window.openFile('src/inventory.ts');
    await window.press('Control+A');
    await window.page.locator('[id="status.editor.selection"]', { hasText: 'selected' }).waitFor();
    await window.runCommand('Kvasir: Summarize Selection');
    await expect.poll(() => window.answers.count(), { timeout: PATIENCE }).toBe(1);
    await expect.poll(() => window.answers.last().getAttribute('data-state'), { timeout: 2 * PATIENCE }).toBe('done');
  });

  test('Kvasir: Explain Last Completion opens a page with the reason', async () => {
    const window = editor();
    await window.openFile('src/inventory.ts', 37, 1);
    await window.runCommand('Kvasir: Trigger Completion');
    const page = async () => {
      await window.runCommand('Kvasir: Explain Last Completion');
      return await window.editorText();
    };
    await expect.poll(page, { timeout: PATIENCE, interval: 500 }).toMatch(/Last completion[\s\S]*inventory\.ts:37:1/);
  });

  test('Kvasir: Show Log opens the log, which contains no code', async () => {
    const window = editor();
    // The file up to `remove`, and the begin of another method.
    const begun = `${INVENTORY.split('\n').slice(0, 37).join('\n')}\n  has(id: string): boolean {\n    `;
    writeFileSync(window.file('src/begun.ts'), begun);
    await window.openFile('src/begun.ts', 39, 5);
    const panel = window.page.locator('.part.panel');
    await window.runCommand('Kvasir: Trigger Completion');
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).toMatch(/entries/);
    await window.runCommand('Kvasir: Show Log');
    await expect.poll(() => panel.locator('.title-actions').innerText(), { timeout: PATIENCE }).toContain('Kvasir');
    const drawn = async () => (await panel.locator('.view-lines').first().innerText()).replaceAll('\u00a0', ' ');
    await expect
      .poll(drawn, { timeout: PATIENCE })
      .toMatch(/\[info\] completion at src\/begun\.ts:39:5 \(explicit\): \d+ characters/);
    expect(await drawn()).not.toMatch(/OutOfStock|entries|count /);
    await window.runCommand('View: Hide Panel');
  });

  test('with kvasir.summary.hover off, hovers have no summary', async () => {
    const window = editor();
    const summary = window.page.locator('.monaco-hover .hover-row', { hasText: 'Summarize with Kvasir' });
    const hover = async () => {
      await window.press('Escape');
      await window.openFile('src/inventory.ts', 52, 4);
      await window.runCommand('Show or Focus Hover');
      await window.page.locator('.monaco-hover:visible', { hasText: 'count' }).first().waitFor();
      return await summary.count();
    };
    await expect.poll(hover, { timeout: PATIENCE, interval: 500 }).toBe(1);
    window.configure({ 'kvasir.summary.hover': false });
    await expect.poll(hover, { timeout: PATIENCE, interval: 500 }).toBe(0);
  });

  test('Kvasir: Snooze Completions stops automatic completions until Kvasir: End Snooze', async () => {
    const window = editor();
    await window.openFile('src/inventory.ts');
    await (await window.runPicker('Kvasir: Snooze Completions', /\d+ minutes/)).click();
    await expect.poll(() => explanation(37), { timeout: PATIENCE, interval: 500 }).toContain('completions are snoozed');
    await window.runCommand('Kvasir: End Snooze');
    await expect
      .poll(() => explanation(37), { timeout: PATIENCE, interval: 500 })
      .not.toContain('completions are snoozed');
  });

  test('Kvasir: Turn Completions On or Off for This Language switches them off and on again', async () => {
    const window = editor();
    await window.openFile('src/inventory.ts');
    const title = `Kvasir: ${titles.get('kvasir.toggleLanguage')}`;
    await window.runCommand(title);
    await expect
      .poll(() => explanation(37), { timeout: PATIENCE, interval: 500 })
      .toContain('the language is not in kvasir.completion.languages');
    await window.openFile('src/inventory.ts');
    await window.runCommand(title);
    await expect
      .poll(() => explanation(30), { timeout: PATIENCE, interval: 500 })
      .not.toContain('the language is not in kvasir.completion.languages');
  });

  test('no error was reported', () => {
    expect(editor().problems).toEqual([]);
  });
});
