/**
 * Little memory and a disk that cannot be written: what still works, and what chat, hover and panel say about the rest.
 */
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { FrameLocator } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { needsOf } from '../../engine/server/cacheReach.ts';
import { formatBytes } from '../../engine/protocol/formatBytes.ts';
import { BUILT_IN } from '../support/builtIn.ts';
import { PATIENCE } from './editor.ts';
import { outOfPlace } from './panelLayout.ts';
import type { EditorServerAddress } from './server.ts';
import { ownServer } from './ownServer.ts';
import { editorSuite, INVENTORY } from './suite.ts';

const QUESTION = 'What is this file for?';
/** Memory needs of a text that fills the model's context, with the usual spill file for its parts. */
const NEEDS = needsOf(BUILT_IN.config, BUILT_IN.contextTokens, 1e9);

/** Rounded up to two digits, as the messages show it. */
function inTwoDigits(bytes: number): string {
  const unit = 10 ** (Math.floor(Math.log10(bytes)) - 1);
  return formatBytes(Math.ceil(bytes / unit) * unit);
}

editorSuite('limits', { 'src/inventory.ts': INVENTORY }, (editor) => {
  const keptDir = () =>
    path.join((ownServer() as EditorServerAddress).folder, 'user/User/globalStorage/kvasir.kvasir/kv');
  const panel = (): FrameLocator =>
    editor().page.frameLocator('iframe.webview').last().frameLocator('iframe#active-frame');
  afterAll(() => {
    editor()?.configureMachine({ 'kvasir.cache.maxBytes': undefined, 'kvasir.cache.codec': undefined });
    rmSync(keptDir(), { recursive: true, force: true });
  });

  async function stateOf(question: string): Promise<string> {
    const answer = await editor().ask(question);
    await expect.poll(() => answer.getAttribute('data-state'), { timeout: 2 * PATIENCE }).not.toBe('streaming');
    return `${await answer.getAttribute('data-state')}`;
  }

  async function hover(): Promise<string> {
    const text = await editor().statusHover();
    await editor().unhover();
    return text;
  }

  test('with 1 MB a question about a file is answered, and the hover says that nothing is kept on disk, and why', async () => {
    const window = editor();
    window.configureMachine({ 'kvasir.cache.maxBytes': 1_000_000 });
    await window.openFile('src/inventory.ts');
    await window.runCommand('Kvasir: Open Chat');
    expect(await stateOf(QUESTION)).toBe('done');
    await expect
      .poll(hover, { timeout: PATIENCE })
      .toMatch(
        /On disk: (nothing|.*nothing more) is kept: the KV cache limit of 1\.0 MB is too small for disk buffers/,
      );
    await window.statusHover();
    await window.screenshot('limit-1mb-hover');
    await window.unhover();
    expect(window.problems).toEqual([]);
  });

  test('with too little memory the answer names a sufficient size and the setting; hover and panel count the failure', async () => {
    const window = editor();
    window.configureMachine({ 'kvasir.cache.maxBytes': 200_000 });
    await window.openFile('src/inventory.ts');
    await window.runCommand('Kvasir: Open Chat');
    await expect.poll(() => stateOf(QUESTION), { timeout: 2 * PATIENCE }).toBe('error');
    const answer = window.answers.last();
    expect(await answer.textContent()).toMatch(
      /tokens, but the KV cache limit of 200 kB holds \d+\. Raise kvasir\.cache\.maxBytes or send less text: about /,
    );
    expect(await answer.textContent()).toContain(
      `about ${inTwoDigits(NEEDS.whole)} are enough for ${BUILT_IN.contextTokens} tokens, or ${inTwoDigits(NEEDS.inParts)} to read them in parts.`,
    );
    await window.screenshot('limit-none');
    await expect.poll(hover, { timeout: PATIENCE }).toMatch(/failed: [1-9]/);
    await window.runCommand('Kvasir: Show Cache');
    await expect
      .poll(() => panel().locator('.tile.speed .note').textContent(), { timeout: PATIENCE })
      .toMatch(/failed: [1-9]/);
    await window.screenshotThemes('limit-none-panel');
    expect(await outOfPlace(window, panel(), 'limit-none-panel')).toEqual([]);
    await window.hidePanel();
    await window.runCommand('Kvasir: Open Chat');
    await answer.getByRole('button', { name: 'Open Setting' }).click();
    await window.page
      .locator('.settings-editor .setting-item-contents', { hasText: 'Max Bytes' })
      .first()
      .waitFor({ timeout: PATIENCE });
    await window.screenshot('limit-setting');
    await window.press('Escape');
    await window.page.locator('.settings-editor').waitFor({ state: 'hidden' });
    expect(window.problems).toEqual([]);
  });

  test('the hover reports a disk cache that cannot be written, and an invalid setting is reported', async () => {
    const window = editor();
    rmSync(keptDir(), { recursive: true, force: true });
    writeFileSync(keptDir(), 'no folder');
    window.configureMachine({ 'kvasir.cache.maxBytes': '1MB', 'kvasir.cache.codec': 'int3' });
    await expect
      .poll(async () => (await window.toasts()).join('\n'), { timeout: PATIENCE })
      .toMatch(/kvasir\.cache\.codec cannot be "int3"; "int8" is used instead/);
    await window.screenshot('wrong-setting');
    await window.runCommand('Notifications: Clear All Notifications');
    await window.runCommand('Kvasir: Restart Engine');
    await window.openFile('src/inventory.ts');
    await expect.poll(() => stateOf(QUESTION), { timeout: 2 * PATIENCE }).toBe('done');
    await expect.poll(hover, { timeout: PATIENCE }).toMatch(/On disk: nothing is kept: .*kv cannot be written: E/);
    await window.statusHover();
    await window.screenshot('disk-fault-hover');
    await window.unhover();
    await window.runCommand('Kvasir: Show Cache');
    await expect
      .poll(() => panel().locator('.amounts').textContent(), { timeout: PATIENCE })
      .toMatch(/nothing is kept: .*kv cannot be written/);
    await window.screenshot('disk-fault-panel');
    await window.runCommand('Kvasir: Clear Cache');
    await expect
      .poll(() => window.toasts(), { timeout: PATIENCE })
      .toEqual([expect.stringContaining('the cache is cleared. Open files will be read again.')]);
    await window.screenshot('clear-cache');
  });
});
