/** Whether the model can follow instructions. A model that cannot is not asked, because it would produce noise. */
import { FIRST_MODEL } from '../../engine/download/knownModels.ts';
import { DOWNLOAD_COMMAND, downloadLabel } from '../models/downloadLines.ts';
import { speech } from '../speech.ts';
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
  const [download, choose] = [downloadLabel(FIRST_MODEL, speech()), vscode.l10n.t('Choose Model')];
  const chosen = await vscode.window.showInformationMessage(`Kvasir: ${message}`, download, choose);
  if (chosen === download) await vscode.commands.executeCommand(DOWNLOAD_COMMAND);
  if (chosen === choose) await vscode.commands.executeCommand('kvasir.chooseModel');
}
