/** Ghost text as a user meets it: it appears while typing, Tab takes it, Escape does not, and it is what the command line says. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { PATIENCE } from './editor.ts';
import { editorSuite, INVENTORY } from './suite.ts';

const LINES = INVENTORY.split('\n');
/** 1-based line and column after the text, which occurs in one line only. */
function after(text: string): { line: number; column: number } {
  const index = LINES.findIndex((line) => line.includes(text));
  return { line: index + 1, column: (LINES[index] as string).indexOf(text) + text.length + 1 };
}

/** What `kvasir complete` prints at a position; one line break ends its output. */
async function commandLineCompletion(file: string, { line, column }: { line: number; column: number }): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, ['dist/cli.js', 'complete', '--file', file, '--line', String(line), '--column', String(column)]);
  return stdout.replace(/\n$/, '');
}

editorSuite('completion', { 'src/inventory.ts': INVENTORY, 'src/typed.ts': INVENTORY, '.env': 'TOKEN=secret\n' }, (editor) => {
  test('ghost text appears while typing, Escape dismisses it, Tab accepts exactly what it shows', async () => {
    const window = editor();
    const place = after('return entry ? entry.count : 0;');
    await window.openFile('src/typed.ts');
    await window.goTo(place.line, place.column);
    const typed = '    const value = ';
    await window.type(`\n${typed}`);
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).not.toBe('');
    await window.screenshot('ghost-text');

    await window.press('Escape');
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).toBe('');
    const before = LINES.toSpliced(place.line, 0, typed).join('\n');
    expect(await window.savedText('src/typed.ts')).toBe(before);

    // The editor may show the first part of a completion while the rest is decoded; the command line tells the whole.
    const whole = await commandLineCompletion(window.file('src/typed.ts'), { line: place.line + 1, column: typed.length + 1 });
    await window.runCommand('Kvasir: Trigger Completion');
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).toBe(whole);
    await window.press('Tab');
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).toBe('');
    expect(await window.editorText()).toContain(`${typed}${whole.split('\n')[0]}`);
    expect(await window.savedText('src/typed.ts')).toBe(before.replace(typed, () => typed + whole));
  });

  test('an excluded file gets none', async () => {
    const window = editor();
    await window.openFile('.env');
    await window.goTo(2, 1);
    await window.type('PASSWORD=');
    await window.runCommand('Kvasir: Trigger Completion');
    // An observation, not a wait for something.
    for (const end = performance.now() + 3_000; performance.now() < end; await window.page.waitForTimeout(100)) expect(await window.ghostText()).toBe('');
  });

  test.for([
    after('const entry = this.entries.get(article.id);'),
    after('let total = '),
    after('total += '),
    after('throw new OutOfStockError('),
  ])('ghost text at $line:$column is what `kvasir complete` prints', async (place) => {
    const window = editor();
    const expected = await commandLineCompletion(window.file('src/inventory.ts'), place);
    await window.openFile('src/inventory.ts');
    await window.goTo(place.line, place.column);
    await window.runCommand('Kvasir: Trigger Completion');
    await expect.poll(() => window.ghostText(), { timeout: PATIENCE }).toBe(expected);
  });
});
