/**
 * Shows one message for a failed request, and opens the place where the user can fix it. Does not decide the remedy.
 */
import { messageOf } from '../format.ts';
import * as vscode from '../vscode.ts';
import { RequestError } from '../../engine/protocol/errors.ts';
import type { EngineClient } from './engineClient.ts';
import { remedyLabel, remedyOf, type Remedy } from './remedy.ts';

/**
 * Call it before the request. The returned function shows the error that the request ended with, unless engineHost.ts
 * has reported the failure.
 */
export function failureOf({ client }: { client: EngineClient }): (error: unknown) => void {
  const before = client.state;
  return (error) => {
    const { state } = client;
    if (client.disposed || (state.kind === 'failed' && before.kind !== 'failed')) return;
    void tell(messageOf(error), error instanceof RequestError ? error.code : undefined);
  };
}

async function tell(message: string, code: RequestError['code'] | undefined): Promise<void> {
  const remedy = remedyOf(message, code);
  const chosen = await vscode.window.showErrorMessage(
    `Kvasir: ${message}`,
    ...(remedy ? [remedyLabel(remedy, vscode.l10n.t)] : []),
  );
  if (remedy && chosen !== undefined) await applyRemedy(remedy);
}

/** Opens the place where the user can fix the failure. */
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

/**
 * Breaks Markdown links in a message. A notification would turn `[text](target)` into a link or a command, and parts of
 * the message may come from a model's files.
 */
export function withoutLinks(message: string): string {
  return message.replace(/\]\(/g, '] (');
}
