import * as vscode from '../vscode.ts';
import type { EngineClient } from '../client/engineClient.ts';

/** `Kvasir: Export Step Trace`: opens the engine's last steps as Chrome trace JSON in an untitled document. */
export async function exportTrace(client: EngineClient): Promise<void> {
  const { t } = vscode.l10n;
  await open('json', () => client.trace(), {
    failed: (reason) => t('Kvasir: the trace could not be read: {0}', reason),
    nothing: t('Kvasir: there is no trace yet. The engine starts with the first request.'),
    hint: t(
      'Save the trace and open it in ui.perfetto.dev or chrome://tracing. It holds times and counts only, none of your text.',
    ),
  });
}

/** `Kvasir: Export Metrics`: Prometheus text. */
export async function exportMetrics(client: EngineClient): Promise<void> {
  const { t } = vscode.l10n;
  await open('plaintext', () => client.metrics(), {
    failed: (reason) => t('Kvasir: the metrics could not be read: {0}', reason),
    nothing: t('Kvasir: there are no metrics yet. The engine starts with the first request.'),
    hint: t(
      'The figures of the engine, in the text format of Prometheus. They hold times and counts only, none of your text.',
    ),
  });
}

async function open(
  language: string,
  read: () => Promise<string | null>,
  say: { failed: (reason: string) => string; nothing: string; hint: string },
): Promise<void> {
  let content: string | null;
  try {
    content = await read();
  } catch (error) {
    void vscode.window.showErrorMessage(say.failed(error instanceof Error ? error.message : String(error)));
    return;
  }
  if (content === null) {
    void vscode.window.showInformationMessage(say.nothing);
    return;
  }
  await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ language, content }), {
    preview: false,
  });
  void vscode.window.showInformationMessage(say.hint);
}
