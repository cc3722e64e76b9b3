/**
 * Opens files, moves the cursor and runs commands for the tests, which send one JSON object a connection to a socket
 * beside the opened folder. This is faster than the palette and does not depend on what has the focus. An answer is
 * `{}` or `{ "error": string }`.
 */
const { createServer } = require('node:net');
const path = require('node:path');
const vscode = require('vscode');

/** Runs a request. Does not wait for the end of a command, which may wait for the user. */
async function obey({ open, select, closeAll, command, line, column }) {
  const position = line === undefined ? undefined : new vscode.Position(line - 1, column - 1);
  const selection = position && new vscode.Range(position, position);
  if (open !== undefined) await vscode.commands.executeCommand('vscode.open', vscode.Uri.file(open), { selection });
  if (select) {
    // Opening the file would replace a diff.
    await vscode.commands.executeCommand('workbench.action.focusActiveEditorGroup');
    const editor = vscode.window.activeTextEditor;
    if (!editor) throw new Error('no file is in front');
    editor.selection = new vscode.Selection(position, position);
    editor.revealRange(editor.selection, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  }
  const numTabs = () => vscode.window.tabGroups.all.reduce((sum, { tabs }) => sum + tabs.length, 0);
  for (let left = closeAll ? numTabs() : 0; left > 0; left--)
    await vscode.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');
  if (command === undefined) return;
  // The window answers after it has sent what was typed before, so the command sees it.
  await vscode.commands.getCommands();
  const failed = vscode.commands.executeCommand(command).then(
    () => undefined,
    (error) => error,
  );
  const error = await Promise.race([failed, new Promise((resolve) => setTimeout(resolve, 50))]);
  if (/command .* not found/.test(error?.message)) throw error;
}

exports.activate = (context) => {
  const folder = vscode.workspace.workspaceFolders?.[0];
  if (!folder) return;
  // A reloaded window has a new extension host while the old one still ends.
  const address = path.join(path.dirname(folder.uri.fsPath), `driver-${process.pid}.sock`);
  const server = createServer((socket) => {
    let text = '';
    const answer = (result) => socket.end(JSON.stringify(result));
    socket.on('error', () => {});
    socket.setEncoding('utf8').on('data', (data) => {
      text += data;
      if (!text.endsWith('\n')) return;
      obey(JSON.parse(text)).then(
        () => answer({}),
        (error) => answer({ error: String(error?.message ?? error) }),
      );
    });
  }).listen(address);
  context.subscriptions.push({ dispose: () => server.close() });
};
