/** Takes the user to what a failure calls for. */
import * as vscode from '../vscode.ts';
import type { Remedy } from './remedy.ts';

export async function applyRemedy(remedy: Remedy): Promise<void> {
  if (remedy.kind === 'model') await vscode.commands.executeCommand('kvasir.chooseModel');
  else await openSettings([remedy.key]);
}

/** One is looked for by its name; several are among all of them. */
export async function openSettings(keys: readonly string[]): Promise<void> {
  const query = keys.length === 1 ? `@id:${keys[0]}` : '@ext:kvasir.kvasir';
  // Settings of the machine are not among the user's where that is another one.
  await vscode.commands.executeCommand(
    vscode.env.remoteName ? 'workbench.action.openRemoteSettings' : 'workbench.action.openSettings',
    { query },
  );
}
