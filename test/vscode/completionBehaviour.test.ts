/** Ghost text under a user's hands: typed through, followed by the next one, cycled, at several cursors, in a diff. */
import type { Locator } from 'playwright-core';
import { expect, test } from 'vitest';
import { PATIENCE } from './editor.ts';
import { editorSuite, INVENTORY } from './suite.ts';

/** The model's words at the places below; `completion.test.ts` compares such texts with the command line's. */
const GHOST = 'return this.entries.get(id);';
const METHOD = '\n  /** Whether there is any of an article. */\n  has(id: string): boolean {\n    ';

/** The sample with `text` behind `anchor`; the cursor goes behind `text`. */
function place(anchor: string, text: string, after: string): { content: string; line: number; column: number } {
  const at = INVENTORY.indexOf(anchor) + anchor.length;
  const before = INVENTORY.slice(0, at) + text;
  const lines = before.split('\n');
  return { content: before + after + INVENTORY.slice(at), line: lines.length, column: (lines.at(-1) as string).length + 1 };
}

const BODY = place('    return total;\n  }\n', METHOD, '\n  }\n');
const CONDITION = place("throw new RangeError('count must be positive');\n    }\n", '    if (', '\n    }\n');
const FILES = {
  'src/body.ts': BODY.content,
  'src/candidates.ts': BODY.content,
  'src/condition.ts': CONDITION.content,
  'src/cursors.ts': 'const first = \nconst second = \n',
  'src/left.ts': INVENTORY,
  'src/right.ts': BODY.content,
};

editorSuite('completion behaviour', FILES, (editor) => {
  const ghost = (text: string) => expect.poll(() => editor().ghostText(), { timeout: PATIENCE }).toBe(text);

  async function open(name: string, { line, column }: { line: number; column: number }): Promise<void> {
    await editor().openFile(name);
    await editor().goTo(line, column);
  }

  /** Runs a command that asks something: its list takes the palette's place. */
  async function runAsking(title: string, row: string): Promise<Locator> {
    const window = editor();
    await window.press('F1');
    const input = window.page.locator('.quick-input-widget input').first();
    await input.fill(`>${title}`);
    await window.page.locator(`.quick-input-list .monaco-list-row.focused[aria-label^="${title}"]`).waitFor();
    await input.press('Enter');
    const first = window.page.locator('.quick-input-list .monaco-list-row', { hasText: row }).first();
    await first.waitFor();
    return first;
  }

  test('typed through, the rest stays', async () => {
    const window = editor();
    await open('src/body.ts', BODY);
    await window.runCommand('Kvasir: Trigger Completion');
    await ghost(GHOST);
    await window.type('return this.');
    await ghost('entries.get(id);');
    await window.screenshot('typed-through');
  });

  test('accepted, the next one is there', async () => {
    const window = editor();
    await open('src/condition.ts', CONDITION);
    await window.runCommand('Kvasir: Trigger Completion');
    await ghost('count <= 0)');
    // A user reads; meanwhile the next is computed.
    await window.page.waitForTimeout(1500);
    await window.press('Tab');
    await ghost(' {');
    await window.screenshot('next-one');
  });

  test('asked for by hand there are several, and Alt+] goes from one to the next', async () => {
    const window = editor();
    await open('src/candidates.ts', BODY);
    await window.runCommand('Kvasir: Trigger Completion');
    await ghost(GHOST);
    await window.press('Alt+BracketRight');
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).not.toBe(GHOST);
    const second = await window.ghostText();
    expect(second).not.toBe('');
    await window.screenshot('second-candidate');
    await window.press('Alt+BracketLeft');
    await ghost(GHOST);
  });

  test('with several cursors the same text is shown and taken at each', async () => {
    const window = editor();
    await open('src/cursors.ts', { line: 1, column: 15 });
    await window.press('Shift+Alt+ArrowDown');
    await window.press('End');
    await window.runCommand('Kvasir: Trigger Completion');
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).not.toBe('');
    const shown = await window.ghostText();
    await window.screenshot('several-cursors');
    await window.press('Tab');
    await window.press('Escape');
    expect(await window.savedText('src/cursors.ts')).toBe(`const first = ${shown}\nconst second = ${shown}\n`);
  });

  test('on the right side of a diff', async () => {
    const window = editor();
    await window.openFile('src/left.ts');
    await runAsking('File: Compare Active File With...', 'left.ts');
    const input = window.page.locator('.quick-input-widget input').first();
    await input.fill('right.ts');
    await window.page.locator('.quick-input-list .monaco-list-row.focused[aria-label^="right.ts"]').waitFor();
    await input.press('Enter');
    await window.page.locator('.monaco-diff-editor .editor.modified .monaco-editor.focused').waitFor();
    await window.goTo(BODY.line, BODY.column);
    await window.runCommand('Kvasir: Trigger Completion');
    await expect.poll(() => window.page.locator('.editor.modified .ghost-text-decoration').allInnerTexts(), { timeout: PATIENCE }).not.toEqual([]);
    await window.screenshot('diff');
  });
});
