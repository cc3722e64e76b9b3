/** Tests the language model provider. Another extension uses it through the editor's API (helpers/language-model). */
import { existsSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ModelText } from '../../engine/text/format/modelText.ts';
import { BUILT_IN, counted } from '../support/builtIn.ts';
import { type Editor, PATIENCE } from './editor.ts';
import { engineLibraries } from './processes.ts';
import { INVENTORY, ownEditorSuite } from './suite.ts';

interface Failure {
  languageModelError: boolean;
  code: string;
  message: string;
}

interface Used {
  count: number;
  countMessage: number;
  chunks: string[];
  cancelled: string | Failure;
  cancelMs: number;
  tooLong?: Failure;
  failure?: Failure;
}

async function written<T>(window: Editor, name: string): Promise<T> {
  await expect.poll(() => existsSync(window.file(name)), { timeout: PATIENCE }).toBe(true);
  return JSON.parse(readFileSync(window.file(name), 'utf8')) as T;
}

/** The context without the room for the model's answer and the chat template. */
const MAX_INPUT = BUILT_IN.contextTokens - BUILT_IN.manifest.chat.maxTokens - 64;

/** Whether the engine has loaded its runtime. */
const loaded = (window: Editor) => engineLibraries(window.extensionHost).length > 0;

ownEditorSuite('language model', { 'src/inventory.ts': INVENTORY }, (editor) => {
  /** VS Code's own chat view. */
  const chat = () => editor().page.locator('.part.auxiliarybar');

  test('VS Code’s own chat has the model selected from the start, without a sign-in and without loading it', async () => {
    const window = editor();
    await window.openFile('src/inventory.ts');
    await window.runCommand('Chat: Open Chat (Ask)');
    await chat().locator('.action-label', { hasText: 'kvasir-starter' }).waitFor();
    expect(loaded(window)).toBe(false);
  });

  test('the model is listed with its limits, and listing loads nothing', async () => {
    rmSync(editor().file('models.json'), { force: true });
    await editor().runCommand('Kvasir Test: List Models');
    const models = await written<Record<string, unknown>[]>(editor(), 'models.json');
    expect(models).toEqual([
      {
        id: 'kvasir-starter',
        vendor: 'kvasir',
        family: BUILT_IN.architecture,
        version: BUILT_IN.manifest.version,
        name: 'kvasir-starter',
        maxInputTokens: MAX_INPUT,
      },
    ]);
    expect(loaded(editor())).toBe(false);
  });

  test('another extension can count tokens, ask and cancel, and gets an error for a request that does not fit', async () => {
    rmSync(editor().file('used.json'), { force: true });
    await editor().runCommand('Kvasir Test: Use Model');
    const used = await written<Used>(editor(), 'used.json');
    expect(used.failure).toBeUndefined();
    const { tokenizer } = await ModelText.load(path.resolve('model'));
    const exact = tokenizer.encode('export class Inventory {\n  private readonly entries = new Map();\n}\n').length;
    expect([used.count, used.countMessage]).toEqual([exact, exact]);
    const answer = used.chunks.join('');
    console.log(
      `answer in ${used.chunks.length} parts: ${JSON.stringify(answer)}; cancelled after ${used.cancelMs} ms: ${JSON.stringify(used.cancelled)}`,
    );
    expect(answer.trim()).not.toBe('');
    // Answers arrive in parts. VS Code collects them for 30 ms.
    expect(used.chunks.length).toBeGreaterThan(1);
    expect(used.tooLong).toMatchObject({
      languageModelError: true,
      message: expect.stringMatching(
        new RegExp(`^The request takes [\\d,]+ tokens, but kvasir-starter reads ${counted(MAX_INPUT)}\\.$`),
      ),
    });
    expect(loaded(editor())).toBe(true);
  });

  test('@kvasir in VS Code’s own chat answers about the active file', async () => {
    const window = editor();
    await chat().locator('.interactive-input-part .monaco-editor').first().click();
    await window.type('@kvasir What does `totalValue` return?');
    await window.press('Enter');
    await expect
      .poll(() => chat().locator('.interactive-response').innerText(), { timeout: PATIENCE })
      .toContain('totalValue returns number');
    await window.screenshotThemes('vscode-chat');
  });

  test('none of these requests showed the user a notification', async () => {
    expect(await editor().toasts()).toEqual([]);
  });
});
