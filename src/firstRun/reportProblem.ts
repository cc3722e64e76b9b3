/**
 * `Kvasir: Report Problem`: gathers the facts for problemReport.ts and opens the report as an untitled document. Sends
 * nothing.
 */
import { homedir, userInfo } from 'node:os';
import path from 'node:path';
import * as vscode from '../vscode.ts';
import type { CompletionRecord } from '../completion/record.ts';
import type { EngineState } from '../client/engineClient.ts';
import type { EngineHost } from '../client/engineHost.ts';
import { repositoryName } from '../models/discover.ts';
import { problemReport } from './problemReport.ts';

export async function reportProblem(
  context: vscode.ExtensionContext,
  host: EngineHost,
  completion: CompletionRecord | undefined,
): Promise<void> {
  const { version, contributes } = context.extension.packageJSON as {
    version: string;
    contributes: { configuration: { properties: Record<string, { default?: unknown }> } };
  };
  const settings = vscode.workspace.getConfiguration();
  const changed = Object.entries(contributes.configuration.properties)
    .map(([name, { default: fallback }]) => ({ name, value: settings.get(name), fallback }))
    .filter(({ value, fallback }) => JSON.stringify(value) !== JSON.stringify(fallback));
  // The engine may be broken, so the report works without its answers.
  const [stats, trace] = await Promise.all([
    host.client.stats().catch(() => null),
    host.client.trace().catch(() => null),
  ]);
  const content = problemReport({
    version,
    platform: `${process.platform}-${process.arch}`,
    node: process.versions.node,
    editor:
      `${vscode.env.appName} ${vscode.version} ` +
      `(${vscode.env.uiKind === vscode.UIKind.Web ? 'web' : 'desktop'}${vscode.env.remoteName ? ', remote' : ''})`,
    language: vscode.env.language,
    builtIn: !settings.get('kvasir.model'),
    state: host.client.state,
    stats,
    trace,
    settings: changed,
    problems: [...host.problems],
    completion,
    names: [...namesOfUser(), ...namesOfModel(settings.get<string>('kvasir.model') ?? '', host.client.state)],
  });
  await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ language: 'markdown', content }));
}

/** Names that could appear in a message. */
function namesOfUser(): string[] {
  const files = [
    ...(vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri),
    ...vscode.workspace.textDocuments.map(({ uri }) => uri),
  ].map(({ fsPath }) => fsPath);
  const home = homedir();
  return [...files, ...files.map((file) => path.basename(file)), home, loginName() ?? path.basename(home)].filter(
    (name) => name.length > 2,
  );
}

/** A failure may name a model of the user's own. */
function namesOfModel(setting: string, state: EngineState): string[] {
  if (!setting) return [];
  return [
    setting,
    path.basename(setting),
    repositoryName(setting)?.split('/').at(-1) ?? '',
    state.kind === 'ready' ? state.model.name : '',
  ].filter((name) => name.length > 2);
}

function loginName(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    // Users without an entry in the system's user list have no name.
    return undefined;
  }
}
