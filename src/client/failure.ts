/** Shows one message for a failed request. Does not repeat failures that engineHost.ts has reported. */
import * as vscode from '../vscode.ts';
import { applyRemedy } from './applyRemedy.ts';
import { EngineError } from './connection.ts';
import type { EngineHost } from './engineHost.ts';
import { remedyLabel, remedyOf } from './remedy.ts';

/** Call it before the request. The returned function shows the error that the request ended with. */
export function failureOf(host: EngineHost): (error: unknown) => void {
  const before = host.client.state;
  return (error) => {
    const { state } = host.client;
    if (host.client.disposed || (state.kind === 'failed' && before.kind !== 'failed')) return;
    void tell(
      error instanceof Error ? error.message : String(error),
      error instanceof EngineError ? error.code : undefined,
    );
  };
}

async function tell(message: string, code: EngineError['code'] | undefined): Promise<void> {
  const remedy = remedyOf(message, code);
  const chosen = await vscode.window.showErrorMessage(
    `Kvasir: ${message}`,
    ...(remedy ? [remedyLabel(remedy, vscode.l10n.t)] : []),
  );
  if (remedy && chosen !== undefined) await applyRemedy(remedy);
}
