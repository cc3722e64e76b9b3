/**
 * Ghost text in the editor: it appears while typing, Tab accepts it, Escape dismisses it, and it equals the command
 * line's output.
 */
import { expect, test } from 'vitest';
import { PATIENCE } from './editor.ts';
import { commandLineCompletion, cursorOf, insertion, type Place, unfinishedLine } from './places.ts';
import { editorSuite } from './suite.ts';

const NEW_METHOD = '\n  /** Whether there is any of an article. */\n  has(id: string): boolean {';
const STUB = insertion('    return total;\n  }\n', NEW_METHOD, '\n  }\n');
/** Places at which the built-in model suggests text on the cursor's line and below it. */
const PLACES: Record<string, Place> = {
  'rest-of-line.ts': unfinishedLine('let total = '),
  'arguments.ts': unfinishedLine('super('),
  'statement.ts': insertion('    return total;\n  }\n', `${NEW_METHOD}\n    `, '\n  }\n'),
  'condition.ts': insertion("throw new RangeError('count must be positive');\n    }\n", '    if (', '\n    }\n'),
};
/** The start of a block that the model fills with several lines. */
const BODY = insertion(
  '    return total;\n  }\n',
  '\n  /** Sets the number of an article. */\n  set(article: Article, count: number): void {',
  '\n  }\n',
);
/** The place in the file that is excluded by its name. */
const EXCLUDED = PLACES['arguments.ts'] as Place;
const FILES = Object.fromEntries(
  Object.entries(PLACES).map(([name, { before, after }]) => [`src/${name}`, before + after]),
);

// Copying from other files is tested in copying.test.ts.
editorSuite(
  'completion',
  {
    '.vscode/settings.json': JSON.stringify({ 'kvasir.completion.snippets': false }),
    ...FILES,
    'src/typed.ts': STUB.before + STUB.after,
    'src/body.ts': BODY.before + BODY.after,
    'src/dismissed.ts': BODY.before + BODY.after,
    'src/secret.key': EXCLUDED.before + EXCLUDED.after,
  },
  (editor) => {
    // The first completion is requested before the engine exists. It must appear once the model is loaded.
    test.for(Object.entries(PLACES))('ghost text in %s is what `kvasir complete` prints', async ([name, place]) => {
      const window = editor();
      const expected = await commandLineCompletion(window.file(`src/${name}`), place);
      expect(expected, 'choose a place where the model says something').not.toBe('');
      const { line, column } = cursorOf(place);
      await window.openFile(`src/${name}`, line, column);
      await window.runCommand('Kvasir: Trigger Completion');
      await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).toBe(expected);
    });

    test('ghost text appears while typing, Escape dismisses it, and Tab accepts exactly the shown text', async () => {
      const window = editor();
      const typed = { ...STUB, before: `${STUB.before}\n    ` };
      const start = cursorOf(STUB);
      await window.openFile('src/typed.ts', start.line, start.column);
      await window.type('\n    ');
      await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).not.toBe('');
      await window.screenshotThemes('ghost-text');

      await window.press('Escape');
      await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).toBe('');
      expect(await window.savedText('src/typed.ts')).toBe(typed.before + typed.after);

      // The editor may show the first part of a completion while the rest is decoded. The command line prints all of
      // it.
      const whole = await commandLineCompletion(window.file('src/typed.ts'), typed);
      await window.runCommand('Kvasir: Trigger Completion');
      await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).toBe(whole);
      await window.press('Tab');
      await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).toBe('');
      expect(await window.editorText()).toContain(`\n    ${whole}\n  }\n`);
      expect(await window.savedText('src/typed.ts')).toBe(typed.before + whole + typed.after);
    });

    test('after Escape a block that is still being written does not come back', async () => {
      const window = editor();
      const { line, column } = cursorOf(BODY);
      await window.openFile('src/dismissed.ts', line, column);
      // The file has not been read yet, so the completion comes late and in parts.
      await window.type('\n    ');
      await expect.poll(() => window.ghostText(), { timeout: PATIENCE, interval: 20 }).not.toBe('');
      await window.press('Escape');
      await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).toBe('');
      // Observes for three seconds; does not wait for an event.
      for (const end = performance.now() + 3_000; performance.now() < end; await window.page.waitForTimeout(100))
        expect(await window.ghostText()).toBe('');
    });

    test('a block is completed up to the closing bracket that already exists', async () => {
      const window = editor();
      const expected = await commandLineCompletion(window.file('src/body.ts'), BODY);
      expect(expected.split('\n').length, 'choose a place where the model writes several lines').toBeGreaterThan(3);
      const { line, column } = cursorOf(BODY);
      await window.openFile('src/body.ts', line, column);
      await window.runCommand('Kvasir: Trigger Completion');
      await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).toBe(expected);
      await window.screenshot('ghost-text-block');
      await window.press('Tab');
      await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).toBe('');
      expect(await window.savedText('src/body.ts')).toBe(BODY.before + expected + BODY.after);
    });

    test('an excluded file gets no completion, although the model would have one', async () => {
      const window = editor();
      expect(await commandLineCompletion(window.file('src/secret.key'), EXCLUDED)).not.toBe('');
      const { line, column } = cursorOf(EXCLUDED);
      await window.openFile('src/secret.key', line, column);
      await window.runCommand('Kvasir: Trigger Completion');
      // Observes for three seconds; does not wait for an event.
      for (const end = performance.now() + 3_000; performance.now() < end; await window.page.waitForTimeout(100))
        expect(await window.ghostText()).toBe('');
    });
  },
);
