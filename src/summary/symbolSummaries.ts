/** Summaries of functions and classes, computed only on request. Hover and CodeLens show the finished ones. */
import * as vscode from '../vscode.ts';
import { Anchor } from '../edit/anchor.ts';
import type { Settings } from '../config.ts';
import type { DocumentMirror } from '../client/documentMirror.ts';
import type { EngineHost } from '../client/engineHost.ts';
import { failureOf } from '../client/failure.ts';
import { type CodeSymbol, symbolsOf } from '../symbols.ts';
import type { KnownSummary, SummaryCache } from './summaryCache.ts';

/** Internal command of the hover's link and the lens. Takes `argumentsOf`. */
export const SUMMARIZE_SYMBOL = 'kvasir.summarizeSymbol';

export type SymbolArguments = [uri: string, name: string, line: number, character: number];

export function argumentsOf(document: vscode.TextDocument, { name, nameRange }: CodeSymbol): SymbolArguments {
  return [document.uri.toString(), name, nameRange.start.line, nameRange.start.character];
}

export class SymbolSummaries implements vscode.Disposable {
  readonly #host: EngineHost;
  readonly #mirror: DocumentMirror;
  readonly #settings: Settings;
  readonly #cache: SummaryCache;
  readonly #changed = new vscode.EventEmitter<void>();
  /** Running summaries, by name and text. */
  readonly #running = new Set<string>();
  readonly #abort = new AbortController();

  constructor(host: EngineHost, mirror: DocumentMirror, settings: Settings, cache: SummaryCache) {
    this.#host = host;
    this.#mirror = mirror;
    this.#settings = settings;
    this.#cache = cache;
  }

  /** Fires when a summary is finished or started. */
  get onDidChange(): vscode.Event<void> {
    return this.#changed.event;
  }

  /** The known summary of a symbol in its current text. */
  of(document: vscode.TextDocument, symbol: CodeSymbol): { known?: KnownSummary | undefined; running: boolean } {
    const code = document.getText(symbol.range);
    return { known: this.#cache.get(['symbol', symbol.name], code), running: this.#running.has(symbol.name + code) };
  }

  /** Computes the summary unless it is known, and shows the hover at the symbol's name. */
  async summarize(...[uri, name, line, character]: SymbolArguments): Promise<void> {
    const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(uri));
    const position = new vscode.Position(line, character);
    const symbol = (await symbolsOf(document)).find(
      (one) => one.name === name && one.nameRange.start.isEqual(position),
    );
    if (!symbol) {
      void vscode.window.showInformationMessage(vscode.l10n.t('Kvasir: {0} no longer exists. Try again.', name));
      return;
    }
    const editor = vscode.window.activeTextEditor?.document === document ? vscode.window.activeTextEditor : undefined;
    // A hover is shown at the cursor, so the cursor moves to the name.
    if (editor) editor.selection = new vscode.Selection(position, position);
    const { known, running } = this.of(document, symbol);
    if (running) return;
    // Otherwise the clicked hover would keep its old text. An editor without this command closes it.
    await vscode.commands.executeCommand('editor.action.hideHover').then(undefined, () => {});
    if (!known && !(await this.#compute(document, symbol))) return;
    if (editor && vscode.window.activeTextEditor === editor && editor.selection.active.isEqual(position))
      await vscode.commands.executeCommand('editor.action.showHover');
  }

  dispose(): void {
    this.#abort.abort();
    this.#changed.dispose();
  }

  async #compute(document: vscode.TextDocument, { name, range }: CodeSymbol): Promise<boolean> {
    const code = document.getText(range);
    const anchor = new Anchor(document.getText(), {
      start: document.offsetAt(range.start),
      end: document.offsetAt(range.end),
    });
    const key = name + code;
    const tell = failureOf(this.#host);
    const { maxTokens } = this.#settings.current.chat;
    this.#running.add(key);
    this.#changed.fire();
    try {
      const done = await vscode.window.withProgress(
        { location: vscode.ProgressLocation.Window, title: vscode.l10n.t('Kvasir is summarizing {0}', name) },
        () =>
          this.#host.client.generate({
            task: () => {
              const at = anchor.locate(document.getText());
              if (!at) throw new Error(vscode.l10n.t('{0} changed before it was read. Try again.', name));
              return { kind: 'summarize', docId: this.#mirror.sync(document), range: { ...at, label: name } };
            },
            priority: 'summary',
            ...(maxTokens ? { sampling: { maxTokens } } : {}),
            signal: this.#abort.signal,
          }),
      );
      if (done.finishReason === 'abort') return false;
      if (!done.text) throw new Error(done.diagnostics.join('; ') || vscode.l10n.t('the model gave no summary'));
      this.#cache.set(['symbol', name], code, { text: done.text, notes: done.diagnostics });
      await this.#cache.save();
      return true;
    } catch (error) {
      tell(error);
      return false;
    } finally {
      this.#running.delete(key);
      if (!this.#abort.signal.aborted) this.#changed.fire();
    }
  }
}

/** The first sentence of a summary on one line, shortened if long. */
export function firstSentence(text: string, most = 120): string {
  const line = text.replace(/\s+/g, ' ').trim();
  const sentence = /^.+?[.!?](?=\s|$)/.exec(line)?.[0] ?? line;
  return sentence.length <= most ? sentence : `${sentence.slice(0, most - 1).trimEnd()}…`;
}
