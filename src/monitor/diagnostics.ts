/**
 * The commands that open a document about what Kvasir did: `Explain Last Completion`, `Export Step Trace` and `Report
 * Problem`. They send nothing.
 */
import { messageOf } from '../format.ts';
import { homedir, userInfo } from 'node:os';
import path from 'node:path';
import * as vscode from '../vscode.ts';
import type { EngineClient } from '../client/engineClient.ts';
import type { EngineState } from '../client/engineLifecycle.ts';
import type { CompletionRecord } from '../completion/record.ts';
import type { EngineHost } from '../client/engineHost.ts';
import { repositoryName } from '../../engine/find/names.ts';
import { problemReport } from './problemReport.ts';

const SCHEME = 'kvasir-explanation';
const PAGE = vscode.Uri.from({ scheme: SCHEME, path: '/Last Completion.md' });

/** `Kvasir: Explain Last Completion` as a read-only document, which can be searched and copied. */
export class Explanation implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<vscode.Uri>();
  readonly #registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  readonly #text: () => string;

  /** `text` builds the page when it is shown. */
  constructor(text: () => string) {
    this.#text = text;
  }

  get onDidChange(): vscode.Event<vscode.Uri> {
    return this.#changed.event;
  }

  provideTextDocumentContent(): string {
    return this.#text();
  }

  async show(): Promise<void> {
    this.#changed.fire(PAGE);
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(PAGE), { preview: true });
  }

  dispose(): void {
    this.#registration.dispose();
    this.#changed.dispose();
  }
}

/** Opens the engine's last steps as Chrome trace JSON in an untitled document. */
export async function exportTrace(client: EngineClient): Promise<void> {
  const { t } = vscode.l10n;
  let content: string | null;
  try {
    content = await client.trace();
  } catch (error) {
    const reason = messageOf(error);
    void vscode.window.showErrorMessage(t('Kvasir: the trace could not be read: {0}', reason));
    return;
  }
  if (content === null) {
    void vscode.window.showInformationMessage(
      t('Kvasir: there is no trace yet. The engine starts with the first request.'),
    );
    return;
  }
  await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ language: 'json', content }), {
    preview: false,
  });
  void vscode.window.showInformationMessage(
    [
      t('Save the trace and open it in ui.perfetto.dev or chrome://tracing.'),
      t('It contains only times and counts, none of your text.'),
    ].join(' '),
  );
}

/** Gathers the facts for problemReport.ts and opens the report as an untitled document. */
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
