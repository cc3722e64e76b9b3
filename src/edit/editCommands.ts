/** Creates and registers the commands that change code or write commit messages. */
import * as vscode from '../vscode.ts';
import { CommitMessage } from '../commit/commitMessage.ts';
import type { Settings } from '../config.ts';
import type { DocumentMirror } from '../client/documentMirror.ts';
import type { EngineHost } from '../client/engineHost.ts';
import type { EditPreview } from './editPreview.ts';
import { EditSelection } from './editSelection.ts';

export function registerEdits(
  context: vscode.ExtensionContext,
  host: EngineHost,
  mirror: DocumentMirror,
  settings: Settings,
  preview: EditPreview,
): vscode.Disposable {
  const editSelection = new EditSelection(context.workspaceState, host, mirror, preview);
  const commitMessage = new CommitMessage(host, settings);
  return vscode.Disposable.from(
    preview,
    vscode.commands.registerCommand('kvasir.editSelection', () => editSelection.run()),
    vscode.commands.registerCommand('kvasir.acceptEdit', () => preview.accept()),
    vscode.commands.registerCommand('kvasir.rejectEdit', () => preview.reject()),
    vscode.commands.registerCommand('kvasir.commitMessage', (source?: { rootUri?: vscode.Uri }) =>
      commitMessage.run(source),
    ),
  );
}
