/** `Kvasir: Export Step Trace`: opens the engine's last steps as Chrome trace JSON in an untitled document. */
import * as vscode from '../vscode.ts';
import type { EngineClient } from '../client/engineClient.ts';

export async function exportTrace(client: EngineClient): Promise<void> {
  const { t } = vscode.l10n;
  let content: string | null;
  try {
    content = await client.trace();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    void vscode.window.showErrorMessage(t('Kvasir: the trace could not be read: {0}', reason));
    return;
  }
  if (content === null) {
    void vscode.window.showInformationMessage(
      t('Kvasir: there is no trace yet. The engine starts with the first request.'),
    );
    return;
  }
  await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ language: 'json', content }), {
    preview: false,
  });
  void vscode.window.showInformationMessage(
    t(
      'Save the trace and open it in ui.perfetto.dev or chrome://tracing. It contains only times and counts, none of your text.',
    ),
  );
}
