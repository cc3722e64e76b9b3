/** One message for a request that failed: the engine's own failures have been told by engineHost.ts already. */
import * as vscode from '../vscode.ts';
import type { EngineHost } from './engineHost.ts';

/** Call it before the request; what it returns shows the error that the request ended with. */
export function failureOf(host: EngineHost): (error: unknown) => void {
  const before = host.client.state;
  return (error) => {
    const { state } = host.client;
    if (host.client.disposed || (state.kind === 'failed' && before.kind !== 'failed')) return;
    void vscode.window.showErrorMessage(`Kvasir: ${error instanceof Error ? error.message : String(error)}`);
  };
}
