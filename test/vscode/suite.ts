/**
 * `editorSuite` runs tests over one window. Suites of one process use the same window in turn, because opening one takes
 * more processor time than most suites. Where no editor runs, the suite is skipped and its name shows the reason.
 */
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe } from 'vitest';
import { Editor, type EditorOptions } from './editor.ts';
import { ownServer } from './ownServer.ts';
import type { EditorServerAddress } from './server.ts';

export { INVENTORY } from './inventory.ts';

/** The window that the last suite has left, for the next one. */
let left: Editor | undefined;

async function windowFor(
  server: EditorServerAddress,
  files: Record<string, string>,
  own: boolean,
  options: EditorOptions,
): Promise<Editor> {
  const window = left;
  left = undefined;
  if (window && !own) {
    try {
      await window.renew(files);
      return window;
    } catch (error) {
      console.log(`The window cannot be used again: ${(error as Error).message}`);
    }
  }
  await window?.close();
  return await Editor.open(server, files, options);
}

interface SuiteOptions extends EditorOptions {
  /** No other suite uses the window. This is so with options of the window, too. */
  own?: boolean;
  /** A second attempt gets a new window. It implies `own`. */
  reopen?: boolean;
}

/**
 * Runs `tests` over one window with `files` in its folder. Call `editor()` only inside tests and hooks.
 *
 * A suite finds the window as a new one, except that conversations of before are listed and the extension host has the
 * engine's libraries. If one of its tests fails, the next suite gets a new window.
 *
 * A second attempt finds the files as they were at first. With `reopen` it gets a new window, for tests of what happens
 * only once in a window. Such a suite prepares its window in its tests.
 */
export function editorSuite(
  name: string,
  files: Record<string, string>,
  tests: (editor: () => Editor) => void,
  { reopen = false, own = reopen, ...options }: SuiteOptions = {},
): void {
  const server = ownServer();
  if (typeof server === 'string') {
    describe.skip(`${name} (${server})`, () => tests(() => undefined as never));
    return;
  }
  const isOwn = own || Object.keys(options).length > 0;
  describe(name, () => {
    let window: Editor;
    let numPassed = 0;
    let numOther = 0;
    beforeAll(async () => {
      window = await windowFor(server, files, isOwn, options);
    });
    beforeEach(() => {
      numOther++;
    });
    afterEach(async ({ task }) => {
      if (task.result?.state === 'pass') {
        numPassed++;
        numOther--;
      }
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
      // Without any test a hook has failed.
      if (!isOwn && numPassed && !numOther) left = window;
      else await window?.close();
    });
    tests(() => window);
  });
}

/** An editor suite with a window that no other suite uses. */
export function ownEditorSuite(
  name: string,
  files: Record<string, string>,
  tests: (editor: () => Editor) => void,
  options: SuiteOptions = {},
): void {
  editorSuite(name, files, tests, { ...options, own: true });
}
