/** Ghost text under a user's hands: typing through it, deleting back, taking it in parts, cycling, with the suggestion list, several cursors, and where it is switched off. */
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
const NOTEBOOK = {
  cells: [
    { cell_type: 'code', execution_count: null, metadata: {}, outputs: [], source: ['for item in load():\n', '    print(item)\n', 'for item in more()'] },
    { cell_type: 'code', execution_count: null, metadata: {}, outputs: [], source: ['total = 0\n'] },
  ],
  metadata: { language_info: { name: 'python' } },
  nbformat: 4,
  nbformat_minor: 2,
};
const FILES = {
  'src/body.ts': BODY.content,
  'src/parts.ts': BODY.content,
  'src/candidates.ts': BODY.content,
  'src/list.ts': BODY.content,
  'src/closed.ts': BODY.content,
  'src/closing.ts': BODY.content,
  'src/cursors.ts': 'const first = \nconst second = \n',
  'src/condition.ts': CONDITION.content,
  'src/off.ts': BODY.content,
  'src/language.ts': BODY.content,
  // Set in the folder, it is changed there; the user's own settings are those of all windows. The files are nearly one: what stands in
  // others that are open, unfinished, would be said here.
  '.vscode/settings.json': JSON.stringify({ 'kvasir.completion.languages': ['*'], 'kvasir.completion.snippets': false }),
  'src/left.ts': INVENTORY,
  'src/right.ts': BODY.content,
  'notes.ipynb': JSON.stringify(NOTEBOOK),
};

