/**
 * Engine settings in the editor: 4-bit weights, shifted reuse, codecs and long contexts, as the cache panel shows them.
 */
import { writeFileSync } from 'node:fs';
import type { FrameLocator } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { cacheReach } from '../../engine/server/cacheReach.ts';
import { formatBytes } from '../../engine/protocol/formatBytes.ts';
import type { ProductForm } from '../../engine/model/load/quantise.ts';
import { planWeights } from '../../engine/model/load/weightPlan.ts';
import { BUILT_IN } from '../support/builtIn.ts';
import { type Editor, PATIENCE, setText } from './editor.ts';
import { setAdvanced } from './panelLayout.ts';
import { editorSuite, INVENTORY } from './suite.ts';

/**
 * Memory of 4-bit weights in the form that suits the processor best. It excludes the embedding, whose rows are read
 * from the file.
 */
function int4Bytes(form: ProductForm): number {
  const { bytes, stored } = planWeights(BUILT_IN.config, 'int4', BUILT_IN.tied, form);
  return ['embedding', 'embedding.scales'].reduce((left, name) => left - (stored.get(name)?.length ?? 0), bytes);
}

/** Makes the first request with the cache panel open. */
async function completeBesidePanel(window: Editor): Promise<void> {
  await window.openFile('src/inventory.ts');
  await window.runCommand('View: Keep Editor');
  await window.runCommand('Kvasir: Show Cache');
  // The panel takes the keyboard focus when its page is ready.
  const page = window.page.frameLocator('iframe.webview').first().frameLocator('iframe#active-frame');
  await page.locator('main.panel:visible, .empty:visible').first().waitFor();
  await window.openFile('src/inventory.ts', 62, 1);
  await window.runCommand('Kvasir: Trigger Completion');
}

editorSuite('engine options', { 'src/inventory.ts': INVENTORY }, (editor) => {
  const panel = (): FrameLocator =>
    editor().page.frameLocator('iframe.webview').first().frameLocator('iframe#active-frame');
  /** The chat, which is opened after the panel. */
  const chat = (): FrameLocator =>
    editor().page.frameLocator('iframe.webview').last().frameLocator('iframe#active-frame');
  const cell = (column: string) => panel().locator(`[data-file="src/inventory.ts"] .${column}`);
  const about = () => panel().locator('[data-part="about"]').textContent();
  /** Each attempt changes the file in another way. */
  let numChanges = 0;
  afterAll(() =>
    editor()?.configureMachine({ 'kvasir.engine.precision': undefined, 'kvasir.cache.reuseShifted': undefined }),
  );

  test('4-bit weights are loaded and complete code, and panel and hover show them', async () => {
    const window = editor();
    window.configureMachine({ 'kvasir.engine.precision': 'int4' });
    await completeBesidePanel(window);
    await expect.poll(about, { timeout: 2 * PATIENCE }).toMatch(/kvasir-starter\s· int4\s· \d+ threads/);
    await expect.poll(async () => (await cell('tokens').textContent()) ?? '', { timeout: PATIENCE }).toMatch(/^[1-9]/);
    await window.screenshot('engine-int4');
    const hover = await window.statusHover();
    await window.screenshot('engine-int4-hover');
    await window.unhover();
    expect(hover).toMatch(/int4/);
    // The weight file is larger than this.
    expect((['blocks', 'narrow', 'rows', 'native'] as const).map((form) => formatBytes(int4Bytes(form)))).toContain(
      /Memory: weights ([\d.]+ MB)/.exec(hover)?.[1],
    );
    expect(window.problems).toEqual([]);
  });

  test('approximated tokens after an edit are shown separately until they are computed', async () => {
    const window = editor();
    window.configureMachine({ 'kvasir.engine.precision': undefined, 'kvasir.cache.reuseShifted': true });
    await window.openFile('src/inventory.ts');
    const ask = async (question: string) => {
      const input = chat().getByRole('textbox', { name: 'Ask Kvasir' });
      await setText(input, question);
      await input.press('Enter');
    };
    await window.runCommand('Kvasir: Open Chat');
    await ask('Explain this code.');
    await expect.poll(about, { timeout: 2 * PATIENCE }).toMatch(/kvasir-starter\s· int8/);
    await expect
      .poll(async () => (await cell('tokens').textContent()) ?? '', { timeout: PATIENCE })
      .toMatch(/^[\d,]{3,}$/);
    await cell('tokens').scrollIntoViewIfNeeded();
    const exact = await cell('tokens').textContent();
    await window.openFile('src/inventory.ts', 1, 1);
    // Idle time computes nothing while the window is in the background, so the approximate tokens stay.
    await window.setFocused(false);
    try {
      numChanges++;
      // As when another program changes the file: no request precedes the question.
      writeFileSync(
        window.file('src/inventory.ts'),
        INVENTORY.replace(
          'export interface StockEntry',
          `${'// What is there.\n'.repeat(numChanges)}export interface StockEntry`,
        ),
      );
      await expect
        .poll(async () => (await window.editorText()).split('What is there.').length - 1, { timeout: PATIENCE })
        .toBe(numChanges);
      await ask('What is this?');
      await cell('tokens')
        .filter({ hasText: /^[\d,]+ \+\s≈[\d,]+$/ })
        .waitFor({ timeout: PATIENCE });
      expect(await cell('tokens').getAttribute('title')).toMatch(
        /^[\d,]+ tokens are approximated: computed before an edit/,
      );
      await window.screenshot('engine-approximated');
      await chat()
        .locator('[data-role="assistant"] footer', { hasText: /\d approximated/ })
        .last()
        .waitFor();
    } finally {
      await window.setFocused(true);
    }
    await expect.poll(() => cell('tokens').textContent(), { timeout: PATIENCE }).toMatch(/^[\d,]+$/);
    expect(await cell('tokens').textContent()).not.toBe(exact);
    expect(await cell('tokens').getAttribute('title')).toBe('');
    expect(window.problems).toEqual([]);
  });
});

