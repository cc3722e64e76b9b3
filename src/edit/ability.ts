/** Whether the model can do what an instruction says. One that cannot would produce noise: it is not even asked. */
import * as vscode from '../vscode.ts';
import type { EngineHost } from '../client/engineHost.ts';
import { failureOf } from '../client/failure.ts';

/** Loads the model; says so in one message, with a way to another one, when it cannot. `cannot` takes the model's name. */
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
