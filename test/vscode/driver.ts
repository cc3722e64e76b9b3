/**
 * Talks to the helper extension "driver" in a window's extension host, and knows the ids of the commands that the tests
 * run by their titles. commands.test.ts checks that the palette has each command of Kvasir.
 */
import { readFileSync } from 'node:fs';
import { createConnection } from 'node:net';

/**
 * `line` and `column` are 1-based. `select` moves the cursor of the active editor. `closeAll` closes all editors, and
 * unsaved changes are lost.
 */
export type DriverRequest =
  | { open: string; line?: number; column?: number }
  | { select: true; line: number; column: number }
  | { closeAll: true }
  | { command: string };

interface Contribution {
  contributes: { commands: { command: string; title: string; category?: string }[] };
}

const read = <T>(file: string) => JSON.parse(readFileSync(file, 'utf8')) as T;

/** VS Code's commands by their titles in the palette. */
const COMMANDS: [title: string, id: string][] = [
  ['Chat: Open Chat (Ask)', 'workbench.action.chat.openask'],
  ['Developer: Show Running Extensions', 'workbench.action.showRuntimeExtensions'],
  ['File: Compare Active File With...', 'workbench.files.action.compareFileWith'],
  ['Notifications: Clear All Notifications', 'notifications.clearAll'],
  ['Show or Focus Hover', 'editor.action.showHover'],
  ['Source Control: Focus on Changes View', 'workbench.scm.focus'],
  ['Terminal: Kill All Terminals', 'workbench.action.terminal.killAll'],
  ['View: Close All Editors', 'workbench.action.closeAllEditors'],
  ['View: Close Primary Side Bar', 'workbench.action.closeSidebar'],
  ['View: Hide Panel', 'workbench.action.closePanel'],
  ['View: Hide Secondary Side Bar', 'workbench.action.closeAuxiliaryBar'],
  ['View: Keep Editor', 'workbench.action.keepEditor'],
  ['View: Show Explorer', 'workbench.view.explorer'],
  ['View: Toggle Maximized Panel', 'workbench.action.toggleMaximizedPanel'],
  ['View: Toggle Terminal', 'workbench.action.terminal.toggleTerminal'],
  ['Workspaces: Manage Workspace Trust', 'workbench.trust.manage'],
];

/** Command ids by palette title, in every language of Kvasir. */
const IDS: ReadonlyMap<string, string> = new Map([
  ...COMMANDS,
  ...['package.nls.json', 'package.nls.pt-br.json'].flatMap((words) => titles('package.json', read(words))),
  ...titles('test/vscode/helpers/language-model/package.json', {}),
]);

function titles(manifest: string, words: Record<string, string>): [title: string, id: string][] {
  return read<Contribution>(manifest).contributes.commands.map(({ category, title, command }) => [
    `${category}: ${words[title.slice(1, -1)] ?? title}`,
    command,
  ]);
}

/** The id of the command with this palette title. Throws for a title that is not in the table. */
export function commandId(title: string): string {
  const id = IDS.get(title);
  if (!id) throw new Error(`driver.ts does not know the id of the command "${title}"`);
  return id;
}

/** Sends a request to the extension host of the window whose socket this is. Throws if it refuses or does not listen. */
export function send(socket: string, request: DriverRequest): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = '';
    const connection = createConnection(socket, () => connection.write(`${JSON.stringify(request)}\n`));
    connection.setEncoding('utf8').on('data', (data) => {
      text += data;
    });
    connection.on('error', reject);
    connection.on('end', () => {
      const { error } = JSON.parse(text || '{"error":"the connection was closed"}') as { error?: string };
      if (error) reject(new Error(error));
      else resolve();
    });
  });
}
