/**
 * While switched off, Kvasir has no engine, no view, no requests and uses no processor time. Switched on, it works at
 * once.
 */
import { expect, test } from 'vitest';
import { PATIENCE } from './editor.ts';
import { cpuMs, engineLibraries, threadNames } from './processes.ts';
import { INVENTORY, ownEditorSuite } from './suite.ts';

ownEditorSuite('disabled', { 'src/inventory.ts': INVENTORY, 'src/other.ts': INVENTORY }, (editor) => {
  const engine = () => ({
    threads: threadNames(editor().extensionHost).filter((name) => /kvasir/i.test(name)),
    processes: engineLibraries(editor().extensionHost),
  });

  test('complaint: work when disabled. Typing starts no engine and shows nothing; no status bar item, view or command', async () => {
    const window = editor();
    await window.openFile('src/inventory.ts');
    window.configure({ 'kvasir.enable': false });
    await window.statusItem.waitFor({ state: 'hidden' });
    await window.goTo(37, 1);
    for (let words = 0; words < 12; words++) {
      await window.type('const a = ');
      expect(await window.ghostText()).toBe('');
    }
    expect(engine()).toEqual({ threads: [], processes: [] });
    expect(await window.page.locator('.activitybar .action-label[aria-label^="Kvasir"]').count()).toBe(0);
    // These words also match a command of VS Code. Once that command is listed, the list is complete for these words.
    await window.palette('>Clear C', '[aria-label^="Clear "]');
    expect(await window.page.locator('.quick-input-list .monaco-list-row[aria-label^="Kvasir: "]').count()).toBe(0);
    await window.press('Escape');
  });

  test('after switching on again, completions appear', async () => {
    const window = editor();
    window.configure({ 'kvasir.enable': true });
    await window.statusItem.waitFor();
    await window.openFile('src/other.ts');
    const line = INVENTORY.split('\n').findIndex((text) => text.includes('let total = 0;')) + 1;
    await window.goTo(line, 17);
    await window.type('0');
    await window.press('Backspace');
    await window.runCommand('Kvasir: Trigger Completion');
    await expect.poll(() => engine().threads.length, { timeout: PATIENCE }).toBeGreaterThan(0);
  });

  test('switching off during work stops the engine, and nothing uses the processor', async () => {
    const window = editor();
    window.configure({ 'kvasir.enable': false });
    await expect.poll(() => engine().threads, { timeout: PATIENCE }).toEqual([]);
    const used = async () => {
      const before = cpuMs(window.extensionHost).all;
      await window.page.waitForTimeout(2_000);
      return cpuMs(window.extensionHost).all - before;
    };
    // Other extensions share the host and may have work to finish. That takes minutes on a slow machine.
    await expect.poll(used, { timeout: 2.5 * PATIENCE }).toBeLessThanOrEqual(40);
    expect(window.problems).toEqual([]);
  });
});
