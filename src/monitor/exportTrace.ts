/** `Kvasir: Export Step Trace`: the engine's last steps as an untitled JSON document, to be saved wherever one likes. */
import * as vscode from '../vscode.ts';
import type { EngineClient } from '../client/engineClient.ts';

export async function exportTrace(client: EngineClient): Promise<void> {
  let json: string | null;
  try {
    json = await client.trace();
  } catch (error) {
    void vscode.window.showErrorMessage(vscode.l10n.t('Kvasir: the trace could not be read: {0}', error instanceof Error ? error.message : String(error)));
    return;
  }
  if (json === null) {
    void vscode.window.showInformationMessage(vscode.l10n.t('Kvasir: there is no trace yet. The engine starts with the first request.'));
    return;
  }
  await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ language: 'json', content: json }), { preview: false });
  void vscode.window.showInformationMessage(vscode.l10n.t('Save the trace and open it in ui.perfetto.dev or chrome://tracing. It holds times and counts only, none of your text.'));
}
