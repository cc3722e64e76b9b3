/** The "Kvasir" output channel, where every part of the extension logs what it did and why it did nothing. */
import * as vscode from './vscode.ts';

export type Log = vscode.LogOutputChannel;

export function createLog(): Log {
  return vscode.window.createOutputChannel('Kvasir', { log: true });
}
