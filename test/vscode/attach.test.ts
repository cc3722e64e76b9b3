/**
 * Tests what can be attached to a question: from the explorer and editor menus, the "Add context" list and the light
 * bulb.
 */
import type { Locator } from 'playwright-core';
import { expect, test } from 'vitest';
import { PATIENCE, setText } from './editor.ts';
import { chooseFromMenu, openQuickFixes } from './menus.ts';
import { editorSuite, INVENTORY } from './suite.ts';

const FILES = {
  'src/inventory.ts': INVENTORY,
  'src/prices.ts': 'export function priceOf(id: string): number {\n  return id.length;\n}\n',
  'src/parts/half.ts': '/** Half of a number. */\nexport function half(n: number): number {\n  return n / 2;\n}\n',
  'src/wrong.ts': 'export const unit = 1;\n\nexport function total(): number {\n  return "none";\n}\n',
  'src/spelling.ts': 'const amount = 1;\nexport const twice = amout * 2;\n',
  'config.json': '{\n  "port": 80,\n}\n',
  'docs/notes.md': '# Notes\n',
};
const poll: typeof expect.poll = (get) => expect.poll(get, { timeout: PATIENCE / 2 });

editorSuite('attaching', FILES, (editor) => {
  const page = () => editor().page;
  const chat = () => editor().chat;
  const chips = () => chat().locator('[data-part="context"]');
  const names = () => chips().locator('.name').allInnerTexts();
  const questions = () => chat().locator('[data-role="user"]');
  const explorerRow = (name: string) =>
    page().locator(`.explorer-folders-view .monaco-list-row[aria-label^="${name}"]`);
  const pickerRow = (text: string | RegExp) => page().locator('.quick-input-list .monaco-list-row', { hasText: text });

  /** Starts an empty conversation to which only the active file is attached. */
  async function start(): Promise<void> {
    const window = editor();
    await window.openFile('src/inventory.ts', 1, 1);
    await window.runCommand('Kvasir: Open Chat');
    await window.runCommand('Kvasir: New Conversation');
    await window.chatIsEmpty();
    // Attached parts stay attached in a new conversation.
    for (const name of await names()) if (name !== 'inventory.ts') await takeOut(name);
    await poll(names).toEqual(['inventory.ts']);
  }

  async function addFromExplorer(name: string): Promise<void> {
    await explorerRow(name).click({ button: 'right' });
    await chooseFromMenu(page(), 'Add to Chat');
  }

  async function takeOut(...unwanted: string[]): Promise<void> {
    for (const name of unwanted)
      await chat()
        .getByRole('button', { name: `Remove ${name} from the question` })
        .click();
  }

  /** Opens the list of what can be attached. */
  async function openPicker(): Promise<Locator> {
    await chat().getByRole('button', { name: 'Add context' }).click();
    const input = page().locator('.quick-input-widget input[placeholder="Files, folders, open editors"]');
    await input.waitFor();
    return input;
  }

  /** Chooses an action from the light bulb at a place. Waits until the editor has found the problem there. */
  async function lightBulb(file: string, [line, column]: [number, number], action: string): Promise<void> {
    const window = editor();
    await window.openFile(file);
    await page().locator('.editor-instance :is(.squiggly-error, .squiggly-warning)').first().waitFor();
    await window.goTo(line, column);
    const rows = await openQuickFixes(page(), action);
    await window.screenshot(`light-bulb-${action.replace(/\W+/g, '-')}`);
    await rows.filter({ hasText: action }).click();
  }

  test('the explorer’s menu attaches a file and a folder', async () => {
    const window = editor();
    await start();
    await window.press('Control+Shift+E');
    await addFromExplorer('prices.ts');
    await poll(names).toEqual(['inventory.ts', 'prices.ts']);
    await window.press('Control+Shift+E');
    await addFromExplorer('parts');
    await poll(names).toEqual(['inventory.ts', 'prices.ts', 'parts']);
    expect(await chips().last().getAttribute('data-kind')).toBe('folder');
    await window.screenshot('attached-from-explorer');
    await takeOut('prices.ts', 'parts');
    await poll(names).toEqual(['inventory.ts']);
  });

  test('several files selected in the explorer are attached at once', async () => {
    const window = editor();
    await start();
    await window.press('Control+Shift+E');
    await explorerRow('wrong.ts').click();
    await explorerRow('prices.ts').click({ modifiers: ['Control'] });
    await addFromExplorer('prices.ts');
    await poll(async () => (await names()).sort()).toEqual(['prices.ts', 'wrong.ts']);
    await takeOut('prices.ts');
    await poll(names).toEqual(['wrong.ts']);
  });

  test('the editor’s menu attaches the selection, which stays attached when another file is active', async () => {
    const window = editor();
    await window.openFile('src/inventory.ts', 52, 1);
    for (let lines = 0; lines < 3; lines++) await window.press('Shift+ArrowDown');
    await window.press('Shift+F10');
    await chooseFromMenu(page(), 'Kvasir', 'Add to Chat');
    await poll(names).toEqual(expect.arrayContaining(['inventory.ts:52-54']));
    await window.openFile('src/prices.ts');
    await poll(names).toEqual(expect.arrayContaining(['prices.ts', 'inventory.ts:52-54']));
    await window.screenshot('attached-selection');
    await takeOut('inventory.ts:52-54');
  });

  test('in the list of "Add context" a name and Enter attach a file, a folder, the selection or all open editors', async () => {
    const window = editor();
    await start();
    await window.openFile('src/prices.ts', 1, 1);
    await window.runCommand('View: Keep Editor');
    await window.press('Shift+ArrowDown');
    await poll(names).toEqual(['prices.ts', 'prices.ts:1']);
    await takeOut('prices.ts:1');
    await poll(names).toEqual(['prices.ts']);
    for (const [query, row, attached] of [
      ['half', /half\.ts.*src\/parts/s, ['half.ts']],
      ['docs', /docs/, ['half.ts', 'docs']],
      ['selection', /Selection.*src\/prices\.ts:1/s, ['half.ts', 'docs', 'prices.ts:1']],
    ] as const) {
      await setText(await openPicker(), query);
      await pickerRow(row).first().waitFor();
      await window.screenshot(`attach-list-${query}`);
      await window.press('Enter');
      await poll(names).toEqual(['prices.ts', ...attached]);
    }
    await takeOut('half.ts', 'docs');
    await window.openFile('docs/notes.md');
    await setText(await openPicker(), 'All open');
    await window.screenshot('attach-list-open');
    await window.press('Enter');
    await poll(async () => (await names()).sort()).toEqual(expect.arrayContaining(['notes.md', 'prices.ts']));
    await takeOut('prices.ts');
  });

  test('a question without a file gets no invented answer; a click attaches an open file and asks again', async () => {
    const window = editor();
    await start();
    await takeOut('inventory.ts');
    const answer = await window.ask('What calls totalValue?');
    await poll(() => answer.innerText()).toMatch(/No file is attached/);
    await window.screenshot('attach-offers');
    await chat().locator('[data-part="offers"]').getByRole('button', { name: 'Attach inventory.ts' }).click();
    await poll(() => window.answers.last().innerText()).toContain('Nothing in src/inventory.ts uses totalValue.');
    expect(await questions().last().locator('.file').allInnerTexts()).toEqual(['inventory.ts']);
    await window.screenshot('attach-offered');
  });

  test('the source file stays attached while a preview is in front', async () => {
    const window = editor();
    await start();
    await window.runCommand('Kvasir: Explain Last Completion');
    await page().locator('.tab.active[data-resource-name="Last Completion.md"]').waitFor();
    await poll(names).toEqual(['inventory.ts']);
    await window.screenshot('attach-behind-preview');
  });

  test('Explain on a TypeScript problem asks with its message and the function around it', async () => {
    await lightBulb('src/wrong.ts', [4, 5], 'Kvasir: Explain');
    await poll(() => questions().last().innerText()).toMatch(
      /\/explain Type 'string' is not assignable to type 'number'\. \(line 4\)/,
    );
    expect(await questions().last().locator('.file').allInnerTexts()).toEqual(['wrong.ts', 'total']);
    await poll(() => editor().answers.last().getAttribute('data-state')).toBe('done');
    await editor().screenshot('light-bulb-explained');
  });

  test('a quick fix of the language comes before Kvasir’s', async () => {
    const window = editor();
    await window.openFile('src/spelling.ts');
    await page().locator('.editor-instance .squiggly-error').first().waitFor();
    await window.goTo(2, 24);
    const rows = await openQuickFixes(page(), 'Kvasir: Fix');
    await window.screenshot('light-bulb-order');
    const labels = (await rows.allInnerTexts()).map((label) => label.trim());
    await window.press('Escape');
    const own = labels.findIndex((label) => label.startsWith('Change spelling'));
    expect(own, labels.join(', ')).toBeGreaterThanOrEqual(0);
    expect(own, labels.join(', ')).toBeLessThan(labels.indexOf('Kvasir: Fix'));
  });

  test('Fix on a JSON problem asks with its message', async () => {
    await lightBulb('config.json', [2, 13], 'Kvasir: Fix');
    await poll(() => questions().last().innerText()).toMatch(/\/fix Trailing comma \(line 2\)/);
    await poll(() => editor().answers.last().getAttribute('data-state')).toBe('done');
    await editor().screenshot('light-bulb-fix');
  });

  test('no notification was shown', async () => {
    expect(await editor().toasts()).toEqual([]);
    expect(editor().problems).toEqual([]);
  });
});
