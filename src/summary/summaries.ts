/**
 * Creates and registers the features that summarize symbols and folders, over one cache of summaries, and the commands that
 * summarize files and selections as a turn of the chat.
 */
import { oneLine } from '../../engine/protocol/oneLine.ts';
import { messageOf } from '../format.ts';
import * as vscode from '../vscode.ts';
import type { Settings } from '../config.ts';
import type { DocumentMirror } from '../client/documentMirror.ts';
import type { EngineHost } from '../client/engineHost.ts';
import type { Log } from '../log.ts';
import { FolderCommand } from './folderCommand.ts';
import { FolderReports } from './folderReport.ts';
import { SummaryCache } from './summaryCache.ts';
import { SymbolHover, SymbolLens, SUMMARIZE_SYMBOL, type SymbolArguments, SymbolSummaries } from './symbolSummaries.ts';
import type { ChatView } from '../chat/chatView.ts';
import { readSource } from './sourceFiles.ts';

export class Summaries implements vscode.Disposable {
  readonly #cache: SummaryCache;
  readonly #disposables: vscode.Disposable[];

  constructor(
    context: vscode.ExtensionContext,
    host: EngineHost,
    mirror: DocumentMirror,
    settings: Settings,
    log: Log,
  ) {
    const { version } = context.extension.packageJSON as { version: string };
    const cache = new SummaryCache(context.workspaceState, () => `${version} ${settings.current.model}`);
    const symbols = new SymbolSummaries(host, mirror, settings, cache);
    const reports = new FolderReports();
    const folders = new FolderCommand(host, mirror, settings, cache, reports, log);
    this.#cache = cache;
    this.#disposables = [
      symbols,
      reports,
      folders,
      new SymbolLens(symbols, settings),
      // The less specific a selector, the lower its hover is placed: below that of the language's extension.
      vscode.languages.registerHoverProvider('*', new SymbolHover(symbols, settings)),
      vscode.commands.registerCommand(SUMMARIZE_SYMBOL, (...of: SymbolArguments) => symbols.summarize(...of)),
      vscode.commands.registerCommand('kvasir.summarizeFolder', (uri?: vscode.Uri) => folders.run(uri)),
    ];
  }

  /** Forgets all summaries, for this window and later ones. */
  forget(): void {
    void this.#cache.clear();
  }

  dispose(): void {
    for (const disposable of this.#disposables) disposable.dispose();
  }
}

/** `Kvasir: Summarize File`. `uri` comes from a menu. From the palette, the active editor's file is used. */
export async function summarizeFile(chat: ChatView, uri?: vscode.Uri): Promise<void> {
  const document = uri instanceof vscode.Uri ? await openSource(uri) : vscode.window.activeTextEditor?.document;
  if (document === null) return;
  if (!document) return tellNoFile();
  await chat.summarize(document, vscode.l10n.t('Summarize this file'), (docId) => ({ kind: 'summarize', docId }));
}

/** Null for a file that is not text, too large or missing; the user has been told. */
async function openSource(uri: vscode.Uri): Promise<vscode.TextDocument | null> {
  const name = oneLine(uri.path.slice(uri.path.lastIndexOf('/') + 1));
  const source = await readSource(uri, true);
  try {
    if ('skipped' in source) throw new Error(source.skipped);
    return await vscode.workspace.openTextDocument(uri);
  } catch (error) {
    void vscode.window.showErrorMessage(vscode.l10n.t('Kvasir cannot summarize {0}: {1}', name, messageOf(error)));
    return null;
  }
}

/** `Kvasir: Summarize Selection`. */
export async function summarizeSelection(chat: ChatView): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (!editor || editor.selection.isEmpty) return tellNoFile();
  const { document, selection } = editor;
  const [first, last] = [selection.start.line + 1, selection.end.line + (selection.end.character ? 1 : 0)];
  const question =
    first < last
      ? vscode.l10n.t('Summarize lines {0} to {1}', first, last)
      : vscode.l10n.t('Summarize line {0}', first);
  const range = rangeLater(editor);
  await chat.summarize(document, question, (docId) => ({ kind: 'summarize', docId, range: range() }));
}

/**
 * Where the selection is now, because loading the model may take a while. Throws an Error for the user if the document
 * has changed and the same text is no longer selected.
 */
export function rangeLater(editor: vscode.TextEditor): () => { start: number; end: number } {
  const { document, selection } = editor;
  const { version } = document;
  const text = document.getText(selection);
  const rangeOf = (of: vscode.Selection) => ({ start: document.offsetAt(of.start), end: document.offsetAt(of.end) });
  const range = rangeOf(selection);
  return () => {
    if (document.version === version) return range;
    // The editor moves its selection along with edits elsewhere.
    if (document.isClosed || document.getText(editor.selection) !== text)
      throw new Error(vscode.l10n.t('The file changed before the selection was read. Select the lines again.'));
    return rangeOf(editor.selection);
  };
}

function tellNoFile(): void {
  void vscode.window.showInformationMessage(vscode.l10n.t('Open a file to summarize.'));
}
