/**
 * `Kvasir: Summarize Folder`: chooses the folder, sends its files to the engine, shows progress with cancel, and opens
 * the report.
 */
import { oneLine } from '../../engine/protocol/oneLine.ts';
import { speech } from '../speech.ts';
import * as vscode from '../vscode.ts';
import type { Settings } from '../config.ts';
import type { DocumentMirror } from '../client/documentMirror.ts';
import type { EngineHost } from '../client/engineHost.ts';
import { failureOf } from '../client/failure.ts';
import type { Log } from '../log.ts';
import { relativePath } from '../context/listedFiles.ts';
import { openDocument } from '../context/openDocuments.ts';
import { shownNote } from '../models/locate.ts';
import { type FolderReports, linkTo, reportOf } from './folderReport.ts';
import { type FolderFile, type FolderResult, summarizeFolder } from './folderSummary.ts';
import { filesOf, type FolderFiles, MAX_FILES, MAX_LISTED, readSource } from './sourceFiles.ts';
import type { SummaryCache } from './summaryCache.ts';

export class FolderCommand implements vscode.Disposable {
  readonly #host: EngineHost;
  readonly #mirror: DocumentMirror;
  readonly #settings: Settings;
  readonly #cache: SummaryCache;
  readonly #reports: FolderReports;
  readonly #log: Log;
  readonly #abort = new AbortController();

  constructor(
    host: EngineHost,
    mirror: DocumentMirror,
    settings: Settings,
    cache: SummaryCache,
    reports: FolderReports,
    log: Log,
  ) {
    this.#host = host;
    this.#mirror = mirror;
    this.#settings = settings;
    this.#cache = cache;
    this.#reports = reports;
    this.#log = log;
  }

