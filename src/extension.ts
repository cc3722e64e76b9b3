/**
 * Entry point of the extension: activate and deactivate. Follows `kvasir.enable`; while it is off, only this file and
 * the settings are active.
 */
import type * as vscode from 'vscode';
import { Features } from './features.ts';
import { Settings } from './config.ts';
import { createLog, type Log } from './log.ts';

let features: Features | undefined;
let stopped: Promise<void> | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const settings = new Settings();
  let log: Log | undefined;
  const follow = () => {
    if (!settings.current.enable) {
      stop();
    } else if (!features) {
      if (!log) {
        log = createLog();
        context.subscriptions.push(log);
      }
      features = new Features(context, settings, log);
    }
  };
  context.subscriptions.push(settings, settings.onDidChange(follow));
  follow();
}

export function deactivate(): Promise<void> | undefined {
  stop();
  return stopped;
}

function stop(): void {
  if (!features) return;
  stopped = features.stop();
  features = undefined;
}
