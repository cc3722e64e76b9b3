/** What the extension loads before the first request, and that nothing of it remains after its window closes. */
import { expect, test } from 'vitest';
import { PATIENCE } from './editor.ts';
import { engineLibraries, isAlive, threadNames } from './processes.ts';
import { editorSuite, INVENTORY } from './suite.ts';

/** Kvasir's threads (by the name that Kvasir gives them) and its native library in the extension host. */
const engineIn = (pid: number) => ({
  threads: threadNames(pid).filter((name) => /kvasir/i.test(name)),
  libraries: engineLibraries(pid),
});

editorSuite(
  'startup',
  { 'src/inventory.ts': INVENTORY },
  (editor) => {
    test('no worker and no native module is loaded before the first request, and none is left after the window closes', async () => {
      const window = editor();
      const { extensionHost } = window;
      const ms = await window.activationMs('Kvasir');
      console.log(`activation: ${ms} ms`);
      expect(ms).not.toBeNaN();
      await window.openFile('src/inventory.ts');
      const offered = window.page.locator('.monaco-hover .hover-row', { hasText: 'Summarize with Kvasir' });
      // The language server recognises methods only after it has started.
      const isOffered = async () => {
        await window.press('Escape');
        await window.goTo(26, 4);
        await window.runCommand('Show or Focus Hover');
        return offered.waitFor({ timeout: 5000 }).then(
          () => true,
          () => false,
        );
      };
      await expect.poll(isOffered, { timeout: PATIENCE }).toBe(true);
      await window.press('Escape');
      await window.runCommand('Kvasir: Show Cache');
      const panel = window.page.frameLocator('iframe.webview').frameLocator('iframe#active-frame');
      await panel.locator('.empty[data-state="stopped"]').waitFor();
      expect(await panel.locator('.empty').textContent()).toContain('starts with the first request');
      await window.screenshot('cache-empty');
      // Observes for ten seconds; does not wait for an event.
      for (const end = performance.now() + 10_000; performance.now() < end; await window.page.waitForTimeout(500))
        expect(engineIn(extensionHost)).toEqual({ threads: [], libraries: [] });
      await window.goTo(37, 1);
      await window.runCommand('Kvasir: Trigger Completion');
      await expect.poll(() => engineIn(extensionHost).libraries.length, { timeout: PATIENCE }).toBeGreaterThan(0);
      expect(engineIn(extensionHost).threads).not.toEqual([]);
      expect(window.problems).toEqual([]);
      await window.close();
      await expect.poll(() => isAlive(extensionHost), { timeout: PATIENCE }).toBe(false);
    });
  },
  { reopen: true },
);
