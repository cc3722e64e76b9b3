/**
 * The browser of this process, in which all its windows open. It starts with the first window. A process drives its own
 * browser, because each message through another process would cost processor time twice.
 */
import { type Browser, chromium } from 'playwright-core';

/** How to start the browser. Plain data, because vitest sends it to another process. */
export interface BrowserStart {
  executablePath: string;
  env: Record<string, string>;
}

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

let running: { start: BrowserStart; browser: Promise<Browser> } | undefined;

/** The running browser, or a new one if none runs or it was started otherwise. It ends with the process at the latest. */
export async function browserFor(start: BrowserStart): Promise<Browser> {
  if (running?.start.executablePath !== start.executablePath || !(await running.browser).isConnected()) {
    await closeBrowser();
    running = { start, browser: chromium.launch({ ...start, args: FLAGS, timeout: 60_000 }) };
  }
  return running.browser;
}

export async function closeBrowser(): Promise<void> {
  const closing = running?.browser;
  running = undefined;
  await closing?.then(
    (browser) => browser.close(),
    () => {},
  );
}
