/**
 * Checks with axe that the webviews have no serious accessibility violation in any theme.
 * The scan runs inside the webview's own page, because that page is two frames deep and has another origin.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { FrameLocator } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { type Editor, PATIENCE, type Theme } from './editor.ts';
import { setAdvanced } from './panelLayout.ts';
import { editorSuite, INVENTORY } from './suite.ts';

const require = createRequire(import.meta.url);
/** axe-core as a script for a page. It is installed with @axe-core/playwright, which runs it through Playwright. */
const AXE = readFileSync(createRequire(require.resolve('@axe-core/playwright')).resolve('axe-core/axe.min.js'), 'utf8');

/** The part of a page with axe that the scan uses. */
interface AxePage {
  axe?: {
    run(): Promise<{
      violations: {
        id: string;
        impact: string | null;
        help: string;
        nodes: { html: string; failureSummary?: string }[];
      }[];
      passes: unknown[];
    }>;
  };
}

/** Serious and critical findings, one per line. Throws if axe could not examine anything. */
async function findings(view: FrameLocator): Promise<string[]> {
  const page = await (await view.locator('body').elementHandle())?.ownerFrame();
  if (!page) throw new Error('the view has no page');
  // The page's content security policy forbids foreign scripts. Code that the debugger evaluates is exempt.
  await page.evaluate(AXE);
  const { violations, passes } = await page.evaluate(async () => {
    const { violations, passes } = (await (globalThis as AxePage).axe?.run()) ?? { violations: [], passes: [] };
    return { violations, passes: passes.length };
  });
  expect(passes, 'axe has looked at something').toBeGreaterThan(5);
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(
      ({ id, help, nodes }) =>
        `${id}: ${help}: ${nodes.map((node) => `${node.html.slice(0, 120)} (${node.failureSummary?.split('\\n').at(-1)?.trim()})`).join(' | ')}`,
    );
}

/** The only webview that is shown. */
const panel = (window: Editor): FrameLocator =>
  window.page.frameLocator('iframe.webview').frameLocator('iframe#active-frame');

const EVERY: Theme[] = ['dark', 'light', 'contrast', 'contrastLight'];

editorSuite('accessibility', { 'src/inventory.ts': INVENTORY }, (editor) => {
  beforeAll(async () => {
    const window = editor();
    await window.openFile('src/inventory.ts');
    await window.runCommand('Kvasir: Open Chat');
    await window.ask('What is this file for?');
    await window.chat.locator('[data-role="assistant"][data-state="done"]').waitFor({ timeout: 2 * PATIENCE });
    // A theme's colours fade in. With a transition this long, a screenshot taken too early shows the previous colours.
    await window.page.addStyleTag({
      content: '.monaco-workbench .part.statusbar { transition-duration: 1s !important; }',
    });
  });

  /** Shows one webview at a time: the conversation with its answer, or the cache panel with the cached file. */
  async function showChat(): Promise<void> {
    const window = editor();
    await window.hidePanel();
    await window.runCommand('Kvasir: Open Chat');
    await window.answers.first().waitFor();
    await expect.poll(() => window.page.locator('iframe.webview:visible').count(), { timeout: PATIENCE }).toBe(1);
  }
  async function showCache(): Promise<void> {
    const window = editor();
    await window.hidePanel();
    await window.runCommand('View: Close Primary Side Bar');
    await window.page.locator('iframe.webview').waitFor({ state: 'hidden' });
    await window.runCommand('Kvasir: Show Cache');
    await panel(window).locator('[data-file="src/inventory.ts"]').waitFor();
    await setAdvanced(panel(window), true);
  }

  test.for(EVERY)('the chat view has no serious violation in the %s theme', async (theme) => {
    const window = editor();
    await showChat();
    await window.setTheme(theme);
    const statusBar = () =>
      window.page.locator('.part.statusbar').evaluate((bar) => getComputedStyle(bar).backgroundColor);
    const shown = await statusBar();
    await window.screenshot(`chat-${theme}`);
    await window.page.waitForTimeout(1500);
    expect(await statusBar(), 'a picture has the theme’s own colours').toBe(shown);
    expect(await findings(window.chat)).toEqual([]);
  });

  test.for(EVERY)('the cache panel has no serious violation in the %s theme', async (theme) => {
    const window = editor();
    await showCache();
    await window.setTheme(theme);
    expect(await findings(panel(window))).toEqual([]);
  });
});
