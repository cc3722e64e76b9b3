/**
 * Creates and registers the features that summarize symbols and folders, over one cache. Does not handle files and
 * selections: the chat does.
 */
import * as vscode from '../vscode.ts';
import type { Settings } from '../config.ts';
import type { DocumentMirror } from '../client/documentMirror.ts';
import type { EngineHost } from '../client/engineHost.ts';
import type { Log } from '../log.ts';
import { FolderCommand } from './folderCommand.ts';
import { FolderReports } from './folderReport.ts';
import { SummaryCache } from './summaryCache.ts';
import { SymbolHover, SymbolLens, SUMMARIZE_SYMBOL, type SymbolArguments, SymbolSummaries } from './symbolSummaries.ts';

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
