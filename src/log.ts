/** The "Kvasir" output channel: the one place that says what happened and why nothing did. */
import * as vscode from './vscode.ts';

export type Log = vscode.LogOutputChannel;

export function createLog(): Log {
  return vscode.window.createOutputChannel('Kvasir', { log: true });
}
