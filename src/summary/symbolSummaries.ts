/**
 * Summaries of functions and classes: computed only on request, then shown by the hover and the CodeLens. Hovering
 * computes nothing.
 */
import * as vscode from '../vscode.ts';
import { Anchor } from '../edit/anchor.ts';
import type { Settings } from '../config.ts';
import type { DocumentMirror } from '../client/documentMirror.ts';
import type { EngineHost } from '../client/engineHost.ts';
import { failureOf } from '../client/failure.ts';
import { type CodeSymbol, symbolsOf } from '../symbols.ts';
import type { KnownSummary, SummaryCache } from './summaryCache.ts';
import { DOCUMENTS } from '../completion/filter.ts';

/** Internal command of the hover's link and the lens. Takes `argumentsOf`. */
export const SUMMARIZE_SYMBOL = 'kvasir.summarizeSymbol';

export type SymbolArguments = [uri: string, name: string, line: number, character: number];

function argumentsOf(document: vscode.TextDocument, { name, nameRange }: CodeSymbol): SymbolArguments {
  return [document.uri.toString(), name, nameRange.start.line, nameRange.start.character];
}

/** Computes summaries on request and knows the finished ones. */
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

/** The hover of a symbol's name: its summary, or a link that makes one. */
export class SymbolHover implements vscode.HoverProvider {
  readonly #summaries: SymbolSummaries;
  readonly #settings: Settings;

  constructor(summaries: SymbolSummaries, settings: Settings) {
    this.#summaries = summaries;
    this.#settings = settings;
  }

  async provideHover(
    document: vscode.TextDocument,
    position: vscode.Position,
    token: vscode.CancellationToken,
  ): Promise<vscode.Hover | undefined> {
    if (
      !this.#settings.current.summary.hover ||
      vscode.languages.match(DOCUMENTS, document) === 0 ||
      !document.getWordRangeAtPosition(position)
    )
      return undefined;
    const symbol = (await symbolsOf(document)).find(({ nameRange }) => nameRange.contains(position));
    if (!symbol || token.isCancellationRequested) return undefined;
    const { known, running } = this.#summaries.of(document, symbol);
    const content = new vscode.MarkdownString('$(sparkle) ', true);
    // A model's words are shown as text, never as markup.
    if (known) {
      content.appendText(known.text);
      for (const note of known.notes) content.appendMarkdown('\n\n$(info) ').appendText(note);
    } else if (running) content.appendText(vscode.l10n.t('Kvasir is summarizing {0}', symbol.name));
    else {
      content.isTrusted = { enabledCommands: [SUMMARIZE_SYMBOL] };
      const target = `${SUMMARIZE_SYMBOL}?${encodeURIComponent(JSON.stringify(argumentsOf(document, symbol)))}`;
      content.appendMarkdown(`[${vscode.l10n.t('Summarize with Kvasir')}](command:${target})`);
    }
    return new vscode.Hover(content, symbol.nameRange);
  }
}

/** A file with more symbols is generated, or is read by its outline. */
const MAX_LENSES = 400;

/**
 * The lens above each symbol: "Summarize", later the summary's first sentence. Registered only while its setting is on.
 */
export class SymbolLens implements vscode.CodeLensProvider, vscode.Disposable {
  readonly #summaries: SymbolSummaries;
  readonly #settings: Settings;
  readonly #subscription: vscode.Disposable;
  #registration: vscode.Disposable | undefined;

  constructor(summaries: SymbolSummaries, settings: Settings) {
    this.#summaries = summaries;
    this.#settings = settings;
    this.#subscription = settings.onDidChange(() => this.#follow());
    this.#follow();
  }

  get onDidChangeCodeLenses(): vscode.Event<void> {
    return this.#summaries.onDidChange;
  }

  async provideCodeLenses(document: vscode.TextDocument): Promise<vscode.CodeLens[]> {
    const symbols = await symbolsOf(document);
    return symbols.slice(0, MAX_LENSES).map((symbol) => {
      const { known, running } = this.#summaries.of(document, symbol);
      const title = running
        ? vscode.l10n.t('Kvasir is summarizing {0}', symbol.name)
        : known
          ? firstSentence(known.text) + known.notes.map((note) => ` (${note})`).join('')
          : vscode.l10n.t('Summarize');
      return new vscode.CodeLens(symbol.nameRange, {
        title: `$(sparkle) ${withoutIcons(title)}`,
        tooltip: known ? [known.text, ...known.notes].join('\n\n') : '',
        command: SUMMARIZE_SYMBOL,
        arguments: argumentsOf(document, symbol),
      });
    });
  }

  dispose(): void {
    this.#subscription.dispose();
    this.#registration?.dispose();
  }

  #follow(): void {
    const wanted = this.#settings.current.summary.codeLens;
    if (wanted === (this.#registration !== undefined)) return;
    this.#registration?.dispose();
    this.#registration = wanted ? vscode.languages.registerCodeLensProvider(DOCUMENTS, this) : undefined;
  }
}

/** A lens would draw `$(name)` as an icon. */
function withoutIcons(text: string): string {
  return text.replace(/\$\(/g, '$ (');
}
