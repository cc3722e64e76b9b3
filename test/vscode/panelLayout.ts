/**
 * Checks that the cache panel shows everything it says, at each width with a different layout and at some between.
 * Uses the current figures and the large figures of a long day.
 */
import type { FrameLocator } from 'playwright-core';
import { expect } from 'vitest';
import type { Editor } from './editor.ts';

/** What the message with the figures carries, as far as it is changed here. */
interface Figures {
  stats: Record<string, unknown>;
  files: Record<string, unknown>[];
}

/** The page is so many pixels narrower than the window. */
const FRAME = 58;
/**
 * Widths of the window in pixels. The page changes its layout at 860, 760, 620 and 480. It has the
 * least room just above those widths. The table of files has the least room just before it drops columns, at 930, 640
 * and 500.
 */
const WIDTHS = [1280, 990, 920, 820, 780, 700, 680, 560, 540, 520, 440, 360];
const HEIGHT = 900;

/**
 * Texts that overflow their element, and texts with a line that begins with the dot between two parts, each with the
 * window's width.
 * Ends of run names and file names may be cut, because they are shown elsewhere. The panel must be visible. The sidebar
 * is closed afterwards.
 */
export async function outOfPlace(window: Editor, panel: FrameLocator, name: string): Promise<string[]> {
  const found: string[] = [];
  await window.runCommand('View: Close Primary Side Bar');
  await window.runCommand('View: Toggle Maximized Panel');
  await setAdvanced(panel, true);
  const body = panel.locator('body');
  const figures = await body.evaluate(nextFigures);
  for (const width of WIDTHS) {
    await window.page.setViewportSize({ width, height: HEIGHT });
    // The page learns its size after the window has been laid out.
    await expect.poll(() => body.evaluate(() => innerWidth), { interval: 30 }).toBe(width - FRAME);
    const faults = await body.evaluate(reachingOut, figures);
    await window.screenshot(`${name}-${width}`);
    found.push(...faults.map((fault) => `${width}: ${fault}`));
  }
  await window.page.setViewportSize({ width: 1280, height: 800 });
  await window.runCommand('View: Toggle Maximized Panel');
  return found;
}

/** Opens or closes the part for those who know the cache's design. */
export async function setAdvanced(panel: FrameLocator, open: boolean): Promise<void> {
  const fold = panel.locator('details.advanced');
  await fold.waitFor({ state: 'attached' });
  await fold.evaluate((each, wanted) => {
    (each as HTMLDetailsElement).open = wanted;
  }, open);
}

/** Runs in the page. Figures arrive twice a second. */
function nextFigures(): Promise<Figures> {
  return new Promise((resolve) => {
    const take = ({ data }: MessageEvent<{ type: string; figures: Figures }>) => {
      if (data.type !== 'figures') return;
      removeEventListener('message', take);
      resolve(data.figures);
    };
    addEventListener('message', take);
  });
}

/** Runs in the page. */
async function reachingOut(_: unknown, { stats, files }: Figures): Promise<string[]> {
  const show = (figures: Figures): void => {
    dispatchEvent(new MessageEvent('message', { data: { type: 'figures', figures } }));
  };

  function faults(kind: string): string[] {
    const found: string[] = [];
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      const parent = text.parentElement;
      if (
        !parent ||
        !text.textContent?.trim() ||
        parent.closest('.live, .cell, .name, script') ||
        !parent.checkVisibility()
      )
        continue;
      const range = document.createRange();
      for (const { index } of text.textContent.matchAll(/(?<=\S\s)·/g)) {
        const [dot, before] = [index, index - 2].map((at) => {
          range.setStart(text, at);
          range.setEnd(text, at + 1);
          return range.getBoundingClientRect();
        }) as [DOMRect, DOMRect];
        if (dot.top > before.top + before.height / 2)
          found.push(`a line of "${text.textContent}" begins with a dot, ${kind}`);
      }
      range.selectNodeContents(text);
      const inner = range.getBoundingClientRect();
      for (
        let around: Element | null = parent;
        around && around !== document.documentElement;
        around = around.parentElement
      ) {
        const style = getComputedStyle(around);
        if (style.display === 'inline') continue;
        const outer = around.getBoundingClientRect();
        const over = Math.max(
          inner.right - outer.right,
          outer.left - inner.left,
          style.overflowY !== 'visible' && around !== document.body ? inner.bottom - outer.bottom : 0,
        );
        // A difference of less than one pixel is rounding.
        if (over < 1) continue;
        found.push(
          `"${text.textContent.trim()}" reaches out of ${around.tagName.toLowerCase()}.${around.className} by ${Math.ceil(over)} pixels, ${kind}`,
        );
        break;
      }
    }
    return found;
  }

  function times(factor: number, value: unknown): unknown {
    if (typeof value === 'number') return value * factor;
    return value !== null && typeof value === 'object'
      ? Object.fromEntries(Object.entries(value).map(([name, each]) => [name, times(factor, each)]))
      : value;
  }

  const many = Object.fromEntries(
    ['tokens', 'requests', 'batchTokens', 'diskBytes', 'storeBytes'].map((name) => [name, times(3000, stats[name])]),
  );
  const slow = Object.fromEntries(['classes', 'ttftMs'].map((name) => [name, times(100, stats[name])]));
  const long = files.map((file) => ({
    ...file,
    name: `src/${'folder/'.repeat(20)}${file.name}`,
    tokens: 123_456,
    diskTokens: 98_765,
    bytes: 234_567_890,
    hits: 12_345,
    twice: true,
  }));
  // Observers of sizes have run after two frames.
  for (let frames = 0; frames < 2; frames++) await new Promise((resolve) => requestAnimationFrame(resolve));
  show({ stats, files });
  const usual = faults('with its own figures');
  show({ stats: { ...stats, ...many, ...slow }, files: long });
  return [...usual, ...faults('with those of a long day')];
}
