/**
 * One window of the VS Code under test: opens a folder and offers what a user does (open, type, press, run a command, ask)
 * and sees (ghost text, status bar, chat, toasts). Waits on what the window shows, never on time. Starts no process:
 * server.ts did; what the extension host holds is read through `extensionHost` and processes.ts.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Browser, chromium, type FrameLocator, type Locator, type Page } from 'playwright-core';
import { commandLine, processesWith } from './processes.ts';
import { KEYS } from './keys.ts';
import { type EditorServerAddress, RUN_VARIABLE } from './server.ts';

/** For whatever the machine's load decides; a wait that lasts this long is a failure. */
export const PATIENCE = 60_000;

/** For the quick input to be open with its list, before its key is pressed again. */
const ATTEMPT_MS = 5_000;

/** Where screenshots go; without it none are taken. */
const SCREENSHOTS = process.env.KVASIR_SCREENSHOTS;

export type Theme = 'dark' | 'light' | 'contrast' | 'contrastLight';

/** What a theme is called in the settings, and the classes by which a window and a webview's page show it. */
const THEMES: Record<Theme, { name: string; workbench: string; webview: string }> = {
  dark: { name: 'Default Dark Modern', workbench: 'vs-dark', webview: 'vscode-dark' },
  light: { name: 'Default Light Modern', workbench: 'vs', webview: 'vscode-light' },
  contrast: { name: 'Default High Contrast', workbench: 'hc-black', webview: 'vscode-high-contrast' },
  contrastLight: { name: 'Default High Contrast Light', workbench: 'hc-light', webview: 'vscode-high-contrast-light' },
};

/** A setting of the user's; a folder has no say in it. */
const TRUST = 'security.workspace.trust.enabled';

const STATUS_ID = 'kvasir.kvasir.kvasir.status';

/** How a window may differ from the usual one. */
export interface EditorOptions {
  /** The user's language, "en-US" unless told; Kvasir's own texts follow it, VS Code's stay English for want of its language packs. */
  locale?: string;
  /** Only what VS Code brings runs: a window without Kvasir (and without the tests' helpers). */
  withoutExtensions?: boolean;
  /** The folder's authors are not trusted: restricted mode. */
  untrusted?: boolean;
}

/** What the recorder uses of the chat view's globals: a browser's types are no part of this project's program. */
interface ChatGlobals {
  answerHistory: { state: string; length: number }[];
  answerObserver?: { disconnect(): void };
  MutationObserver: new (
    changed: () => void,
  ) => { observe(target: unknown, options: object): void; disconnect(): void };
}

/** What is used of a browser's IndexedDB. */
interface DatabaseRequest<T> {
  readonly result: T;
  readonly error: unknown;
  onsuccess: () => void;
  onerror: () => void;
}

interface Databases {
  databases(): Promise<{ name: string }[]>;
  open(name: string): DatabaseRequest<{
    readonly objectStoreNames: Iterable<string>;
    transaction(store: string): { objectStore(store: string): { getAll(): DatabaseRequest<unknown[]> } };
    close(): void;
  }>;
}

export class Editor {
  readonly page: Page;
  /** Absolute path of the opened folder. */
  readonly folder: string;
  /** Process id of this window's extension host. */
  readonly extensionHost: number;
  /** Error lines of the window's console that name the extension. */
  readonly problems: string[];
  readonly #browser: Browser;
  readonly #server: EditorServerAddress;

  private constructor(
    server: EditorServerAddress,
    browser: Browser,
    page: Page,
    folder: string,
    extensionHost: number,
    problems: string[],
  ) {
    this.#server = server;
    this.#browser = browser;
    this.page = page;
    this.folder = folder;
    this.extensionHost = extensionHost;
    this.problems = problems;
  }