editorSuite('completion behaviour', FILES, (editor) => {
  const ghost = (text: string | RegExp) => (typeof text === 'string' ? expect.poll(() => editor().ghostText(), { timeout: PATIENCE }).toBe(text) : expect.poll(() => editor().ghostText(), { timeout: PATIENCE }).toMatch(text));

  async function open(name: string, { line, column }: { line: number; column: number }): Promise<void> {
    await editor().openFile(name);
    await editor().goTo(line, column);
  }

  /** The page that says where the last completion came from; it stays in front. */
  async function explanation(): Promise<string> {
    const window = editor();
    await window.runCommand('Kvasir: Explain Last Completion');
    await window.page.locator('.tab.active[data-resource-name="Last Completion.md"]').waitFor();
    await expect.poll(() => window.editorText(), { timeout: PATIENCE }).toMatch(/Time: /);
    return await window.editorText();
  }

  test('typed through it stays and asks the engine for nothing; deleted back it is whole again', async () => {
    const window = editor();
    await open('src/body.ts', BODY);
    await window.runCommand('Kvasir: Trigger Completion');
    await ghost(GHOST);
    await window.type('return this.');
    await ghost('entries.get(id);');
    await window.screenshot('typed-through');
    // VS Code trims what it shows by itself and asks only after a pause of its own.
    await window.page.waitForTimeout(1500);
    expect(await explanation()).toContain('typed as suggested');
    await open('src/body.ts', { line: BODY.line, column: BODY.column + 'return this.'.length });
    for (let i = 0; i < 5; i++) await window.press('Backspace');
    await ghost('this.entries.get(id);');
    await window.page.waitForTimeout(1500);
    expect(await explanation()).toMatch(/typed as suggested|a past completion/);
  });

  test('taken word by word, the rest stays; Tab takes the rest', async () => {
    const window = editor();
    await open('src/parts.ts', BODY);
    await window.runCommand('Kvasir: Trigger Completion');
    await ghost(GHOST);
    await window.press('Control+ArrowRight');
    await ghost(GHOST.slice('return'.length));
    await window.press('Control+ArrowRight');
    await ghost(GHOST.slice('return '.length));
    await window.screenshot('word-by-word');
    await window.press('Tab');
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).toBe('');
    expect(await window.savedText('src/parts.ts')).toBe(BODY.content.replace(METHOD, METHOD + GHOST));
  });

  test('accepted, the next one is there, computed ahead', async () => {
    const window = editor();
    await open('src/condition.ts', CONDITION);
    await window.runCommand('Kvasir: Trigger Completion');
    await ghost('count <= 0)');
    // Asked for by hand while the first is on the screen, the same; meanwhile the next is computed.
    await window.page.waitForTimeout(1500);
    await window.press('Tab');
    await ghost(' {');
    await window.screenshot('next-one');
    expect(await explanation()).toContain('computed ahead');
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

  test('goes on from the suggestion that is selected in the list', async () => {
    const window = editor();
    await open('src/list.ts', BODY);
    await window.type('return this.ent');
    await window.press('Control+Space');
    const list = window.page.locator('.suggest-widget.visible .monaco-list-row.focused');
    await list.waitFor();
    await expect.poll(() => list.innerText(), { timeout: PATIENCE }).toContain('entries');
    // By itself the model would write "ities"; the list decides. Its own part is drawn apart from the rest.
    const drawn = async () => (await window.page.locator('.editor-instance .view-line').allInnerTexts()).join('\n').replaceAll('\u00a0', ' ');
    await expect.poll(drawn, { timeout: PATIENCE }).toContain('return this.entries.get(id);');
    await window.screenshot('with-list');
    await window.press('Tab');
    await list.waitFor({ state: 'detached' });
    await ghost('.get(id);');
    await window.press('Tab');
    await expect.poll(() => window.editorText(), { timeout: PATIENCE }).toContain('return this.entries.get(id);');
  });

  test('a bracket that the editor closed by itself is not there twice, be the completion typed through or asked for inside', async () => {
    const window = editor();
    window.configure({ 'editor.autoClosingBrackets': 'languageDefined' });
    await open('src/closed.ts', BODY);
    await window.runCommand('Kvasir: Trigger Completion');
    await ghost(GHOST);
    await window.type('return this.entries.get(');
    await expect.poll(() => window.editorText(), { timeout: PATIENCE }).toContain('return this.entries.get()');
    await ghost('id;');
    await window.screenshot('closed-bracket');
    await window.press('Tab');
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).toBe('');
    expect(await window.savedText('src/closed.ts')).toBe(BODY.content.replace(METHOD, METHOD + GHOST));

    await open('src/closing.ts', BODY);
    await window.type('const known = this.entries.get(');
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).not.toBe('');
    await window.screenshot('closed-bracket-asked');
    await window.press('Tab');
    expect(await window.savedText('src/closing.ts')).toMatch(/\n {4}const known = this\.entries\.get\([^()]+\)\S*\n/);
    window.configure({ 'editor.autoClosingBrackets': undefined });
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

  test('in an untitled file', async () => {
    const window = editor();
    await window.press('Control+Alt+N');
    await window.page.locator('.tab.active', { hasText: 'Untitled-1' }).waitFor();
    await window.type('items = load()\nfor item in items');
    await window.runCommand('Kvasir: Trigger Completion');
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).not.toBe('');
  });

  test('snoozed, none comes by itself, and the reason is told; ended, they come again', async () => {
    const window = editor();
    await open('src/off.ts', { line: BODY.line, column: BODY.column });
    const minutes = await editor().runPicker('Kvasir: Snooze Completions', '15 minutes');
    await window.screenshot('snooze');
    await minutes.click();
    await window.page.locator('.quick-input-widget').waitFor({ state: 'hidden' });
    await window.type('r');
    await window.page.waitForTimeout(1000);
    expect(await window.ghostText()).toBe('');
    expect(await explanation()).toContain('completions are snoozed');
    await window.runCommand('Kvasir: End Snooze');
    await open('src/off.ts', { line: BODY.line, column: BODY.column + 1 });
    await window.type('eturn this.');
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).not.toBe('');
  });

  test('switched off for the language, and on again', async () => {
    const window = editor();
    await open('src/language.ts', BODY);
    await window.runCommand('Kvasir: Turn Completions On or Off for This Language');
    await expect.poll(() => window.toasts(), { timeout: PATIENCE }).toEqual([expect.stringContaining('completions are off for typescript')]);
    await window.screenshot('language-off');
    await window.runCommand('Kvasir: Trigger Completion');
    await window.page.waitForTimeout(1000);
    expect(await window.ghostText()).toBe('');
    expect(await explanation()).toContain('kvasir.completion.languages');
    await open('src/language.ts', BODY);
    await window.runCommand('Kvasir: Turn Completions On or Off for This Language');
    await expect.poll(async () => (await window.toasts()).join(), { timeout: PATIENCE }).toContain('completions are on for typescript');
    await window.runCommand('Kvasir: Trigger Completion');
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).not.toBe('');
  });

  test('on the right side of a diff', async () => {
    const window = editor();
    await window.openFile('src/left.ts');
    await editor().runPicker('File: Compare Active File With...', 'left.ts');
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

  test('in a notebook cell', async () => {
    const window = editor();
    await window.press('Control+P');
    const input = window.page.locator('.quick-input-widget input');
    await input.fill(window.file('notes.ipynb'));
    await window.page.locator('.quick-input-list .monaco-list-row.focused[aria-label^="notes.ipynb"]').waitFor();
    await input.press('Enter');
    const cell = window.page.locator('.notebookOverlay .cell-editor-part .monaco-editor').first();
    await cell.waitFor();
    await cell.click();
    await window.press('Control+End');
    await window.type(':\n    ');
    await expect.poll(() => window.page.locator('.notebookOverlay .ghost-text-decoration').count(), { timeout: PATIENCE }).toBeGreaterThan(0);
    await window.screenshot('notebook');
  });
});
