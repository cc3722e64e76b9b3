/**
 * The folder that the editor tests open, and `editorSuite`, which runs tests over one window. Where no editor runs, the
 * suite is skipped and its name shows the reason.
 */
import path from 'node:path';
import { afterAll, afterEach, beforeAll, describe } from 'vitest';
import { Editor, type EditorOptions } from './editor.ts';
import { ownServer } from './ownServer.ts';

/** Sample code to complete, ask about and summarise. It is long enough that its reuse shows. */
export const INVENTORY = `/** Keeps what is in stock, by article number. */
export interface Article {
  id: string;
  name: string;
  price: number;
}

export interface StockEntry {
  article: Article;
  count: number;
}

/** Thrown when more is taken out than is there. */
export class OutOfStockError extends Error {
  constructor(id: string, wanted: number, available: number) {
    super(\`wanted \${wanted} of \${id}, only \${available} in stock\`);
    this.name = 'OutOfStockError';
  }
}

/** The stock of one warehouse. */
export class Inventory {
  private readonly entries = new Map<string, StockEntry>();

  /** Adds articles; the number is counted on top of what is there. */
  add(article: Article, count: number): void {
    if (count <= 0) {
      throw new RangeError('count must be positive');
    }
    const entry = this.entries.get(article.id);
    if (entry) {
      entry.count += count;
    } else {
      this.entries.set(article.id, { article, count });
    }
  }

  /** Takes articles out, or throws and changes nothing. */
  remove(id: string, count: number): void {
    const entry = this.entries.get(id);
    const available = entry ? entry.count : 0;
    if (!entry || available < count) {
      throw new OutOfStockError(id, count, available);
    }
    entry.count -= count;
    if (entry.count === 0) {
      this.entries.delete(id);
    }
  }

  /** How many of an article are there. */
  count(id: string): number {
    const entry = this.entries.get(id);
    return entry ? entry.count : 0;
  }

  /** The value of everything in stock. */
  totalValue(): number {
    let total = 0;
    for (const entry of this.entries.values()) {
      total += entry.count * entry.article.price;
    }
    return total;
  }
}
`;

/**
 * Runs `tests` over one window with `files` in its folder. Call `editor()` only inside tests and hooks.
 *
 * A second attempt finds the files as they were at first. With `reopen` it gets a new window, for tests of what happens
 * only once in a window. Such a suite prepares its window in its tests.
 */
export function editorSuite(
  name: string,
  files: Record<string, string>,
  tests: (editor: () => Editor) => void,
  { reopen = false, ...options }: EditorOptions & { reopen?: boolean } = {},
): void {
  const server = ownServer();
  if (typeof server === 'string') {
    describe.skip(`${name} (${server})`, () => tests(() => undefined as never));
    return;
  }
  describe(name, () => {
    let window: Editor;
    beforeAll(async () => {
      window = await Editor.open(server, files, options);
    });
    afterEach(async ({ task }) => {
      if (task.result?.state !== 'fail' || !window) return;
      await window.picture(path.join('.cache/editor-failures', `${name} ${task.name}.png`.replace(/[^\w.]+/g, '-')));
      // The end of the report repeats the stack.
      for (const error of task.result.errors ?? []) error.stack += `\nEnd of Kvasir's log:\n${window.logTail(30)}`;
      // The next attempt begins without what this one left.
      if (reopen) {
        await window.close();
        window = await Editor.open(server, files, options);
        return;
      }
      await window.press('Escape');
      await window.runCommand('Notifications: Clear All Notifications');
      await window.restore(files);
    });
    afterAll(async () => {
      await window?.close();
    });
    tests(() => window);
  });
}
