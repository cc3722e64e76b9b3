/**
 * Entry point of the extension: activate and deactivate. Follows `kvasir.enable`; while it is off, only this file and
 * the settings are active.
 */
import type * as vscode from 'vscode';
import { Assistant } from './assistant.ts';
import { Settings } from './config.ts';
import { createLog, type Log } from './log.ts';

let assistant: Assistant | undefined;
let stopped: Promise<void> | undefined;

export function activate(context: vscode.ExtensionContext): void {
  const settings = new Settings();
  let log: Log | undefined;
  const follow = () => {
    if (!settings.current.enable) {
      stop();
    } else if (!assistant) {
      if (!log) {
        log = createLog();
        context.subscriptions.push(log);
      }
      assistant = new Assistant(context, settings, log);
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
  if (!assistant) return;
  stopped = assistant.stop();
  assistant = undefined;
}
