/**
 * Drives one window of the VS Code under test like a user and reads what the window shows. Waits for what it shows,
 * never for time. Starts no process: server.ts does that. `extensionHost` and processes.ts give access to the extension
 * host's process.
 */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import type { BrowserContext, FrameLocator, Locator, Page } from 'playwright-core';
import { browserFor } from './browser.ts';
import { commandLine, processesWith } from './processes.ts';
import { commandId, type DriverRequest, send } from './driver.ts';
import { type EditorServerAddress, RUN_VARIABLE } from './server.ts';

/** Timeout for waits whose length depends on the machine's load. A wait this long is a failure. */
export const PATIENCE = 60_000;

const VIEWPORT = { width: 1280, height: 800 };

/** How long the quick input may take to open with its list before its key is pressed again. */
const ATTEMPT_MS = 5_000;

/** The folder for screenshots. If unset, no screenshots are taken. */
const SCREENSHOTS = process.env.KVASIR_SCREENSHOTS;

export type Theme = 'dark' | 'light' | 'contrast' | 'contrastLight';

/** A theme's name in the settings, and the classes of a window and of a webview's page with that theme. */
const THEMES: Record<Theme, { name: string; workbench: string; webview: string }> = {
  dark: { name: 'Default Dark Modern', workbench: 'vs-dark', webview: 'vscode-dark' },
  light: { name: 'Default Light Modern', workbench: 'vs', webview: 'vscode-light' },
  contrast: { name: 'Default High Contrast', workbench: 'hc-black', webview: 'vscode-high-contrast' },
  contrastLight: { name: 'Default High Contrast Light', workbench: 'hc-light', webview: 'vscode-high-contrast-light' },
};

/** A user setting. A folder's settings cannot change it. */
const TRUST = 'security.workspace.trust.enabled';

const STATUS_ID = 'kvasir.kvasir.kvasir.status';

/** How a window may differ from the default one. */
export interface EditorOptions {
  /**
   * The user's language, "en-US" by default. Kvasir's texts follow it. VS Code's texts stay English because its
   * language packs are not installed.
   */
  locale?: string;
  /** Runs only VS Code's own extensions: a window without Kvasir and without the tests' helpers. */
  withoutExtensions?: boolean;
  /** The folder's authors are not trusted (restricted mode). */
  untrusted?: boolean;
}

/** Globals of the chat view's page that the recorder uses. This project does not include the browser's types. */
interface ChatGlobals {
  answerHistory: { state: string; length: number }[];
  answerObserver?: { disconnect(): void };
  MutationObserver: new (
    changed: () => void,
  ) => { observe(target: unknown, options: object): void; disconnect(): void };
}

/** Globals of the window's page. */
interface PageGlobals extends EventTarget {
  self: unknown;
  top: unknown;
  document: EventTarget & {
    head: { insertAdjacentHTML(position: string, html: string): void };
    hasFocus(): boolean;
  };
}

