/** What the extension costs before the first request, and that nothing of it remains after its window. */
import { statSync } from 'node:fs';
import { expect, inject, test } from 'vitest';
import { PATIENCE } from './editor.ts';
import { isAlive, mappedFiles, threadNames } from './processes.ts';
import { editorSuite, INVENTORY } from './suite.ts';

/** Kvasir's thread by the name it gives it, and its native library, in the extension host. */
const engineIn = (pid: number) => ({
  threads: threadNames(pid).filter((name) => /kvasir/i.test(name)),
  libraries: mappedFiles(pid).filter((file) => /onnxruntime/.test(file)),
});

editorSuite('startup', { 'src/inventory.ts': INVENTORY }, (editor) => {
  test('the package stays under 60 MB', () => {
    const megabytes = statSync(inject('vsix')).size / 1e6;
    console.log(`package: ${megabytes.toFixed(1)} MB`);
    expect(megabytes).toBeLessThan(60);
  });

  test('no worker and no native module is loaded for 10 s without a request; both are after the first one', async () => {
    const window = editor();
    await window.openFile('src/inventory.ts');
    // An observation of ten seconds, not a wait for something.
    for (const end = performance.now() + 10_000; performance.now() < end; await window.page.waitForTimeout(500))
      expect(engineIn(window.extensionHost)).toEqual({ threads: [], libraries: [] });
    await window.goTo(37, 1);
    await window.runCommand('Kvasir: Trigger Completion');
    await expect.poll(() => engineIn(window.extensionHost).libraries.length, { timeout: PATIENCE }).toBeGreaterThan(0);
    expect(engineIn(window.extensionHost).threads).not.toEqual([]);
  });

  test('the workbench reports the activation time', async () => {
    const ms = await editor().activationMs('Kvasir');
    console.log(`activation: ${ms} ms`);
    expect(ms).not.toBeNaN();
  });

  test('the window reports no error of the extension', () => {
    expect(editor().problems).toEqual([]);
  });

  test('closing the window ends its extension host and engine', async () => {
    const { extensionHost } = editor();
    await editor().close();
    await expect.poll(() => isAlive(extensionHost), { timeout: PATIENCE }).toBe(false);
  });
});
