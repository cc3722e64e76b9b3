/** Whether the model can follow instructions. A model that cannot is not asked, because it would produce noise. */
import * as vscode from '../vscode.ts';
import type { EngineHost } from '../client/engineHost.ts';
import { failureOf } from '../client/failure.ts';

/**
 * Loads the model. If it cannot do this, shows a message that offers to choose another model. `cannot` takes the
 * model's name.
 */
export async function followsInstructions(host: EngineHost, cannot: (name: string) => string): Promise<boolean> {
  const tell = failureOf(host);
  try {
    const model = await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Window, title: vscode.l10n.t('Loading the model') },
      () => host.client.ready(),
    );
    if (model.canEdit) return true;
    void offerAnother(cannot(model.name));
  } catch (error) {
    tell(error);
  }
  return false;
}

async function offerAnother(message: string): Promise<void> {
  const choose = vscode.l10n.t('Choose Model');
  if ((await vscode.window.showInformationMessage(`Kvasir: ${message}`, choose)) === choose)
    await vscode.commands.executeCommand('kvasir.chooseModel');
}