/** The part of the browser's IndexedDB that is used here. */
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
  readonly #context: BrowserContext;
  /** Error lines in the window's console that name the extension. */
  readonly problems: string[];
  readonly #server: EditorServerAddress;
  /** The driver's socket in this window's extension host. A window without extensions has none. */
  #driver: string | undefined;
  #extensionHost: number;
  /** Files with the user's and the machine's settings, and their contents when the window was opened. */
  readonly #settings: ReadonlyMap<string, string>;
  /** The file that was opened last. */
  #opened: string | undefined;
  /** Also those of extension hosts before a reload, which may still be there. */
  readonly #sockets = new Set<string>();

  private constructor(
    server: EditorServerAddress,
    context: BrowserContext,
    page: Page,
    folder: string,
    extensionHost: number,
    problems: string[],
    settings: ReadonlyMap<string, string>,
  ) {
    this.#server = server;
    this.#context = context;
    this.page = page;
    this.folder = folder;
    this.#extensionHost = extensionHost;
    this.problems = problems;
    this.#settings = settings;
  }

  /** Opens a new window with its own extension host on a new folder that holds `files` (relative path to content). */
  static async open(
    address: EditorServerAddress,
    files: Record<string, string>,
    options: EditorOptions = {},
  ): Promise<Editor> {
    const folder = path.join(mkdtempSync(path.join(address.folder, 'workspaces', 'window-')), 'warehouse');
    for (const [name, content] of Object.entries(files)) writeIfOther(path.join(folder, name), content);
    const settings = settingsFiles(address);
    // This is a user setting, so each window sets it.
    mergeJson(settings.user, { [TRUST]: options.untrusted === true });
    mergeJson(settings.machine, {});
    const earlier = new Set(extensionHosts(address));
    const context = await (await browserFor(address.browser)).newContext({
      viewport: VIEWPORT,
      locale: options.locale ?? 'en-US',
      reducedMotion: 'reduce',
      // The server would compress each file for each window, which takes it a second of processor time.
      extraHTTPHeaders: { 'accept-encoding': 'identity' },
    });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE);
    await page.addInitScript(calm);
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
    const extensionHost = await newExtensionHost(address, earlier);
    const before = new Map(Object.values(settings).map((file) => [file, readFileSync(file, 'utf8')]));
    const editor = new Editor(address, context, page, folder, extensionHost, problems, before);
    if (!options.withoutExtensions) await editor.#findDriver();
    return editor;
  }

  /** Process id of this window's extension host. */
  get extensionHost(): number {
    return this.#extensionHost;
  }

  /** Reloads the window like the browser's button. Its extension host is a new process then. */
  async reload(): Promise<void> {
    const earlier = new Set(extensionHosts(this.#server));
    await this.page.reload();
    await this.page.locator('.monaco-workbench').waitFor();
    this.#extensionHost = await newExtensionHost(this.#server, earlier);
    await this.#findDriver();
  }

  /** Waits until a new extension host listens. */
  async #findDriver(): Promise<void> {
    const folder = path.dirname(this.folder);
    const found = () => readdirSync(folder).find((name) => name.endsWith('.sock') && !this.#sockets.has(name));
    for (const end = performance.now() + PATIENCE; !found() && performance.now() < end; )
      await this.page.waitForTimeout(50);
    this.#driver = found();
    if (!this.#driver) throw new Error('the driver does not listen in the extension host');
    this.#sockets.add(this.#driver);
  }

  #drive(request: DriverRequest): Promise<void> {
    return send(path.join(path.dirname(this.folder), this.#driver ?? ''), request);
  }

  /**
   * Makes the folder hold `files` again, with no other settings, for a second attempt. Unsaved changes are lost. Only the
   * file that was opened last is open afterwards.
   */
  async restore(files: Record<string, string>): Promise<void> {
    if (this.#driver) await this.#drive({ closeAll: true });
    if (!('.vscode/settings.json' in files)) rmSync(this.file('.vscode/settings.json'), { force: true });
    for (const [name, content] of Object.entries(files)) writeIfOther(this.file(name), content);
    if (this.#opened !== undefined && this.#opened in files) await this.openFile(this.#opened);
  }

  /**
   * Makes the window as a new one, with `files` in its folder, for the next suite. Kvasir is switched off and on: its
   * engine, its views and what it remembers for the window are new then. Conversations stay in its list.
   */
  async renew(files: Record<string, string>): Promise<void> {
    for (let presses = 0; presses < 3; presses++) await this.press('Escape');
    await this.page.mouse.move(1200, 400);
    await this.page.setViewportSize(VIEWPORT);
    await this.#drive({ closeAll: true });
    await this.runCommand('Kvasir: New Conversation');
    for (const title of [
      'Notifications: Clear All Notifications',
      'Terminal: Kill All Terminals',
      'View: Hide Panel',
      'View: Hide Secondary Side Bar',
      'View: Show Explorer',
    ])
      await this.runCommand(title);
    const settings = '.vscode/settings.json';
    for (const [file, before] of this.#settings) writeIfOther(file, before);
    writeIfOther(this.file(settings), '{"kvasir.enable":false}');
    await this.statusItem.waitFor({ state: 'hidden' });
    for (const name of readdirSync(this.folder))
      if (name !== '.vscode') rmSync(this.file(name), { recursive: true, force: true });
    for (const [name, content] of Object.entries(files)) if (name !== settings) writeIfOther(this.file(name), content);
    if (settings in files) writeIfOther(this.file(settings), files[settings]!);
    else rmSync(this.file(settings));
    await this.statusItem.waitFor();
    await this.page.locator(`.monaco-workbench.${THEMES.dark.workbench}`).waitFor();
    this.#opened = undefined;
    this.problems.length = 0;
  }

  /** Closes the window. Its extension host ends by itself when the server no longer expects the window to return. */
  async close(): Promise<void> {
    await this.#context.close();
  }

  file(name: string): string {
    return path.join(this.folder, name);
  }

  /** Shows a file of the folder in front, with the keyboard focus in it and the cursor at a 1-based line and column. */
  async openFile(name: string, line?: number, column = 1): Promise<void> {
    this.#opened = name;
    const tab = this.page.locator(`.tab.active[data-resource-name="${path.basename(name)}"]`).first();
    const focused = this.page.locator('.editor-instance .monaco-editor.focused');
    // A view that was opened just before may take the keyboard focus when its page is ready.
    for (const end = performance.now() + PATIENCE; ; ) {
      if (this.#driver) await this.#drive({ open: this.file(name), ...(line && { line, column }) });
      else await this.#choose('Control+P', this.file(name), `[aria-label^="${path.basename(name)}"]`);
      if ((await appears(tab)) && (await appears(focused))) break;
      if (performance.now() > end) throw new Error(`${name} does not come to the front`);
    }
    if (line) await this.#cursorAt(line, column);
  }

  /** Puts the cursor at a 1-based line and column. */
  async goTo(line: number, column: number): Promise<void> {
    await this.#drive({ select: true, line, column });
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

  /** Runs a command by its palette title, such as "Kvasir: Open Chat". Does not wait until it has ended. */
  async runCommand(title: string): Promise<void> {
    await this.#drive({ command: commandId(title) });
  }

  /** Runs a command that shows a list. Returns the list's row with this text once it exists. */
  async runPicker(title: string, row: string | RegExp): Promise<Locator> {
    await this.runCommand(title);
    const found = this.page.locator('.quick-input-list .monaco-list-row', { hasText: row }).first();
    await found.waitFor();
    return found;
  }

  /**
   * Opens the palette with this text. Returns its input once the first row of the list matches `row`, an attribute
   * selector.
   */
  async palette(text: string, row: string): Promise<Locator> {
    await this.#quickInput('F1', text, row, async () => {});
    return this.page.locator('.quick-input-widget input').first();
  }

  /**
   * Clicks the first row. A page that takes the focus closes the list. A key or a click with the mouse would then go
   * into the editor, and the command would not run. So the window itself clicks, in one step with the look at the row.
   */
  #choose(key: string, query: string, row: string): Promise<void> {
    return this.#quickInput(key, query, row, (top) =>
      top.evaluate(
        (element) => {
          if (element.getClientRects().length === 0) throw new Error('the list is closed');
          (element as HTMLElement).click();
        },
        undefined,
        { timeout: ATTEMPT_MS },
      ),
    );
  }

  /**
   * Opens the quick input by its key, types the query and calls `take` with the first row once it matches `row`. A page
   * that takes the focus at the same moment closes the input or swallows its key. In that case this starts again, as a
   * user would.
   */
  async #quickInput(key: string, query: string, row: string, take: (top: Locator) => Promise<void>): Promise<void> {
    const input = this.page.locator('.quick-input-widget input').first();
    const top = this.page.locator('.quick-input-list .monaco-list-row.focused').and(this.page.locator(row)).first();
    for (const end = performance.now() + PATIENCE; ; ) {
      try {
        // This also works while another list is open: that list closes.
        await this.press(key);
        await setText(input, query, ATTEMPT_MS);
        await top.waitFor({ timeout: ATTEMPT_MS });
        return await take(top);
      } catch (error) {
        if (performance.now() > end) throw error;
      }
    }
  }

  /**
   * The text that the suggestion at the cursor would insert, "" if none is shown. Tabs appear as the spaces that VS
   * Code draws.
   */
  async ghostText(): Promise<string> {
    const [first = []] = await this.#linesOf(
      '.view-lines .view-line:has(.ghost-text-decoration)',
      '.ghost-text-decoration',
    );
    const further = await this.#linesOf('.suggest-preview-text .view-line', '.ghost-text');
    return [first, ...further].map((pieces) => pieces.join('')).join('\n');
  }

  /** The lines of the active file that the window draws, without ghost text and without lines scrolled out of sight. */
  async editorText(): Promise<string> {
    const lines = await this.#linesOf('.view-lines .view-line', 'span > span:not([class*="ghost-text"])');
    return lines.map((pieces) => pieces.join('')).join('\n');
  }

  /** The complete lines of the active file that the window draws, and the number of the first one (1-based). */
  async visibleText(): Promise<{ firstLine: number; lines: string[] }> {
    // Reads everything in one call, so that nothing scrolls in between.
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

  /** Saves the active file and returns its content on disk. */
  async savedText(name: string): Promise<string> {
    const tab = `.tab.active[data-resource-name="${path.basename(name)}"]`;
    await this.page.locator(tab).first().waitFor();
    const saved = this.page.locator(`${tab}:not(.dirty)`).first();
    // A text without changes would be written too, and might be read while its file is empty.
    const isSaved = await saved.isVisible();
    // While a closing diff hands the focus over, the key is lost.
    for (const end = performance.now() + PATIENCE; !isSaved && performance.now() < end; ) {
      await this.press('Control+S');
      if (await appears(saved)) break;
    }
    await saved.waitFor();
    return readFileSync(this.file(name), 'utf8');
  }

  /** Makes the window the active one or one in the background. The browser without a screen knows no difference. */
  async setFocused(focused: boolean): Promise<void> {
    await this.page.evaluate((wanted) => {
      const { document } = globalThis as unknown as PageGlobals;
      document.hasFocus = () => wanted;
      // VS Code looks again at this event.
      document.dispatchEvent(new Event('visibilitychange'));
    }, focused);
  }

  get statusItem(): Locator {
    return this.page.locator(`[id="${STATUS_ID}"]`);
  }

  /** Text of the status bar item's hover. The mouse stays on the item until `unhover`. */
  async statusHover(): Promise<string> {
    const hover = this.page.locator('.monaco-hover:visible', { hasText: /\S/ });
    // VS Code closes a hover when its item changes. This can also happen before the hover is shown, or between waiting
    // for it and reading it. In that case the mouse moves onto the item again.
    for (let attempt = 0; attempt < 5; attempt++) {
      await this.statusItem.hover();
      await hover
        .last()
        .waitFor({ timeout: PATIENCE / 5 })
        .catch(() => {});
      // The right hover is at the status bar. On its way the mouse may have opened a tab's hover elsewhere.
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
    // A hover that appears after the mouse has left stays until the mouse moves again. The move must not be over a
    // webview's frame, which receives the mouse events itself. The space behind the last tab is empty. There may be two
    // hovers, an old one and a new one.
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

  /** Whether the browser has saved `text` in the window's stored state. */
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

  /** Hides the bottom panel if it is visible. */
  async hidePanel(): Promise<void> {
    if (await this.page.locator('.part.panel').isVisible()) await this.runCommand('View: Hide Panel');
  }

  /** The page of the chat view. */
  get chat(): FrameLocator {
    return this.page.frameLocator('iframe.webview').frameLocator('iframe#active-frame');
  }

  get answers(): Locator {
    return this.chat.locator('[data-role="assistant"]');
  }

  /** Waits until the chat view shows no conversation. */
  async chatIsEmpty(): Promise<void> {
    // A view that does not exist yet has no answers either.
    await this.chat.getByRole('textbox', { name: 'Ask Kvasir' }).waitFor();
    await this.answers.first().waitFor({ state: 'hidden' });
  }

  /** Asks in the chat view and returns the answer once it has appeared. The answer may still be streaming. */
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
    await setText(input, question);
    // A view that was opened just before may take the keyboard focus, and the key with it.
    for (const end = performance.now() + PATIENCE; ; ) {
      await input.press('Enter');
      if (await appears(answer)) return answer;
      if ((await input.inputValue()) !== question || performance.now() > end) break;
    }
    await answer.waitFor();
    return answer;
  }

  /** Every appearance of the last answer since its question, in order: its state and the length of its text. */
  async answerHistory(): Promise<{ state: string; length: number }[]> {
    return await this.chat.locator('body').evaluate(() => (globalThis as unknown as ChatGlobals).answerHistory);
  }

  async toasts(): Promise<string[]> {
    return await this.page.locator('.notification-toast').allInnerTexts();
  }

  /** Milliseconds that an extension's activation took, as the workbench measured them. */
  async activationMs(displayName: string): Promise<number> {
    await this.runCommand('Developer: Show Running Extensions');
    const row = this.page.locator('.runtime-extensions-editor .monaco-list-row', {
      has: this.page.getByText(displayName, { exact: true }),
    });
    const list = this.page.locator('.runtime-extensions-editor .monaco-list');
    await list.hover();
    // The list is sorted by duration, slowest first, and draws only the rows that fit.
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

  /** Changes settings of this window's folder; `undefined` removes one. Machine settings need `configureMachine`. */
  configure(settings: Record<string, unknown>): void {
    mergeJson(this.file('.vscode/settings.json'), settings);
  }

  /**
   * Changes machine settings (`kvasir.model`, `kvasir.engine.*`). All windows share them, so tests must restore them.
   */
  configureMachine(settings: Record<string, unknown>): void {
    mergeJson(settingsFiles(this.#server).machine, settings);
  }

  /** Changes this window's colour theme and waits until the window and the webviews' pages show it. */
  async setTheme(theme: Theme): Promise<void> {
    const { name, workbench, webview } = THEMES[theme];
    this.configure({ 'workbench.colorTheme': name });
    await this.page.locator(`.monaco-workbench.${workbench}`).waitFor();
    for (const frame of this.page.frames()) {
      const body = frame.name() === 'active-frame' ? frame.locator('body') : undefined;
      if (body && (await body.count())) await frame.locator(`body.${webview}`).waitFor();
    }
  }

  /**
   * Takes a `screenshot` in each theme: NAME-dark.png, NAME-light.png and NAME-contrast.png. The window is dark again
   * afterwards.
   */
  async screenshotThemes(name: string): Promise<void> {
    if (!SCREENSHOTS) return;
    for (const theme of ['light', 'contrast', 'dark'] as const) {
      await this.setTheme(theme);
      await this.screenshot(`${name}-${theme}`);
    }
  }

  /** Saves a picture of the window in the folder named by KVASIR_SCREENSHOTS, if it is set. */
  async screenshot(name: string): Promise<void> {
    if (SCREENSHOTS) await this.picture(path.join(SCREENSHOTS, `${name}.png`));
  }

  /** The last lines of Kvasir's log. */
  logTail(numLines: number): string {
    const folder = path.join(this.#server.folder, 'user/logs');
    const logs = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => path.basename(name) === 'Kvasir.log')
      .map((name) => path.join(folder, name))
      .sort((a, b) => statSync(a).mtimeMs - statSync(b).mtimeMs);
    const newest = logs.at(-1);
    return newest ? readFileSync(newest, 'utf8').trimEnd().split('\n').slice(-numLines).join('\n') : 'no log';
  }

  async picture(file: string): Promise<void> {
    mkdirSync(path.dirname(file), { recursive: true });
    await this.page.screenshot({ path: file });
  }
}

function settingsFiles({ folder }: EditorServerAddress) {
  return {
    user: path.join(folder, 'user/User/settings.json'),
    machine: path.join(folder, 'user/Machine/settings.json'),
  };
}

function extensionHosts({ runId }: EditorServerAddress): number[] {
  return processesWith(RUN_VARIABLE, runId).filter((pid) => commandLine(pid).includes('--type=extensionHost'));
}

/** Waits for an extension host that is not among `earlier`. */
async function newExtensionHost(address: EditorServerAddress, earlier: ReadonlySet<number>): Promise<number> {
  for (const end = performance.now() + PATIENCE; performance.now() < end; ) {
    const found = extensionHosts(address).find((pid) => !earlier.has(pid));
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('the window has no extension host of its own');
}

/** Whether the element is visible within the time of an attempt. */
function appears(element: Locator): Promise<boolean> {
  return element.waitFor({ timeout: ATTEMPT_MS }).then(
    () => true,
    () => false,
  );
}

/**
 * Puts `text` in place of an input's text, in one step. Playwright's `fill` gives the input the focus and then inserts
 * the text where the focus is. If an editor takes the focus in between, the text goes into the file.
 */
export async function setText(input: Locator, text: string, timeout = PATIENCE): Promise<void> {
  await input.waitFor({ timeout });
  await input.evaluate(
    (element, value) => {
      const area = element as unknown as { value: string; focus(): void } & EventTarget;
      area.focus();
      area.value = value;
      area.dispatchEvent(new Event('input', { bubbles: true }));
    },
    text,
    { timeout },
  );
}

/**
 * Runs in each page. Without a graphics processor, drawing animations takes as much processor time as all
 * else in the browser. Copilot's item is beside Kvasir's and moves under the mouse when Kvasir's item gets shorter. Its
 * hover then stays and keeps Kvasir's hover from opening.
 */
function calm(): void {
  const page = globalThis as unknown as PageGlobals;
  // The webviews' pages permit no further style. Their own styles follow the browser's reduced motion.
  if (page.self !== page.top) return;
  page.addEventListener('DOMContentLoaded', () => {
    page.document.head.insertAdjacentHTML(
      'beforeend',
      `<style>
        *, *::before, *::after { animation: none !important; transition: none !important; }
        [id="chat.statusBarEntry"] { display: none !important; }
      </style>`,
    );
  });
}

/** Writes a file that does not exist or has other content. */
function writeIfOther(file: string, content: string): void {
  if (existsSync(file) && readFileSync(file, 'utf8') === content) return;
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, content);
}

/** Writes `changes` into a settings file. Creates the file if it does not exist. */
function mergeJson(file: string, changes: Record<string, unknown>): void {
  mkdirSync(path.dirname(file), { recursive: true });
  const before = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as object) : {};
  writeFileSync(file, JSON.stringify({ ...before, ...changes }));
}
