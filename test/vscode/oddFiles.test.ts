/**
 * Unusual files: 20,000 lines, one line of 5 MB, binary, renamed or deleted while in use; and a window reloaded during
 * an answer. No text is lost, no message appears, and the next request works.
 */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import type { Locator } from 'playwright-core';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { PATIENCE, setText } from './editor.ts';
import { editorSuite, INVENTORY } from './suite.ts';

// Python, because VS Code's TypeScript server would be busy with files of this size.
const LINES = Array.from(
  { length: 20_000 },
  (_, i) => `def value${i}(a, b): return ${i === 9999 ? '' : `a * ${i} + b`}`,
).join('\n');
const LINE = `data = [${Array.from({ length: 800_000 }, (_, i) => i)
  .join(',')
  .slice(0, 5_000_000)}]\nclass Stack:\n    def __init__(self):\n        self.items = \n`;
const FILES = {
  'src/inventory.ts': INVENTORY,
  'src/lines.py': LINES,
  'src/line.py': LINE,
  'src/moved.ts': INVENTORY,
  'src/gone.ts': INVENTORY,
};

editorSuite('odd files', FILES, (editor) => {
  const ended = (answer: Locator) => expect.poll(() => answer.getAttribute('data-state'), { timeout: 2 * PATIENCE });
  async function ask(question = 'What is this?'): Promise<string> {
    const answer = await editor().ask(question);
    await ended(answer).not.toBe('streaming');
    // A small model's text is checked and may be refused, and what it writes differs between processors.
    const insist = answer.getByRole('button', { name: 'Try anyway' });
    if (await insist.isVisible()) {
      await insist.click();
      await insist.waitFor({ state: 'detached' });
      await ended(answer).not.toBe('streaming');
    }
    return `${await answer.getAttribute('data-state')}: ${await answer.textContent()}`;
  }
  async function expectCompletion(): Promise<void> {
    await editor().runCommand('Kvasir: Trigger Completion');
    await expect.poll(() => editor().ghostText(), { timeout: PATIENCE }).not.toBe('');
    await editor().press('Escape');
    await expect.poll(() => editor().ghostText()).toBe('');
  }

  beforeAll(async () => {
    const window = editor();
    const picture = Array.from({ length: 20_000 }, (_, i) => (i * 7) % 256);
    writeFileSync(window.file('src/picture.bin'), Buffer.from(picture));
    await window.openFile('src/inventory.ts');
    await window.runCommand('Kvasir: Open Chat');
    // The chat takes the keyboard focus late, and an answer shows that it has it. The next keys must not be typed into
    // it.
    await window.ask('What is this?');
    await window.chat.locator('[data-role="assistant"][data-state="done"]').waitFor({ timeout: 2 * PATIENCE });
  });
  afterEach(async () => {
    expect(await editor().toasts()).toEqual([]);
    expect(editor().problems).toEqual([]);
  });

  test('a file of 20,000 lines gets a completion in its middle, and an answer names the lines that were not read', async () => {
    await editor().openFile('src/lines.py', 10_000, 29);
    await expectCompletion();
    expect(await ask()).toMatch(/^done: .*(?:left out|as outline)/s);
    await editor().screenshot('20000-lines');
    await editor().goTo(19_999, 1);
    await editor().type('# typed\n');
    expect(await editor().savedText('src/lines.py')).toBe(LINES.replace('def value19998(', '# typed\ndef value19998('));
  });

  test('a file with a line of 5 MB gets a completion below it, can be edited, and can be asked about', async () => {
    await editor().openFile('src/line.py', 4, 22);
    await editor().type('0');
    await editor().press('Backspace');
    await expectCompletion();
    expect(await ask()).toMatch(/^done: .*was not read/s);
    await editor().goTo(1, 1);
    await editor().type('# ');
    // The tab of so large a file is marked as saved before the file is written. A difference would fill the report.
    await expect
      .poll(async () => (await editor().savedText('src/line.py')) === `# ${LINE}`, { timeout: PATIENCE })
      .toBe(true);
  });

  test('with an active binary file, a question is answered without it', async () => {
    await editor().press('Control+P');
    const input = editor().page.locator('.quick-input-widget input');
    await setText(input, editor().file('src/picture.bin'));
    await editor().page.locator('.quick-input-list .monaco-list-row.focused', { hasText: 'picture.bin' }).waitFor();
    await input.press('Enter');
    await editor().page.locator('.tab.active[data-resource-name="picture.bin"]').waitFor();
    expect(await ask('What is a stack?')).toMatch(/^done/);
    await editor().press('Control+F4');
  });

  test('after a file in use is renamed or deleted, typed text stays and questions are answered', async () => {
    await editor().openFile('src/moved.ts');
    expect(await ask()).toMatch(/^done/);
    renameSync(editor().file('src/moved.ts'), editor().file('src/moved2.ts'));
    await editor().openFile('src/moved2.ts');
    expect(await ask()).toMatch(/^done/);

    await editor().openFile('src/gone.ts', 1, 1);
    await editor().type('// mine\n');
    expect(await ask()).toMatch(/^done/);
    rmSync(editor().file('src/gone.ts'));
    await editor().page.locator('.tab.active .strikethrough').waitFor();
    // The keyboard focus was in the chat, where the question was asked.
    await editor().goTo(2, 1);
    await editor().type('// more\n');
    expect(await ask()).toMatch(/^done/);
    expect(await editor().savedText('src/gone.ts')).toBe(`// mine\n// more\n${INVENTORY}`);
    expect(existsSync(editor().file('src/moved2.ts'))).toBe(true);
    expect(readFileSync(editor().file('src/moved2.ts'), 'utf8')).toBe(INVENTORY);
  });

  test('after a reload during an answer, the conversation is restored with a note and continues', async ({ task }) => {
    const window = editor();
    // With a file already read, an answer may be over before the test looks. This needs thousands of new tokens.
    const name = `anew${task.result?.retryCount ?? 0}`;
    writeFileSync(window.file(`src/${name}.py`), LINES.replaceAll('value', name));
    await window.openFile(`src/${name}.py`);
    const numAnswers = await window.answers.count();
    const answer = await window.ask('What is this file for?');
    expect(await answer.getAttribute('data-state')).toBe('streaming');
    // The question is being written to disk. On a busy machine this takes long.
    await window.page.waitForTimeout(500);
    await window.reload();
    await window.statusItem.waitFor();
    await expect.poll(() => window.answers.count(), { timeout: PATIENCE }).toBe(numAnswers + 1);
    await ended(window.answers.last()).not.toBe('streaming');
    await window.screenshot('reloaded');
    await window.openFile('src/inventory.ts');
    expect(await ask()).toMatch(/^done: ./);
  });
});
