/** Clicks in context menus. The test opens the menu itself, by a right click or by its key. */
import type { Page } from 'playwright-core';
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
