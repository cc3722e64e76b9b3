/**
 * Ghost text during editing: typing through it, deleting back, accepting parts, cycling, the suggestion list, several
 * cursors, and switching it off.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { beforeAll, expect, test } from 'vitest';
import { PATIENCE, setText } from './editor.ts';
import { commandLineCompletion, cursorOf, insertion, type Place } from './places.ts';
import { ownServer } from './ownServer.ts';
import { editorSuite, INVENTORY } from './suite.ts';

const METHOD = '\n  /** Whether an article is in stock. */\n  has(id: string): boolean {\n    ';

const place = (anchor: string, text: string, after: string) => {
  const found = insertion(anchor, text, after);
  return { ...found, ...cursorOf(found), content: found.before + found.after };
};
const BODY = place('    return total;\n  }\n', METHOD, '\n  }\n');
const CONDITION = place("throw new RangeError('count must be positive');\n    }\n", '    if (', '\n    }\n');
/** The text typed before the suggestion list opens, and the entry selected in it. */
const [TYPED, SELECTED] = ['return this.ent', 'return this.entries'];
const NOTEBOOK = {
  cells: [
    {
      cell_type: 'code',
      execution_count: null,
      metadata: {},
      outputs: [],
      source: ['for item in load():\n', '    print(item)\n', 'for item in more()'],
    },
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
  'src/off.ts': BODY.content,
  'src/language.ts': BODY.content,
  // The command changes this setting where it is set. It is set in the folder, because the user's settings apply to all
  // windows. The files are nearly identical: unfinished text in other open files would be copied here.
  '.vscode/settings.json': JSON.stringify({
    'kvasir.completion.languages': ['*'],
    'kvasir.completion.snippets': false,
  }),
  'src/left.ts': INVENTORY,
  'src/right.ts': BODY.content,
  'notes.ipynb': JSON.stringify(NOTEBOOK),
};

editorSuite('completion behaviour', FILES, (editor) => {
  const ghost = (text: string) => expect.poll(() => editor().ghostText(), { timeout: PATIENCE }).toBe(text);

  /** The command line's completions at the places above. `completion.test.ts` compares such texts with ghost text. */
  let said: { body: string; listed: string; condition: string; next: string };
  /**
   * Parts of the first completion: the text up to a place within it, the word before that place, and the text up to its
   * opening bracket.
   */
  let parts: { typed: string; word: string; opened: string };
  beforeAll(async () => {
    if (typeof ownServer() === 'string') return;
    const at = async ({ before, after }: Place) => {
      writeFileSync(editor().file('src/asked.ts'), before + after);
      return await commandLineCompletion(editor().file('src/asked.ts'), { before, after });
    };
    const condition = await at(CONDITION);
    said = {
      body: await at(BODY),
      listed: await at({ ...BODY, before: BODY.before + SELECTED }),
      condition,
      next: await at({ ...CONDITION, before: CONDITION.before + condition }),
    };
    rmSync(editor().file('src/asked.ts'));
    expect(said, 'choose places where the model says something').toEqual({
      body: expect.stringMatching(/^\w+ \w+\.[^()]+\([^()]+\);$/),
      listed: expect.stringMatching(/./),
      condition: expect.stringMatching(/./),
      next: expect.stringMatching(/./),
    });
    const [typed = '', word = ''] = /^\w+ (\w+\.)/.exec(said.body) ?? [];
    parts = { typed, word, opened: said.body.slice(0, said.body.indexOf('(') + 1) };
  });

  async function open(name: string, { line, column }: { line: number; column: number }): Promise<void> {
    await editor().openFile(name, line, column);
  }

  /** Opens the page that explains the last completion. The page stays in front. */
  async function explanation(): Promise<string> {
    const window = editor();
    await window.runCommand('Kvasir: Explain Last Completion');
    await window.page.locator('.tab.active[data-resource-name="Last Completion.md"]').waitFor();
    await expect.poll(() => window.editorText(), { timeout: PATIENCE }).toMatch(/Time: /);
    return await window.editorText();
  }

  test('ghost text stays while it is typed through, without a request, and is whole again after deleting back', async () => {
    const window = editor();
    await open('src/body.ts', BODY);
    await window.runCommand('Kvasir: Trigger Completion');
    await ghost(said.body);
    await window.type(parts.typed);
    await ghost(said.body.slice(parts.typed.length));
    await window.screenshot('typed-through');
    // VS Code itself shortens the text that it shows. It requests a new completion only after a pause.
    await window.page.waitForTimeout(1500);
    expect(await explanation()).toContain('typed as suggested');
    await open('src/body.ts', { line: BODY.line, column: BODY.column + parts.typed.length });
    for (const _ of parts.word) await window.press('Backspace');
    await ghost(said.body.slice(parts.typed.length - parts.word.length));
    await window.page.waitForTimeout(1500);
    expect(await explanation()).toMatch(/typed as suggested|a past completion/);
  });

  test('after accepting a word the rest stays, and Tab accepts the rest', async () => {
    const window = editor();
    await open('src/parts.ts', BODY);
    await window.runCommand('Kvasir: Trigger Completion');
    await ghost(said.body);
    await window.press('Control+ArrowRight');
    await ghost(said.body.slice(said.body.indexOf(' ')));
    await window.press('Control+ArrowRight');
    await ghost(said.body.slice(said.body.indexOf(' ') + 1));
    await window.screenshot('word-by-word');
    await window.press('Tab');
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).toBe('');
    expect(await window.savedText('src/parts.ts')).toBe(BODY.before + said.body + BODY.after);
  });

  test('after an acceptance the next completion is shown at once, computed ahead', async ({ task }) => {
    const window = editor();
    // A second attempt needs a file without the text of the first.
    const file = `src/condition${task.result?.retryCount ?? 0}.ts`;
    writeFileSync(window.file(file), CONDITION.content);
    await open(file, CONDITION);
    await window.runCommand('Kvasir: Trigger Completion');
    await ghost(said.condition);
    // Requested by hand while the same completion is on the screen. Meanwhile the next one is computed.
    await window.page.waitForTimeout(4000);
    await window.press('Tab');
    await ghost(said.next);
    await window.screenshot('next-one');
    expect(await explanation()).toContain('computed ahead');
  });

  test('a request by hand gives several candidates, and Alt+] cycles through them', async () => {
    const window = editor();
    await open('src/candidates.ts', BODY);
    await window.runCommand('Kvasir: Trigger Completion');
    await ghost(said.body);
    await window.press('Alt+BracketRight');
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).not.toBe(said.body);
    const second = await window.ghostText();
    expect(second).not.toBe('');
    await window.screenshot('second-candidate');
    await window.press('Alt+BracketLeft');
    await ghost(said.body);
  });

  test('ghost text continues the suggestion selected in the list', async () => {
    const window = editor();
    await open('src/list.ts', BODY);
    await window.type(TYPED);
    await window.press('Control+Space');
    const list = window.page.locator('.suggest-widget.visible .monaco-list-row.focused');
    await list.waitFor();
    await expect.poll(() => list.innerText(), { timeout: PATIENCE }).toContain('entries');
    // Without the list the model may write another word; the list decides. The entry's own part is drawn separately.
    const drawn = async () =>
      (await window.page.locator('.editor-instance .view-line').allInnerTexts()).join('\n').replaceAll('\u00a0', ' ');
    await expect.poll(drawn, { timeout: PATIENCE }).toContain(SELECTED + said.listed);
    await window.screenshot('with-list');
    await window.press('Tab');
    await list.waitFor({ state: 'detached' });
    await ghost(said.listed);
    await window.press('Tab');
    await expect.poll(() => window.editorText(), { timeout: PATIENCE }).toContain(SELECTED + said.listed);
  });

  test('a bracket that the editor closed automatically is not duplicated', async () => {
    const window = editor();
    window.configure({ 'editor.autoClosingBrackets': 'languageDefined' });
    await open('src/closed.ts', BODY);
    await window.runCommand('Kvasir: Trigger Completion');
    await ghost(said.body);
    await window.type(parts.opened);
    await expect.poll(() => window.editorText(), { timeout: PATIENCE }).toContain(`${parts.opened})`);
    await ghost(said.body.slice(parts.opened.length).replace(')', ''));
    await window.screenshot('closed-bracket');
    await window.press('Tab');
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).toBe('');
    expect(await window.savedText('src/closed.ts')).toBe(BODY.before + said.body + BODY.after);

    await open('src/closing.ts', BODY);
    await window.type('const known = this.entries.get(');
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).not.toBe('');
    await window.screenshot('closed-bracket-asked');
    await window.press('Tab');
    expect(await window.savedText('src/closing.ts')).toMatch(/\n {4}const known = this\.entries\.get\([^()]+\)\S*\n/);
    window.configure({ 'editor.autoClosingBrackets': undefined });
  });

  test('with several cursors the same text is shown and accepted at each', async () => {
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

  test('an untitled file gets completions', async () => {
    const window = editor();
    await window.press('Control+Alt+N');
    await window.page.locator('.tab.active', { hasText: 'Untitled-1' }).waitFor();
    await window.type('items = load()\nfor item in items');
    await window.runCommand('Kvasir: Trigger Completion');
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).not.toBe('');
  });

  test('while snoozed no automatic completion appears, with the reason; afterwards they appear again', async () => {
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

  test('completions can be switched off for a language, and on again', async () => {
    const window = editor();
    await open('src/language.ts', BODY);
    await window.runCommand('Kvasir: Turn Completions On or Off for This Language');
    await expect
      .poll(() => window.toasts(), { timeout: PATIENCE })
      .toEqual([expect.stringContaining('completions are off for typescript')]);
    await window.screenshot('language-off');
    await window.runCommand('Kvasir: Trigger Completion');
    await window.page.waitForTimeout(1000);
    expect(await window.ghostText()).toBe('');
    expect(await explanation()).toContain('kvasir.completion.languages');
    await open('src/language.ts', BODY);
    await window.runCommand('Kvasir: Turn Completions On or Off for This Language');
    await expect
      .poll(async () => (await window.toasts()).join(), { timeout: PATIENCE })
      .toContain('completions are on for typescript');
    await window.runCommand('Kvasir: Trigger Completion');
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).not.toBe('');
  });

  test('the right side of a diff gets completions', async () => {
    const window = editor();
    await window.openFile('src/left.ts');
    await editor().runPicker('File: Compare Active File With...', 'left.ts');
    const input = window.page.locator('.quick-input-widget input').first();
    await setText(input, 'right.ts');
    await window.page.locator('.quick-input-list .monaco-list-row.focused[aria-label^="right.ts"]').waitFor();
    await input.press('Enter');
    await window.page.locator('.monaco-diff-editor .editor.modified .monaco-editor.focused').waitFor();
    await window.goTo(BODY.line, BODY.column);
    await window.runCommand('Kvasir: Trigger Completion');
    await expect
      .poll(() => window.page.locator('.editor.modified .ghost-text-decoration').allInnerTexts(), { timeout: PATIENCE })
      .not.toEqual([]);
    await window.screenshot('diff');
  });

  test('a notebook cell gets completions', async () => {
    const window = editor();
    await window.press('Control+P');
    const input = window.page.locator('.quick-input-widget input');
    await setText(input, window.file('notes.ipynb'));
    await window.page.locator('.quick-input-list .monaco-list-row.focused[aria-label^="notes.ipynb"]').waitFor();
    await input.press('Enter');
    const cell = window.page.locator('.notebookOverlay .cell-editor-part .monaco-editor').first();
    await cell.waitFor();
    await cell.click();
    await window.press('Control+End');
    await window.type(':\n    ');
    await expect
      .poll(() => window.page.locator('.notebookOverlay .ghost-text-decoration').count(), { timeout: PATIENCE })
      .toBeGreaterThan(0);
    await window.screenshot('notebook');
  });
});