  /** Opens a new window on a new folder that holds `files` (relative path to content), with an extension host of its own. */
  static async open(
    address: EditorServerAddress,
    files: Record<string, string>,
    options: EditorOptions = {},
  ): Promise<Editor> {
    const folder = path.join(mkdtempSync(path.join(address.folder, 'workspaces', 'window-')), 'warehouse');
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
      writeFileSync(path.join(folder, name), content);
    }
    // The user's, so each window sets it for itself.
    mergeJson(path.join(address.folder, 'user/User/settings.json'), { [TRUST]: options.untrusted === true });
    const hosts = () =>
      processesWith(RUN_VARIABLE, address.runId).filter((pid) => commandLine(pid).includes('--type=extensionHost'));
    const earlier = new Set(hosts());
    const browser = await chromium.connect(address.browser);
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, locale: options.locale ?? 'en-US' });
    page.setDefaultTimeout(PATIENCE);
    const problems: string[] = [];
    page.on('console', (message) => {
      if (message.type() === 'error' && /kvasir\.kvasir|extensions\/kvasir/.test(message.text()))
        problems.push(message.text());
    });
    await page.goto(
      `${address.url}/?${new URLSearchParams({ folder, ...(options.withoutExtensions && { payload: '[["disableExtensions","true"]]' }) })}`,
    );
    await page.locator('.monaco-workbench').waitFor();
    if (address.installed && !options.withoutExtensions) await page.locator(`[id="${STATUS_ID}"]`).waitFor();
    const own = () => hosts().find((pid) => !earlier.has(pid));
    for (const end = performance.now() + PATIENCE; own() === undefined && performance.now() < end; )
      await page.waitForTimeout(100);
    const extensionHost = own();
    if (extensionHost === undefined) throw new Error('the window has no extension host of its own');
    return new Editor(address, browser, page, folder, extensionHost, problems);
  }

  /** Closes the window. Its extension host ends by itself once the server no longer expects the window to come back. */
  async close(): Promise<void> {
    await this.#browser.close();
  }

  file(name: string): string {
    return path.join(this.folder, name);
  }

  /** Brings a file of the folder to the front, with the keyboard in it and the cursor at a 1-based line and column. */
  async openFile(name: string, line?: number, column = 1): Promise<void> {
    const tab = this.page.locator(`.tab.active[data-resource-name="${path.basename(name)}"]`).first();
    // The list may be drawn anew beneath the click.
    for (const end = performance.now() + PATIENCE; ; ) {
      await this.#choose(
        'Control+P',
        this.file(name) + (line ? `:${line}:${column}` : ''),
        `[aria-label^="${path.basename(name)}"]`,
      );
      if (
        await tab.waitFor({ timeout: ATTEMPT_MS }).then(
          () => true,
          () => false,
        )
      )
        break;
      if (performance.now() > end) throw new Error(`${name} does not come to the front`);
    }
    // A view that was opened just before may take the keyboard when its page is there.
    const focused = this.page.locator('.editor-instance .monaco-editor.focused');
    for (let tries = 0; tries < 3; tries++) {
      if (
        await focused.waitFor({ timeout: 5000 }).then(
          () => true,
          () => false,
        )
      )
        break;
      await this.press('Control+1');
    }
    await focused.waitFor();
    if (line) await this.#cursorAt(line, column);
  }

  /** Puts the cursor at a 1-based line and column. */
  async goTo(line: number, column: number): Promise<void> {
    await this.#choose('Control+G', `:${line}:${column}`, `[aria-label*="${line}"]`);
    await this.#cursorAt(line, column);
    await this.page.locator('.editor-instance .monaco-editor.focused').waitFor();
  }

  async #cursorAt(line: number, column: number): Promise<void> {
    await this.page.locator('[id="status.editor.selection"]', { hasText: `Ln ${line}, Col ${column}` }).waitFor();
  }

  async type(text: string): Promise<void> {
    await this.page.keyboard.type(text, { delay: 20 });
  }

  async press(key: string): Promise<void> {
    await this.page.keyboard.press(key);
  }

  /** Runs a command by its exact title in the palette, such as "Kvasir: Open Chat"; by its key where `KEYS` has one. */
  async runCommand(title: string): Promise<void> {
    const key = KEYS.get(title);
    if (key) return this.press(key);
    await this.startCommand(title);
    await this.page.locator('.quick-input-widget').waitFor({ state: 'hidden' });
  }

  /** Runs a command of the palette that asks something itself, in the palette's place. */
  async startCommand(title: string): Promise<void> {
    // A keybinding may follow the title.
    await this.#choose('F1', `>${title}`, `[aria-label="${title}"], [aria-label^="${title}, "]`);
  }

  /** Runs a command of the palette that offers a list; returns the list's row with this text once it is there. */
  async runPicker(title: string, row: string | RegExp): Promise<Locator> {
    await this.startCommand(title);
    const found = this.page.locator('.quick-input-list .monaco-list-row', { hasText: row }).first();
    await found.waitFor();
    return found;
  }

  /** The palette's input with this text in it, once its list begins with a `row`: an attribute selector. */
  async palette(text: string, row: string): Promise<Locator> {
    await this.#quickInput('F1', text, row, async () => {});
    return this.page.locator('.quick-input-widget input').first();
  }

  /** Takes the row on top by the mouse: a key would go into the text where the input has just closed. */
  #choose(key: string, query: string, row: string): Promise<void> {
    return this.#quickInput(key, query, row, (top) => top.click({ timeout: ATTEMPT_MS }));
  }

  /**
   * Opens the quick input by its key, types the query and has `take` the row on top once it is a `row`. A page that takes the focus
   * at the same moment closes the input again, or keeps its key: then all over again, as a user would.
   */
  async #quickInput(key: string, query: string, row: string, take: (top: Locator) => Promise<void>): Promise<void> {
    const input = this.page.locator('.quick-input-widget input').first();
    const top = this.page.locator('.quick-input-list .monaco-list-row.focused').and(this.page.locator(row)).first();
    for (const end = performance.now() + PATIENCE; ; ) {
      try {
        // Also where a list of something else is open still: it gives way.
        await this.press(key);
        await input.fill(query, { timeout: ATTEMPT_MS });
        await top.waitFor({ timeout: ATTEMPT_MS });
        return await take(top);
      } catch (error) {
        if (performance.now() > end) throw error;
      }
    }
  }

  /** What the suggestion shown at the cursor would insert, "" where none is shown. Tabs appear as the spaces VS Code draws. */
  async ghostText(): Promise<string> {
    const [first = []] = await this.#linesOf(
      '.view-lines .view-line:has(.ghost-text-decoration)',
      '.ghost-text-decoration',
    );
    const further = await this.#linesOf('.suggest-preview-text .view-line', '.ghost-text');
    return [first, ...further].map((pieces) => pieces.join('')).join('\n');
  }

  /** The lines that the window draws of the active file (not those scrolled out of sight), ghost text left out. */
  async editorText(): Promise<string> {
    const lines = await this.#linesOf('.view-lines .view-line', 'span > span:not([class*="ghost-text"])');
    return lines.map((pieces) => pieces.join('')).join('\n');
  }

  /** The lines that the window draws of the active file, whole, and the number of the first (from 1). */
  async visibleText(): Promise<{ firstLine: number; lines: string[] }> {
    // In one look, so that nothing scrolls in between.
    const drawn = await this.page.locator('.editor-instance').evaluate((editor) => {
      const top = (element: unknown) => Number.parseInt((element as { style: { top: string } }).style.top, 10);
      return {
        numbers: [...editor.querySelectorAll('.margin-view-overlays .line-numbers')]
          .map((element) => Number(element.textContent))
          .filter((n) => n > 0),
        lines: [...editor.querySelectorAll('.view-lines .view-line')]
          .sort((a, b) => top(a) - top(b))
          .map((line) =>
            [...line.querySelectorAll('span > span:not([class*="ghost-text"])')]
              .map((piece) => piece.textContent ?? '')
              .join(''),
          ),
      };
    });
    return {
      firstLine: Math.min(...drawn.numbers),
      lines: drawn.lines.map((line) => line.replaceAll('\u00a0', ' ').replaceAll('\u200b', '')),
    };
  }

  /** The text pieces of each line of the active editor, from top to bottom. */
  async #linesOf(lines: string, pieces: string): Promise<string[][]> {
    const drawn = await this.page.locator(`.editor-instance ${lines}`).evaluateAll(
      (elements, selector) =>
        elements.map((element) => ({
          top: Number.parseInt((element as unknown as { style: { top: string } }).style.top, 10),
          pieces: [...element.querySelectorAll(selector)].map((piece) => piece.textContent ?? ''),
        })),
      pieces,
    );
    return drawn
      .sort((a, b) => a.top - b.top)
      .map((line) => line.pieces.map((piece) => piece.replaceAll('\u00a0', ' ').replaceAll('\u200b', '')));
  }

  /** Saves the active file and returns the whole of it as it is on disk. */
  async savedText(name: string): Promise<string> {
    await this.press('Control+S');
    await this.page
      .locator(`.tab.active[data-resource-name="${path.basename(name)}"]:not(.dirty)`)
      .first()
      .waitFor();
    return readFileSync(this.file(name), 'utf8');
  }

  get statusItem(): Locator {
    return this.page.locator(`[id="${STATUS_ID}"]`);
  }

  /** Text of the status bar item's hover. The mouse stays on it until `unhover`. */
  async statusHover(): Promise<string> {
    const hover = this.page.locator('.monaco-hover:visible', { hasText: /\S/ });
    // VS Code closes a hover whose item changes under it, also before it is shown, and between waiting for it and reading it: then the mouse comes anew.
    for (let attempt = 0; attempt < 5; attempt++) {
      await this.statusItem.hover();
      await hover
        .last()
        .waitFor({ timeout: PATIENCE / 5 })
        .catch(() => {});
      // It stands on the status bar; the mouse may have passed a tab on its way, whose hover is somewhere else.
      const texts = await hover.evaluateAll((all) =>
        all
          .filter((each) => each.getBoundingClientRect().bottom > innerHeight - 60)
          .map((each) => (each as HTMLElement).innerText),
      );
      if (texts.length > 0) return texts.join('\n');
      await this.unhover();
    }
    throw new Error('The hover of the status bar item does not stay.');
  }

  async unhover(): Promise<void> {
    const hover = this.page.locator('.monaco-hover:visible');
    // One that is shown only after the mouse has left stays until it moves again, and not over a view's frame, which keeps what it sees to
    // itself: behind the last tab there is nothing. There may be two, the old one and a new one.
    for (let attempt = 0; attempt < 25; attempt++) {
      const tabs =
        attempt > 0
          ? await this.page
              .locator('.editor-group-container.active .tabs-and-actions-container')
              .boundingBox()
              .catch(() => null)
          : null;
      await this.page.mouse.move(
        tabs ? tabs.x + 0.6 * tabs.width : 1200,
        tabs ? tabs.y + tabs.height / 2 - (attempt % 3) : 400,
      );
      for (let wait = 0; wait < 10; wait++) {
        if ((await hover.count()) === 0) return;
        await this.page.waitForTimeout(PATIENCE / 250);
      }
    }
    throw new Error(`A hover does not go: ${(await hover.allInnerTexts()).join(' | ')}`);
  }

  /** Whether the browser has written `text` into the state that a window in a browser keeps. */
  async stored(text: string): Promise<boolean> {
    return await this.page.evaluate(async (wanted) => {
      const { indexedDB } = globalThis as unknown as { indexedDB: Databases };
      const ended = <T>(request: DatabaseRequest<T>) =>
        new Promise<T>((resolve, reject) => {
          request.onsuccess = () => resolve(request.result);
          request.onerror = () => reject(request.error);
        });
      for (const { name } of await indexedDB.databases()) {
        const database = await ended(indexedDB.open(name));
        try {
          for (const store of database.objectStoreNames) {
            const values = await ended(database.transaction(store).objectStore(store).getAll());
            if (JSON.stringify(values).includes(wanted)) return true;
          }
        } finally {
          database.close();
        }
      }
      return false;
    }, text);
  }

  /** The panel at the bottom, if there is one. */
  async hidePanel(): Promise<void> {
    if (await this.page.locator('.part.panel').isVisible()) await this.runCommand('View: Hide Panel');
  }

  /** The inside of the chat view. */
  get chat(): FrameLocator {
    return this.page.frameLocator('iframe.webview').frameLocator('iframe#active-frame');
  }

  get answers(): Locator {
    return this.chat.locator('[data-role="assistant"]');
  }

  /** Waits until the conversation that was in the chat view is gone from it. */
  async chatIsEmpty(): Promise<void> {
    // A view that is not there yet has no answers either.
    await this.chat.getByRole('textbox', { name: 'Ask Kvasir' }).waitFor();
    await this.answers.first().waitFor({ state: 'hidden' });
  }

  /** Asks in the chat view and returns the answer once it has appeared; it may still be streaming. */
  async ask(question: string): Promise<Locator> {
    const input = this.chat.getByRole('textbox', { name: 'Ask Kvasir' });
    await input.waitFor();
    const answer = this.answers.nth(await this.answers.count());
    await this.chat.locator('body').evaluate((body) => {
      const view = globalThis as unknown as ChatGlobals;
      view.answerObserver?.disconnect();
      view.answerHistory = [];
      const observer = new view.MutationObserver(() => {
        const answer = [...body.querySelectorAll('[data-role="assistant"]')].at(-1);
        if (!answer) return;
        const now = { state: answer.getAttribute('data-state') ?? '', length: answer.textContent?.length ?? 0 };
        const last = view.answerHistory.at(-1);
        if (now.state !== last?.state || now.length !== last?.length) view.answerHistory.push(now);
      });
      observer.observe(body, { subtree: true, childList: true, characterData: true, attributes: true });
      view.answerObserver = observer;
    });
    await input.fill(question);
    // What was opened just before may take the keyboard meanwhile, and the key with it.
    for (const end = performance.now() + PATIENCE; ; ) {
      await input.press('Enter');
      if (
        await answer.waitFor({ timeout: ATTEMPT_MS }).then(
          () => true,
          () => false,
        )
      )
        return answer;
      if ((await input.inputValue()) !== question || performance.now() > end) break;
    }
    await answer.waitFor();
    return answer;
  }

  /** Each different appearance of the last answer since it was asked for, in order: its state and the length of its text. */
  async answerHistory(): Promise<{ state: string; length: number }[]> {
    return await this.chat.locator('body').evaluate(() => (globalThis as unknown as ChatGlobals).answerHistory);
  }

  async toasts(): Promise<string[]> {
    return await this.page.locator('.notification-toast').allInnerTexts();
  }

  /** Milliseconds between an extension's activation call and its end, as the workbench itself measured them. */
  async activationMs(displayName: string): Promise<number> {
    await this.runCommand('Developer: Show Running Extensions');
    const row = this.page.locator('.runtime-extensions-editor .monaco-list-row', {
      has: this.page.getByText(displayName, { exact: true }),
    });
    const list = this.page.locator('.runtime-extensions-editor .monaco-list');
    await list.hover();
    // Sorted by what they took, slowest first, and only what fits is drawn.
    for (
      const end = performance.now() + PATIENCE;
      !(await row.count()) && performance.now() < end;
      await this.page.waitForTimeout(100)
    )
      await this.page.mouse.wheel(0, 200);
    const text = (await row.allInnerTexts()).join('\n');
    await this.press('Escape');
    await row.first().waitFor({ state: 'hidden' });
    return Number(/Activation:\s*(\d+)\s*ms/.exec(text)?.[1] ?? Number.NaN);
  }

  /** Changes settings of this window's folder; `undefined` takes one back. Those of machine scope go through `configureMachine`. */
  configure(settings: Record<string, unknown>): void {
    mergeJson(this.file('.vscode/settings.json'), settings);
  }

  /** Changes settings of the machine (`kvasir.model`, `kvasir.engine.*`), which all windows share: take them back afterwards. */
  configureMachine(settings: Record<string, unknown>): void {
    mergeJson(path.join(this.#server.folder, 'user/Machine/settings.json'), settings);
  }

  /** Changes the colours of this window and returns when it has them, the webviews' pages included. */
  async setTheme(theme: Theme): Promise<void> {
    const { name, workbench, webview } = THEMES[theme];
    this.configure({ 'workbench.colorTheme': name });
    await this.page.locator(`.monaco-workbench.${workbench}`).waitFor();
    for (const frame of this.page.frames()) {
      const body = frame.name() === 'active-frame' ? frame.locator('body') : undefined;
      if (body && (await body.count())) await frame.locator(`body.${webview}`).waitFor();
    }
    // The status bar's colour takes a while to become the new one.
    await this.page.waitForFunction(
      () => !document.getAnimations().some((animation) => animation instanceof CSSTransition),
    );
  }

  /** `screenshot` once in each theme, as NAME-dark.png, NAME-light.png and NAME-contrast.png; the window is dark again afterwards. */
  async screenshotThemes(name: string): Promise<void> {
    if (!SCREENSHOTS) return;
    for (const theme of ['light', 'contrast', 'dark'] as const) {
      await this.setTheme(theme);
      await this.screenshot(`${name}-${theme}`);
    }
  }

  /** Saves a picture of the window under the folder that KVASIR_SCREENSHOTS names, if it does. */
  async screenshot(name: string): Promise<void> {
    if (SCREENSHOTS) await this.picture(path.join(SCREENSHOTS, `${name}.png`));
  }

  async picture(file: string): Promise<void> {
    mkdirSync(path.dirname(file), { recursive: true });
    await this.page.screenshot({ path: file });
  }
}

/** Writes `changes` into a file of settings, made if there is none. */
function mergeJson(file: string, changes: Record<string, unknown>): void {
  mkdirSync(path.dirname(file), { recursive: true });
  const before = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as object) : {};
  writeFileSync(file, JSON.stringify({ ...before, ...changes }));
}
