/** Clicks in context menus, which the test opens itself, and opens the list of quick fixes. */
import type { Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { PATIENCE } from './editor.ts';

/**
 * Chooses an entry of the open menu by its label. All labels but the last name submenus. A menu ignores clicks while it
 * is opening.
 */
export async function chooseFromMenu(page: Page, ...labels: string[]): Promise<void> {
  const item = (label: string) => page.locator(`.context-view .action-label[aria-label="${label}"]`);
  await page.locator('.context-view .action-label').first().waitFor();
  for (const [index, label] of labels.slice(0, -1).entries()) {
    const inside = item(labels[index + 1] as string);
    const opened = async () => {
      if (!(await inside.isVisible()))
        await item(label)
          .hover({ timeout: 1000 })
          .catch(() => {});
      return await inside.isVisible();
    };
    await expect.poll(opened, { timeout: PATIENCE, interval: 500 }).toBe(true);
  }
  const last = item(labels.at(-1) as string);
  const chosen = async () => {
    if (await last.isVisible()) await last.click({ timeout: 1000 }).catch(() => {});
    return await last.isVisible();
  };
  await expect.poll(chosen, { timeout: PATIENCE, interval: 500 }).toBe(false);
}

/**
 * Opens the list of quick fixes at the cursor and returns its rows. The editor drops the request for it when the
 * problems of the file change meanwhile, so the key is pressed until the list has a row with `label`.
 */
export async function openQuickFixes(page: Page, label: string): Promise<Locator> {
  const rows = page.locator('.action-widget .monaco-list-row');
  const opened = async () => {
    if (await rows.first().isVisible()) await page.keyboard.press('Escape');
    await page.keyboard.press('Control+.');
    return await rows
      .filter({ hasText: label })
      .waitFor({ timeout: 5000 })
      .then(() => true)
      .catch(() => false);
  };
  await expect.poll(opened, { timeout: PATIENCE }).toBe(true);
  return rows;
}