  /** `uri` comes from the explorer's menu. */
  async run(uri?: vscode.Uri): Promise<void> {
    const folder = uri instanceof vscode.Uri ? uri : await pickFolder();
    if (!folder) return;
    const name = nameOf(folder);
    const tell = failureOf(this.#host);
    try {
      const progress = {
        location: vscode.ProgressLocation.Notification,
        title: vscode.l10n.t('Kvasir: summarizing {0}', name),
        cancellable: true,
      };
      await vscode.window.withProgress(progress, (bar, token) => this.#summarize(folder, name, bar, token));
    } catch (error) {
      tell(error);
    }
  }

  dispose(): void {
    this.#abort.abort();
  }

  async #summarize(
    folder: vscode.Uri,
    name: string,
    bar: vscode.Progress<{ message?: string; increment?: number }>,
    token: vscode.CancellationToken,
  ): Promise<void> {
    const abort = new AbortController();
    token.onCancellationRequested(() => abort.abort());
    const signal = AbortSignal.any([abort.signal, this.#abort.signal]);
    const found = await filesOf(folder, this.#settings.current.completion, token);
    if (!found.files.length) throw new Error(vscode.l10n.t('{0} contains no files that can be summarized.', name));
    bar.report({ message: vscode.l10n.t('loading the model') });
    const model = await this.#host.client.ready();
    let shown = 0;
    const result = await summarizeFolder({
      client: this.#host.client,
      cache: this.#cache,
      folder: name,
      files: found.files.map((uri) => this.#file(folder, uri)),
      maxTokens: this.#settings.current.chat.maxTokens,
      signal,
      onProgress: (numDone, numTotal) => {
        bar.report({
          message: vscode.l10n.t('{0} of {1} files', numDone, numTotal),
          increment: ((numDone - shown) / numTotal) * 100,
        });
        shown = numDone;
      },
    });
    if (!result) return;
    this.#log.info(
      `summarized a folder: ${result.files.length} files, ${result.numComputed} of them computed, ` +
        `${result.skipped.length} left out`,
    );
    if (!result.files.length) throw new Error(vscode.l10n.t('{0} contains no files that can be summarized.', name));
    const markdown = reportOf(name, result, notesOf(result, found, shownNote(model.note)), (path) =>
      linkTo(vscode.Uri.joinPath(folder, path)),
    );
    await this.#reports.show(folder, name, markdown);
  }

  #file(folder: vscode.Uri, uri: vscode.Uri): FolderFile {
    const docId = uri.toString();
    return {
      path: relativePath(folder, uri),
      read: () => readSource(uri),
      open: (text) => {
        const open = openDocument(uri);
        // The mirror owns the engine's copy of an open file. Sending another text under its id would break completions
        // in it.
        if (open && open.getText() !== text)
          throw new Error(vscode.l10n.t('{0} changed before it was read. Try again.', relativePath(folder, uri)));
        if (open) return this.#mirror.sync(open);
        this.#host.client.notify({ type: 'documentChanged', docId, version: 1, path: uri.path, text });
        return docId;
      },
      close: () => {
        if (openDocument(uri)) return;
        // The file's cached tokens would evict those of files in use. Its entry on disk, if any, is from earlier use
        // and stays.
        this.#host.client.notify({ type: 'evict', docId, memoryOnly: true });
        this.#host.client.notify({ type: 'documentClosed', docId });
      },
    };
  }
}

function notesOf(
  { files, numComputed, notes }: FolderResult,
  { secrets, numMore, cutOff }: FolderFiles,
  modelNote: string,
): string[] {
  const {
    t,
    numbers: { count },
  } = speech();
  const known = files.length - numComputed;
  return [
    ...(modelNote ? [modelNote] : []),
    ...(cutOff
      ? [t('The folder has more than {0} files; {1} of them are summarized.', count(MAX_LISTED), files.length)]
      : numMore
        ? [t('Only the first {0} files are summarized; {1} more are not.', MAX_FILES, count(numMore))]
        : []),
    ...(secrets.length
      ? [
          t(
            'Left out by kvasir.completion.exclude: {0}',
            secrets.slice(0, 10).join(', ') + (secrets.length > 10 ? ', …' : ''),
          ),
        ]
      : []),
    ...(known > 0 ? [t('{0} of {1} files have not changed since the last summary.', known, files.length)] : []),
    ...new Set(notes),
  ];
}

/** In a workspace folder, the path relative to it; else the last path segment. In one line. */
function nameOf(folder: vscode.Uri): string {
  const root = vscode.workspace.getWorkspaceFolder(folder)?.uri;
  if (root && root.toString() !== folder.toString()) return oneLine(vscode.workspace.asRelativePath(folder, false));
  return oneLine(folder.path.replace(/\/$/, '').split('/').at(-1) ?? '');
}

/** The active file's folder, the workspace's folders, or any other. */
async function pickFolder(): Promise<vscode.Uri | undefined> {
  const active = vscode.window.activeTextEditor?.document.uri;
  const roots = vscode.workspace.workspaceFolders ?? [];
  const inside = active && vscode.workspace.getWorkspaceFolder(active) ? [vscode.Uri.joinPath(active, '..')] : [];
  const offered = [...inside, ...roots.map(({ uri }) => uri)].filter(
    (uri, i, all) => all.findIndex((other) => other.path === uri.path) === i,
  );
  const items: (vscode.QuickPickItem & { uri?: vscode.Uri })[] = offered.map((uri) => ({
    label: `$(folder) ${oneLine(uri.path.slice(uri.path.lastIndexOf('/') + 1))}`,
    description: oneLine(uri.path),
    uri,
  }));
  items.push({ label: `$(folder-opened) ${vscode.l10n.t('Other folder…')}` });
  const picked = await vscode.window.showQuickPick(items, { placeHolder: vscode.l10n.t('Summarize which folder?') });
  if (!picked || picked.uri) return picked?.uri;
  return (
    await vscode.window.showOpenDialog({
      canSelectFiles: false,
      canSelectFolders: true,
      openLabel: vscode.l10n.t('Summarize'),
    })
  )?.[0];
}
