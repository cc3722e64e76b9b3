/**
 * Records a window from inside its page: when each ghost text was on the screen and when keys were pressed, both by the
 * page's clock. Observes the editors' elements and changes nothing.
 */
import type { Page } from 'playwright-core';

/** The text shown from `at` (milliseconds since the epoch) until the next entry. "" means that none was shown. */
interface Shown {
  at: number;
  text: string;
}

export interface Recording {
  shown: Shown[];
  /** The time of each key press. */
  keys: { at: number; key: string }[];
}

/** Globals of the page that the recorder uses. This project does not include the browser's types. */
interface PageGlobals {
  ghostRecording: Recording;
  MutationObserver: new (changed: () => void) => { observe(target: unknown, options: object): void };
  document: { querySelector(selector: string): unknown; querySelectorAll(selector: string): Iterable<PageElement> };
  addEventListener(type: 'keydown', listener: (event: { key: string }) => void, capture: boolean): void;
}
interface PageElement {
  style: { top: string };
  textContent: string | null;
  querySelectorAll(selector: string): Iterable<PageElement>;
}

export async function startRecording(page: Page): Promise<void> {
  await page.evaluate(() => {
    const view = globalThis as unknown as PageGlobals;
    const recording: Recording = { shown: [], keys: [] };
    view.ghostRecording = recording;
    const now = () => performance.timeOrigin + performance.now();
    const lines = (selector: string, pieces: string) =>
      [...view.document.querySelectorAll(`.editor-instance ${selector}`)]
        .sort((a, b) => Number.parseInt(a.style.top, 10) - Number.parseInt(b.style.top, 10))
        .map((line) => [...line.querySelectorAll(pieces)].map((piece) => piece.textContent ?? '').join(''));
    const look = () => {
      const [first = ''] = lines('.view-lines .view-line:has(.ghost-text-decoration)', '.ghost-text-decoration');
      const text = [first, ...lines('.suggest-preview-text .view-line', '.ghost-text')]
        .join('\n')
        .replaceAll('\u00a0', ' ')
        .replaceAll('\u200b', '');
      if (text !== (recording.shown.at(-1)?.text ?? '')) recording.shown.push({ at: now(), text });
    };
    new view.MutationObserver(look).observe(view.document.querySelector('.part.editor'), {
      subtree: true,
      childList: true,
      characterData: true,
      attributes: true,
      attributeFilter: ['class'],
    });
    view.addEventListener('keydown', ({ key }) => recording.keys.push({ at: now(), key }), true);
  });
}

/** The ghost text that is on the screen now. */
export async function shownNow(page: Page): Promise<string> {
  return await page.evaluate(() => (globalThis as unknown as PageGlobals).ghostRecording.shown.at(-1)?.text ?? '');
}

export async function recorded(page: Page): Promise<Recording> {
  return await page.evaluate(() => (globalThis as unknown as PageGlobals).ghostRecording);
}