/** Longer than the memory that the test configures, and shorter than the model's context. */
const LONG = Array.from({ length: 3 }, (_, i) =>
  INVENTORY.replaceAll(/\b(Article|StockEntry|OutOfStockError|Inventory)\b/g, `$1${i}`),
).join('\n');

editorSuite('memory options', { 'src/inventory.ts': INVENTORY, 'src/long.ts': LONG }, (editor) => {
  const panel = (): FrameLocator =>
    editor().page.frameLocator('iframe.webview').first().frameLocator('iframe#active-frame');
  const chat = (): FrameLocator =>
    editor().page.frameLocator('iframe.webview').last().frameLocator('iframe#active-frame');
  const cell = (file: string, column: string) => panel().locator(`[data-file="${file}"] .${column}`);
  afterAll(() => editor()?.configureMachine({ 'kvasir.cache.codec': undefined, 'kvasir.cache.maxBytes': undefined }));

  test('a cache codec is shown with its measured loss for this model', async () => {
    const window = editor();
    window.configureMachine({ 'kvasir.cache.codec': 'int4-kivi' });
    await completeBesidePanel(window);
    await expect
      .poll(async () => (await cell('src/inventory.ts', 'tokens').textContent()) ?? '', { timeout: 2 * PATIENCE })
      .toMatch(/^[1-9]/);
    expect(await cell('src/inventory.ts', 'codec').getAttribute('title')).toBe('As computed, without loss.');
    await setAdvanced(panel(), true);
    await cell('src/inventory.ts', 'codec').hover();
    await window.screenshot('codec-column');
    const hover = await window.statusHover();
    await window.screenshot('codec-hover');
    await window.unhover();
    // This depends on the model's layers and heads, not on the cache's size.
    const { codecs } = cacheReach(BUILT_IN.config, 1e9, 1e9);
    const [, smaller, same] =
      /int4-kivi: ([\d.]+) times smaller than 16 bits, picks the same next token ([\d.]+)% of the time/.exec(hover) ??
      [];
    expect(smaller, hover).toBe(codecs.find(({ codec }) => codec === 'int4-kivi')?.compression.toFixed(1));
    expect(Number(same), hover).toBeGreaterThanOrEqual(90);
    expect(window.problems).toEqual([]);
  });

  test('a question about a file longer than memory is answered, and the panel shows how it was read', async () => {
    const window = editor();
    window.configureMachine({ 'kvasir.cache.codec': undefined, 'kvasir.cache.maxBytes': 1_500_000 });
    await window.openFile('src/long.ts');
    await window.runCommand('Kvasir: Open Chat');
    const input = chat().getByRole('textbox', { name: 'Ask Kvasir' });
    await setText(input, 'Explain this code.');
    await input.press('Enter');
    await chat()
      .locator('[data-role="assistant"] footer', { hasText: 'read in parts' })
      .last()
      .waitFor({ timeout: 2 * PATIENCE });
    await expect.poll(() => cell('src/long.ts', 'codec').textContent(), { timeout: PATIENCE }).toBe('sketch');
    expect(await cell('src/long.ts', 'codec').getAttribute('title')).toMatch(/^Longer than memory/);
    await setAdvanced(panel(), true);
    await cell('src/long.ts', 'codec').hover();
    await window.screenshot('codec-sketch');
    expect(window.problems).toEqual([]);
  });
});
