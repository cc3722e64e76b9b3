/**
 * The cache panel and the status bar item in the editor: cached files, pinning and eviction, polling only while
 * visible, and the trace.
 */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import type { FrameLocator, Locator } from 'playwright-core';
import { afterEach, expect, test } from 'vitest';
import { ownerOf, parseName } from '../../engine/kv/disk/segment.ts';
import { PATIENCE, setText } from './editor.ts';
import { outOfPlace, setAdvanced } from './panelLayout.ts';
import { wakeUps } from './processes.ts';
import type { EditorServerAddress } from './server.ts';
import { ownServer } from './ownServer.ts';
import { editorSuite, INVENTORY } from './suite.ts';

/** Fields that the message counter adds to the page. */
interface Counting {
  numMessages?: number;
  addEventListener(type: 'message', listener: () => void): void;
}

const SECONDS = 4;
const OTHER = `import { Inventory } from './inventory';\n\nexport function report(inventory: Inventory): string {\n  return \`worth \${inventory.totalValue()}\`;\n}\n`;

editorSuite('monitor', { 'src/inventory.ts': INVENTORY, 'src/report.ts': OTHER }, (editor) => {
  /** The folder of the extension's disk tier. */
  const keptDir = () =>
    path.join((ownServer() as EditorServerAddress).folder, 'user/User/globalStorage/kvasir.kvasir/kv');
  const kept = () => (existsSync(keptDir()) ? readdirSync(keptDir()) : []);
  const panel = (): FrameLocator => editor().page.frameLocator('iframe.webview').frameLocator('iframe#active-frame');
  const row = (name: string): Locator => panel().locator(`[data-file="${name}"]`);
  const figure = async (name: string, attribute: string) => Number(await row(name).getAttribute(attribute));
  /** Wakes of the engine's thread while it gets no requests except for statistics. */
  const wakesIn = async (seconds: number) => {
    const before = wakeUps(editor().extensionHost, 'kvasir');
    await editor().page.waitForTimeout(seconds * 1000);
    return wakeUps(editor().extensionHost, 'kvasir') - before;
  };

  /** Requests a completion in a file and waits until the panel shows the whole file as cached. */
  async function completed(name: string, text: string, line: number, column: number): Promise<void> {
    const window = editor();
    // One webview at a time. The panel opens first, because a request is cancelled when the editor loses the focus.
    await window.runCommand('View: Close Primary Side Bar');
    await window.runCommand('Kvasir: Show Cache');
    await setAdvanced(panel(), true);
    await window.openFile(name, line, column);
    // Otherwise the next file that opens in this tab would close this one.
    await window.runCommand('View: Keep Editor');
    await window.runCommand('Kvasir: Trigger Completion');
    // A token rarely has more than five characters of code.
    await expect.poll(() => figure(name, 'data-tokens'), { timeout: PATIENCE }).toBeGreaterThan(text.length / 5);
  }
  const inventoryCompleted = () => completed('src/inventory.ts', INVENTORY, 37, 1);
  async function bothCompleted(): Promise<void> {
    await completed('src/report.ts', OTHER, 4, 5);
    await inventoryCompleted();
  }
  async function setPinned(pinned: boolean): Promise<void> {
    await row('src/inventory.ts')
      .getByRole('button', { name: `${pinned ? 'Pin' : 'Unpin'} src/inventory.ts`, exact: true })
      .click();
    await expect.poll(() => row('src/inventory.ts').getAttribute('data-pinned')).toBe(String(pinned));
  }

  afterEach(() => {
    expect(editor().problems).toEqual([]);
  });

  test('a cached file has a row with its tokens, bytes and tier', async () => {
    await inventoryCompleted();
    expect(await figure('src/inventory.ts', 'data-bytes')).toBeGreaterThan(100_000);
    // Rows that an earlier window left on disk are in the store until the request uses them.
    await expect.poll(() => row('src/inventory.ts').getAttribute('data-tier'), { timeout: PATIENCE }).toBe('pool');
    expect(await panel().locator('[data-part="about"]').textContent()).toMatch(/kvasir-starter\s· int8\s· \d+ threads/);
    await expect
      .poll(() => panel().locator('[data-part="about"]').textContent(), { timeout: PATIENCE })
      .toMatch(/no GPU|GPU not used|graphics unknown/);
    await expect.poll(() => panel().getByRole('treeitem', { name: 'src/inventory.ts' }).count()).toBeGreaterThan(0);
  });

  test('words of the design are behind a fold, which the page remembers', async () => {
    await inventoryCompleted();
    await setAdvanced(panel(), false);
    const text = () => panel().locator('main.panel').innerText();
    for (const part of [/Cache/, /\d+ tokens|prompt tokens/, /files: \d/, /Weights/i, /src\/inventory\.ts/])
      await expect.poll(text).toMatch(part);
    expect(await text()).not.toMatch(/\b(?:pool|store|scratch|slots|buffers|codec|tier|radix)\b/i);
    await editor().screenshot('cache-plain');
    await panel().getByText('Advanced', { exact: true }).click();
    await expect.poll(text).toMatch(/scratch [\d.]+ [kM]?B[\s\S]*radix tree/i);
    expect(await text()).toMatch(/slots free/);
    await panel().getByRole('columnheader', { name: 'Tier' }).waitFor();
    await editor().screenshot('cache-advanced');
    await editor().runCommand('View: Hide Panel');
    await editor().runCommand('Kvasir: Show Cache');
    await expect.poll(text, { timeout: PATIENCE }).toMatch(/slots free/);
  });

  test('a second file has a second row, and the table can be sorted by keyboard', async () => {
    const window = editor();
    await bothCompleted();
    const names = () =>
      panel()
        .locator('[data-file]')
        .evaluateAll((rows) => rows.map((each) => each.getAttribute('data-file')));
    expect(await names()).toEqual(['src/inventory.ts', 'src/report.ts']);
    const head = panel().getByRole('columnheader', { name: 'Tokens' });
    await head.getByRole('button').focus();
    await window.press('Enter');
    expect(await head.getAttribute('aria-sort')).toBe('descending');
    await window.press('Enter');
    expect(await head.getAttribute('aria-sort')).toBe('ascending');
    expect(await names()).toEqual(['src/report.ts', 'src/inventory.ts']);
  });

  test('the arrow keys move in the radix tree, and the current node is described', async () => {
    const window = editor();
    await inventoryCompleted();
    const file = panel().getByRole('treeitem', { name: 'src/inventory.ts' }).first();
    await file.focus();
    const detail = panel().locator('.tree .detail');
    await expect.poll(() => detail.textContent()).toMatch(/src\/inventory\.ts\s· [\d,]+ tokens\s· pool/);
    const whole = await detail.textContent();
    await window.press('ArrowDown');
    await expect.poll(() => detail.textContent()).not.toBe(whole);
    expect(await panel().locator('[role="treeitem"]:focus').getAttribute('aria-level')).toBe(
      String(Number(await file.getAttribute('aria-level')) + 1),
    );
    await window.press('ArrowUp');
    await window.press('Enter');
    await panel().getByRole('button', { name: 'Show the whole tree' }).waitFor();
    await window.press('Escape');
    await panel().getByRole('button', { name: 'Show the whole tree' }).waitFor({ state: 'hidden' });
  });

  test('no text overflows its element at any width', async () => {
    const window = editor();
    await bothCompleted();
    await window.screenshot('cache-panel');
    await window.runCommand('View: Toggle Maximized Panel');
    await window.page.waitForTimeout(1500);
    // Screenshots start at the top, and the mouse must not hover anything.
    await panel()
      .locator('body')
      .evaluate((body) => body.scrollIntoView());
    await window.page.mouse.move(640, 2);
    await window.screenshotThemes('cache');
    await window.runCommand('View: Toggle Maximized Panel');
    expect(await outOfPlace(window, panel(), 'cache')).toEqual([]);
  });

  test('a pinned file stays cached and is marked; Evict empties a row', async () => {
    await bothCompleted();
    await setPinned(true);
    await row('src/report.ts').getByRole('button', { name: 'Evict src/report.ts' }).click();
    await expect.poll(() => figure('src/report.ts', 'data-tokens')).toBe(0);
    expect(await row('src/report.ts').getAttribute('data-tier')).toBe('none');
    expect(await figure('src/inventory.ts', 'data-tokens')).toBeGreaterThan(0);
    await setPinned(false);
  });

  test('statistics are polled twice a second while the panel is visible; when hidden, the engine does no work', async () => {
    const window = editor();
    await inventoryCompleted();
    await panel()
      .locator('body')
      .evaluate(() => {
        const view = globalThis as unknown as Counting;
        view.numMessages = 0;
        view.addEventListener('message', () => {
          view.numMessages = (view.numMessages ?? 0) + 1;
        });
      });
    const visible = await wakesIn(SECONDS);
    const numMessages = await panel()
      .locator('body')
      .evaluate(() => (globalThis as unknown as Counting).numMessages ?? 0);
    expect(numMessages).toBeGreaterThan(SECONDS);
    expect(numMessages).toBeLessThanOrEqual(2 * SECONDS + 1);
    expect(visible).toBeGreaterThanOrEqual(SECONDS);
    await window.runCommand('View: Hide Panel');
    await window.page.locator('iframe.webview').waitFor({ state: 'hidden' });
    await window.page.waitForTimeout(1000);
    // Work in progress (garbage collection, a last message) ends when the panel is hidden. Recurring work would not
    // end.
    await expect.poll(() => wakesIn(SECONDS), { timeout: PATIENCE }).toBeLessThan(SECONDS);
    await window.runCommand('Kvasir: Show Cache');
    await row('src/inventory.ts').waitFor();
  });

  test('each priority class that had a request has its times, with percentiles in the tooltip', async () => {
    await inventoryCompleted();
    const times = panel().locator('.times');
    const classes = await times
      .locator('tbody tr')
      .evaluateAll((rows) => rows.map((each) => (each as HTMLElement).dataset.class));
    expect(classes).toContain('completion');
    expect(classes).not.toContain('idle');
    const cells = times.locator('tr[data-class="completion"] td');
    expect(await cells.nth(1).getAttribute('title')).toMatch(/^P50 [\d.]+ m?s, P95 [\d.]+ m?s, P99 [\d.]+ m?s$/);
    expect(await times.locator('.hint').textContent()).toMatch(/^median and P95\s· \d+% busy/);
  });

  test("Export Step Trace opens a Chrome trace without the user's text", async () => {
    const window = editor();
    await inventoryCompleted();
    await window.runCommand('Kvasir: Export Step Trace');
    await window.page.locator('.tab.active[data-resource-name^="Untitled"]').waitFor();
    await window.press('Control+S');
    const input = window.page.locator('.quick-input-widget input');
    // The dialog reads the folder before it suggests a name.
    await expect.poll(() => input.inputValue(), { timeout: PATIENCE }).toMatch(/json$/);
    const file = window.file('kvasir-trace.json');
    await setText(input, file);
    await window.page.waitForTimeout(500);
    await input.press('Enter');
    // The file exists before it has content.
    const saved = () => (existsSync(file) ? readFileSync(file, 'utf8') : '');
    await expect.poll(saved, { timeout: PATIENCE }).toMatch(/\]\}\s*$/);
    const text = saved();
    const { traceEvents } = JSON.parse(text) as { traceEvents: { ph: string; name: string }[] };
    expect(traceEvents.filter(({ ph, name }) => ph === 'X' && name === 'step').length).toBeGreaterThan(1);
    expect(text).not.toMatch(/inventory|Article|report/);
  });

  test("the status bar's hover shows cache, memory, graphics and links, and a click opens a menu", async () => {
    const window = editor();
    await inventoryCompleted();
    await window.runCommand('View: Hide Panel');
    const hover = await window.statusHover();
    for (const part of [
      /Cache: .* of /,
      /Memory: weights/,
      /No GPU|not used|none by Kvasir/,
      /inventory\.ts/,
      /Show Cache/,
      /Choose Model/,
      /Snooze/,
    ])
      expect(hover).toMatch(part);
    await window.screenshot('status-hover');
    await window.page.locator('.monaco-hover:visible a', { hasText: 'Show Cache' }).last().click();
    await row('src/inventory.ts').waitFor();
    await window.unhover();
    await window.statusItem.click();
    await window.page.locator('.quick-input-list .monaco-list-row', { hasText: 'Explain Last Completion' }).waitFor();
    await window.screenshotThemes('status-menu');
    await window.press('Escape');
  });

  test('Clear Cache removes everything except the pinned file', async () => {
    await inventoryCompleted();
    await setPinned(true);
    const requests = () =>
      panel()
        .getByRole('treeitem', { name: /^completion/ })
        .count();
    expect(await requests()).toBeGreaterThan(0);
    await panel().getByRole('button', { name: 'Clear', exact: true }).click();
    await expect.poll(requests).toBe(0);
    expect(await figure('src/inventory.ts', 'data-tokens')).toBeGreaterThan(0);
    const isPinned = (name: string): boolean => {
      const segment = parseName(name);
      return segment !== null && segment.owner === ownerOf(segment.key, 'src/inventory.ts');
    };
    await expect.poll(() => kept().filter((name) => !isPinned(name))).toEqual([]);
    await setPinned(false);
  });

  test('after a reload of the window the first question about a file reuses its rows from disk', async () => {
    const window = editor();
    // One webview at a time.
    await window.hidePanel();
    await window.runCommand('Kvasir: Open Chat');
    await window.openFile('src/inventory.ts');
    /** Asks a question. Returns the number of reused prompt tokens and the number of all prompt tokens. */
    const ask = async () => {
      await window.runCommand('Kvasir: New Conversation');
      // The previous conversation may still be drawn. Its answers would be counted.
      await window.chatIsEmpty();
      const answer = await window.ask('What is this file for?');
      await expect.poll(() => answer.getAttribute('data-state'), { timeout: 2 * PATIENCE }).toBe('done');
      const [, reused, all] = /([\d,]+) of ([\d,]+) tokens reused/.exec(
        await answer.locator('[data-part="footer"]').innerText(),
      )!;
      return [reused!, all!].map((count) => Number(count.replaceAll(',', ''))) as [number, number];
    };
    await ask();
    await window.reload();
    await window.statusItem.waitFor();
    // The editor saves the panel's hidden state with a delay, so the panel may be visible again after the reload.
    await expect
      .poll(
        async () => {
          await window.hidePanel();
          return await window.page.locator('iframe.webview').count();
        },
        { timeout: PATIENCE },
      )
      .toBeLessThan(2);
    // The engine writes these files when it stops.
    await expect.poll(() => kept().length, { timeout: PATIENCE }).toBeGreaterThan(0);
    for (const name of kept()) expect(statSync(path.join(keptDir(), name)).mode & 0o777).toBe(0o600);
    await window.openFile('src/inventory.ts');
    const before = Date.now();
    const [reused, all] = await ask();
    expect(reused).toBeGreaterThan(0.9 * all);
    // Reading a file updates its modification time. The last part of a file's name is its number of tokens.
    const read = kept().filter((name) => statSync(path.join(keptDir(), name)).mtimeMs >= before);
    expect(read.reduce((sum, name) => sum + Number(/-(\d+)\.kv$/.exec(name)![1]), 0)).toBeGreaterThan(0.9 * all);
    const hover = await window.statusHover();
    expect(hover).toMatch(/On disk: [\d.]+ [kM]B of 1(\.0)? GB/);
    await window.screenshot('disk-hover');
    await window.unhover();
    await window.runCommand('Kvasir: Show Cache');
    await window.page.waitForTimeout(1500);
    await window.screenshot('disk-panel');
    await window.runCommand('View: Hide Panel');
    const cleared = async () => {
      await window.runCommand('Kvasir: Clear Cache');
      return kept();
    };
    await expect.poll(cleared, { timeout: PATIENCE, interval: 300 }).toEqual([]);
  });
});
