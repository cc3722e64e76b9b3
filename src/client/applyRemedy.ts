/** Opens the place where the user can fix a failure. */
import * as vscode from '../vscode.ts';
import type { Remedy } from './remedy.ts';

export async function applyRemedy(remedy: Remedy): Promise<void> {
  if (remedy.kind === 'model') await vscode.commands.executeCommand('kvasir.chooseModel');
  else await openSettings([remedy.key]);
}

/** Opens the settings page: one setting by its id, several by the list of all of Kvasir's settings. */
export async function openSettings(keys: readonly string[]): Promise<void> {
  const query = keys.length === 1 ? `@id:${keys[0]}` : '@ext:kvasir.kvasir';
  // In a remote window, machine settings are in the remote settings and not in the user's.
  await vscode.commands.executeCommand(
    vscode.env.remoteName ? 'workbench.action.openRemoteSettings' : 'workbench.action.openSettings',
    { query },
  );
}
